"""The eleven functions that make one value of many, for the `reducer`.

Each is told twice: as a fold over a list of values, which is the plain truth and says what is wrong
with them, and as the state that generated code keeps while it sees one message after the other. A
value that is null or missing is none.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, reduce
from typing import Any

from headrace.compiler.decimals import NUMBERS
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import BatchFailed
from headrace.compiler.schema.records import json_type

Fold = Callable[[Sequence[JsonValue]], JsonValue]
"""Makes one value of many; raises `BatchFailed` for what it cannot take."""


class Takes(Enum):
    """Which values a function is content with."""

    NUMBERS = "numbers"
    ORDERED = "numbers only, or strings only"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of a group's state: what it starts as, and the statement that counts one value in.

    In the statement ``{slot}`` is the state, ``{value}`` the value, and ``{key}`` what stands for the
    value in a set (see `exact`).
    """

    initial: str
    update: str


COUNT = Slot("0", "{slot} += 1")
TOTAL = Slot("0", "{slot} += {value}")
LEAST = Slot("None", "if {slot} is None or {value} < {slot}: {slot} = {value}")
GREATEST = Slot("None", "if {slot} is None or {value} > {slot}: {slot} = {value}")
FIRST = Slot("None", "if {slot} is None: {slot} = {value}")
LAST = Slot("None", "{slot} = {value}")
VALUES = Slot("[]", "{slot}.append({value})")
DISTINCT = Slot("set()", "{slot}.add({key})")


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One way to make one value of many.

    ``result`` is an expression over the slots, in their order; in it ``{fold}`` is the fold itself.
    With ``needs_value`` it may be asked only where there is one, and the result is null elsewhere.
    """

    fold: Fold
    takes: Takes
    slots: tuple[Slot, ...]
    result: str
    needs_value: bool = False


def exact(value: JsonValue) -> bytes:
    """Return the JSON text of a value, keys in order: the same for what is the same, type and all.

    1, 1.0, "1" and true are four; as keys of a dict three of them would be one.
    """
    return _encoder()(value)


@cache
def _encoder() -> Callable[[JsonValue], bytes]:
    # Imported when the first pipeline runs: checking a config has no use for it.
    import msgspec

    # A number that remembers how it was written is the same as its double.
    return msgspec.json.Encoder(order="sorted", enc_hook=float).encode


def numeric(compute: Callable[[Sequence[Any]], int | float]) -> Fold:
    """Return the fold over numbers: null over none of them, and where the result is not finite."""

    def fold(values: Sequence[JsonValue]) -> JsonValue:
        for value in values:
            if type(value) not in NUMBERS:
                raise BatchFailed(f"expected a number, found {json_type(value)}")
        if not values:
            return None
        try:
            result = compute(values)
        except OverflowError:  # a double was asked of an integer that none can hold
            return None
        return result if type(result) is int or math.isfinite(result) else None

    return fold


def ordered(choose: Callable[[Sequence[Any]], JsonValue]) -> Fold:
    """Return the fold over numbers only or strings only; null over none."""

    def fold(values: Sequence[JsonValue]) -> JsonValue:
        wanted = ["a number", "a string"]
        for kind in map(json_type, values):
            if kind not in wanted:
                raise BatchFailed(f"expected {' or '.join(wanted)}, found {kind}")
            wanted = [kind]
        return choose(values) if values else None

    return fold


def distinct(values: Sequence[JsonValue]) -> int:
    """Return how many different values there are."""
    return len({exact(value) for value in values})


def first(values: Sequence[JsonValue]) -> JsonValue:
    """Return the first value."""
    return values[0] if values else None


def last(values: Sequence[JsonValue]) -> JsonValue:
    """Return the last value."""
    return values[-1] if values else None


def total(values: Sequence[Any]) -> int | float:
    """Return the sum, from left to right: an integer of integers, else a double.

    Not the built-in one, which adds doubles in another way from Python 3.12 on.
    """
    result: int | float = reduce(operator.add, values, 0)
    return result


@numeric
def mean(values: Sequence[Any]) -> float:
    """Return the arithmetic mean."""
    return total(values) / len(values)


@numeric
def median(values: Sequence[Any]) -> float:
    """Return the value in the middle, or the mean of the two there."""
    ascending, middle = sorted(values), len(values) // 2
    is_odd = len(values) % 2
    return float(ascending[middle] if is_odd else (ascending[middle - 1] + ascending[middle]) / 2)


@numeric
def deviation(values: Sequence[Any]) -> float:
    """Return the standard deviation of all there is (not of a sample); 0.0 of one value."""
    centre = math.fsum(values) / len(values)
    squares = ((value - centre) * (value - centre) for value in values)
    return math.sqrt(math.fsum(squares) / len(values))


# Infinity minus itself is no number, and so not zero.
_FINITE = "if {0} - {0} == 0 else None"

FUNCTIONS: Mapping[str, AggregateFunction] = {
    "sum": AggregateFunction(
        numeric(total), Takes.NUMBERS, (TOTAL,), "{0} " + _FINITE, needs_value=True
    ),
    "avg": AggregateFunction(
        mean, Takes.NUMBERS, (TOTAL, COUNT), "{0} / {1} " + _FINITE, needs_value=True
    ),
    "min": AggregateFunction(ordered(min), Takes.ORDERED, (LEAST,), "{0}"),
    "max": AggregateFunction(ordered(max), Takes.ORDERED, (GREATEST,), "{0}"),
    "count": AggregateFunction(len, Takes.ANYTHING, (COUNT,), "{0}"),
    "count_distinct": AggregateFunction(distinct, Takes.ANYTHING, (DISTINCT,), "len({0})"),
    "first": AggregateFunction(first, Takes.ANYTHING, (FIRST,), "{0}"),
    "last": AggregateFunction(last, Takes.ANYTHING, (LAST,), "{0}"),
    "collect": AggregateFunction(list, Takes.ANYTHING, (VALUES,), "{0}"),
    "median": AggregateFunction(median, Takes.ANYTHING, (VALUES,), "{fold}({0})"),
    "stddev": AggregateFunction(deviation, Takes.ANYTHING, (VALUES,), "{fold}({0})"),
}
"""By the name a config gives them, in the order of the reference."""

OTHER_NAMES: Mapping[str, str] = {
    "sum": "add total",
    "avg": "average mean",
    "min": "least lowest minimum",
    "max": "greatest highest maximum",
    "count": "length n number rows size",
    "count_distinct": "cardinality distinct distinct_count nunique uniq unique",
    "first": "first_value",
    "last": "last_value latest",
    "collect": "array array_agg collect_list list",
    "median": "p50",
    "stddev": "deviation standard_deviation std stddev_pop stdev",
}
"""What the functions are called elsewhere, by our name."""
