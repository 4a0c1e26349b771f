"""Conditions on one field of a message: what `filter`, `remember` and a buffer's gate ask.

A value of another type matches nothing, and neither does a field that is missing. A boolean is no
number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from headrace.compiler.component.branches import Branch, Took, telling
from headrace.compiler.component.fieldflow import ValueRange
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import DottedPath as Path
from headrace.compiler.lowering.code import Code
from headrace.compiler.schema.fields import Choice, MessageField, Number, Text
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.variants import Tagged

_SIGNS = {"greater_than": ">", "less_than": "<", "equal_to": "=="}
_FUNCTIONS = {"greater_than": operator.gt, "less_than": operator.lt, "equal_to": operator.eq}
_BOUNDS = {"greater_than": "above", "less_than": "below", "equal_to": "equal"}
"""What a comparison bounds in a range of values."""


class Numeric(Record):
    """Compares a number. A boolean is none."""

    field: str = option(MessageField(), "Field to look at.", elsewhere="column key path source")
    operator: str = option(
        Choice(
            "greater_than",
            "less_than",
            "equal_to",
            elsewhere={
                "greater_than": "> above gt larger more more_than over",
                "less_than": "< below fewer lt smaller under",
                "equal_to": "= == === eq equal equals is",
            },
        ),
        "How to compare.",
        elsewhere="comparison is op",
    )
    value: float = option(Number(), "Number to compare with.", elsewhere="number than threshold")

    wanted: ClassVar = "a number"

    @property
    def matching(self) -> ValueRange:
        """The numbers that match."""
        known: dict[str, Any] = {_BOUNDS[self.operator]: self.value}
        return ValueRange(**known)

    def matches(self, found: JsonValue) -> bool | None:
        """Return whether a value matches; None when it is no number."""
        compare = _FUNCTIONS[self.operator]
        return bool(compare(found, self.value)) if type(found) in NUMBERS else None

    def source(self, code: Code, found: str, mismatch: str) -> str:
        """Return the condition as source; ``mismatch`` is called for another type and is false.

        A boolean compares like 0 or 1. Where neither would pass, types are looked at on the way out only.
        """
        compared = f"{found} {_SIGNS[self.operator]} {code.constant(self.value, 'value')}"
        if code.is_hopeful and not (self.matches(0) or self.matches(1)):
            return f"{compared} or not {code.is_number(found)} and {mismatch}"
        return f"{compared} if {code.is_number(found)} else {mismatch}"

    def test(self, code: Code, found: str) -> str:
        """Return the condition as source that is false, and raises nothing, for another type."""
        compared = f"{found} {_SIGNS[self.operator]} {code.constant(self.value, 'value')}"
        if self.operator == "equal_to":  # anything can be asked that; rarely is there more to ask
            return f"{compared} and {code.is_number(found)}"
        return f"{code.is_number(found)} and {compared}"


class String(Record):
    """Compares a string, case-sensitive. The empty string is contained in every string."""

    field: str = option(MessageField(), "Field to look at.", elsewhere="column key path source")
    operator: str = option(
        Choice(
            "equal_to",
            "contains",
            elsewhere={
                "equal_to": "= == === eq equal equals is",
                "contains": "has in includes like substring",
            },
        ),
        "How to compare.",
        elsewhere="comparison is op",
    )
    value: str = option(Text(), "String to compare with.", elsewhere="text")

    wanted: ClassVar = "a string"

    @property
    def matching(self) -> ValueRange:
        """The strings that match."""
        is_whole = self.operator == "equal_to"
        return ValueRange(equal=self.value) if is_whole else ValueRange(containing=self.value)

    def matches(self, found: JsonValue) -> bool | None:
        """Return whether a value matches; None when it is no string."""
        if type(found) is not str:
            return None
        return self.value == found if self.operator == "equal_to" else self.value in found

    def source(self, code: Code, found: str, mismatch: str) -> str:
        """Return the condition as source; ``mismatch`` is called for another type and is false."""
        value = code.constant(self.value, "value")
        if self.operator == "equal_to":
            return f"{found} == {value} or {found}.__class__ is not str and {mismatch}"
        return f"{value} in {found} if {found}.__class__ is str else {mismatch}"

    def test(self, code: Code, found: str) -> str:
        """Return the condition as source that is false, and raises nothing, for another type."""
        value = code.constant(self.value, "value")
        if self.operator == "equal_to":
            return f"{found} == {value}"
        return f"{found}.__class__ is str and {value} in {found}"


_C = TypeVar("_C", bound="Numeric | String | Condition")


def outcomes(condition: Numeric | String | Condition, *path: str | int) -> Iterator[Branch]:
    """Yield the branches of a condition, which stands at a path of its component."""
    for outcome in ("true", "false"):
        said = f"the condition on '{condition.field}' was never {outcome}"
        yield Branch(outcome, said, path)


def counted(condition: _C, took: Took, *path: str | int) -> _C:
    """Return a condition that tells whether it held. For a value of another type it does not."""
    return telling(
        condition, "matches", lambda matches: took("true" if matches else "false", *path)
    )


class Condition(Tagged):
    """Holds for a message or does not. Of a list of conditions all have to hold."""

    if TYPE_CHECKING:  # at run time it is an option of each variant, and none of the root
        field: str

    def matches(self, found: JsonValue) -> bool | None:
        """Return whether a value matches; None when it is of another type."""
        raise NotImplementedError

    def test(self, code: Code, found: str) -> str:
        """Return the condition as source that is false, and raises nothing, for another type."""
        raise NotImplementedError


class NumericCondition(Numeric, Condition, tag="numeric", elsewhere="number"):
    """Compares a number."""


class StringCondition(String, Condition, tag="string", elsewhere="text"):
    """Compares a string, case-sensitive. The empty string is contained in every string."""


def outcomes_of_all(conditions: Sequence[Condition], *path: str | int) -> Iterator[Branch]:
    """Yield the branches of a list of conditions."""
    for index, each in enumerate(conditions):
        yield from outcomes(each, *path, index)


def all_counted(
    conditions: Sequence[Condition], took: Took, *path: str | int
) -> tuple[Condition, ...]:
    """Return conditions that tell whether they held; behind the first that does not, none is asked."""
    return tuple(counted(each, took, *path, index) for index, each in enumerate(conditions))


def all_hold(conditions: Sequence[Condition]) -> Callable[[JsonValue], bool]:
    """Return the test whether all conditions hold for a message, the plain and slow one."""
    asked = [(Path(each.field), each) for each in conditions]
    return lambda message: all(each.matches(path.read(message)) for path, each in asked)


@contextmanager
def where_all_hold(conditions: Sequence[Condition], code: Code) -> Iterator[None]:
    """Write what is written inside for those messages only for which all conditions hold.

    That one does not hold is no reason to tell: messages without the field are as usual as any.
    """
    found = [code.read(Path(each.field), optional=True) for each in conditions]
    tests = [each.test(code, value) for each, value in zip(conditions, found, strict=True)]
    with code.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
        yield
