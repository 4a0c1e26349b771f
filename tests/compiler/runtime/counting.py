"""A pipeline as history sees it: its counters and its failures, and nothing that runs."""

from __future__ import annotations

import asyncio

from headrace.compiler.clock import Clock
from headrace.compiler.lowering.chainends import Counters
from headrace.compiler.runtime.monitoring.failures import Failures
from headrace.compiler.runtime.monitoring.pipelinehistory import History
from headrace.compiler.runtime.monitoring.pipelinerecord import Resolution

Row = tuple[int, int, int, int]


def history(**options: int) -> History:
    """Return a history on the running loop."""
    return History(Clock(asyncio.get_running_loop()), **options)


class Counting:
    """One life under an id."""

    def __init__(self, history: History, id: str = "p") -> None:
        self.id = id
        self._history = history
        self._clock = Clock(asyncio.get_running_loop())
        self.counters = Counters()
        self.failures = Failures(id, self._clock, lambda *_: None, history.signatures())
        self._life = None

    def begin(self) -> Counting:
        self._life = self._history.begin(self.id, self.counters, self.failures)
        return self

    def end(self) -> None:
        if self._life is not None:
            self._history.end(self._life)

    def count(self, inbound: int = 0, outbound: int = 0) -> None:
        self.counters.inbound += inbound
        self.counters.outbound += outbound

    def fail(self, message: str = "full", times: int = 1) -> None:
        for _ in range(times):
            self.failures.report("output", 0, message)


def rows(history: History, id: str = "p", resolution: Resolution = "coarse") -> list[Row]:
    """Return start and counts of every bucket."""
    told = history.past(id, resolution).buckets
    counts = list(told.counts)
    starts = range(told.start, told.start + len(told) * told.width, told.width)
    return list(zip(starts, counts[::3], counts[1::3], counts[2::3], strict=True))


def seen(history: History, id: str = "p") -> dict[str, int]:
    """Return the failures that are told, with their counts."""
    return {each.message: each.count for each in history.past(id, "coarse").failures}
