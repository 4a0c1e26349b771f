"""An expected value beside the one that was found: whether they match, and where they do not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from headrace.authoring.language.matchers import (
    CLOSE,
    MATCHERS,
    field_named,
    is_number,
    matcher_in,
    wall_at,
)
from headrace.compiler.decimals import Written
from headrace.compiler.delivery import JsonValue
from headrace.compiler.text.diagnostics import Path, path_text, printable

_SHOWN = 70
_WRITER = json.JSONEncoder(ensure_ascii=False)


class Words(str):
    """What is told in the place of a value. It equals no text, whatever that says."""

    __slots__ = ()


_MISSING = Words("(missing)")
_NO_FIELD = Words("(no such field)")
_NO_ITEM = Words("(no such item)")
_Unequal = tuple[Path, JsonValue, JsonValue]


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where what was found is not what was expected.

    The path leads on from the value: ``[0].temp`` in a batch, empty for the value itself.
    """

    path: str
    expected: str
    found: str


class Matching:
    """Compares values that a test expects with those that were found.

    What is expected has only matchers that `headrace.authoring.language.matchers.faults` has nothing to
    say about.
    """

    def __init__(self, start: datetime) -> None:
        self._start = start
        """The wall time at which the test begins, with its offset."""

    def differences(self, expected: JsonValue, found: JsonValue) -> Iterator[Difference]:
        """Yield where the two differ, in the order of what is expected.

        It works as it is asked: whoever takes the first few pays for these. Where lists have different
        lengths, what is equal at their ends belongs together.
        """
        for path, wanted, there in self._unequal(expected, found, ()):
            yield Difference(path_text(path), value_text(wanted), value_text(there))

    def holds(self, expected: JsonValue, found: JsonValue) -> bool:
        """Return whether the two do not differ."""
        return next(self._unequal(expected, found, ()), None) is None

    def distance(self, expected: JsonValue, found: JsonValue, most: int) -> int:
        """Return in how many places the two differ; ``most`` is what more than that counts as."""
        return sum(1 for _ in islice(self._unequal(expected, found, ()), most))

    def _unequal(self, expected: JsonValue, found: JsonValue, path: Path) -> Iterator[_Unequal]:
        if isinstance(expected, dict):
            if (word := matcher_in(expected)) is not None:
                yield from self._unmatched(word, expected, found, path)
            elif isinstance(found, dict):
                yield from self._fields(expected, found, path)
                yield from _unexpected(expected, found, path)
            else:
                yield path, expected, found
        elif isinstance(expected, list) and isinstance(found, list):
            yield from self._items(expected, found, path)
        elif not equal(expected, found):
            yield path, expected, found

    def _fields(
        self, expected: dict[str, JsonValue], found: dict[str, JsonValue], path: Path
    ) -> Iterator[_Unequal]:
        """Yield what is wrong with the fields that are expected."""
        for key, wanted in expected.items():
            name = field_named(key)
            there = found.get(name, _MISSING)
            # Most fields are equal: those are not worth a generator each.
            if there is _MISSING:
                yield (*path, name), wanted, there
            elif isinstance(wanted, dict | list):
                yield from self._unequal(wanted, there, (*path, name))
            elif not equal(wanted, there):
                yield (*path, name), wanted, there

    def _items(
        self, expected: list[JsonValue], found: list[JsonValue], path: Path
    ) -> Iterator[_Unequal]:
        alike = self._alike_at_the_end(expected, found)
        wanted, there = len(expected) - alike, len(found) - alike
        for index in range(min(wanted, there)):
            yield from self._unequal(expected[index], found[index], (*path, index))
        for index in range(there, wanted):
            yield (*path, index), expected[index], _MISSING
        for index in range(wanted, there):
            yield (*path, index), _NO_ITEM, found[index]

    def _alike_at_the_end(self, expected: list[JsonValue], found: list[JsonValue]) -> int:
        """Return how many items match, counted from the end; 0 for lists of the same length."""
        if len(expected) == len(found):
            return 0
        pairs = zip(reversed(expected), reversed(found), strict=False)
        count = 0
        for wanted, there in pairs:
            if not self.holds(wanted, there):
                break
            count += 1
        return count

    def _unmatched(
        self, word: str, expected: dict[str, JsonValue], found: JsonValue, path: Path
    ) -> Iterator[_Unequal]:
        argument = expected[word]
        if word == "$has" and isinstance(found, dict):
            yield from self._fields(argument, found, path)
        elif not MATCHERS[word].holds(argument, found, self._start):
            yield path, *self._told(word, expected, found, path)

    def _told(
        self, word: str, expected: dict[str, JsonValue], found: JsonValue, path: Path
    ) -> tuple[JsonValue, JsonValue]:
        """Return what to tell of a matcher that does not hold."""
        argument = expected[word]
        if word == "$count" and isinstance(found, list):
            noun = "item" if path else "message"
            return _counted(argument, noun), _counted(len(found), noun)
        if word == "$at" and (wall := wall_at(self._start, argument)) is not None:
            return Words(f"{value_text(expected)}, which is {wall.isoformat()}"), found
        return expected, found


def equal(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values that are neither lists nor objects are the same to a test.

    Whole numbers are compared digit by digit. As soon as one has a fraction or an exponent, what is left
    of a calculation does not count (see `CLOSE`). A boolean is no number.
    """
    if one.__class__ is other.__class__ and one == other:
        return True
    if isinstance(one, float) or isinstance(other, float):
        try:
            return is_number(one) and is_number(other) and math.isclose(one, other, rel_tol=CLOSE)
        except OverflowError:  # a whole number beyond every double
            return False
    # Else of one class only what is equal, and True is not 1.
    return False


def value_text(value: JsonValue) -> str:
    """Return a value on one line, as JSON, cut after 70 characters."""
    if isinstance(value, Words):
        return str(value)
    if isinstance(value, Written):
        text = value.text
    else:
        text = ""
        # Of a long text only the beginning is written.
        for piece in _WRITER.iterencode(value[:_SHOWN] if isinstance(value, str) else value):
            text += piece
            if len(text) > _SHOWN:
                break
    text = printable(text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _unexpected(
    expected: dict[str, JsonValue], found: dict[str, JsonValue], path: Path
) -> Iterator[_Unequal]:
    """Yield the fields that nobody expected."""
    if found.keys() <= expected.keys():
        return
    expected_fields = set(map(field_named, expected))
    for name, there in found.items():
        if name not in expected_fields:
            yield (*path, name), _NO_FIELD, there


def _counted(count: int, noun: str) -> Words:
    return Words(f"{count:,} {noun}{'' if count == 1 else 's'}")
