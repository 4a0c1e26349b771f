"""From steps to operators: the one place where a step meets deliveries, failures and Rx.

Each operator here calls its observer directly. `flat_map` and `concat_map` cost 30 µs an item against
0.7 µs for these, so they stay off the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase

from headrace.compiler.code import TakesLong
from headrace.compiler.component.buildcontext import (
    AwaitingStep,
    Operator,
    PacedStep,
    PausingStep,
    Step,
)
from headrace.compiler.delivery import Batch, Delivery, parts
from headrace.compiler.lowering.lines import (
    AwaitingLine,
    Emit,
    Pacing,
    PassOn,
    PausingLine,
    Report,
    SlicedLine,
    SliceShare,
    hand_on,
    in_line,
)


def per_batch(
    step: Step, report: Report, pacing: Pacing | None = None, paced: PacedStep | None = None
) -> Operator:
    """Return the operator that runs ``step`` on each batch, and ``paced`` in slices on a large one.

    A failing batch is reported and dropped, and the next one goes on: `on_error` would end the
    subscription and with it the pipeline.
    """

    def pass_on(delivery: Delivery, emit: Emit) -> None:
        try:
            batches = step(delivery.batch)
        except Exception as cause:
            report(cause, delivery.batch)
            delivery.done()
            return
        hand_on(delivery, batches, emit)

    if paced is None or pacing is None:
        return _direct(pass_on)
    return in_line(lambda observer: PacedLine(pass_on, paced, report, pacing, observer))


def fused(
    loop: Callable[[Batch], Batch],
    plain: Sequence[tuple[Step, Report]],
    pacing: Pacing,
    paced: PacedStep,
) -> Operator:
    """Return the operator that runs a generated loop, and on any fault the plain steps instead.

    The loop keeps no books. When it raises, the batch is run again through the steps it was made from
    (what it did shows nowhere): they decide, and what they say is reported under the right component.
    A large batch goes through ``paced``, in slices (see `optimistic`); so does one that is run again where
    steps take long, unless it is one message.
    """

    def again(delivery: Delivery, emit: Emit) -> None:
        batch = delivery.batch
        for step, report in plain:
            try:
                batches = step(batch)
            except Exception as cause:
                report(cause, batch)
                batches = []
            if not batches or not batches[0]:
                delivery.done()
                return
            batch = batches[0]  # a per-message step gives one batch or none
        delivery.batch = batch
        emit(delivery)

    def pass_on(delivery: Delivery, emit: Emit) -> None:
        try:
            batch = loop(delivery.batch)
        except Exception:  # reported by `again`, by the step that owns the fault
            if pacing.is_slow and len(delivery.batch) > 1:
                raise TakesLong from None
            again(delivery, emit)
            return
        if batch:
            delivery.batch = batch
            emit(delivery)
        else:
            delivery.done()

    report = plain[0][1]
    return in_line(lambda observer: PacedLine(pass_on, paced, report, pacing, observer))


def optimistic(loop: PacedStep, plain: Sequence[tuple[PacedStep, Report]]) -> PacedStep:
    """Return what `fused` does to a large batch: the generated loop, on any fault the plain steps."""

    def paced(batch: Batch) -> Iterator[Batch | None]:
        try:
            yield from loop(batch)
            return
        except Exception:  # reported below, by the step that owns the fault
            pass
        yield None  # what was done in vain may have taken long
        yield from again(batch)

    def again(batch: Batch) -> Iterator[Batch | None]:
        for step, report in plain:
            made: Batch | None = None
            try:
                for some in step(batch):
                    if some is None:
                        yield None
                    else:
                        made = some
            except Exception as cause:
                report(cause, batch)
                return
            if not made:
                return
            batch = made
        yield batch

    return paced


def divided(operator: Operator, report: Report, pacing: Pacing) -> Operator:
    """Return an operator behind one that hands it a large batch part after part, in slices.

    For one that holds messages and does not mind how they came.
    """
    divide = in_line(lambda observer: PacedLine(_straight, parts, report, pacing, observer))
    return lambda source: operator(divide(source))


def _straight(delivery: Delivery, emit: Emit) -> None:
    emit(delivery)


def awaiting(step: AwaitingStep, report: Report, slices: SliceShare | None = None) -> Operator:
    """Return the operator that awaits ``step`` for one batch at a time, in order.

    What waits before it is bounded by the windows of the inputs. Completion is handed on after the last
    waiting batch; disposal ends the running one.
    """
    return in_line(lambda observer: AwaitingLine(step, report, slices, observer))


def pausing(step: PausingStep, report: Report, pacing: Pacing) -> Operator:
    """Return the operator that runs a ``step`` which may take long, a slice at a time.

    What is done within its first slice is handed on at once, as `per_batch` does. The rest goes on in
    slices between which everybody else has a turn, and what comes meanwhile waits, as before a step
    that is awaited. Disposal closes the paused one. All of it is work, so virtual time stands still.
    """
    return in_line(lambda observer: PausingLine(step, report, pacing, observer))


def _direct(pass_on: PassOn) -> Operator:
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


class PacedLine(SlicedLine):
    """Deliveries that are passed on as they come; a large batch, and what waits behind it, in slices."""

    def __init__(
        self,
        pass_on: PassOn,
        paced: PacedStep,
        report: Report,
        pacing: Pacing,
        observer: ObserverBase[Delivery],
    ) -> None:
        super().__init__(report, pacing, observer)
        self._pass_on, self._paced, self._emit = pass_on, paced, observer.on_next
        self._large, self._is_slow = pacing.large, pacing.is_slow

    def entrance(self) -> Emit:
        pass_on, emit, large = self._pass_on, self._emit, self._large  # this is on every pass

        def take(delivery: Delivery) -> None:
            if not self._busy and len(delivery.batch) <= large and delivery.batch.__class__ is list:
                try:
                    pass_on(delivery, emit)
                except TakesLong:
                    self.take(delivery)
            else:
                self.take(delivery)

        return take

    async def _work_on(self, delivery: Delivery) -> None:
        await self._behind()
        await self._slice()
        is_large = len(delivery.batch) > self._large or delivery.batch.__class__ is not list
        if not is_large and not self._is_slow:
            self._pass_on(delivery, self._emit)
            return
        delivery.share(1)
        made = self._paced(delivery.batch)
        while True:
            try:
                part = next(made)
            except StopIteration:
                break
            except Exception as cause:
                self._report(cause, self._left(delivery))
                break
            if part:
                self._handed_on += len(part)
                self._emit(delivery.part(part))
                del part  # it may be all there is, and is not ours any more
            await self._slice()
        delivery.done()
