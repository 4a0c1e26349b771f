"""From a value to the time that is written for it: read, placed, moved, shown, cut down, written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace.compiler.decimals import NUMBERS
from headrace.compiler.times.forms import TimeForm
from headrace.compiler.times.notatime import NotATime
from headrace.compiler.times.numbers import UTC
from headrace.compiler.times.rfc3339 import Write
from headrace.compiler.times.timereading import LEAP
from headrace.compiler.times.truncating import Truncate
from headrace.compiler.times.zones import Zone

PlacedTime = tuple[datetime, int, timedelta]
"""A clock in whole seconds, nanoseconds, and its offset."""
FAILURES = (ValueError, TypeError, OverflowError)
"""What a function raises here for a value that it does not take."""

_NOTHING = object()
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_LAST_MINUTE = timedelta(hours=23, minutes=59)
_UTC_NAMES = frozenset({"UTC", "Etc/UTC"})


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is done to a time.

    - ``zone``: where a clock without an offset stands; ``shift`` (of `zones.SHIFTS`) is for one that comes
      twice or never.
    - ``to_zone``: whose clock shows it; None: that of the text.
    """

    form: TimeForm
    write: Write
    zone: Zone | None = None
    shift: str = "before"
    to_zone: Zone | None = None
    truncate: Truncate | None = None

    def compiled(self) -> Callable[..., Any]:
        """Return the function that converts one value, and seconds to be added to it, if any are.

        It raises one of `FAILURES`; what that means, `refusal` tells.
        """
        read, write, zone, shift = self.form.read, self.write, self.zone, self.shift
        to_zone, truncate = self.to_zone, self.truncate
        is_utc = to_zone is not None and to_zone.name in _UTC_NAMES

        def converted(value: Any, plus: Any = _NOTHING) -> Any:
            clock, nanos, offset = read(value)
            clocks = to_zone
            if offset is None:
                assert zone is not None
                clock, offset = zone.placed(clock, shift)
                clocks = clocks or zone
            if nanos >= LEAP:
                clock, nanos = after_leap_second(clock, nanos, offset)
            if plus is not _NOTHING:
                clock, nanos = moved(clock, nanos, plus)
                if clocks is not None:
                    clock, offset = clocks.shown(clock - offset)
            elif is_utc:
                clock, offset = clock - offset, UTC
            elif to_zone is not None:
                clock, offset = to_zone.shown(clock - offset)
            if truncate is not None:
                clock, offset = truncate(clock, offset, clocks)
                nanos = 0
            return write(clock, nanos, offset)

        return converted

    def moment(self) -> Callable[[Any], PlacedTime]:
        """Return the function that reads a value and places it, and does no more."""
        read, zone, shift = self.form.read, self.zone, self.shift

        def moment(value: Any) -> PlacedTime:
            clock, nanos, offset = read(value)
            if offset is None:
                assert zone is not None
                clock, offset = zone.placed(clock, shift)
            if nanos >= LEAP:
                clock, nanos = after_leap_second(clock, nanos, offset)
            return clock, nanos, offset

        return moment


def after_leap_second(clock: datetime, nanos: int, offset: timedelta) -> tuple[datetime, int]:
    """Return the moment that a leap second is for everybody else: the second after it.

    Raises: ValueError unless it is the last of a day in UTC: no other has 61 seconds.
    """
    of_day = timedelta(hours=clock.hour, minutes=clock.minute) - offset
    if of_day % _DAY != _LAST_MINUTE:
        raise ValueError
    return clock + _SECOND, nanos - LEAP


def moved(clock: datetime, nanos: int, plus: Any) -> tuple[datetime, int]:
    """Return a time with seconds added to it, a fraction of them to the microsecond.

    Raises:
        OverflowError: it leaves the calendar.
        TypeError: what is added is no number.
    """
    if type(plus) not in NUMBERS:
        raise TypeError
    whole, rest = divmod(timedelta(seconds=plus), _SECOND)
    nanos += rest.microseconds * 1_000
    if nanos >= 1_000_000_000:
        whole, nanos = whole + 1, nanos - 1_000_000_000
    return clock + timedelta(seconds=whole), nanos


def elapsed_nanos(early: PlacedTime, late: PlacedTime) -> int:
    """Return the nanoseconds from one moment to another."""
    between = (late[0] - late[2]) - (early[0] - early[2])
    return (between.days * 86_400 + between.seconds) * 1_000_000_000 + late[1] - early[1]


def refusal(cause: Exception, form: TimeForm, value: Any, name: str) -> str:
    """Return what is said of a value, under a field's name, that made a function raise."""
    if type(value) not in form.types:
        return f"field '{name}' {form.refusal(value)}"
    if isinstance(cause, NotATime):
        return f"'{name}' {cause}"
    if isinstance(cause, OverflowError):
        return f"'{name}' {OUTSIDE}"
    return f"'{name}' {form.refusal(value)}"


OUTSIDE = "leaves the years 1 to 9999"
"""What is said where a calendar ends."""
