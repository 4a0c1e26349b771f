"""How a time is written where it is read: by formats, as a number, or in the usual form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.compiler.decimals import NUMBERS
from headrace.compiler.schema.records import json_type
from headrace.compiler.times.numbers import UNITS, number_reader
from headrace.compiler.times.rfc3339 import text_reader
from headrace.compiler.times.timereading import ClockReading, ReadTime, reader

_TEXTS = frozenset({str})


@dataclass(frozen=True, slots=True)
class TimeForm:
    """What reads a time, and what is said of a value that it does not read."""

    read: ReadTime
    types: frozenset[type]
    expected: str
    """The types it takes, in words."""
    said: str
    """Completes *is no time*."""

    def refusal(self, value: Any, named: Callable[[bool], str] | None = None) -> str:
        """Return what is wrong with a value, as what follows its name."""
        if type(value) not in self.types:
            return f"is {json_type(value)}: expected {self.expected}"
        return f"is no time{self.said}"


def usual_form(*, has_zone: bool) -> TimeForm:
    """Return the form of a config that names none: RFC 3339, a date, or seconds since 1970."""
    read_text, read_number = text_reader(has_zone=has_zone), number_reader("seconds")

    def read(value: Any) -> ClockReading:
        return read_text(value) if type(value) is str else read_number(value)

    offset = "" if has_zone else " with an offset"
    said = f": expected RFC 3339{offset}, YYYY-MM-DD, or seconds since 1970 up to 9e9"
    return TimeForm(read, _TEXTS | NUMBERS, "a string or a number of seconds", said)


def form_of(formats: Sequence[str]) -> TimeForm:
    """Return the form of formats that are tried in order, or of the one word for a unit of numbers.

    Raises: FormatRefused
    """
    if formats[0] in UNITS:
        unit = formats[0]
        said = f": expected {unit} since 1970, up to 9e9 seconds"
        return TimeForm(number_reader(unit), _TEXTS | NUMBERS, "a number, or one in a string", said)
    readers = [reader(each) for each in formats]
    listed = ", ".join(f"'{each}'" for each in formats)
    if len(readers) == 1:
        return TimeForm(readers[0], _TEXTS, "a string", f" of the form {listed}")

    def read(text: Any) -> ClockReading:
        for each in readers:
            try:
                return each(text)
            except ValueError:
                continue
        raise ValueError

    return TimeForm(read, _TEXTS, "a string", f" of any of the forms {listed}")
