"""How a ratio is taken: one core, both sides turn and turn about, CPU seconds, the median.

Whatever else the machine does meets both sides alike: they run A B A B, what counts is the CPU time
they took and not the time that passed, and of the ratios of neighbours the middle one is told.
Garbage is collected as it comes, as in production.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")
Work = Callable[[int], Awaitable[object]]
"""Does something so many times."""

Cost = tuple[float, float]
"""Seconds on the clock, and seconds of CPU."""

MOST_TIMES = 2**30


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure. ``seconds`` of CPU a sample, ``pairs`` of samples, ``span`` of a siege."""

    seconds: float = 0.3
    pairs: int = 9
    span: float = 30.0


THOROUGH = Effort()
BRIEF = Effort(seconds=0.001, pairs=1, span=0.5)
"""Just enough to see that a scenario runs."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What one unit of work cost on either side, in CPU seconds, and how the samples went."""

    ours: float
    limit: float
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The share of the limit's speed that ours has."""
        return median(self.ratios)


def cores() -> tuple[int, int]:
    """Return the core for what is measured and the one for everything else (the same, if alone)."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[-1], allowed[0]


def on_one_core(main: Coroutine[Any, Any, T]) -> T:
    """Run a scenario on the loop of production, pinned to the core of what is measured."""
    os.sched_setaffinity(0, {cores()[0]})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def own_cpu() -> float:
    """Return the CPU seconds this thread has taken."""
    return time.thread_time()


def cpu_of(pid: int) -> float:
    """Return the CPU seconds another process has taken.

    Source: clock_getcpuclockid(3); the kernel's number of a process's clock is made from its id.
    """
    return time.clock_gettime((~pid << 3) | 2)


async def compare(
    ours: Work, limit: Work, effort: Effort, cpu: Callable[[], float] = own_cpu
) -> Compared:
    """Return what ``ours`` costs beside ``limit``, as many times each as fills a sample."""
    our_times, limit_times = [await _fitting(side, effort, cpu) for side in (ours, limit)]
    samples = [
        (await _cost(ours, our_times, cpu), await _cost(limit, limit_times, cpu))
        for _ in range(effort.pairs)
    ]
    return compared(samples)


def compared(samples: list[tuple[float, float]]) -> Compared:
    """Return pairs of costs, ours and the limit's, as one comparison."""
    ours, limits = zip(*samples, strict=True)
    return Compared(median(ours), median(limits), tuple(theirs / own for own, theirs in samples))


def both(turns: Sequence[Sequence[Cost]]) -> tuple[Compared, Compared]:
    """Return turns, ours and the limit's, as two comparisons: on the clock, and of the CPU."""
    clock, cpu = (compared([(ours[n], theirs[n]) for ours, theirs in turns]) for n in (0, 1))
    return clock, cpu


async def timed(work: Awaitable[object], count: int) -> Cost:
    """Return the seconds that each of ``count`` in ``work`` takes, those of every thread together."""
    began, cpu = time.perf_counter(), time.process_time()
    await work
    return (time.perf_counter() - began) / count, (time.process_time() - cpu) / count


async def _cost(work: Work, times: int, cpu: Callable[[], float]) -> float:
    began = cpu()
    await work(times)
    return (cpu() - began) / times


async def _fitting(work: Work, effort: Effort, cpu: Callable[[], float]) -> int:
    """Return how many times fill a sample: doubled until a tenth is full. Warms up on the way."""
    times = 16
    while times < MOST_TIMES:
        cost = await _cost(work, times, cpu)
        if cost * times > effort.seconds / 10:
            return max(int(effort.seconds / cost), 16)
        times *= 2
    return times
