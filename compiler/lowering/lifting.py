"""From steps to operators: the one place where a step meets deliveries, failures and Rx.

Each operator here calls its observer directly. `flat_map` and `concat_map` cost 30 µs an item against
0.7 µs for these, so they stay off the path.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import CompositeDisposable, Disposable

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.language.context import AwaitingStep, Operator, Paused, PausingStep, Step

Report = Callable[[BaseException], None]
"""Told what a component raised; counts and reports it under that component."""

SLICE_SECONDS = 0.002
"""What one of the steps that take long may work before the others have their turn.

Twice what the pumps have (`runtime/turns.py`): one turn of everybody stays far below the 20 ms that a
request may wait, and the loop's own share of it, some 20 µs, does not show.
"""
SHORTEST_SECONDS = 0.0001
"""What a batch that has just come is worked on at least, however many are paused: most need no more."""


def per_batch(step: Step, report: Report) -> Operator:
    """Return the operator that runs ``step`` on each batch.

    A failing batch is reported and dropped, and the next one goes on: `on_error` would end the
    subscription and with it the pipeline.
    """

    def pass_on(delivery: Delivery, emit: Callable[[Delivery], None]) -> None:
        try:
            batches = step(delivery.batch)
        except Exception as cause:
            report(cause)
            delivery.done()
            return
        hand_on(delivery, batches, emit)

    return _direct(pass_on)


def fused(loop: Callable[[Batch], Batch], plain: Sequence[tuple[Step, Report]]) -> Operator:
    """Return the operator that runs a generated loop, and on any fault the plain steps instead.

    The loop keeps no books. When it raises, the batch is run again through the steps it was made from
    (what it did shows nowhere): they decide, and what they say is reported under the right component.
    """

    def again(delivery: Delivery, emit: Callable[[Delivery], None]) -> None:
        batch = delivery.batch
        for step, report in plain:
            try:
                batches = step(batch)
            except Exception as cause:
                report(cause)
                batches = []
            if not batches or not batches[0]:
                delivery.done()
                return
            batch = batches[0]  # a per-message step gives one batch or none
        delivery.batch = batch
        emit(delivery)

    def pass_on(delivery: Delivery, emit: Callable[[Delivery], None]) -> None:
        try:
            batch = loop(delivery.batch)
        except Exception:  # reported by `again`, by the step that owns the fault
            again(delivery, emit)
            return
        if batch:
            delivery.batch = batch
            emit(delivery)
        else:
            delivery.done()

    return _direct(pass_on)


def hand_on(delivery: Delivery, batches: Sequence[Batch], emit: Callable[[Delivery], None]) -> None:
    """Emit what a step made of a delivery; what it owes is settled when the last part is done."""
    if len(batches) == 1:
        if batches[0]:
            delivery.batch = batches[0]
            emit(delivery)
        else:
            delivery.done()
        return
    full = [batch for batch in batches if batch]
    if not full:
        delivery.done()
        return
    for part in delivery.split(full):
        emit(part)


class Slices:
    """How many steps go on after a pause: those of one pipeline, and with ``all`` everybody's.

    Those that go on have one slice in each turn of the loop, whatever their number: a request waits
    for one of them and not for all.
    """

    __slots__ = ("_all", "_last", "paused")

    def __init__(self, all: Slices | None = None) -> None:
        self._all = all
        self._last: asyncio.Future[None] | None = None
        self.paused = 0

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

    def begin(self) -> None:
        """Count one more."""
        self.paused += 1
        if self._all is not None:
            self._all.begin()

    def end(self) -> None:
        """Count one less."""
        self.paused -= 1
        if self._all is not None:
            self._all.end()


def awaiting(step: AwaitingStep, report: Report) -> Operator:
    """Return the operator that awaits ``step`` for one batch at a time, in order.

    What waits before it is bounded by the windows of the inputs. Completion is handed on after the last
    waiting batch; disposal ends the running one.
    """
    return _in_line(lambda observer: _Line(step, report, observer))


def pausing(step: PausingStep, report: Report, clock: Clock, slices: Slices) -> Operator:
    """Return the operator that runs a ``step`` which may take long, a slice at a time.

    What is done within its first slice is handed on at once, as `per_batch` does. The rest goes on in
    slices between which everybody else has a turn, and what comes meanwhile waits, as before a step
    that is awaited. Disposal closes the paused one. All of it is work, so virtual time stands still.
    """
    return _in_line(lambda observer: _PausingLine(step, report, clock, slices, observer))


class _Line:
    """Deliveries worked on one at a time, in order; what comes meanwhile waits for its turn."""

    def __init__(
        self, step: AwaitingStep, report: Report, observer: ObserverBase[Delivery]
    ) -> None:
        self._finish = step
        self._report = report
        self._observer = observer
        self._queue: deque[Delivery] = deque()
        self._work: asyncio.Future[None] | None = None
        self._is_completed = False

    def take(self, delivery: Delivery) -> None:
        self._queue.append(delivery)
        if self._work is None:
            self._work = asyncio.ensure_future(self._through())

    def complete(self) -> None:
        self._is_completed = True
        if self._work is None:
            self._observer.on_completed()

    def cancel(self) -> None:
        if self._work is not None:
            self._work.cancel()

    async def _through(self) -> None:
        while self._queue:
            delivery = self._queue.popleft()
            try:
                batches = await self._finish(delivery.batch)
            except Exception as cause:
                self._report(cause)
                delivery.done()
                continue
            try:
                hand_on(delivery, batches, self._observer.on_next)
            except Exception as cause:  # steps and sinks report their own: an operator is broken
                self._observer.on_error(cause)
                return
        self._work = None
        if self._is_completed:
            self._observer.on_completed()


class _PausingLine(_Line):
    """Deliveries most of which are done as they come; only one that takes long makes others wait."""

    def __init__(
        self,
        step: PausingStep,
        report: Report,
        clock: Clock,
        slices: Slices,
        observer: ObserverBase[Delivery],
    ) -> None:
        super().__init__(self._in_slices, report, observer)
        self._step = step
        self._clock = clock
        self._slices = slices
        self._paused: Paused | None = None
        self._is_counted = False
        self._ends = 0.0

    def take(self, delivery: Delivery) -> None:
        if self._work is not None:
            self._queue.append(delivery)
            return
        try:
            made = self._step(delivery.batch, self._slices.seconds)
        except Exception as cause:
            self._report(cause)
            delivery.done()
            return
        if isinstance(made, list):
            hand_on(delivery, made, self._observer.on_next)
            return
        self._paused = made
        self._is_counted = True
        self._slices.begin()
        super().take(delivery)

    def cancel(self) -> None:
        super().cancel()
        if self._paused is not None:
            self._paused.close()
        self._rest()

    def _rest(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._slices.end()

    async def _through(self) -> None:
        await super()._through()
        self._rest()

    async def _in_slices(self, batch: Batch) -> list[Batch]:
        """Return what becomes of a batch: of the one that is paused, then of each that waited."""
        if self._paused is None:
            made = self._step(batch, await self._slice())
            if isinstance(made, list):
                return made
            self._paused = made
        try:
            while (batches := self._paused.resume(await self._next_slice())) is None:
                pass
        finally:
            self._paused = None
        return batches

    async def _slice(self) -> float:
        """Return what is left of the slice; when it is over, of the next one."""
        left = self._ends - self._clock.monotonic()
        return left if left > 0 else await self._next_slice()

    async def _next_slice(self) -> float:
        await self._slices.turn(self._clock)
        self._ends = self._clock.monotonic() + SLICE_SECONDS
        return SLICE_SECONDS


def _in_line(line: Callable[[ObserverBase[Delivery]], _Line]) -> Operator:
    """Return the operator that puts what comes in a line."""

    def operator(source: Observable[Delivery]) -> Observable[Delivery]:
        def subscribe(
            observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
        ) -> DisposableBase:
            made = line(observer)
            upstream = source.subscribe(
                made.take, observer.on_error, made.complete, scheduler=scheduler
            )
            return CompositeDisposable(upstream, Disposable(made.cancel))

        return Observable(subscribe)

    return operator


def _direct(pass_on: Callable[[Delivery, Callable[[Delivery], None]], None]) -> Operator:
    """Return the operator that hands each delivery to ``pass_on`` with its observer's `on_next`."""

    def operator(source: Observable[Delivery]) -> Observable[Delivery]:
        def subscribe(
            observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
        ) -> DisposableBase:
            emit = observer.on_next
            return source.subscribe(
                lambda delivery: pass_on(delivery, emit),
                observer.on_error,
                observer.on_completed,
                scheduler=scheduler,
            )

        return Observable(subscribe)

    return operator
