"""The two conditions that a filter may have by itself, which tell what they drop for want of a value.

A value of another type matches nothing, and neither does a field that is missing. A boolean is no
number. Whatever else is asked of messages is in `compiler/component/conditions/`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.compiler.code import Code
from headrace.compiler.component.conditions.comparing import (
    BOUNDS,
    COMPARISON_WORDS,
    COMPARISONS,
    STRING_WORDS,
)
from headrace.compiler.component.fieldflow import ValueRange
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.fields import Choice, MessageField, Number, Text
from headrace.compiler.schema.records import Record, option

_NUMERIC = ("greater_than", "less_than", "equal_to")
_STRING = ("equal_to", "contains")


class Numeric(Record):
    """Compares a number. A boolean is none."""

    field: str = option(MessageField(), "Field to look at.", elsewhere="column key path source")
    operator: str = option(
        Choice(
            *_NUMERIC,
            elsewhere={word: COMPARISON_WORDS[word] for word in _NUMERIC},
        ),
        "How to compare.",
        elsewhere="comparison is op",
    )
    value: float = option(Number(), "Number to compare with.", elsewhere="number than threshold")

    wanted: ClassVar = "a number"

    @property
    def matching(self) -> ValueRange:
        """The numbers that match."""
        known: dict[str, Any] = {BOUNDS[self.operator]: self.value}
        return ValueRange(**known)

    def matches(self, found: JsonValue) -> bool | None:
        """Return whether a value matches; None when it is no number."""
        compare = COMPARISONS[self.operator][1]
        return bool(compare(found, self.value)) if type(found) in NUMBERS else None

    def source(self, code: Code, found: str, mismatch: str) -> str:
        """Return the condition as source; ``mismatch`` is called for another type and is false.

        A boolean compares like 0 or 1. Where neither would pass, types are looked at on the way out only.
        """
        compared = f"{found} {COMPARISONS[self.operator][0]} {code.constant(self.value, 'value')}"
        if code.is_hopeful and not (self.matches(0) or self.matches(1)):
            return f"{compared} or not {code.is_number(found)} and {mismatch}"
        return f"{compared} if {code.is_number(found)} else {mismatch}"


class String(Record):
    """Compares a string, case-sensitive. The empty string is contained in every string."""

    field: str = option(MessageField(), "Field to look at.", elsewhere="column key path source")
    operator: str = option(
        Choice(
            *_STRING,
            elsewhere={word: STRING_WORDS[word] for word in _STRING},
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
