"""Counts by time: a row of buckets, as many as history goes back, the newest last.

Only what has happened takes memory: nothing before the first count, and zeros after the last one are
added when somebody reads.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import msgspec

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
        self._drop_before(number - self.size + 1)
        place = _KINDS * (number - self._first)
        self._reach(place + _KINDS)
        for kind, count in enumerate(counts, place):
            try:
                self._counts[kind] += count
            except (
                OverflowError
            ):  # more than 4 billion in a bucket: nothing that we know of is so fast
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

    def _drop_before(self, number: int) -> None:
        if number > self._first:
            del self._counts[: _KINDS * (number - self._first)]
            self._first = number

    def _reach(self, length: int) -> None:
        missing = length - len(self._counts)
        if missing > 0:
            self._counts.frombytes(bytes(missing * self._counts.itemsize))
