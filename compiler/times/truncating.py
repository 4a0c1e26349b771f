"""Cutting a time down to the beginning of a unit, by the clock that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from headrace.compiler.times.zones import Shown, Zone

Truncate = Callable[[datetime, timedelta, Zone | None], Shown]
"""Takes a clock, its offset, and the zone whose clock it is; None: a fixed offset."""


def _start_of_week(clock: datetime) -> datetime:
    return clock.replace(hour=0, minute=0, second=0) - timedelta(days=clock.weekday())


_STARTS: Mapping[str, Callable[[datetime], datetime]] = {
    "second": lambda clock: clock,
    "minute": lambda clock: clock.replace(second=0),
    "hour": lambda clock: clock.replace(minute=0, second=0),
    "day": lambda clock: clock.replace(hour=0, minute=0, second=0),
    "week": _start_of_week,
    "month": lambda clock: clock.replace(day=1, hour=0, minute=0, second=0),
    "year": lambda clock: clock.replace(month=1, day=1, hour=0, minute=0, second=0),
}
"""Clocks are in whole seconds already. Weeks begin on Monday."""
WORDS = tuple(_STARTS)
_WITHIN_A_DAY = ("second", "minute", "hour")


def truncation(word: str) -> Truncate:
    """Return the function that cuts a time down to a unit, and drops what is below a second.

    An hour that the clock shows twice is two hours; a day that has 25 is one.
    """
    start, is_short = _STARTS[word], word in _WITHIN_A_DAY

    def truncated(clock: datetime, offset: timedelta, zone: Zone | None) -> Shown:
        begun = start(clock)
        if zone is None or (is_short and begun == clock):
            return begun, offset
        return zone.started(begun, offset if is_short else None)

    return truncated
