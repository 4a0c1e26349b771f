"""A sink that bridges outages: what fails because of one is written when it is over, in order."""

from __future__ import annotations

import asyncio
from bisect import insort
from functools import partial

from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink, InlineSink, QueueFill, Rest, Sink
from headrace.compiler.errors import BatchFailed, FailureClass
from headrace.compiler.runtime.outage import OutageBridge, is_worth_it
from headrace.compiler.runtime.partwritten import Neighbour, PartWritten, may_be_content, was_alone

ANSWERED_TRIES = 5
"""Tries of a batch that the other side answers, until its messages are tried apart: one may be why."""


class RetryingSink(AwaitingSink):
    """Hands batches to another sink, again and again until an outage is over, or has lasted too long.

    Batches are numbered as they come. Those that fail, and those that come then, stand in line. When all
    that came before the first of them has ended, that one is tried until it is written; then all that wait
    begin, in their order. So one that did not fail may have been written before others that were under way
    with it.
    """

    def __init__(self, sink: Sink, outage: OutageBridge, neighbour: Neighbour) -> None:
        """Take a sink, and what writes the batch that comes next, if it is to be known what passes."""
        self._sink, self._outage, self._neighbour = sink, outage, neighbour
        self._next = 0
        self._under_way: dict[int, Batch] = {}
        """By number: what was begun and has not ended."""
        self._line: list[int] = []
        """The numbers of the batches that wait, in order."""
        self._waiters: dict[int, asyncio.Future[None]] = {}
        self._parts: dict[int, PartWritten] = {}
        """By number: the batches that failed, or wait behind one that did."""
        self._is_probing = False
        """Whether the first of them is being tried."""
        self._starting = 0
        """How many were let go on and have not begun."""
        self._begin = self._write_inline
        if isinstance(sink, AwaitingSink):
            self._begin = sink.begin
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

    def left_of(self, batch: Batch) -> tuple[Batch, FailureClass] | None:
        """Return what is not written of a batch that is retried, and why; None: it is not."""
        for part in self._parts.values():
            if part.batch is batch:
                done = frozenset(part.done())
                left = [each for place, each in enumerate(batch) if place not in done]
                return left, part.failure
        return None

    async def write(self, batch: Batch) -> None:
        """Write a batch. Raises what is no outage, or one that has lasted too long."""
        if (rest := self.begin(batch)) is not None:
            await rest()

    def begin(self, batch: Batch) -> Rest | None:
        """Begin to write a batch, unless others wait."""
        if self._line or self._starting:
            number = self._numbered()
            self._parts[number] = PartWritten(batch)
            return self._standing(number)
        try:
            rest = self._begin(batch)
        except Exception as cause:
            return self._failed(self._numbered(), batch, cause)
        if rest is None:
            if self._outage.is_on:
                self._outage.over()
            return None
        number = self._numbered()
        self._under_way[number] = batch
        return partial(self._end, number, batch, rest)

    def _numbered(self) -> int:
        """Return the number of what has come now; what is written in the pass needs none."""
        number = self._next
        self._next += 1
        return number

    def _write_inline(self, batch: Batch) -> Rest | None:
        assert isinstance(self._sink, InlineSink)
        self._sink.write(batch)
        return None

    async def _end(self, number: int, batch: Batch, rest: Rest) -> None:
        """Await what is left of a write; one that fails is tried again."""
        again: Rest | None = None
        try:
            await rest()
        except Exception as cause:
            again = self._failed(number, batch, cause)
        else:
            if not self._line:
                self._outage.over()
        finally:
            self._under_way.pop(number, None)
            self._let_first()
        if again is not None:
            await again()

    def _failed(self, number: int, batch: Batch, cause: Exception) -> Rest:
        """Have a batch stand in line that failed in an outage. Raises what is none."""
        if not is_worth_it(cause):
            self._outage.refused(cause)
            raise cause
        self._parts[number] = PartWritten(batch, cause)
        return self._standing(number, cause)

    def _standing(self, number: int, cause: Exception | None = None) -> Rest:
        """Put a batch in line; return what writes it when it is its turn."""
        insort(self._line, number)
        self._waiters[number] = asyncio.get_running_loop().create_future()
        return partial(self._in_turn, number, cause)

    async def _in_turn(self, number: int, cause: Exception | None) -> None:
        """Wait for the turn of a batch; then write it until nothing is left, or that is of no use."""
        part = self._parts[number]
        try:
            self._let_first()
            while True:
                waiter = self._waiters[number]
                await waiter
                if number in self._line:
                    await self._probe(number, part, cause)
                    return
                self._starting -= 1
                try:
                    await part.rest(partial(self._write_among, number))
                    return
                except Exception as failed:
                    if not is_worth_it(failed):
                        self._outage.refused(failed)
                        raise
                    cause = failed
                    self._standing(number)
                    self._let_first()
        finally:
            self._leave(number)

    async def _probe(self, number: int, part: PartWritten, cause: Exception | None) -> None:
        """Try the first batch of the line until it is written; then all that wait go on."""
        answered = 0
        try:
            while True:
                if cause is not None:
                    answered += ANSWERED_TRIES if was_alone(cause) else may_be_content(cause)
                    await self._outage.pause(cause)
                try:
                    if answered < ANSWERED_TRIES:
                        await part.rest(self._write)
                    else:
                        answered = 0
                        await part.apart(self._write, self._outage, self._next_passes)
                except Exception as failed:
                    cause = failed
                else:
                    break
        finally:
            self._is_probing = False
        self._outage.over()
        self._line.remove(number)
        self._let_all()

    def _let_first(self) -> None:
        """Have the first of the line be tried, if nothing that came before it is under way."""
        if not self._line or self._is_probing or self._starting:
            return
        first = self._line[0]
        if all(number > first for number in self._under_way):
            self._is_probing = True
            _wake(self._waiters[first])

    def _let_all(self) -> None:
        """Have all begin that wait, in their order."""
        waiting, self._line = self._line, []
        self._starting += len(waiting)
        for number in waiting:
            _wake(self._waiters[number])

    def _leave(self, number: int) -> None:
        """Forget a batch, however it ended; the next one in line may be the first now."""
        self._parts.pop(number, None)
        self._waiters.pop(number, None)
        if number in self._line:
            self._line.remove(number)
        self._let_first()

    async def _next_passes(self) -> bool:
        """Write what comes behind the batch that is tried; return whether something did and passed."""
        for number in self._line[1:]:
            part = self._parts[number]
            if part.is_left:
                try:
                    await part.rest(self._write)
                except Exception as cause:  # whose turn it is will tell, when it is tried again
                    return isinstance(cause, BatchFailed) and bool(cause.done)
                return True
        return await self._neighbour()

    async def write_ahead(self, batch: Batch) -> None:
        """Write a batch before others that wait. Raises what the sink does."""
        await self._write(batch)

    async def _write(self, batch: Batch) -> None:
        if (rest := self._begin(batch)) is not None:
            await rest()

    async def _write_among(self, number: int, batch: Batch) -> None:
        """Write a batch beside others."""
        if (rest := self._begin(batch)) is None:
            return
        self._under_way[number] = batch
        try:
            await rest()
        finally:
            self._under_way.pop(number, None)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():  # whoever waits for it may have been cancelled
        waiter.set_result(None)
