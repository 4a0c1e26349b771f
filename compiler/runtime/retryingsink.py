"""A sink that bridges outages: what fails because of one is written when it is over, in order."""

from __future__ import annotations

import asyncio
from bisect import insort
from functools import partial

from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink, InlineSink, QueueFill, Rest, Sink
from headrace.compiler.errors import BatchFailed
from headrace.compiler.runtime.outage import OutageBridge, is_worth_it
from headrace.compiler.runtime.partwritten import PartWritten

ANSWERED_TRIES = 5
"""Tries of a batch that the other side answers, until its messages are tried apart: one may be why."""


class RetryingSink(AwaitingSink):
    """Hands batches to another sink, again and again until an outage is over, or has lasted too long.

    While one waits nothing else begins. Of several that were under way at once, those that fail are written
    in their order, and one that did not fail may have been written before them.
    """

    def __init__(self, sink: Sink, outage: OutageBridge) -> None:
        self._sink, self._outage = sink, outage
        self._next = 0
        self._is_writing = False
        """Whether one of those that wait is tried."""
        self._line: list[int] = []
        """The numbers of the batches that wait, in order: the first of them is tried."""
        self._moved = asyncio.Event()
        if isinstance(sink, AwaitingSink):
            self.at_once, self.is_confirming = sink.at_once, sink.is_confirming  # type: ignore[misc]

    async def start(self) -> None:
        """Start the sink."""
        await self._sink.start()

    def queue(self) -> QueueFill | None:
        """Return how full what the sink holds is."""
        return self._sink.queue()

    async def finish(self) -> None:
        """Finish the sink."""
        await self._sink.finish()

    async def write(self, batch: Batch) -> None:
        """Write a batch. Raises what is no outage, or one that has lasted too long."""
        if (rest := self.begin(batch)) is not None:
            await rest()

    def begin(self, batch: Batch) -> Rest | None:
        """Begin to write a batch, unless others wait."""
        number = self._next
        self._next += 1
        if self._line:
            return self._waiting(number, batch, None)
        try:
            rest = self._begin(batch)
        except Exception as cause:
            if not is_worth_it(cause):
                raise
            return self._waiting(number, batch, cause)
        if rest is None:
            self._outage.over()
            return None
        return partial(self._end, number, batch, rest)

    def _begin(self, batch: Batch) -> Rest | None:
        if isinstance(self._sink, AwaitingSink):
            return self._sink.begin(batch)
        assert isinstance(self._sink, InlineSink)
        self._sink.write(batch)
        return None

    async def _end(self, number: int, batch: Batch, rest: Rest) -> None:
        try:
            await rest()
        except Exception as cause:
            if not is_worth_it(cause):
                raise
            await self._waiting(number, batch, cause)()
        else:
            if not self._line:
                self._outage.over()

    def _waiting(self, number: int, batch: Batch, cause: Exception | None) -> Rest:
        """Put a batch in line; return what writes it when it is its turn."""
        insort(self._line, number)
        return partial(self._in_turn, number, batch, cause)

    async def _in_turn(self, number: int, batch: Batch, cause: Exception | None) -> None:
        try:
            while self._is_writing or self._line[0] != number:
                self._moved.clear()
                await self._moved.wait()
            self._is_writing = True
            try:
                await self._again(PartWritten(batch, cause), cause)
            finally:
                self._is_writing = False
        finally:
            self._line.remove(number)
            self._moved.set()

    async def _again(self, batch: PartWritten, cause: Exception | None) -> None:
        """Write what is left of a batch until nothing is, or another try is of no use."""
        answered = 0
        while True:
            if cause is not None:
                answered += isinstance(cause, BatchFailed) and cause.is_answered
                await self._outage.pause(cause)
            try:
                if answered < ANSWERED_TRIES:
                    await batch.rest(self._write)
                else:
                    answered = 0
                    await batch.apart(self._write, self._outage)
            except Exception as failed:
                cause = failed
            else:
                self._outage.over()
                return

    async def _write(self, batch: Batch) -> None:
        if (rest := self._begin(batch)) is not None:
            await rest()
