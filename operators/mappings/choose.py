"""The mapping that writes the value of the first case that holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from headrace.compiler.code import Code
from headrace.compiler.component.branches import Branch, Took, altered
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.conditions import (
    Condition,
    all_counted,
    all_hold,
    outcomes,
    test_of_all,
)
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, Missing
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.fields import MessageField
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Path as Place
from headrace.operators.formula import Formula
from headrace.operators.literals import Literal, ValueOrField
from headrace.operators.mappings.mapping import Writing, missing, present

_MOST_CASES = 100


class Case(Record):
    """A value, and when it is the one."""

    when: tuple[Condition, ...] = option(
        ListOf(VariantOf(Condition), at_least=1, noun="condition"),
        "Conditions that all have to hold.",
        elsewhere="condition conditions if where",
    )
    value_: ValueOrField = option(
        VariantOf(ValueOrField), "What to write then.", elsewhere="output result then"
    )


class Choose(Writing, tag="choose", listed=150, elsewhere="case cond if match switch"):
    """Writes the value of the first case whose conditions hold.

    Where none holds, or the field is missing that the case names, `default` is written; without one,
    `on_missing` decides, and by default the batch fails: a missing field is not "ok" by accident.
    """

    cases: tuple[Case, ...] = option(
        ListOf(RecordOf(Case), at_least=1, at_most=_MOST_CASES, noun="case"),
        f"What to try, in order; at most {_MOST_CASES}.",
        elsewhere="choices rules",
    )
    as_: str = option(
        MessageField(), "Field to write.", elsewhere="alias field into name output target to"
    )
    default: Literal | None = option(
        VariantOf(Literal), "Written when no case holds.", default=None, elsewhere="else otherwise"
    )

    needs_all = False

    @property
    def is_never_object(self) -> bool:  # type: ignore[override]  # depends on the cases
        """Only a field may hold an object."""
        return all(case.value_.path is None for case in self.cases)

    @property
    def reads(self) -> Sequence[tuple[str, Place]]:
        """What the conditions look at, and the fields among the values."""
        found: list[tuple[str, Place]] = []
        for index, case in enumerate(self.cases):
            asked = [(path, each) for each, one in enumerate(case.when) for path in one.reads]
            found += [(path, ("cases", index, "when", each)) for path, each in asked]
            if case.value_.path is not None:
                found.append((case.value_.path, ("cases", index, "value", "field")))
        return found

    def value(self, message: JsonValue, ctx: Context) -> JsonValue | Missing:
        """Return the value of the first case that holds."""
        for index, case in enumerate(self.cases):
            if all_hold(case.when)(message):
                self.tell("chosen", "cases", index)
                path = case.value_.path
                return case.value_.constant if path is None else present(path, message)
        return MISSING

    def absence(self, message: JsonValue) -> BatchFailed:
        """Return that no case holds, or that the field of the one that does is missing."""
        held = (case.value_.path for case in self.cases if all_hold(case.when)(message))
        path = next(held, None)
        if path is None:
            return BatchFailed("none of its cases holds, and it has no 'default'")
        return missing([path], message)

    def source(self, code: Code, ctx: Context, *, optional: bool) -> Formula:
        """Ask one case after the other, in one expression."""
        null = code.constant(_NULL, "null")
        has_null = False
        chosen = ""
        for case in self.cases:
            value = case.value_.source(code, "value", optional=True)
            if case.value_.path is None and case.value_.constant is None:
                value, has_null = null, True
            chosen += f"{value} if ({test_of_all(case.when, code)}) else "
        name = code.let(f"{chosen}None", "chosen")
        value = f"None if {name} is {null} else {name}" if has_null else name
        return Formula(value, [name])

    def branches(self, on_missing: str, *path: str | int) -> Iterator[Branch]:
        """Each case is chosen, each of its conditions is true and false; none is chosen."""
        for index, case in enumerate(self.cases):
            yield Branch("chosen", "this case was never chosen", (*path, "cases", index))
            yield from outcomes(case.when, *path, "cases", index, "when")
        if self.fallback is not None:
            yield Branch("default", "'default' was never written", path)
        elif on_missing != "error":
            said = f"a case always held ('on_missing' is {on_missing})"
            yield Branch("on_missing", said, path)

    def counted(self, took: Took, *path: str | int) -> Self:
        """Return one that tells which case was chosen, with conditions that tell."""
        cases = tuple(
            altered(case, when=all_counted(case.when, took, *path, "cases", index, "when"))
            for index, case in enumerate(self.cases)
        )
        return super(Choose, altered(self, cases=cases)).counted(took, *path)


_NULL = object()
"""Stands for a null that a case writes, as None stands for nothing."""
