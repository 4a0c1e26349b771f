"""Cells of moments and dates: text in ISO 8601 is read, once it is certain what it means.

Of ISO 8601 that is the extended form of calendar dates, as RFC 3339 and most programs write it:
``2026-03-01T08:00:00.5+01:00``. Beyond RFC 3339, a space or ``t`` may stand between date and time, the
seconds may be left out, a comma may stand for the point, the offset may be ``+01`` or ``+0100``. What has
no offset is UTC, and a date alone is its midnight. A leap second is the first moment of the next day, as
24:00 is. Not taken are week dates, days of the year and the basic form (``20260301``).

A driver gets microseconds: further digits are cut off.

Source: https://www.rfc-editor.org/rfc/rfc3339, sections 5.6 and 5.7
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta
from datetime import date as Date  # the cells are called `date` and `timestamp`, as the types are
from datetime import datetime as Moment
from itertools import repeat
from typing import Any

from headrace.compiler.decimals import NUMBERS
from headrace.compiler.timestamps import FARTHEST_SECONDS, rfc3339
from headrace.connectors.tables.cells import Cell, Misfit, Unusual, shapes

_DIGITS_AS_ZERO = str.maketrans(dict.fromkeys("123456789", "0"))
_DATE = "0000-00-00"
_TIME = re.compile(r"0000-00-00[T ]00:00(:00(\.0+)?)?")
_IN_UTC = re.compile(rf"{_TIME.pattern}Z")
_WITH_OFFSET = re.compile(rf"{_TIME.pattern}[+-]00:00")
_OFFSET = re.compile(r"[+-]([01][0-9]|2[0-3]):[0-5][0-9]")
_ISO = re.compile(
    r"""
    (?P<date> [0-9]{4} - [0-9]{2} - [0-9]{2} )
    (?: [Tt\ ]
        (?P<minute> [0-9]{2} : [0-9]{2} )
        (?: : (?P<second> [0-9]{2} ) (?: [.,] (?P<fraction> [0-9]+ ) )? )?
        (?: [Zz] | (?P<hours> [+-] [0-9]{2} ) (?: :? (?P<minutes> [0-9]{2} ) )? )?
    )?
    """,
    re.VERBOSE,
)

_TEXT = frozenset({str})
_EXPECTED = "an ISO 8601 timestamp"


def date(first: str = "0001-01-01", last: str = "9999-12-31") -> Cell:
    """Return the cell of calendar dates, ``YYYY-MM-DD``, from the first to the last one."""
    within = f"a date from {first} to {last}"

    def read(value: str) -> Date:
        if value.translate(_DIGITS_AS_ZERO) != _DATE:
            raise Misfit("a date as YYYY-MM-DD", "another string")
        try:
            day = Date.fromisoformat(value)
        except ValueError:
            raise Misfit("a date as YYYY-MM-DD", "one that is in no calendar") from None
        if not first <= value <= last:
            raise Misfit(within, "another one")
        return day

    def usual(values: list[str], _kinds: set[type]) -> list[Date]:
        if shapes(values, _DIGITS_AS_ZERO) != {_DATE} or min(values) < first or max(values) > last:
            raise Unusual
        return [*map(Date.fromisoformat, values)]

    return Cell(_TEXT, "a date in a string", read, usual)


def timestamp(first: str = "0001-01-01", last: str = "9999-12-31") -> Cell:
    """Return the cell of moments from the first day to the last one, as they are in UTC.

    They are strings, or seconds since 1970 up to `FARTHEST_SECONDS`: milliseconds by mistake lie beyond.
    """
    begin, end = _in_utc(first), _in_utc(f"{last}T23:59:59.999999")
    # A text whose own date is a day inside is inside in UTC as well, and texts compare as dates do.
    after = (begin + timedelta(days=1)).date().isoformat()
    earliest = max(-FARTHEST_SECONDS, begin.timestamp())
    latest = min(FARTHEST_SECONDS, end.timestamp() // 1)
    within = f"a timestamp from {first} to {last}"

    def read(value: str | float) -> Moment:
        moment = _moment_of(value)
        if not begin <= moment <= end:
            raise Misfit(within, "another one")
        return moment

    def usual(values: list[Any], kinds: set[type]) -> list[Moment]:
        if kinds == _TEXT:
            if min(values) < after or max(values) >= last:
                raise Unusual
            return _usual_texts(values)
        if str in kinds or not (earliest <= min(values) and max(values) <= latest):
            raise Unusual
        return [*map(Moment.fromtimestamp, values, repeat(UTC))]

    return Cell(NUMBERS | _TEXT, "a timestamp in a string, or seconds", read, usual)


def _moment_of(value: str | float) -> Moment:
    """Return the moment that a value stands for, always with an offset."""
    if isinstance(value, str):
        if (match := _ISO.fullmatch(value)) is None:
            raise Misfit(_EXPECTED, "another string")
        try:
            return _moment_written(match)
        except (ValueError, OverflowError):
            raise Misfit(_EXPECTED, "one that no calendar or clock shows") from None
    if not abs(value) <= FARTHEST_SECONDS:
        raise Misfit(f"at most {FARTHEST_SECONDS:.0f} seconds from 1970", "more")
    return Moment.fromtimestamp(value, UTC)


def _moment_written(match: re.Match[str]) -> Moment:
    """Return the moment that a text of the right form means; raises for none."""
    date, minute, second, fraction, hours, minutes = match.groups()
    second, fraction, offset = (
        second or "00",
        fraction or "0",
        f"{hours or '+00'}:{minutes or '00'}",
    )
    if minute == "24:00" and second == "00" and not fraction[:6].strip("0"):
        return Moment.fromisoformat(f"{date}T00:00{offset}") + timedelta(days=1)
    checked = rfc3339(f"{date}T{minute or '00:00'}:{second}.{fraction}{offset}")
    if second == "60":
        return Moment.fromisoformat(f"{checked[:17]}59{checked[19:]}") + timedelta(seconds=1)
    return Moment.fromisoformat(checked)


def _usual_texts(values: list[str]) -> list[Moment]:
    """Return the moments of texts that are all written in one of the three usual ways."""
    looks = shapes(values, _DIGITS_AS_ZERO)
    if all(map(_IN_UTC.fullmatch, looks)):
        return [*map(Moment.fromisoformat, values)]
    if all(map(_WITH_OFFSET.fullmatch, looks)):
        # The library takes an offset of 60 minutes and more beside its hours.
        if not all(map(_OFFSET.fullmatch, {value[-6:] for value in values})):
            raise Unusual
        return [*map(Moment.fromisoformat, values)]
    if all(map(_TIME.fullmatch, looks)):
        return [Moment.fromisoformat(value + "Z") for value in values]
    raise Unusual


def _in_utc(text: str) -> Moment:
    return Moment.fromisoformat(text).replace(tzinfo=UTC)
