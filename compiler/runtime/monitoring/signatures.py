"""The distinct failures of one pipeline: what failed where, how often, first when and last when.

A failure is known by its stage, component and message. The table holds 64: the one seen longest ago
makes room, and that is counted. One that has not been seen for as long as history goes back leaves by
itself, which is not.
"""

from __future__ import annotations

from sys import getsizeof

import msgspec

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Stage

ComponentKey = tuple[Stage, int | None, str]

MOST_SIGNATURES = 64

_FIXED = 300
"""Bytes of a signature beside its text, roughly."""


class Signature(msgspec.Struct, frozen=True):
    """One distinct failure. Times in epoch milliseconds."""

    stage: Stage
    component: int | None
    message: str
    first_seen: int
    last_seen: int
    count: int = 1

    def joined(self, other: Signature) -> Signature:
        """Return it with what was counted of the same failure elsewhere."""
        return Signature(
            *self.place,
            min(self.first_seen, other.first_seen),
            max(self.last_seen, other.last_seen),
            self.count + other.count,
        )

    def again(self, now: int) -> Signature:
        """Return it counted once more."""
        return Signature(*self.place, self.first_seen, now, self.count + 1)

    @property
    def place(self) -> ComponentKey:
        """What it is known by."""
        return self.stage, self.component, self.message


class Signatures:
    """A table of failures, the one seen longest ago first. With 0 seconds it keeps none."""

    __slots__ = ("_clock", "_known", "_seconds", "dropped")

    def __init__(self, clock: Clock, seconds: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._known: dict[ComponentKey, Signature] = {}
        self.dropped = 0
        """How many made room for others."""

    def count(self, stage: Stage, component: int | None, message: str) -> None:
        """Count one failure, seen now."""
        if not self._seconds:
            return
        place, now = (stage, component, message), self._clock.millis()
        self._expire(now)
        known = self._known.pop(place, None)
        if known is None:
            known = Signature(stage, component, message, now, now)
            self._make_room(MOST_SIGNATURES - 1)
        else:
            known = known.again(now)
        self._known[place] = known  # last in order: what is first was seen longest ago

    def absorb(self, other: Signatures) -> None:
        """Take on all that another table has counted."""
        self._expire(self._clock.millis())
        for place, each in other._known.items():
            known = self._known.get(place)
            self._known[place] = each if known is None else each.joined(known)
        self._known = dict(sorted(self._known.items(), key=lambda known: known[1].last_seen))
        self.dropped += other.dropped
        self._make_room(MOST_SIGNATURES)

    def latest(self) -> list[Signature]:
        """Return what failed, last seen first, then by message."""
        self._expire(self._clock.millis())
        return sorted(self._known.values(), key=lambda one: (-one.last_seen, one.message))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(_FIXED + getsizeof(each.message) for each in self._known.values())

    def _expire(self, now: int) -> None:
        """Drop what was seen too long ago."""
        oldest = now - self._seconds * 1000
        while self._known:
            place = next(iter(self._known))
            if self._known[place].last_seen >= oldest:
                return
            del self._known[place]

    def _make_room(self, most: int) -> None:
        """Drop what was seen longest ago until only so many are left."""
        while len(self._known) > most:
            del self._known[next(iter(self._known))]
            self.dropped += 1
