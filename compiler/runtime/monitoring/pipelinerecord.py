"""What history keeps of one pipeline id: counts by the minute and by five seconds, and its failures."""

from __future__ import annotations

from math import ceil
from typing import Literal

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.monitoring.rings import Counts, Ring, TimeBuckets
from headrace.compiler.runtime.monitoring.signatures import Signatures

Resolution = Literal["coarse", "fine"]

WIDTHS: dict[Resolution, int] = {"coarse": 60, "fine": 5}
"""Seconds per bucket."""
FINE_SECONDS = 1800
"""How far back the fine buckets go, unless history ends before."""

_FIXED = 2048
"""Bytes that a record takes when nothing is in it, roughly."""


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
            self._rings = self._begun(at)
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
        return _FIXED + len(self._id) + counts + self.signatures.size

    def _begun(self, at: float) -> dict[Resolution, Ring]:
        spans: dict[Resolution, int] = {
            "coarse": self._seconds,
            "fine": min(FINE_SECONDS, self._seconds),
        }
        return {name: Ring(width, ceil(spans[name] / width), at) for name, width in WIDTHS.items()}
