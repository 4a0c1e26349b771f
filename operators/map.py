"""The `map` transform: rewrites every message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Self

from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context, Step
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import PerMessage
from headrace.compiler.component.fieldflow import Demand, FieldUse, Paths
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath, Missing, ScalarInTheWay
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.code import Code
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Codes, Fault, repeated
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators import mappingbranches
from headrace.operators.mappings import Drop, Mapping, Writing, present

CODES: Codes = {
    "scalar-in-the-way": "A path leads through a value that cannot be an object.",
}

WrittenField = tuple[DottedPath, str, str]
"""What a mapping wrote, as source: where, the name of the value, when ('' for always)."""


class Map(
    PerMessage,
    kind="map",
    listed=8,
    elsewhere="bloblang convert mapping mutate project remap rename select transform",
):
    """Rewrite each message: one message out for each one in.

    Mappings are applied in order, and later ones see what earlier ones wrote. Paths may be dotted;
    objects on the way are created. Null counts as missing. A mapping's `default` is written when the
    field is missing; without one `on_missing` decides. A message that is not an object passes
    unchanged, with one warning.
    """

    mappings: tuple[Writing | Drop, ...] = option(
        ListOf(VariantOf(Mapping), at_least=1, noun="mapping"),
        "What to write, in order.",
        elsewhere="fields mapping rules set",
    )
    keep: str = option(
        Choice(
            "all",
            "mapped",
            never_absent=True,
            elsewhere={"all": "everything true", "mapped": "false none only selected"},
        ),
        "Whether fields that nothing maps survive, or only what is written here.",
        default="all",
    )
    on_missing: str = option(
        Choice(
            "error",
            "omit",
            "null",
            null_word=True,
            never_absent=True,
            elsewhere={"error": "fail", "omit": "drop ignore skip"},
        ),
        "What a missing field means: the batch fails, nothing is written, or null is.",
        default="error",
    )

    @property
    def writings(self) -> list[tuple[int, Writing]]:
        """The mappings that write something, with their places."""
        return [(n, each) for n, each in enumerate(self.mappings) if isinstance(each, Writing)]

    def rules(self) -> Iterator[Fault]:
        """Refuse what cannot be meant: two writers of one field, a write below a scalar."""
        for index, mapping in enumerate(self.mappings):
            if isinstance(mapping, Drop) and self.keep == "mapped":
                yield Fault(
                    "conflict",
                    "a drop under 'keep: mapped' drops nothing: only what is mapped is kept",
                    expected="'keep: all', or no drop",
                    path=("mappings", index),
                )
        yield from repeated(
            ((each.target, _target_place(index, each)) for index, each in self.writings),
            said="'{name}' is written twice: {place} writes it already",
            expected="a field of its own for every mapping",
        )
        scalars: dict[str, tuple[int, Writing]] = {}
        for index, mapping in self.writings:
            if mapping.is_never_object:
                scalars.setdefault(mapping.target, (index, mapping))
        for index, mapping in self.writings:
            # the paths of the objects on the way to it
            for path in accumulate(mapping.target.split(".")[:-1], "{}.{}".format):
                if path in scalars:
                    yield _scalar_in_the_way(index, mapping, *scalars[path])

    def field_use(self) -> FieldUse:
        """Every source is read, every target may be written, what is dropped is gone."""
        targets = [DottedPath(each.target) for _, each in self.writings]
        # What lies on the way to a target decides whether it can be written.
        ways = [
            way for each in targets if not each.is_plain for way in (each.text, each.segments[0])
        ]
        return FieldUse.of(
            reads=[*ways, *(path for _, each in self.writings for path in each.sources)],
            writes=[each.text for each in targets],
            removes=[
                path for each in self.mappings if isinstance(each, Drop) for path in each.from_
            ],
            keeps=self.keep == "all",
            asks=(path for _, _, path, _ in self._asked()),
        )

    def demands(self) -> Iterator[Demand]:
        """Without them `on_missing` fails the batch; what an earlier mapping may have written apart."""
        for index, mapping, path, place in self._asked() if self.on_missing == "error" else ():
            if mapping.needs_all and mapping.fallback is None:
                default = "give it a 'default', " if hasattr(mapping, "default") else ""
                remedy = f"{default}set 'on_missing' to null or omit here"
                yield Demand(path, ("mappings", index, *place), remedy)

    def _asked(self) -> Iterator[tuple[int, Writing, str, Place]]:
        """Yield what is read that no earlier mapping can have written: by which, and where it is spelt."""
        written = Paths()
        for index, mapping in self.writings:
            for path, place in mapping.reads:
                if path not in written:
                    yield index, mapping, path, place
            written.add(mapping.target)

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """Of each mapping: what it reads is there, or `default` or `on_missing` is taken; a cast fails.

        Of ``on_missing: error`` that is no branch: nobody has chosen that way.
        """
        for index, mapping in self.writings:
            yield from mappingbranches.branches(mapping, self.on_missing, "mappings", index)

    def counting(self, took: Took) -> Self:
        """Return one with mappings that tell."""
        mappings = (
            mappingbranches.counted(each, took, "mappings", index)
            if isinstance(each, Writing)
            else each
            for index, each in enumerate(self.mappings)
        )
        return altered(self, mappings=tuple(mappings))

    def step(self, ctx: Context) -> Step:
        """Return the plain form: one message after the other, one mapping after the other."""

        def rewritten(batch: Batch) -> list[Batch]:
            return [[self._rewritten(message, ctx) for message in batch]]

        return rewritten

    def _rewritten(self, message: JsonValue, ctx: Context) -> JsonValue:
        if type(message) is not dict:
            ctx.warn_once("passed on a message that is not an object, unchanged")
            return message
        made: dict[str, Any] = {}
        for index, mapping in enumerate(self.mappings):
            try:
                if isinstance(mapping, Drop):
                    for path in mapping.from_:
                        message = DottedPath(path).remove(message)
                elif (value := self._value(mapping, message, ctx)) is not MISSING:
                    target = DottedPath(mapping.target)
                    message = target.write(message, value)
                    if self.keep == "mapped":
                        made = target.write(made, value)
            except (BatchFailed, ScalarInTheWay) as cause:
                raise BatchFailed(f"mapping {index} ('{mapping.tag}'): {cause}") from cause
        return made if self.keep == "mapped" else message

    def _value(self, mapping: Writing, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        value = mapping.value(message, ctx)
        if value is not MISSING:
            return value
        if mapping.fallback is not None:
            return mapping.fallback.constant
        if self.on_missing == "error":
            absent = [path for path in mapping.sources if present(path, message) is MISSING]
            raise BatchFailed(f"{_named(absent)} missing or null")
        return None if self.on_missing == "null" else MISSING

    def generate(self, code: Code, ctx: Context) -> None:
        """Write every mapping; whatever fails is left to the plain form."""
        kept: list[WrittenField] = []
        for mapping, is_seen in zip(self.mappings, self._seen(), strict=True):
            if isinstance(mapping, Writing):
                kept.append(self._write(mapping, code, ctx, is_seen=is_seen))
            else:
                for path in mapping.from_:
                    code.remove(DottedPath(path))
        if self.keep == "mapped":
            _replace(kept, code)

    def _write(self, mapping: Writing, code: Code, ctx: Context, *, is_seen: bool) -> WrittenField:
        """Write one mapping as source."""
        target, fallback = DottedPath(mapping.target), mapping.fallback
        is_lenient = fallback is not None or self.on_missing != "error"
        formula = mapping.source(code, ctx, optional=is_lenient)
        condition = formula.there if fallback is None and self.on_missing == "omit" else ""
        if condition and is_seen:
            is_checked = formula.check_apart(code)
            code.own()  # else every such block copies
            with code.block(f"if {condition}:"):
                if is_checked and formula.guard:
                    code.know(formula.guard)
                value = formula.write(code)
                code.write(target, value)
            return target, value, condition
        if is_lenient:
            value = formula.write_or(None if fallback is None else fallback.constant, code)
        else:
            value = formula.write_demanding(code)
        if is_seen:
            code.write(target, value)
        return target, value, condition

    def _seen(self) -> list[bool]:
        """Return of each mapping whether anything can tell that it wrote to the message itself.

        If only what is mapped is kept: whether a later mapping reads there, or something in the
        message may be in the way.
        """
        read: set[str] = set()
        seen = []
        for mapping in reversed(self.mappings):
            target = mapping.target if isinstance(mapping, Writing) else ""
            seen.append(self.keep == "all" or "." in target or target in read)
            if isinstance(mapping, Writing):
                read.update(DottedPath(path).segments[0] for path in mapping.sources)
        return seen[::-1]


def _replace(kept: Sequence[WrittenField], code: Code) -> None:
    """Put an object with all that was written in the place of the message."""
    values = {target.segments: value for target, value, _ in kept}
    is_nested = any(each[:end] in values for each in values for end in range(1, len(each)))
    if not is_nested and not any(condition for _, _, condition in kept):
        code.replace(_display(values))
        return
    made = code.let("{}", "made")
    for target, value, condition in kept:
        write = f"{made}[{target.text!r}] = {value}"
        if not target.is_plain:
            write = f"{made} = {code.constant(target, 'path')}.write({made}, {value})"
        code.line(f"if {condition}: {write}" if condition else write)
    code.replace(made)


def _display(values: dict[tuple[str, ...], str]) -> str:
    """Return the source of an object that has these values at these segments."""
    below: dict[str, dict[tuple[str, ...], str]] = {}
    for segments, value in values.items():
        below.setdefault(segments[0], {})[segments[1:]] = value
    members = (f"{key!r}: {inner.get(()) or _display(inner)}" for key, inner in below.items())
    return "{" + ", ".join(members) + "}"


def _scalar_in_the_way(index: int, mapping: Writing, by: int, other: Writing) -> Fault:
    return Fault(
        "scalar-in-the-way",
        f"cannot write '{mapping.target}': mappings[{by}] ({other.tag}) makes '{other.target}' "
        "a value that is no object",
        found=mapping.target,
        expected=f"a field that is not below '{other.target}'",
        path=_target_place(index, mapping),
    )


def _target_place(index: int, mapping: Writing) -> tuple[str | int, ...]:
    """Return where a mapping spells its target."""
    return "mappings", index, "as" if getattr(mapping, "as_", None) else "from"


def _named(fields: Sequence[str]) -> str:
    """Return fields as the subject of a sentence."""
    names = ", ".join(f"'{field}'" for field in fields)
    return f"field {names} is" if len(fields) == 1 else f"fields {names} are"
