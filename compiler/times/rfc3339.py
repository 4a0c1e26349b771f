"""Reading RFC 3339 and dates, and writing RFC 3339: the form of times where a config names no other.

Source: https://www.rfc-editor.org/rfc/rfc3339, sections 5.6 and 5.7
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from headrace.compiler.times.directives import MOST_DIGITS
from headrace.compiler.times.numbers import UTC as _UTC
from headrace.compiler.times.timereading import LEAP, ClockReading, ReadTime, nanos_of, offset_of

_FORM = re.compile(
    rf"""
    ( [0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} )
    (?: [Tt ]
        ( (?:[01][0-9]|2[0-3]):[0-5][0-9]: ) ( [0-9]{{2}} )
        (?: \. ( [0-9]{{1,{MOST_DIGITS}}} ) )?
        ( [Zz] | [+-](?:[01][0-9]|2[0-3]):[0-5][0-9] )?
    )?
    """,
    re.ASCII | re.VERBOSE,
)


def text_reader(*, has_zone: bool) -> ReadTime:
    """Return the function that reads RFC 3339, and a date as its midnight.

    Without a zone a date is one of UTC, and a time of day needs an offset.
    """
    match, fromisoformat = _FORM.fullmatch, datetime.fromisoformat
    of_date = None if has_zone else _UTC

    def read(text: Any) -> ClockReading:
        found = match(text)
        if found is None:
            raise ValueError
        date, minute, second, fraction, offset = found.groups()
        if minute is None:
            return fromisoformat(date), 0, of_date
        nanos = 0 if fraction is None else nanos_of(fraction)
        if second == "60":
            second, nanos = "59", nanos + LEAP
        clock = fromisoformat(f"{date}T{minute}{second}")
        if offset is not None:
            return clock, nanos, offset_of(offset)
        if has_zone:
            return clock, nanos, None
        raise ValueError

    return read


Write = Callable[[datetime, int, timedelta], Any]
"""Writes a clock in whole seconds, nanoseconds and the offset of the clock."""


def timestamp(clock: datetime, nanos: int, offset: timedelta) -> str:
    """Return RFC 3339, with a fraction of 0, 3, 6 or 9 digits."""
    if not nanos:
        return clock.isoformat() + ("+00:00" if offset is _UTC else offset_text(offset))
    digits = f"{nanos:09}"
    if nanos % 1_000_000 == 0:
        digits = digits[:3]
    elif nanos % 1_000 == 0:
        digits = digits[:6]
    return f"{clock.isoformat()}.{digits}{offset_text(offset)}"


def date(clock: datetime, nanos: int, offset: timedelta) -> str:
    """Return the calendar date."""
    return clock.isoformat()[:10]


@lru_cache(maxsize=3_000)
def offset_text(offset: timedelta, between: str = ":") -> str:
    """Return an offset of whole minutes as RFC 3339 has it; there are 2,879 of them."""
    minutes = offset // timedelta(minutes=1)
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}{between}{rest:02}"
