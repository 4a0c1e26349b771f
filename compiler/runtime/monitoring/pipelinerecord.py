"""What history keeps of one pipeline id: counts by the minute and by five seconds, and its failures.

Counts are a row of buckets, as many as history goes back, the newest last. Only what has happened takes
memory: nothing before the first count, and zeros after the last one are added when somebody reads.

A failure is known by its stage, component and message. A table holds 64: the one seen longest ago
makes room, and that is counted. One that has not been seen for as long as history goes back leaves by
itself, which is not.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import ceil
from sys import getsizeof
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Stage
from headrace.compiler.jsontext import Count, Millis

Resolution = Literal["coarse", "fine"]

WIDTHS: dict[Resolution, int] = {"coarse": 60, "fine": 5}
"""Seconds per bucket."""
FINE_SECONDS = 1800
"""How far back the fine buckets go, unless history ends before."""

_RECORD_BYTES = 2048
"""Of a record with nothing in it, roughly."""

ComponentKey = tuple[Stage, int | None, str]

MOST_SIGNATURES = 64

_SIGNATURE_BYTES = 300
"""Of a signature beside its text, roughly."""

Counts = tuple[int, int, int]
"""Messages in, messages out, failures."""

_KINDS = 3


class TimeBuckets(msgspec.Struct, frozen=True):
    """Buckets in a row, oldest first. Units: seconds since 1970, seconds."""

    width: int
    start: int = 0
    counts: Sequence[int] = ()
    """Three numbers per bucket: messages in, messages out, failures."""

    def __len__(self) -> int:
        return len(self.counts) // _KINDS


class Ring:
    """At most ``size`` buckets of ``width`` seconds. Times never go back: its record sees to that."""

    __slots__ = ("_counts", "_first", "size", "width")

    def __init__(self, width: int, size: int, began_at: float) -> None:
        self.width = width
        self.size = size
        self._first = int(began_at // width)  # the number of the first bucket there is
        self._counts = array("I")

    def add(self, at: float, counts: Counts) -> None:
        """Add to the bucket of a moment."""
        number = int(at // self.width)
        gone = max(0, number - self.size + 1 - self._first)
        del self._counts[: _KINDS * gone]
        self._first += gone
        place = _KINDS * (number - self._first)
        missing = max(0, place + _KINDS - len(self._counts))
        self._counts.frombytes(bytes(missing * self._counts.itemsize))
        for kind, count in enumerate(counts, place):
            try:
                self._counts[kind] += count
            except OverflowError:
                # More than 4 billion in a bucket: nothing that we know of is so fast.
                self._counts = array("Q", self._counts)
                self._counts[kind] += count

    def until(self, at: float) -> TimeBuckets:
        """Return the buckets up to the one of a moment, which need not be over."""
        number = int(at // self.width)
        first = max(self._first, number - self.size + 1)
        counts = self._counts[_KINDS * (first - self._first) :]
        counts.frombytes(bytes((_KINDS * (number - first + 1) - len(counts)) * counts.itemsize))
        return TimeBuckets(self.width, first * self.width, counts.tolist())

    @property
    def bytes(self) -> int:
        """How many bytes the counts take."""
        return len(self._counts) * self._counts.itemsize


class ErrorSignature(msgspec.Struct, frozen=True):
    """A distinct failure: what failed where, when first and last, and how often."""

    stage: Stage
    component: Annotated[Count | None, Meta(description="Index in the list of its stage.")]
    message: str
    first_seen: Millis
    last_seen: Millis
    count: Count

    def joined(self, other: ErrorSignature) -> ErrorSignature:
        """Return it with what was counted of the same failure elsewhere."""
        return ErrorSignature(
            *self.place,
            min(self.first_seen, other.first_seen),
            max(self.last_seen, other.last_seen),
            self.count + other.count,
        )

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
        self._known: dict[ComponentKey, ErrorSignature] = {}
        self.dropped = 0
        """How many made room for others."""

    def count(self, stage: Stage, component: int | None, message: str) -> None:
        """Count one failure, seen now."""
        if not self._seconds:
            return
        now, place = self._clock.millis(), (stage, component, message)
        self._expire(now)
        known = self._known.pop(place, None)
        first, before = (now, 0) if known is None else (known.first_seen, known.count)
        self._make_room(MOST_SIGNATURES - 1)
        # Last in order: what is first was seen longest ago.
        self._known[place] = ErrorSignature(*place, first, now, before + 1)

    def absorb(self, other: Signatures) -> None:
        """Take on all that another table has counted."""
        self._expire(self._clock.millis())
        for place, each in other._known.items():
            self._known[place] = each.joined(self._known[place]) if place in self._known else each
        self._known = dict(sorted(self._known.items(), key=lambda known: known[1].last_seen))
        self.dropped += other.dropped
        self._make_room(MOST_SIGNATURES)

    def latest(self) -> list[ErrorSignature]:
        """Return what failed, last seen first, then by message."""
        self._expire(self._clock.millis())
        return sorted(self._known.values(), key=lambda one: (-one.last_seen, one.message))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(_SIGNATURE_BYTES + getsizeof(each.message) for each in self._known.values())

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


class PipelineRecord:
    """The past of one id. It goes on when a pipeline is created again under it."""

    __slots__ = ("_at", "_id", "_rings", "_seconds", "lives", "signatures", "was_active_at")

    def __init__(self, id: str, clock: Clock, seconds: int) -> None:
        self._id = id
        self._seconds = seconds
        self._rings: dict[Resolution, Ring] = {}
        self._at = 0.0
        self.signatures = Signatures(clock, seconds)
        self.lives = 0
        """How many pipelines count under this id: two while one of them is still ending."""
        self.was_active_at = 0.0
        """When something was counted last; 0 when nothing ever was. Units: seconds since 1970."""

    def add(self, at: float, counts: Counts) -> None:
        """Add what was counted since the last time.

        Should time go back, it stands still here until it has caught up: a bucket is never left for an
        older one, and nothing is lost.
        """
        at = self._at = max(at, self._at)
        if not self._rings:
            spans = {"coarse": self._seconds, "fine": min(FINE_SECONDS, self._seconds)}
            self._rings = {
                name: Ring(width, ceil(spans[name] / width), at) for name, width in WIDTHS.items()
            }
        if any(counts):
            self.was_active_at = at
            for ring in self._rings.values():
                ring.add(at, counts)

    def buckets(self, resolution: Resolution) -> TimeBuckets:
        """Return what was counted when, up to the last time that anything was added."""
        ring = self._rings.get(resolution)
        return ring.until(self._at) if ring else TimeBuckets(WIDTHS[resolution])

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        counts = sum(ring.bytes for ring in self._rings.values())
        return _RECORD_BYTES + len(self._id) + counts + self.signatures.size
