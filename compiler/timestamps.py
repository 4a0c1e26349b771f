"""Timestamps as text: RFC 3339 in and out, to the nanosecond, in the offset they were given.

The standard library reads ISO 8601 at large (week dates, no offset) and keeps microseconds, and what
is wanted back is text: so the form is checked by a pattern and the calendar by `datetime`.

Source: https://www.rfc-editor.org/rfc/rfc3339, sections 5.6 and 5.7
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from headrace.compiler.clock import EPOCH

FARTHEST_SECONDS = 9e9
"""How far from the epoch a number of seconds may lie; milliseconds by mistake lie beyond."""


_FORM = re.compile(
    r"""
    (?P<date> \d{4} - \d\d - \d\d )
    (?: [Tt ]
        (?P<minute> (?: [01]\d | 2[0-3] ) : [0-5]\d ) : (?P<second> \d\d )
        (?: \. (?P<fraction> \d+ ) )?
        (?: [Zz] | (?P<offset> [+-] (?: [01]\d | 2[0-3] ) : [0-5]\d ) )
    )?
    """,
    re.ASCII | re.VERBOSE,
)


def rfc3339(text: str) -> str:
    """Return a timestamp with an offset, or a date as its midnight in UTC, in one spelling.

    That is ``T`` between date and time, an offset in digits, and a fraction of 0, 3, 6 or 9 digits,
    cut after the ninth.

    Raises: ValueError for every other form, and for what no calendar or clock shows.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError("neither an RFC 3339 timestamp nor a date")
    date, minute, second, fraction, offset = match.groups()
    if minute is None:
        datetime.fromisoformat(date)
        return f"{date}T00:00:00+00:00"
    if offset in (None, "-00:00"):
        offset = "+00:00"
    if second == "60":
        _check_leap_second(datetime.fromisoformat(f"{date}T{minute}{offset}"))
    else:
        datetime.fromisoformat(f"{date}T{minute}:{second}")
    return f"{date}T{minute}:{second}{_grouped(fraction)}{offset}"


def rfc3339_of_seconds(seconds: float) -> str:
    """Return seconds since the epoch as UTC, rounded to microseconds.

    Raises: ValueError beyond `FARTHEST_SECONDS`.
    """
    if not abs(seconds) <= FARTHEST_SECONDS:
        raise ValueError(f"more than {FARTHEST_SECONDS:.0f} seconds from the epoch")
    moment = EPOCH + timedelta(seconds=seconds)
    fraction = f"{moment.microsecond:06}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}{_grouped(fraction)}+00:00"


def _check_leap_second(minute: datetime) -> None:
    """Raise `ValueError` unless a minute is the last of a day in UTC: no other has 61 seconds."""
    offset = minute.utcoffset() or timedelta()
    of_day = timedelta(hours=minute.hour, minutes=minute.minute) - offset
    if of_day % timedelta(days=1) != timedelta(hours=23, minutes=59):
        raise ValueError("a leap second in the middle of a day")


def _grouped(fraction: str | None) -> str:
    """Return a fraction as 0, 3, 6 or 9 digits with its point."""
    digits = (fraction or "")[:9].rstrip("0")
    groups = -(-len(digits) // 3)
    return "." + digits.ljust(groups * 3, "0") if digits else ""
