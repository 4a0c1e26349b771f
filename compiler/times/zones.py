"""Zones: by their names in the IANA list, with the offsets of the hours that were asked for.

`zoneinfo` answers in a microsecond or two. Neighbouring messages are of the same hour, and most hours have
one offset from UTC throughout: those are kept.

Source: https://docs.python.org/3/library/zoneinfo.html
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache

from headrace.compiler.times.notatime import NotATime

MOST_HOURS = 1_000
"""Hours of which a zone keeps the offset, as its own clock reads and as that of UTC does. Messages choose
them: with more, it starts anew."""
MOST_ZONES = 64
"""Zones that are kept for whoever asks for them again."""
SHIFTS = ("before", "after", "refuse")
"""Which offset counts for a clock that comes twice or never."""

_Hour = tuple[date, int]
_Hours = dict[_Hour, timedelta | None]
"""Offsets of hours; None where one has no single offset."""

Shown = tuple[datetime, timedelta]
"""A clock, and its offset from UTC."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(/[A-Za-z0-9_+-]{1,30}){0,3}")
_NOT_IN_THE_LIST = ("Factory", "localtime", "posixrules")
"""Files beside the zones. What `localtime` stands for differs from machine to machine."""
_OTHER_TABLES = ("posix", "right")
_HOUR_ENDS = timedelta(minutes=59, seconds=59)
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_ZERO = timedelta(0)


class UnknownZone(ValueError):
    """No zone of the list has this name."""


class Zone:
    """A zone. What it shows has an offset of whole minutes, as RFC 3339 wants it.

    Clocks of the time before zones were 53 minutes and 28 seconds ahead; they are shown with the nearest
    minute, as the same moment (RFC 3339, 5.8).
    """

    def __init__(self, name: str) -> None:
        if (
            _NAME.fullmatch(name) is None
            or name in _NOT_IN_THE_LIST
            or name.split("/")[0] in _OTHER_TABLES
        ):
            raise UnknownZone(name)
        # Not at the top: most configs name no zone, and `headrace check` is quick.
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            self._zone = ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError, ValueError) as cause:
            raise UnknownZone(name) from cause
        self.name = name
        self._by_clock: _Hours = {}
        self._by_utc: _Hours = {}
        self._clocks_asked: set[_Hour] = set()
        self._utc_asked: set[_Hour] = set()

    def placed(self, clock: datetime, shift: str) -> Shown:
        """Return where a clock of this zone stands; `before` and `after` may move it out of a gap.

        Raises:
            NotATime: it comes twice or never, and that is refused.
        """
        try:  # of most messages the hour is known, and this is all
            offset = self._by_clock[clock.date(), clock.hour]
        except KeyError:
            offset = self._of_new_hour(clock)
        if offset is not None:
            return clock, offset
        before, after = self._around(clock)
        if before == after and not before % _MINUTE:
            return clock, before
        if shift == "refuse" and before != after:
            comes = "comes twice" if before > after else "never comes"
            raise NotATime(f"{comes} in {self.name}, where the clock is changed then")
        return self.shown(clock - (after if shift == "after" else before))

    def shown(self, utc: datetime) -> Shown:
        """Return what the clock shows at a moment."""
        try:
            offset = self._by_utc[utc.date(), utc.hour]
        except KeyError:
            offset = self._at_new_hour(utc)
        if offset is None:  # in whole minutes; half a one is rounded up
            offset = (self._exactly(utc) + _MINUTE / 2) // _MINUTE * _MINUTE
        return utc + offset, offset

    def started(self, clock: datetime, offset: timedelta | None) -> Shown:
        """Return when something began that begins when the clock shows this.

        Where it does so twice: with this offset, None for the first time. Where it never does: the first
        moment after.
        """
        try:
            known = self._by_clock[clock.date(), clock.hour]
        except KeyError:
            known = self._of_new_hour(clock)
        if known is not None:
            return clock, known
        before, after = self._around(clock)
        if before < after:
            return self.shown(self._change(clock - after, clock - before))
        return self.shown(clock - (before if offset is None or offset != after else after))

    def _of_new_hour(self, clock: datetime) -> timedelta | None:
        """Return the offset of all of an hour that is asked for again, and keep it; else None."""
        hour = (clock.date(), clock.hour)
        if not _is_asked_again(self._clocks_asked, hour):
            return None
        start = clock.replace(minute=0, second=0)
        offsets = (*self._around(start), *self._around(start + _HOUR_ENDS))
        return _kept(self._by_clock, hour, offsets)

    def _at_new_hour(self, utc: datetime) -> timedelta | None:
        """Return the same of an hour of UTC."""
        hour = (utc.date(), utc.hour)
        if not _is_asked_again(self._utc_asked, hour):
            return None
        start = utc.replace(minute=0, second=0)
        return _kept(self._by_utc, hour, (self._exactly(start), self._exactly(start + _HOUR_ENDS)))

    def _exactly(self, utc: datetime) -> timedelta:
        return utc.replace(tzinfo=UTC).astimezone(self._zone).utcoffset() or _ZERO

    def _around(self, clock: datetime) -> tuple[timedelta, timedelta]:
        """Return the offset before and after a change of the clock; where none is, twice the same."""
        placed = clock.replace(tzinfo=self._zone)
        return placed.utcoffset() or _ZERO, placed.replace(fold=1).utcoffset() or _ZERO

    def _change(self, early: datetime, late: datetime) -> datetime:
        """Return the first moment, in UTC, that has the offset of a later one."""
        offset = self._exactly(late)
        if (
            self._exactly(late - _SECOND) != offset
        ):  # what is left out begins with what was asked for
            return late
        while late - early > _SECOND:
            middle = early + (late - early) // _SECOND // 2 * _SECOND
            if self._exactly(middle) == offset:
                late = middle
            else:
                early = middle
        return late


def _is_asked_again(asked: set[_Hour], hour: _Hour) -> bool:
    """Return whether an hour was asked for before.

    To look at a whole hour takes several times what one message asks, and messages of all times would have
    it done for each.
    """
    if hour in asked:
        return True
    if len(asked) >= MOST_HOURS:
        asked.clear()
    asked.add(hour)
    return False


def _kept(known: _Hours, hour: _Hour, offsets: Sequence[timedelta]) -> timedelta | None:
    """Keep the offset of an hour, if it has one throughout, in whole minutes; return it."""
    if len(known) >= MOST_HOURS:
        known.clear()
    first = offsets[0]
    is_one = all(each == first for each in offsets) and not first % _MINUTE
    known[hour] = first if is_one else None
    return known[hour]


@lru_cache(maxsize=MOST_ZONES)
def zone_named(name: str) -> Zone:
    """Return a zone.

    Raises: UnknownZone
    """
    return Zone(name)


@cache
def zone_names() -> Collection[str]:
    """Return the names of all zones: from the files, so for errors and pages alone."""
    from zoneinfo import available_timezones

    return frozenset(available_timezones()) - {*_NOT_IN_THE_LIST}
