"""Conditions on what one field holds: that it is there, a boolean, one of some values, or matches."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from headrace.compiler.code import Code
from headrace.compiler.component.conditions.condition import OnField, field_option
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.patterns import whole_pattern
from headrace.compiler.schema.fields import Boolean, Scalar
from headrace.compiler.schema.patterntext import PatternText
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import ListOf
from headrace.compiler.text.diagnostics import shown

MOST_VALUES = 10_000
"""Values that a field may be one of."""
_SHOWN_VALUES = 5
_USUAL = 100
"""Characters of a text that is looked at without being added up to the time that a batch takes at once."""
_LOOKED_AT = 10
"""Nanoseconds that a character takes, usually: it may be four bytes."""


class BooleanCondition(OnField, tag="boolean", elsewhere="bool flag"):
    """Holds where a field is true, or where it is false."""

    field: str = field_option()
    value: bool = option(
        Boolean(), "Which of both it has to be.", default=True, elsewhere="equal_to equals is"
    )

    def matches(self, found: JsonValue) -> bool:
        """Return whether it is that boolean."""
        return found is self.value

    def test(self, code: Code, found: str) -> str:
        """Ask for that boolean."""
        return f"{found} is {self.value}"

    @property
    def wanted(self) -> str:
        """That boolean."""
        return shown(self.value)


class ExistsCondition(OnField, tag="exists", elsewhere="has is_not_null is_set not_null present"):
    """Holds where a field is there and not null."""

    field: str = field_option()

    def matches(self, found: JsonValue) -> bool:
        """Return whether it is not null."""
        return found is not None

    def test(self, code: Code, found: str) -> str:
        """Ask for anything but null."""
        return f"{found} is not None"

    @property
    def wanted(self) -> str:
        """That it is there."""
        return "exists"


class OneOfCondition(OnField, tag="one_of", elsewhere="any_of in in_list is_in is_one_of"):
    """Holds where a field is one of some strings, numbers and booleans.

    Their types count: 1 is neither true nor "1", but it is 1.0.
    """

    field: str = field_option()
    values_: tuple[str | float | bool, ...] = option(
        ListOf(Scalar(), at_least=1, at_most=MOST_VALUES),
        f"What it may be; at most {MOST_VALUES:,}.",
        elsewhere="among list one_of options value",
    )

    def matches(self, found: JsonValue) -> bool:
        """Look among the values of its type."""
        if type(found) is str:
            return found in self._apart.strings
        if type(found) is bool:
            return found in self._apart.booleans
        return type(found) in NUMBERS and found in self._apart.numbers

    def test(self, code: Code, found: str) -> str:
        """Look at the type, and then among the values of that."""
        strings, numbers, booleans = self._apart
        tests = [f"{found} is {each}" for each in sorted(booleans)]
        if numbers:
            among = code.constant(numbers, "numbers")
            tests.insert(0, f"{code.is_number(found)} and {found} in {among}")
        if strings:
            among = code.constant(strings, "strings")
            tests.insert(0, f"{found}.__class__ is str and {found} in {among}")
        return f"({' or '.join(tests)})"

    @property
    def wanted(self) -> str:
        """The values, of many the first ones."""
        first = ", ".join(map(shown, self.values_[:_SHOWN_VALUES]))
        more = len(self.values_) - _SHOWN_VALUES
        return f"one_of {first}" + (f" and {more:,} more" if more > 0 else "")

    @cached_property
    def _apart(self) -> _Apart:
        """The values by their types: as keys, 1 would be true."""
        return _Apart(
            frozenset(each for each in self.values_ if isinstance(each, str)),
            frozenset(each for each in self.values_ if not isinstance(each, str | bool)),
            frozenset(each for each in self.values_ if isinstance(each, bool)),
        )


class _Apart(NamedTuple):
    strings: frozenset[str]
    numbers: frozenset[float]
    booleans: frozenset[bool]


class MatchesCondition(OnField, tag="matches", elsewhere="like match pattern regexp rlike"):
    """Holds where a string matches a [regular expression](patterns.md) somewhere.

    `^` and `$` bind it to the ends of the string. A text of more than 1 MiB does not match.
    """

    field: str = field_option()
    regex: str = option(
        PatternText(whole_pattern),
        "What it has to match: an automaton of at most 1 MiB.",
        elsewhere="expression pattern re regexp value",
    )

    def matches(self, found: JsonValue) -> bool:
        """Look for it in a string."""
        return type(found) is str and whole_pattern(self.regex).is_match(found)

    def test(self, code: Code, found: str) -> str:
        """Look at the type, and for it in the string."""
        long = f"{found}.__class__ is str and len({found}) > {_USUAL}"
        code.spend(f"{_LOOKED_AT} * len({found})", long)
        is_match = code.constant(whole_pattern(self.regex).is_match, "is_match")
        return f"{found}.__class__ is str and {is_match}({found})"

    @property
    def wanted(self) -> str:
        """That it matches."""
        return f"matches {shown(self.regex)}"
