"""What history keeps of one pipeline id: counts by the minute and by five seconds, and its failures.

Counts are a row of buckets, as many as history goes back, the newest last. Only what has happened takes
memory: nothing before the first count, and zeros after the last one are added when somebody reads.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.monitoring.signatures import Signatures

Resolution = Literal["coarse", "fine"]

WIDTHS: dict[Resolution, int] = {"coarse": 60, "fine": 5}
"""Seconds per bucket."""
FINE_SECONDS = 1800
"""How far back the fine buckets go, unless history ends before."""

_RECORD_BYTES = 2048
"""Of a record with nothing in it, roughly."""

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


class CountColumns(msgspec.Struct, frozen=True):
    """What one pipeline counted, bucket by bucket; null before it began."""

    inbound: Annotated[
        Sequence[Count | None], Meta(description="Messages that the inputs delivered.")
    ]
    outbound: Annotated[
        Sequence[Count | None], Meta(description="Messages that left the transforms.")
    ]
    errors: Annotated[Sequence[Count | None], Meta(description="Failures, repeated ones included.")]


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

    def counted(self, first: int, last: int) -> tuple[int, list[int]]:
        """Return the number of a bucket, and the counts from it on: all there are from one to another.

        In the buckets before it, and behind these, nothing was counted.
        """
        start = max(first, self._first)
        counts = self._counts[_KINDS * (start - self._first) : _KINDS * (last + 1 - self._first)]
        return start, counts.tolist()

    def restore(self, number: int, counts: list[int]) -> None:
        """Take on the counts of buckets from a number on, which come in order, once each."""
        end = number + len(counts) // _KINDS
        if not counts or end <= self._first:
            return
        self.add((end - 1) * self.width, (0, 0, 0))  # makes room for them
        first = max(number, self._first)
        restored = counts[_KINDS * (first - number) :]
        place = _KINDS * (first - self._first)
        try:
            self._counts[place:] = array(self._counts.typecode, restored)
        except OverflowError:
            self._counts = array("Q", self._counts)
            self._counts[place:] = array("Q", restored)

    def until(self, at: float) -> TimeBuckets:
        """Return the buckets up to the one of a moment, which need not be over."""
        number = int(at // self.width)
        first = max(self._first, number - self.size + 1)
        return TimeBuckets(self.width, first * self.width, self._between(first, number).tolist())

    def columns(self, numbers: range) -> CountColumns:
        """Return what was counted in the buckets of some numbers, which follow each other."""
        first = min(max(self._first, numbers.start), numbers.stop)
        counts = self._between(first, numbers.stop - 1).tolist()
        before = [None] * (first - numbers.start)
        return CountColumns(*([*before, *counts[kind::_KINDS]] for kind in range(_KINDS)))

    def _between(self, first: int, last: int) -> array[int]:
        """Return the counts from one number to another; after those there are, nothing was counted."""
        start, size = _KINDS * (first - self._first), _KINDS * (last - first + 1)
        counts = self._counts[start : start + size]
        counts.frombytes(bytes((size - len(counts)) * counts.itemsize))
        return counts

    @property
    def first(self) -> int:
        """The number of the first bucket there is: a number is the time through the width."""
        return self._first

    @property
    def bytes(self) -> int:
        """How many bytes the counts take."""
        return len(self._counts) * self._counts.itemsize


class PipelineRecord:
    """The past of one id. It goes on when a pipeline is created again under it."""

    __slots__ = (
        "_at",
        "_id",
        "_rings",
        "_seconds",
        "began_at",
        "changes",
        "lives",
        "signatures",
        "was_active_at",
    )

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
        self.began_at = 0.0
        """When something was added first. Units: seconds since 1970."""
        self.changes = 0
        """How often something was counted."""

    def add(self, at: float, counts: Counts) -> None:
        """Add what was counted since the last time.

        Should time go back, it stands still here until it has caught up: a bucket is never left for an
        older one, and nothing is lost.
        """
        at = self._at = max(at, self._at)
        if not self._rings:
            self._begin(at)
        if any(counts):
            self.was_active_at = at
            self.changes += 1
            for ring in self._rings.values():
                ring.add(at, counts)

    def _begin(self, at: float) -> None:
        self.began_at = at
        spans = {"coarse": self._seconds, "fine": min(FINE_SECONDS, self._seconds)}
        self._rings = {
            name: Ring(width, ceil(spans[name] / width), at) for name, width in WIDTHS.items()
        }

    def restore(
        self, resolution: Resolution, began_at: int, number: int, counts: list[int]
    ) -> None:
        """Take on what was counted before, in buckets from a number on, by who ``began_at`` a moment.

        They come in order, before anything is added.
        """
        if not self._rings:
            self._begin(began_at)
        self._rings[resolution].restore(number, counts)
        self._at = max(self._at, began_at)
        if any(counts):
            last = next(at for at in reversed(range(len(counts))) if counts[at]) // _KINDS
            self.was_active_at = max(self.was_active_at, (number + last) * WIDTHS[resolution])
            self._at = max(self._at, self.was_active_at)

    @property
    def rings(self) -> Mapping[Resolution, Ring]:
        """What was counted; nothing before the first time that anything was added."""
        return self._rings

    def buckets(self, resolution: Resolution) -> TimeBuckets:
        """Return what was counted when, up to the last time that anything was added."""
        ring = self._rings.get(resolution)
        return ring.until(self._at) if ring else TimeBuckets(WIDTHS[resolution])

    def numbers(self, resolution: Resolution) -> range:
        """Return the numbers of the buckets that something may have been counted in."""
        ring = self._rings[resolution]
        return range(ring.first, int(self._at // ring.width) + 1)

    def columns(self, resolution: Resolution, numbers: range) -> CountColumns:
        """Return what was counted in the buckets of some numbers."""
        return self._rings[resolution].columns(numbers)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        counts = sum(ring.bytes for ring in self._rings.values())
        return _RECORD_BYTES + len(self._id) + counts + self.signatures.size
