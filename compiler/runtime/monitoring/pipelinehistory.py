"""History: what every pipeline counted when, and how it failed, for as long as was asked for.

One timer reads the counters of all pipelines, every five seconds, in the middle of five seconds of the
wall clock: a timer that is late by less than half of that still counts in the same bucket. What was
counted since the last reading lands in the bucket of the reading. Passing messages costs nothing.

A record belongs to an id. A pipeline that ends is read once more, and its record stands still: it is
answered until its last activity is older than history goes back, and goes on when a pipeline is
created under the id again. All of it is in memory; `DurableHistory` has the counts outlast the process.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import astuple

from headrace.compiler.annotated import Count
from headrace.compiler.clock import Clock
from headrace.compiler.config.retention import DEFAULT_RETENTION
from headrace.compiler.jsontext import encode
from headrace.compiler.lowering.chainends import Counters
from headrace.compiler.runtime.monitoring.failures import Failures
from headrace.compiler.runtime.monitoring.pipelinerecord import (
    WIDTHS,
    Counts,
    PipelineRecord,
    Resolution,
    TimeBuckets,
)
from headrace.compiler.runtime.monitoring.signatures import (
    ErrorSignature,
    PipelineFailure,
    Signatures,
    in_order,
)

SAMPLE_SECONDS = 5.0
MOST_ENDED_BYTES = 64 * 1024 * 1024
"""What the records of pipelines that no longer run may take together; the one that ended first goes."""
SLICE = 20
"""Pipelines that are told of before messages have a turn."""


class Past(msgspec.Struct, frozen=True):
    """What is told of an id: its buckets, its failures, the last seen first."""

    buckets: TimeBuckets
    failures: Sequence[ErrorSignature]
    dropped_signatures: int = 0


class RecentCounts(msgspec.Struct, frozen=True):
    """What the pipelines that run have counted lately, all of them in the same buckets."""

    width: int
    start: Sequence[int]
    """When each bucket begins, the oldest first. Units: seconds since 1970."""
    pipelines: Mapping[str, msgspec.Raw]
    """By id, the `CountColumns` of each as JSON."""


class LatestFailures(msgspec.Struct, frozen=True):
    """What failed lately, of all that runs."""

    total: Annotated[Count, Meta(description="How many are kept, not those listed.")]
    failures: Annotated[Sequence[PipelineFailure], Meta(description="The last seen first.")]


@dataclass(slots=True, eq=False)
class Life:
    """One pipeline under an id, and what had been read of its counters."""

    id: str
    counters: Counters
    failures: Failures
    record: PipelineRecord
    read: Counts = (0, 0, 0)


class History:
    """The records of all pipelines, by id. With a retention of 0 nothing is recorded."""

    def __init__(
        self,
        clock: Clock,
        retention_seconds: int = DEFAULT_RETENTION,
        most_ended_bytes: int = MOST_ENDED_BYTES,
    ) -> None:
        self._clock = clock
        self._most_ended_bytes = most_ended_bytes
        self._seconds = retention_seconds
        self._records: dict[str, PipelineRecord] = {}
        self._lives: dict[Life, None] = {}
        self._ended: dict[str, int] = {}  # records that stand still, with their bytes
        self._timer: asyncio.TimerHandle | None = None
        self.hear_dropped: Callable[[str], object] = lambda _: None
        """Called with an id whose record is dropped."""

    @property
    def seconds(self) -> int:
        """How far back it goes."""
        return self._seconds

    @property
    def records(self) -> Mapping[str, PipelineRecord]:
        """The records that there are, by id."""
        return self._records

    def signatures(self) -> Signatures:
        """Return the table that a pipeline fails into before it runs."""
        return Signatures(self._clock, self._seconds)

    def begin(self, id: str, counters: Counters, failures: Failures) -> Life | None:
        """Record a pipeline from now on, and what failed while it came up: its first reading."""
        if not self._seconds:
            return None
        record = self.record(id)
        record.lives += 1
        record.signatures.absorb(failures.table)
        failures.table = record.signatures
        life = Life(id, counters, failures, record)
        self._lives[life] = None
        self._read(life, self._clock.seconds())
        self._ended.pop(id, None)
        if self._timer is None:
            self._wait()
        return life

    def record(self, id: str) -> PipelineRecord:
        """Return the record of an id, which is made if it is not there."""
        if id not in self._records:
            self._records[id] = PipelineRecord(id, self._clock, self._seconds)
        return self._records[id]

    def settle(self) -> None:
        """Have records stand still that were made for pipelines before they ran, and do not run."""
        still = [id for id, each in self._records.items() if not each.lives]
        for id in sorted(still, key=lambda id: self._records[id].was_active_at):
            self._ended.setdefault(id, self._records[id].size)
        self._forget(self._clock.seconds())
        if self._records and self._timer is None:
            self._wait()

    def end(self, life: Life) -> None:
        """Read a pipeline for the last time; its record stands still unless another has the id."""
        if life in self._lives:
            self._read(life, self._clock.seconds())
            del self._lives[life]
            life.record.lives -= 1
            if not life.record.lives:
                self._ended[life.id] = life.record.size

    def sample(self) -> None:
        """Read the counters of every pipeline."""
        now = self._clock.seconds()
        for life in self._lives:
            self._read(life, now)
        self._forget(now)

    def past(self, id: str, resolution: Resolution) -> Past:
        """Return what is known of an id, which may be nothing."""
        record = self._records.get(id)
        if record is None:
            return Past(TimeBuckets(WIDTHS[resolution]), [])
        signatures = record.signatures
        return Past(record.buckets(resolution), signatures.latest(), signatures.dropped)

    async def recent(self, resolution: Resolution, most: int) -> RecentCounts:
        """Return what those that run counted in the last ``most`` buckets; some pipelines at a time."""
        records = self._running()
        spans = [each.numbers(resolution) for each in records.values()]
        last = max((each.stop for each in spans), default=0)
        first = max(last - most, min((each.start for each in spans), default=0))
        numbers, told = range(first, last), dict[str, msgspec.Raw]()
        for count, (id, record) in enumerate(records.items(), start=1):
            told[id] = msgspec.Raw(encode(record.columns(resolution, numbers)))
            if count % SLICE == 0:
                await self._clock.sleep(0)
        width = WIDTHS[resolution]
        return RecentCounts(width, [number * width for number in numbers], told)

    async def failures(self, most: int) -> LatestFailures:
        """Return the failures of those that run which were seen last; some pipelines at a time."""
        total, latest = 0, list[tuple[str, ErrorSignature]]()
        for count, (id, record) in enumerate([*self._running().items()], start=1):
            found = record.signatures.by_input()
            total += len(found)
            latest += [(id, each) for each in found]
            if count % SLICE == 0:
                latest = _last_seen(latest, most)
                await self._clock.sleep(0)
        return LatestFailures(
            total,
            [
                PipelineFailure(*astuple(each), pipeline_id=id)
                for id, each in _last_seen(latest, most)
            ],
        )

    def _running(self) -> dict[str, PipelineRecord]:
        return {life.id: life.record for life in self._lives}

    def close(self) -> None:
        """Read no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _read(self, life: Life, now: float) -> None:
        before, counters = life.read, life.counters
        life.read = counters.inbound, counters.outbound, life.failures.total
        inbound, outbound, errors = life.read
        life.record.add(now, (inbound - before[0], outbound - before[1], errors - before[2]))

    def _forget(self, now: float) -> None:
        """Drop the records of pipelines that are gone: the old ones, and the first of too many."""
        oldest = now - self._seconds
        for id in [id for id in self._ended if self._records[id].was_active_at < oldest]:
            self._drop(id)
        bytes = sum(self._ended.values())
        while bytes > self._most_ended_bytes:
            bytes -= self._drop(next(iter(self._ended)))

    def _drop(self, id: str) -> int:
        del self._records[id]
        self.hear_dropped(id)
        return self._ended.pop(id)

    def _wait(self) -> None:
        """Wait for the middle of the next five seconds."""
        middle = SAMPLE_SECONDS / 2
        self._timer = self._clock.call_later(
            SAMPLE_SECONDS - (self._clock.seconds() - middle) % SAMPLE_SECONDS, self._due
        )

    def _due(self) -> None:
        self._timer = None
        self.sample()
        if self._records:
            self._wait()


def _last_seen(
    failures: list[tuple[str, ErrorSignature]], most: int
) -> list[tuple[str, ErrorSignature]]:
    """Return those that were seen last, in order."""
    return heapq.nsmallest(most, failures, key=lambda one: (*in_order(one[1]), one[0]))
