"""Times as numbers: seconds, or a thousandth, millionth or billionth of one, since 1970."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headrace.compiler import clock
from headrace.compiler.decimals import FLOATS
from headrace.compiler.timestamps import FARTHEST_SECONDS

EPOCH = clock.EPOCH.replace(tzinfo=None)
"""The same as a clock, with its offset beside it."""
UTC = timedelta(0)
SECOND = timedelta(seconds=1)

_FARTHEST = int(FARTHEST_SECONDS)
_DECIMAL = re.compile(r"([+-]?)([0-9]{1,20})(?:\.([0-9]{1,30}))?")


class Unit(NamedTuple):
    """A unit of numbers."""

    per_second: int
    micros: float
    """Microseconds of one: a double does not hold more than these, so far from 1970."""


UNITS: Mapping[str, Unit] = {
    "seconds": Unit(1, 1e6),
    "millis": Unit(10**3, 1e3),
    "micros": Unit(10**6, 1.0),
    "nanos": Unit(10**9, 1e-3),
}
"""Units by their word in a config."""

OTHER_UNITS: Mapping[str, str] = {
    "seconds": "epoch sec secs second timestamp unix unix_seconds unixtime",
    "millis": "epoch_millis epoch_ms milli millisecond milliseconds ms unix_ms",
    "micros": "epoch_us micro microsecond microseconds unix_us us",
    "nanos": "epoch_ns nano nanosecond nanoseconds ns unix_ns",
}
"""What they are called elsewhere."""


def number_reader(unit: str) -> Callable[[Any], tuple[datetime, int, timedelta]]:
    """Return the function that reads numbers of a unit, or their digits in a string.

    An integer is taken as it is, a number with a point to the microsecond. Raises ValueError beyond
    `FARTHEST_SECONDS` from 1970, TypeError for what is neither.
    """
    per_second, micros = UNITS[unit]
    farthest = _FARTHEST * per_second
    nanos_each = 10**9 // per_second

    def read(value: Any) -> tuple[datetime, int, timedelta]:
        kind = type(value)
        if kind is str:
            return read_digits(value)
        if kind is int:
            if not -farthest <= value <= farthest:
                raise ValueError
            seconds, rest = divmod(value, per_second)
            return EPOCH + timedelta(seconds=seconds), rest * nanos_each, UTC
        if kind not in FLOATS:
            raise TypeError
        if not -farthest <= value <= farthest:
            raise ValueError
        since = (
            timedelta(seconds=value) if per_second == 1 else timedelta(microseconds=value * micros)
        )
        whole, rest_of_second = divmod(since, SECOND)
        return EPOCH + timedelta(seconds=whole), rest_of_second.microseconds * 1_000, UTC

    def read_digits(text: str) -> tuple[datetime, int, timedelta]:
        match = _DECIMAL.fullmatch(text)
        if match is None:
            raise ValueError
        sign, whole, fraction = match.groups()
        # Exactly, in billionths of a nanosecond: nobody writes more digits than these.
        nanos = int(whole + (fraction or "")[:18].ljust(18, "0")) * nanos_each // 10**18
        return moment_of_nanos(-nanos if sign == "-" else nanos)

    return read


def moment_of_nanos(nanos: int) -> tuple[datetime, int, timedelta]:
    """Return nanoseconds since 1970 as clock, nanoseconds and offset."""
    if abs(nanos) > _FARTHEST * 10**9:
        raise ValueError
    seconds, rest = divmod(nanos, 10**9)
    return EPOCH + timedelta(seconds=seconds), rest, UTC


def moment_of_seconds(seconds: str, nanos: int) -> tuple[datetime, int, timedelta]:
    """Return the digits of seconds, and nanoseconds behind their point."""
    whole = int(seconds) * 10**9
    return moment_of_nanos(whole - nanos if seconds[0] == "-" else whole + nanos)
