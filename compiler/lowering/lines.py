"""Deliveries in a line: worked on one at a time and in order, by steps that await or take turns.

A line costs nothing while its step is done at once. What comes while one delivery is worked on waits;
completion is handed on after the last of them, and disposal ends the running one.

A pass is all of one delivery's way: who works in slices keeps the next delivery out of every line of its
pipeline that it has been through itself. So `recall` sees what the `remember` behind it has written of the
delivery before, as where nobody pauses.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import CompositeDisposable, Disposable

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import (
    AwaitingStep,
    Operator,
    Paused,
    PausingStep,
)
from headrace.compiler.delivery import LARGE_BATCH, Batch, Delivery, slow_batch
from headrace.compiler.errors import Stopped
from headrace.compiler.largejson import TURN_SECONDS

Report = Callable[[BaseException, Batch], None]
"""Told what a component raised, and which messages are lost by it; counts and reports it there."""
Emit = Callable[[Delivery], None]
PassOn = Callable[[Delivery, Emit], None]
"""Does with a delivery what is done at once, and hands on what becomes of it."""

SLICE_SECONDS = TURN_SECONDS
"""What one of the steps that take long may work before the others have their turn.

Twice what the pumps have (`runtime/turns.py`): one turn of everybody stays far below the 20 ms that a
request may wait, and the loop's own share of it, some 20 µs, does not show.
"""
SHORTEST_SECONDS = 0.0001
"""What a batch that has just come is worked on at least, however many are paused: most need no more."""


class SliceShare:
    """How many steps go on after a pause: those of one pipeline, and with ``all`` everybody's.

    Those that go on have one slice in each turn of the loop, whatever their number: a request waits
    for one of them and not for all.
    """

    __slots__ = ("_all", "_last", "lines", "paused")

    def __init__(self, all: SliceShare | None = None) -> None:
        self._all = all
        self._last: asyncio.Future[None] | None = None
        self.paused = 0
        self.lines: list[Line] = []
        """Those of one pipeline, the last one first: a chain is subscribed from its end."""

    @property
    def seconds(self) -> float:
        """How long a new batch may be worked on at once: the slice is shared with those that are paused."""
        paused = self.paused if self._all is None else self._all.paused
        return max(SLICE_SECONDS / paused, SHORTEST_SECONDS) if paused > 1 else SLICE_SECONDS

    async def turn(self, clock: Clock) -> None:
        """Wait for the next turn of the loop in which nobody else has a slice, first come, first served."""
        everybody = self._all or self
        ahead, mine = everybody._last, asyncio.get_running_loop().create_future()
        everybody._last = mine
        try:
            if ahead is None or ahead.done():
                await clock.sleep(0)
            else:
                await ahead  # who is woken by it has the turn after
        finally:
            if not mine.done():  # the one behind was cancelled, and this with it
                mine.set_result(None)

    def abandon(self) -> int:
        """Report what has not gone through all lines; return how many messages those are."""
        return sum(line.abandon() for line in self.lines)

    def count(self, more: int) -> None:
        """Count so many more, or fewer."""
        self.paused += more
        if self._all is not None:
            self._all.count(more)


@dataclass(frozen=True, slots=True)
class Pacing:
    """What a step needs that takes turns: the clock, and who else has a slice."""

    clock: Clock
    slices: SliceShare
    large: int = LARGE_BATCH
    """Messages of a batch above which it takes turns."""
    is_slow: bool = False
    """Whether a smaller one does as well that cannot be done as it usually is."""

    def slower(self, parts: int) -> Pacing:
        """Return that of steps of which so many parts take microseconds for a message, or longer.

        Without one: of those that may take long for some messages, and say so.
        """
        return replace(self, large=min(self.large, slow_batch(parts)), is_slow=True)

    def one_by_one(self) -> Pacing:
        """Return that of a step that takes long for any message."""
        return replace(self, large=1, is_slow=True)


def hand_on(delivery: Delivery, batches: Sequence[Batch], emit: Callable[[Delivery], None]) -> None:
    """Emit what a step made of a delivery; what it owes is settled when the last part is done."""
    if len(batches) != 1:
        batches = [batch for batch in batches if batch]
    if not batches or not batches[0]:
        delivery.done()
    elif len(batches) == 1:
        delivery.batch = batches[0]
        emit(delivery)
    else:
        for part in delivery.split(batches):
            emit(part)


class Line:
    """Deliveries worked on one at a time, in order; what comes meanwhile waits for its turn."""

    _step: AwaitingStep
    """What each of them is made to."""

    def __init__(
        self, report: Report, slices: SliceShare | None, observer: ObserverBase[Delivery]
    ) -> None:
        self._report = report
        self._observer = observer
        self._queue: deque[Delivery] = deque()
        self._current: Delivery | None = None
        self._handed_on = 0
        """Messages that the current delivery has become already."""
        self._work: asyncio.Future[None] | None = None
        self._is_completed = False
        self._busy = 0
        """How many work in this line and those behind it."""
        if slices is not None:
            slices.lines.append(self)

    def take(self, delivery: Delivery) -> None:
        """Work on a delivery, when those before it are done."""
        self._queue.append(delivery)
        if self._work is None:
            self._work = asyncio.ensure_future(self._through())

    def entrance(self) -> Emit:
        """Return what takes deliveries."""
        return self.take

    def complete(self) -> None:
        """Hand on the end, behind the last delivery."""
        self._is_completed = True
        if self._work is None:
            self._observer.on_completed()

    def abandon(self) -> int:
        """Report what has not gone through, for its time is over; return how many messages those are."""
        lost = [each.batch for each in self._queue]
        if self._current is not None:
            lost.append(self._left(self._current))
        for batch in filter(None, lost):
            self._report(Stopped("stopped before everything that was accepted went through"), batch)
        self._current = None
        self._queue.clear()
        return sum(map(len, lost))

    def _left(self, delivery: Delivery) -> Batch:
        """Return what is not handed on of the current delivery."""
        return delivery.batch[self._handed_on :] if self._handed_on else delivery.batch

    def waiting(self) -> int:
        """Return how many deliveries have not gone through."""
        return len(self._queue) + (self._current is not None)

    def settle(self) -> list[int]:
        """Work on nothing any more, and owe nothing; return how many messages of each batch that ends."""
        left = [*self._queue]
        if self._current is not None:
            left.append(self._current)
        sizes = [len(self._left(each) if each is self._current else each.batch) for each in left]
        self._current = None
        self.cancel()
        for delivery in left:
            delivery.done()
        return [*filter(None, sizes)]

    def cancel(self) -> None:
        """Work on nothing any more."""
        self._queue.clear()
        work, self._work = self._work, None
        if work is not None:
            work.cancel()

    async def _through(self) -> None:
        while self._queue:
            self._current = self._queue.popleft()
            self._handed_on = 0
            try:
                await self._work_on(self._current)
            except Exception as cause:  # steps and sinks report their own: an operator is broken
                self._observer.on_error(cause)
                return
            finally:
                self._current = None
        self._work = None
        if self._is_completed:
            self._observer.on_completed()

    async def _work_on(self, delivery: Delivery) -> None:
        """Hand on what becomes of one delivery; raise what raised there."""
        try:
            batches = await self._step(delivery.batch)
        except Exception as cause:
            self._failed(delivery, cause)
        else:
            hand_on(delivery, batches, self._observer.on_next)

    def _failed(self, delivery: Delivery, cause: Exception) -> None:
        self._report(cause, delivery.batch)
        delivery.done()


class AwaitingLine(Line):
    """Deliveries for each of which somebody is waited for."""

    def __init__(
        self,
        step: AwaitingStep,
        report: Report,
        slices: SliceShare | None,
        observer: ObserverBase[Delivery],
    ) -> None:
        super().__init__(report, slices, observer)
        self._step = step


class SlicedLine(Line):
    """Deliveries most of which are done as they come; only one that takes long makes others wait."""

    def __init__(self, report: Report, pacing: Pacing, observer: ObserverBase[Delivery]) -> None:
        self._clock, self._slices = pacing.clock, pacing.slices
        self._place = len(self._slices.lines)
        super().__init__(report, self._slices, observer)
        self._counted = 0
        """1 while it works."""
        self._ends = 0.0

    def take(self, delivery: Delivery) -> None:
        self._count(1)
        super().take(delivery)

    def cancel(self) -> None:
        super().cancel()
        self._count(0)

    def _count(self, works: int) -> None:
        """Be counted as one that works, or as one that does not."""
        more = works - self._counted
        if more:
            self._counted = works
            self._slices.count(more)
            for line in self._slices.lines[self._place :]:
                line._busy += more

    async def _through(self) -> None:
        await super()._through()
        self._count(0)

    async def _behind(self) -> None:
        """Wait until nobody works in the lines behind this one: the delivery before is through."""
        while self._busy > 1:
            await self._clock.sleep(0)

    async def _slice(self) -> float:
        """Return what is left of the slice; when it is over, of the next one."""
        left = self._ends - self._clock.monotonic()
        return left if left > 0 else await self._next_slice()

    async def _next_slice(self) -> float:
        await self._slices.turn(self._clock)
        self._ends = self._clock.monotonic() + SLICE_SECONDS
        return SLICE_SECONDS


class PausingLine(SlicedLine):
    """Deliveries for a step that says itself when it has not finished in its time."""

    def __init__(
        self, step: PausingStep, report: Report, pacing: Pacing, observer: ObserverBase[Delivery]
    ) -> None:
        super().__init__(report, pacing, observer)
        self._step = self._in_slices
        self._pausing_step = step
        self._paused: Paused | None = None

    def take(self, delivery: Delivery) -> None:
        if self._busy:
            super().take(delivery)
            return
        try:
            made = self._pausing_step(delivery.batch, self._slices.seconds)
        except Exception as cause:
            self._failed(delivery, cause)
            return
        if isinstance(made, list):
            hand_on(delivery, made, self._observer.on_next)
            return
        self._paused = made
        super().take(delivery)

    def cancel(self) -> None:
        if self._paused is not None:
            self._paused.close()
        super().cancel()

    async def _in_slices(self, batch: Batch) -> list[Batch]:
        """Return what becomes of a batch: of the one that is paused, then of each that waited."""
        await self._behind()
        if self._paused is None:
            made = self._pausing_step(batch, await self._slice())
            if isinstance(made, list):
                return made
            self._paused = made
        try:
            while (batches := self._paused.resume(await self._next_slice())) is None:
                pass
        finally:
            self._paused = None
        return batches


def in_line(line: Callable[[ObserverBase[Delivery]], Line]) -> Operator:
    """Return the operator that puts what comes in a line."""

    def operator(source: Observable[Delivery]) -> Observable[Delivery]:
        def subscribe(
            observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
        ) -> DisposableBase:
            made = line(observer)
            upstream = source.subscribe(
                made.entrance(), observer.on_error, made.complete, scheduler=scheduler
            )
            return CompositeDisposable(upstream, Disposable(made.cancel))

        return Observable(subscribe)

    return operator
