"""Handing batches to sinks: in order, one output never holding up another's failures.

A sink that only appends is written in the pass. A sink that waits has a worker and a queue of its
own; what waits there is bounded by the windows of the pipeline's inputs, because a delivery gives its
turn back only when it is done. A failed write loses the batch for that output alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.edges import AwaitingSink, InlineSink, Rest, Sink
from headrace.compiler.errors import (
    BatchFailed,
    BuildRefused,
    FailureClass,
    NotWritable,
    Stopped,
    Unreachable,
)
from headrace.compiler.lowering.chainends import OnNext
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.monitoring.links import UP, LinkState
from headrace.compiler.runtime.selecting import Broke, Select, Selecting

WAITING_SECONDS = 2.0
"""How long nothing that was sent is taken until that is told of the output."""


class Writer:
    """One output at work: takes deliveries, drains, finishes once."""

    settles_late: ClassVar[bool] = False
    """Whether what it has taken may be acknowledged as late as when it is finished."""

    def __init__(self, sink: Sink, place: ComponentContext) -> None:
        self.sink = sink
        self.place = place
        self.is_started = False
        self._is_over = self._finished = False
        self._selecting: Selecting | None = None

    def select(self, select: Select, broke: Broke) -> None:
        """Have it be handed only what its output wants."""
        self._selecting = select(self.take, broke)

    def entrance(self) -> OnNext:
        """Return what the chain hands deliveries to."""
        return self.take if self._selecting is None else self._selecting.take

    async def start(self) -> None:
        """Start the sink; may be called again when the other side did not answer."""
        await self.sink.start()
        self.is_started = True
        self.place.link.connected()
        if self._is_over:  # the run ended meanwhile, when there was nothing to finish yet
            await self.finish()

    def take(self, delivery: Delivery) -> None:
        """Accept a delivery; it is done when it is written or lost."""
        raise NotImplementedError

    def link(self, now: int) -> LinkState:
        """Return how its link is. Units: milliseconds since 1970."""
        return self.place.link.state(now)

    def waiting(self) -> int:
        """Return how many batches have come to it that are not done."""
        return 0 if self._selecting is None else self._selecting.waiting()

    def turned_down(self, cause: BuildRefused) -> None:
        """The other side says no, and is not tried again."""
        self.place.report_lost(cause)

    async def drain(self) -> None:
        """Wait until everything that has come is done."""
        if self._selecting is not None:
            await self._selecting.drain()

    def abandon(self) -> int:
        """Stop writing: the grace is over. Return how many messages are lost by that."""
        return 0 if self._selecting is None else self._selecting.abandon()

    def queued(self) -> Iterable[Batch]:
        """Return the batches that are not done and are in a queue, or that `abandon` tells of as lost."""
        return ()

    async def finish(self) -> None:
        """Finish the sink, once, however the run ended; a sink that never came up has nothing to."""
        self._is_over = True
        self.place.link.ended()
        if self._finished or not self.is_started:
            return
        self._finished = True
        try:
            await self.sink.finish()
        except asyncio.CancelledError:
            self.place.report(BatchFailed("stopped before it was finished"))
            raise
        except Exception as cause:
            self.place.report(cause)


class InlineWriter(Writer):
    """Writes in the pass."""

    def __init__(self, sink: InlineSink, place: ComponentContext) -> None:
        super().__init__(sink, place)
        self._write = sink.write

    def take(self, delivery: Delivery) -> None:
        """Write at once."""
        try:
            self._write(delivery.batch)
        except Exception as cause:
            self.place.report(cause, delivery.batch)
            self.place.when_kept(delivery.done)
        else:
            delivery.done()


class QueuedWriter(Writer):
    """Begins one batch after the other; while a backoff is open, batches fail at once.

    What has nothing to wait for is written in the pass. Workers run only while something waits: as
    many as the sink has writes under way at once.
    """

    def __init__(self, sink: AwaitingSink, place: ComponentContext) -> None:
        super().__init__(sink, place)
        self._awaiting = sink
        self._clock = place.clock
        self._queue: deque[Delivery] = deque()
        self._workers: dict[asyncio.Task[None], Delivery] = {}
        self._backoff = Backoff(place.random)
        self._closed_until = 0.0
        self._cause = ""
        self._failure: FailureClass = "unavailable"
        self._moved = 0.0
        """When a write that waits began, or was done, last."""

    def link(self, now: int) -> LinkState:
        """Return how its link is: it waits while the other side takes its time with what it was sent."""
        state = super().link(now)
        if state is UP and self._workers:
            seconds = self._clock.monotonic() - self._moved
            if seconds >= WAITING_SECONDS:
                return LinkState("waiting", f"nothing has been taken for {int(seconds)} s")
        return state

    def waiting(self) -> int:
        """Return how many batches are being looked at or written, or wait for that."""
        return super().waiting() + len(self._workers) + len(self._queue)

    def take(self, delivery: Delivery) -> None:
        """Write it, or queue it behind what is being written."""
        if len(self._workers) >= self._awaiting.at_once:
            self._queue.append(delivery)
        elif (rest := self.begin(delivery)) is not None:
            self.go_on(delivery, rest)

    def go_on(self, delivery: Delivery, rest: Rest) -> None:
        """Finish what was begun, and then what has come meanwhile."""
        if not self._workers:
            self._moved = self._clock.monotonic()
        self._workers[asyncio.ensure_future(self._work(delivery, rest))] = delivery

    async def drain(self) -> None:
        """Wait for the workers, which may only begin."""
        await super().drain()
        while self._workers:
            await asyncio.wait([*self._workers])

    def abandon(self) -> int:
        """End the workers. Every batch they held is lost and counted, and none is acknowledged.

        Where all that arrives is kept on the disk it comes again, and nothing is lost.
        """
        unseen = super().abandon()
        left = [self._left_of(each.batch) for each in self._workers.values()]
        left += [(each.batch, "unavailable") for each in self._queue]
        if self.place.comes_again:
            left.clear()
        for batch, failure in left:
            if batch:
                self.place.report(Stopped("stopped before everything was written", failure), batch)
        lost = [batch for batch, _ in left if batch]
        count = sum(map(len, lost))
        if lost:
            told = f"because not written in time: {count:,} (batches: {len(lost):,})"
            if self.place.letters is not None:
                self.place.warn(f"messages put down as dead letters, {told}")
                count = 0
            else:
                self.place.warn(f"messages lost, {told}")
        self.cancel()
        return unseen + count

    def cancel(self) -> None:
        """End the workers. Nothing of what they held is done, or counted."""
        self._queue.clear()
        for worker in self._workers:
            worker.cancel()
        self._workers.clear()

    def _left_of(self, batch: Batch) -> tuple[Batch, FailureClass]:
        """Return what is not written of a batch that was begun: nobody knows how far it came."""
        return batch, "unclear"

    def begin(self, delivery: Delivery) -> Rest | None:
        """Begin to write a delivery; return what finishes it, or None when it is done.

        For who knows that there is nothing else to write; see `take`.
        """
        if self._closed_until and self._clock.monotonic() < self._closed_until:
            # The same text: one outage is one failure, counted. This batch was not sent.
            self.place.report(Unreachable(self._cause, self._failure), delivery.batch)
        else:
            try:
                rest = self._awaiting.begin(delivery.batch)
            except Exception as cause:
                self._failed(cause, delivery.batch)
            else:
                if rest is not None:
                    return rest
                self._succeeded()
                delivery.done()
                return None
        self.place.when_kept(delivery.done)
        return None

    async def _work(self, delivery: Delivery, rest: Rest) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        try:
            await self._end(delivery, rest)
            while self._queue:
                delivery = self._workers[worker] = self._queue.popleft()
                if (begun := self.begin(delivery)) is not None:
                    await self._end(delivery, begun)
        finally:
            self._workers.pop(worker, None)

    async def _end(self, delivery: Delivery, rest: Rest) -> None:
        try:
            await rest()
        except Exception as cause:
            self._failed(cause, delivery.batch)
            has_failed = True
        else:
            self._succeeded()
            has_failed = False
        self._moved = self._clock.monotonic()
        # Not when we are abandoned: nobody may take it for written.
        if has_failed:
            self.place.when_kept(delivery.done)
        else:
            delivery.done()

    def _succeeded(self) -> None:
        if self._closed_until:
            self._closed_until = 0.0
            self._backoff.reset()
            self.place.reconnected("written to again")
        elif self.place.link.status != "up" and self._awaiting.is_confirming:
            self.place.link.connected()

    def _failed(self, cause: Exception, lost: Batch) -> None:
        """Report a lost batch; nobody answering opens the backoff."""
        if isinstance(cause, Unreachable):
            self._cause = str(cause)
            self._failure = "unavailable" if cause.failure == "unclear" else cause.failure
            now = self._clock.monotonic()
            if now >= self._closed_until:  # of several under way, the first that fails opens it
                self._closed_until = now + self._backoff.next()
            self.place.report_lost(cause, self._closed_until - now, lost)
        elif isinstance(cause, NotWritable):
            self.place.report_lost(cause, lost=lost)
        else:
            self.place.report(cause, lost)


def writer(sink: Sink, place: ComponentContext) -> Writer:
    """Return the writer that suits a sink."""
    if isinstance(sink, InlineSink):
        return InlineWriter(sink, place)
    if isinstance(sink, AwaitingSink):
        return QueuedWriter(sink, place)
    raise TypeError(f"{type(sink).__name__} is neither an inline nor an awaiting sink")
