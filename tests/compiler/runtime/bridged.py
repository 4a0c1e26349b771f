"""Pipelines whose outputs bridge outages of servers that are not there, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.retry import Retrying, RetryOptions
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink, InlineSink, Sink
from headrace.compiler.errors import BatchFailed, NotWritable, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.liveevents import Event
from headrace.compiler.runtime.pipeline import Pipeline
from tests.stand_ins import Told, batches, pipeline, reads, run, running, takes, with_attribute

Says = Callable[[float, Batch], Exception | None]
"""Returns why a batch cannot be written at a time since the start, or None."""


def away(since: float, until: float, cause: Exception | None = None) -> Says:
    """Return a server that is not there for a while."""

    def says(at: float, batch: Batch) -> Exception | None:
        return (cause or Unreachable("db:1 does not answer")) if since <= at < until else None

    return says


def retry(seconds: float) -> Retrying:
    """Return the option with a bound."""
    return RetryOptions.load({"seconds": seconds})


async def hear(listener: Any, heard: list[Event]) -> None:
    """Add what somebody is told to what was heard."""
    async for each in listener:
        heard += getattr(each, "events", ())


class Server(AwaitingSink):
    """Takes what it does not refuse, each batch in a tenth of a second or another time; keeps when."""

    def __init__(
        self,
        clock: Clock,
        says: Says,
        at_once: int = 1,
        seconds: Callable[[Batch], float] = lambda _: 0.1,
    ) -> None:
        self._clock, self._says, self.at_once, self._seconds = clock, says, at_once, seconds
        self._began = clock.monotonic()
        self.messages: list[Any] = []
        self.tries: list[float] = []
        self.begun: list[Any] = []
        """The first message of each batch, as they were begun."""

    async def write(self, batch: Batch) -> None:
        at = self._clock.monotonic() - self._began
        self.tries.append(round(at, 1))
        self.begun.append(batch[0])
        await self._clock.sleep(self._seconds(batch))
        if (cause := self._says(at, batch)) is not None:
            if isinstance(cause, BatchFailed):
                self.messages += [batch[place] for place in cause.done]
            raise cause
        self.messages += batch


class Disk(InlineSink):
    """Is full for a while."""

    def __init__(self, clock: Clock, until: float) -> None:
        self._clock, self._until = clock, clock.monotonic() + until
        self.messages: list[Any] = []

    def write(self, batch: Batch) -> None:
        if self._clock.monotonic() < self._until:
            raise NotWritable("the disk is full")
        self.messages += batch


class Run:
    """A pipeline that is handed a batch each second and writes to a sink with `retry`."""

    def __init__(self) -> None:
        self.engine = Engine(Clock(asyncio.get_running_loop()))
        self.clock = self.engine.clock

    async def start(
        self,
        sink: Sink,
        count: int,
        *others: Sink,
        retry: Retrying = True,
        size: int = 1,
        every: float = 1.0,
    ) -> Pipeline:
        """Run it on ``count`` batches of numbers."""
        given = [batches([*range(n * size, (n + 1) * size)]) for n in range(count)]
        lines = [part for each in given for part in (every, each)]
        self.source = Told(self.clock, lines)
        output = with_attribute(takes(sink), "retry", retry)
        outputs = [output, *map(takes, others)]
        await run(self.engine, pipeline("p", [reads(self.source)], [], outputs))
        return running(self.engine, "p")


def lost(of: Pipeline) -> dict[str, int]:
    """Return how many messages were lost, by reason."""
    return {each.reason: each.count for each in of.failures.losses if each.count}
