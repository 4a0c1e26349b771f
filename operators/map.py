"""The `map` transform: rewrites every message."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.errors import BatchFailed
from headrace.compiler.language.context import Context, Step
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.families import PerMessage
from headrace.compiler.language.fieldflow import FieldUse, Paths
from headrace.compiler.language.fields import Choice, ListOf, VariantOf
from headrace.compiler.language.records import option
from headrace.compiler.lowering.paths import MISSING, DottedPath
from headrace.operators.mappings import Drop, Formula, Mapping

if TYPE_CHECKING:
    from headrace.compiler.lowering.code import Code

_LARGEST = 1.7976931348623157e308


class Map(PerMessage, kind="map", listed=8):
    """Rewrite each message: one message out for each one in.

    Mappings are applied in order, and later ones see what earlier ones wrote. Paths may be dotted;
    objects on the way are created. Null counts as missing. A mapping's `default` is written when the
    field is missing; without one `on_missing` decides. A message that is not an object passes
    unchanged, with one warning.
    """

    mappings: tuple[Mapping, ...] = option(
        ListOf(VariantOf(Mapping), at_least=1, noun="mapping"), "What to write, in order."
    )
    keep: str = option(
        Choice("all", "mapped", never_absent=True),
        "Whether fields that nothing maps survive, or only what is written here.",
        default="all",
    )
    on_missing: str = option(
        Choice("error", "omit", "null", null_word=True, never_absent=True),
        "What a missing field means: the batch fails, nothing is written, or null is.",
        default="error",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse what cannot be meant: two writers of one field, a write below a scalar."""
        written: dict[str, int] = {}
        for index, mapping in enumerate(self.mappings):
            if mapping.target is None:
                if self.keep == "mapped":
                    yield Fault(
                        "conflict",
                        "a drop under 'keep: mapped' drops nothing: only what is mapped is kept",
                        expected="'keep: all', or no drop",
                        path=("mappings", index),
                    )
                continue
            if mapping.target in written:
                first = written[mapping.target]
                yield Fault(
                    "duplicate",
                    f"'{mapping.target}' is written twice: mappings[{first}] writes it already",
                    found=mapping.target,
                    expected="a field of its own for every mapping",
                    path=("mappings", index),
                )
            written.setdefault(mapping.target, index)
        yield from self._scalars_in_the_way(written)

    def _scalars_in_the_way(self, written: dict[str, int]) -> Iterator[Fault]:
        for target, index in written.items():
            for parent, by in written.items():
                if target.startswith(parent + ".") and self.mappings[by].is_never_object:
                    yield Fault(
                        "scalar-in-the-way",
                        f"cannot write '{target}': mappings[{by}] ({self.mappings[by].tag}) makes "
                        f"'{parent}' a value that is no object",
                        found=target,
                        expected=f"a field that is not below '{parent}'",
                        path=("mappings", index),
                    )

    def field_use(self) -> FieldUse:
        """Every source is read, every target may be written, what is dropped is gone."""
        dropped = [path for each in self.mappings if isinstance(each, Drop) for path in each.from_]
        asked, written = set[str](), Paths()
        for each in self.mappings:
            asked.update(path for path in each.sources if path not in written)
            if each.target is not None:
                written.add(each.target)
        return FieldUse.of(
            reads=[path for each in self.mappings for path in each.sources],
            asks=asked,
            writes=[each.target for each in self.mappings if each.target is not None],
            removes=dropped,
            keeps=self.keep == "all",
        )

    def step(self, ctx: Context) -> Step:
        """Return the plain form: one mapping after the other, one message after the other."""

        def rewritten(batch: Batch) -> list[Batch]:
            return [[self._rewritten(message, ctx) for message in batch]]

        return rewritten

    def _rewritten(self, message: JsonValue, ctx: Context) -> JsonValue:
        if type(message) is not dict:
            ctx.warn_once("a message that is not an object passes unchanged")
            return message
        written: dict[str, JsonValue] = {}
        for index, mapping in enumerate(self.mappings):
            try:
                if isinstance(mapping, Drop):
                    for path in mapping.from_:
                        message = DottedPath(path).remove(message)
                    continue
                value = self._value(mapping, message)
                if value is not MISSING and mapping.target is not None:
                    target = DottedPath(mapping.target)
                    message, written = target.write(message, value), target.write(written, value)
            except (ValueError, BatchFailed) as cause:
                raise BatchFailed(f"mapping {index} ('{mapping.tag}'): {cause}") from cause
        return written if self.keep == "mapped" else message

    def _value(self, mapping: Mapping, message: JsonValue) -> JsonValue:
        value = mapping.value(message)
        if value is not MISSING:
            return value
        if mapping.fallback is not None:
            return mapping.fallback.constant
        if self.on_missing == "error":
            names = " and ".join(f"'{path}'" for path in mapping.sources)
            raise BatchFailed(f"{names} is missing")
        return None if self.on_missing == "null" else MISSING

    def generate(self, code: Code, ctx: Context) -> None:
        """Write every mapping; whatever fails is left to the plain form."""
        if self.on_missing == "omit":
            code.own()  # else every conditional write copies
        kept: list[tuple[str, str, str]] = []
        for mapping in self.mappings:
            if isinstance(mapping, Drop):
                for path in mapping.from_:
                    code.remove(DottedPath(path))
                continue
            assert mapping.target is not None
            name, condition = self._let(mapping, code)
            kept.append((mapping.target, name, condition))
            if condition:
                with code.block(f"if {condition}:"):
                    code.write(DottedPath(mapping.target), name)
            else:
                code.write(DottedPath(mapping.target), name)
        if self.keep == "mapped":
            self._keep_mapped(code, kept)

    def _let(self, mapping: Mapping, code: Code) -> tuple[str, str]:
        """Bind a mapping's value; return its name, and when it is written ('' for always)."""
        is_lenient = mapping.fallback is not None or self.on_missing != "error"
        formula = mapping.source(code, is_lenient)
        there = " and ".join(f"{name} is not None" for name in formula.names)
        if not is_lenient or not there:
            if guard := formula.guard or there:
                code.give_up_unless(guard)
            name = code.let(formula.expression, "value")
            if formula.must_be_finite:
                code.give_up_unless(f"-{_LARGEST} <= {name} <= {_LARGEST}")
            return name, ""
        otherwise = mapping.fallback.constant if mapping.fallback is not None else None
        name = code.let(
            f"{_guarded(formula, code)} if {there} else {code.constant(otherwise)}", "value"
        )
        writes_always = mapping.fallback is not None or self.on_missing == "null"
        return name, "" if writes_always else there

    @staticmethod
    def _keep_mapped(code: Code, kept: list[tuple[str, str, str]]) -> None:
        if all("." not in target and not condition for target, _, condition in kept):
            code.replace("{" + ", ".join(f"{target!r}: {name}" for target, name, _ in kept) + "}")
            return
        made = code.let("{}", "made")
        for target, name, condition in kept:
            path = DottedPath(target)
            write = f"{made}[{target!r}] = {name}"
            if not path.is_plain:
                # The variable holds an object of ours; binding it again is safe in a statement.
                write = f"{made} = {code.constant(path, 'path')}.write({made}, {name})"
            code.line(f"if {condition}: {write}" if condition else write)
        code.replace(made)


def _guarded(formula: Formula, code: Code) -> str:
    """Return the expression of a formula with its guards inside it."""
    expression = f"({formula.expression})"
    if formula.must_be_finite:
        expression = f"{code.constant(_finite, 'finite')}{expression}"
    if formula.guard:
        expression = (
            f"({expression} if {formula.guard} else {code.constant(_give_up, 'give_up')}())"
        )
    return expression


def _finite(number: float) -> float:
    if type(number) is float and not math.isfinite(number):
        raise OverflowError
    return number


def _give_up() -> None:
    raise TypeError
