"""Conditions that compare: numbers and strings with a value or another field, lengths with a number."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from headrace.compiler.code import Code
from headrace.compiler.component.conditions.condition import OnField, field_option, found_at
from headrace.compiler.component.fieldflow import ValueRange
from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.schema.fields import Boolean, Choice, Integer, MessageField, Number, Text
from headrace.compiler.schema.records import option
from headrace.compiler.text.diagnostics import Fault, shown

COMPARISONS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "greater_than": (">", operator.gt),
    "less_than": ("<", operator.lt),
    "equal_to": ("==", operator.eq),
    "at_least": (">=", operator.ge),
    "at_most": ("<=", operator.le),
    "not_equal_to": ("!=", operator.ne),
}
"""How numbers compare: as source, and as a function."""
_STRINGS: Mapping[str, tuple[str, Callable[[str, str], bool]]] = {
    "equal_to": ("{0} == {1}", operator.eq),
    "contains": ("{1} in {0}", operator.contains),
    "not_equal_to": ("{0} != {1}", operator.ne),
    "starts_with": ("{0}.startswith({1})", str.startswith),
    "ends_with": ("{0}.endswith({1})", str.endswith),
}
"""How strings compare: as source of both, and as a function."""
BOUNDS = {
    "greater_than": "above",
    "less_than": "below",
    "equal_to": "equal",
    "at_least": "at_least",
    "at_most": "at_most",
}
"""What a comparison bounds in a range of values."""
COMPARISON_WORDS = {
    "greater_than": "> above gt larger more more_than over",
    "less_than": "< below fewer lt smaller under",
    "equal_to": "= == === eq equal equals is",
    "at_least": ">= => ge gte min minimum not_less_than greater_or_equal greater_than_or_equal",
    "at_most": "<= =< le lte max maximum not_greater_than less_or_equal less_than_or_equal",
    "not_equal_to": "!= <> ne neq not_equal is_not differs",
}
"""What they are called elsewhere."""
STRING_WORDS = {
    "equal_to": COMPARISON_WORDS["equal_to"],
    "not_equal_to": COMPARISON_WORDS["not_equal_to"],
    "contains": "has in includes like substring",
    "starts_with": "begins begins_with has_prefix prefix startswith",
    "ends_with": "endswith has_suffix suffix",
}
LONGEST_FOLDED = 8_192
"""Characters of a text that is compared whatever its case."""
LONGEST_SEARCHED = 8_192
"""Characters of a text in which another one of the message is looked for, which takes up to 0.25 ms."""
_FEW = 100
"""Characters of a text that Python looks for, or in, within 3 µs, where all but one match at each place."""
_FOLDED = 20
"""Nanoseconds that a character takes whose case is ignored, at most."""
_FEW_FOLDED = 50
"""The same of texts whose case is ignored, of both together: what is added up is what more of them take."""


class Comparing(OnField):
    """A condition that compares with a value, or with another field of the message."""

    if TYPE_CHECKING:  # at run time they are options of each variant
        operator: str
        value: Any
        other: str | None

    def rules(self) -> Iterator[Fault]:
        """Refuse two things to compare with, and none."""
        expected = "exactly one of value, other"
        if self.value is None and self.other is None:
            yield Fault(
                "missing-key",
                "there is nothing to compare with: give 'value' or 'other'",
                expected=expected,
            )
        elif self.value is not None and self.other is not None:
            yield Fault("conflict", "it compares with one thing, not both", expected=expected)

    @property
    def reads(self) -> Sequence[str]:
        """One field, or both."""
        return (self.field,) if self.other is None else (self.field, self.other)

    @property
    def needs(self) -> Sequence[str]:
        """What it reads: without one of them, it does not hold."""
        return self.reads

    def holds(self, message: JsonValue) -> bool:
        """Compare what is there."""
        found = self.path.read(message)
        value = self.value if self.other is None else DottedPath(self.other).read(message)
        return found is not MISSING and value is not MISSING and self.compares(found, value)

    def compares(self, found: JsonValue, value: JsonValue) -> bool:
        """Return whether both are of the type that is compared, and compare so."""
        raise NotImplementedError

    @property
    def wanted(self) -> str:
        """The comparison, and what with."""
        with_ = shown(self.value) if self.other is None else f"'{self.other}'"
        return f"{self.operator} {with_}"

    def unmet(self, message: JsonValue) -> str:
        """Return what it found, and what it compared that with."""
        wanted = shown(self.value)
        if self.other is not None:
            wanted = f"'{self.other}', which is {found_at(self.other, message)}"
        found = found_at(self.field, message)
        return f"'{self.field}' is {found}, and the condition is {self.operator} {wanted}"


class NumericCondition(Comparing, tag="numeric", elsewhere="number"):
    """Compares a number with a value, or with the number in another field. A boolean is no number."""

    field: str = field_option()
    operator: str = option(
        Choice(*COMPARISONS, elsewhere=COMPARISON_WORDS),
        "How to compare.",
        elsewhere="comparison is op",
    )
    value: float | None = option(
        Number(), "Number to compare with.", default=None, elsewhere="number than threshold"
    )
    other: str | None = option(
        MessageField(),
        "Field that holds the number to compare with, in place of `value`.",
        default=None,
        elsewhere="other_field than_field value_field",
    )

    @property
    def ranges(self) -> Iterable[tuple[str, ValueRange]]:
        """The numbers that match."""
        bound = BOUNDS.get(self.operator)
        if self.value is None or bound is None:
            return ()
        known: dict[str, Any] = {bound: self.value}
        return ((self.field, ValueRange(**known)),)

    def compares(self, found: JsonValue, value: JsonValue) -> bool:
        """Compare two numbers, exactly."""
        _, compare = COMPARISONS[self.operator]
        return type(found) in NUMBERS and type(value) in NUMBERS and bool(compare(found, value))

    def source(self, code: Code) -> str:
        """Read what is compared, look at the types and compare."""
        found = code.read(self.path, optional=True)
        sign, _ = COMPARISONS[self.operator]
        if self.other is not None:
            value = code.read(DottedPath(self.other), optional=True)
            types = f"{code.is_number(found)} and {code.is_number(value)}"
            return f"{types} and {found} {sign} {value}"
        compared = f"{found} {sign} {code.constant(self.value, 'value')}"
        if self.operator == "equal_to":  # anything can be asked that; rarely is there more to ask
            return f"{compared} and {code.is_number(found)}"
        return f"{code.is_number(found)} and {compared}"

    def learn(self, code: Code) -> None:
        """What was compared is a number."""
        for path in self.reads:
            code.know(code.is_number(code.read(DottedPath(path), optional=True)))


class StringCondition(Comparing, tag="string", elsewhere="text"):
    """Compares a string with a value, or with the string in another field.

    With its case, unless that is ignored. The empty string is contained in every string.
    """

    field: str = field_option()
    operator: str = option(
        Choice(*_STRINGS, elsewhere=STRING_WORDS),
        "How to compare.",
        elsewhere="comparison is op",
    )
    value: str | None = option(Text(), "String to compare with.", default=None, elsewhere="text")
    other: str | None = option(
        MessageField(),
        "Field that holds the string to compare with, in place of `value`. `contains` looks for it in "
        "texts of up to 8,192 characters; a longer one does not match.",
        default=None,
        elsewhere="other_field value_field",
    )
    ignore_case: bool = option(
        Boolean(),
        "Whether upper and lower case are the same. A text of more than 8,192 characters does not match "
        "then.",
        default=False,
        elsewhere="case_insensitive insensitive ignorecase nocase",
    )

    @property
    def ranges(self) -> Iterable[tuple[str, ValueRange]]:
        """The strings that match."""
        if self.value is None or self.ignore_case or self.operator == "not_equal_to":
            return ()
        if self.operator == "equal_to":
            return ((self.field, ValueRange(equal=self.value)),)
        return ((self.field, ValueRange(containing=self.value)),)

    def rules(self) -> Iterator[Fault]:
        """Refuse what nothing could match."""
        yield from super().rules()
        if self.ignore_case and self.value is not None and len(self.value) > LONGEST_FOLDED:
            yield Fault(
                "out-of-range",
                f"a text of {len(self.value):,} characters is too long to ignore its case",
                expected=f"at most {LONGEST_FOLDED:,} characters, or no 'ignore_case'",
                path=("value",),
            )

    def compares(self, found: JsonValue, value: JsonValue) -> bool:
        """Compare two strings."""
        if type(found) is not str or type(value) is not str:
            return False
        if not self.ignore_case:
            return self._comparison(found, value)
        folded = _folding(self._comparison)
        return len(value) <= LONGEST_FOLDED and folded(found, value.casefold())

    @property
    def _comparison(self) -> Callable[[str, str], bool]:
        """How two strings compare; what is longer than the other is not in it, at once."""
        if self.other is not None and self.operator == "contains":
            return _is_within
        return _STRINGS[self.operator][1]

    def source(self, code: Code) -> str:
        """Read what is compared, look at the types and compare."""
        found = code.read(self.path, optional=True)
        is_string = f"{found}.__class__ is str"
        if self.other is None:
            value = self.value.casefold() if self.ignore_case and self.value else self.value
            if self.ignore_case:
                where = f"{is_string} and len({found}) > {_FEW_FOLDED}"
                code.spend(f"{_FOLDED} * len({found})", where)
            compared = self._compared(code, found, code.constant(value, "value"))
            is_whole = self.operator == "equal_to" and not self.ignore_case
            return compared if is_whole else f"{is_string} and {compared}"
        other = code.read(DottedPath(self.other), optional=True)
        are_strings = f"{is_string} and {other}.__class__ is str"
        self._spend(code, found, other, are_strings)
        if not self.ignore_case:
            return f"{are_strings} and {self._compared(code, found, other)}"
        compared = self._compared(code, found, f"{other}.casefold()")
        return f"{are_strings} and len({other}) <= {LONGEST_FOLDED} and {compared}"

    def _spend(self, code: Code, found: str, other: str, are_strings: str) -> None:
        """Write what two strings of a message may take, if that is much.

        At each place of the one that is long enough for the other, all but one of its characters may match.
        Those of both may be three without their case.
        """
        looks_everywhere = self.operator == "contains"
        if self.ignore_case:
            searched = f" + 9 * len({found}) * len({other})" if looks_everywhere else ""
            characters = f"len({found}) + len({other})"
            cost = f"{_FOLDED} * ({characters}){searched}"
            code.spend(cost, f"{are_strings} and {characters} > {_FEW_FOLDED}")
        elif looks_everywhere:
            # What is looked for may be longer: it is not in it, and takes nothing.
            where = f"{are_strings} and len({found}) > {_FEW} and len({found}) > len({other})"
            code.spend(f"(len({found}) - len({other})) * len({other})", where)

    def _compared(self, code: Code, found: str, value: str) -> str:
        """Return the comparison of two strings as source."""
        if self.ignore_case:
            return f"{code.constant(_folding(self._comparison), 'folded')}({found}, {value})"
        compared = _STRINGS[self.operator][0].format(found, value)
        if self._comparison is not _is_within:
            return compared
        searched = f"{code.constant(_is_within, 'is_within')}({found}, {value})"
        return f"({compared} if len({found}) <= {_FEW} else {searched})"


class LengthCondition(OnField, tag="length", elsewhere="count len size"):
    """Compares how long something is: the characters of a string, items of a list, keys of an object."""

    field: str = field_option()
    operator: str = option(
        Choice(*COMPARISONS, elsewhere=COMPARISON_WORDS),
        "How to compare.",
        elsewhere="comparison is op",
    )
    value: int = option(Integer(), "Length to compare with.", elsewhere="length number than")

    def matches(self, found: JsonValue) -> bool:
        """Compare the length of what has one."""
        _, compare = COMPARISONS[self.operator]
        return type(found) in _LONG and bool(compare(len(found), self.value))

    def test(self, code: Code, found: str) -> str:
        """Look at the type, and compare the length."""
        sign, _ = COMPARISONS[self.operator]
        long = code.constant(_LONG, "long")
        return f"{found}.__class__ in {long} and len({found}) {sign} {self.value}"

    @property
    def wanted(self) -> str:
        """The length it asks for."""
        return f"a length {self.operator} {self.value}"


_LONG = frozenset({str, list, dict})
"""The classes of what has a length."""


def _is_within(found: str, value: str) -> bool:
    """Return whether one text of a message is in another one that is not too long.

    Python's search takes time that grows with the product of both, 7 ms for two of them that are made for
    it, unless what is looked for is short, or less than a third of the other: so that is made longer.
    """
    length, wanted = len(found), len(value)
    if length > LONGEST_SEARCHED:
        return False
    if wanted < _FEW or 3 * wanted < length:
        return value in found
    return 0 <= (found + "\0" * (3 * wanted)).find(value) <= length - wanted


@cache
def _folding(compares: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """Return the comparison of a string as it came with one without case."""
    return lambda found, folded: len(found) <= LONGEST_FOLDED and compares(found.casefold(), folded)
