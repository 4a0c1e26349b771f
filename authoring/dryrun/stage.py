"""One stage of a watched chain: what comes to its transform, what it hands on, what becomes of the rest.

The operator is that of production, lifted around the same step. Only the step is handed its batches whole
or message by message, so that it shows what becomes of each. What the operator emits is told apart: made
of what came with the messages, or let go of by itself; and, if it is traced, made of which of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import CompositeDisposable, Disposable

from headrace.authoring.dryrun.steps import Indices, StepSlices, TracedBatch, joined, unused
from headrace.compiler.component.buildcontext import (
    AwaitingStep,
    FailedMessages,
    Operator,
    PacedStep,
    Paused,
    PausingStep,
    Step,
)
from headrace.compiler.component.families import Transform
from headrace.compiler.component.retry import RetryOptions
from headrace.compiler.delivery import Batch, Delivery, JsonValue
from headrace.compiler.lowering.chain import TransformContext
from headrace.compiler.lowering.chainends import OnNext
from headrace.compiler.runtime.componentcontext import NOTHING, ComponentContext
from headrace.compiler.runtime.limitedthreads import Interrupted, TimeLimit

BY_ERROR = "skipped by error: "
"""How it begins why a message goes no further on which the transform has failed."""
MOST_LOST = 100_000
"""Messages that came to nothing of which one stage remembers why, the latest."""


@dataclass(frozen=True, slots=True)
class DroppedMessage:
    """A message, or what was made of several, that went no further than one stage, and why.

    Units: ``seconds`` since the play began; of what is held, when it came.
    """

    origins: Indices
    at: int
    why: str
    seconds: float = field(default=0, compare=False)
    is_held: bool = False
    """Whether the stage may still let go of it."""


@dataclass(slots=True)
class Course:
    """How far a watched chain is, and what its stages are bound by."""

    is_traced: bool
    most_handed_on: int | None = None
    """Messages that a stage may hand on, which are remembered; None: any number, and none are."""
    limit: TimeLimit = field(default_factory=TimeLimit)
    numbers: Iterator[int] = field(default_factory=count)
    """Those of the messages that come next."""
    reached: int = 0
    """The stage that was handed something last."""
    acting: int | None = None
    """The stage whose step runs now: what others let go of meanwhile, they do because of it."""
    is_flush: bool = False
    """Whether it runs on what was let go of although nothing came."""


class ProbedStage(ComponentContext):
    """The place of a transform, of which is seen what comes and what leaves.

    The stage before it puts what is known of each batch in ``coming``, and then hands the batch on.
    """

    _inner: ObserverBase[Delivery]
    _emit: OnNext

    def __init__(
        self,
        transform: Transform,
        ctx: TransformContext,
        course: Course,
        before: ProbedStage | None,
    ) -> None:
        vars(self).update(vars(ctx))
        self.transform = transform
        self.cause: BaseException | None = None
        """What its step raised first."""
        self.has_step = False
        self.is_working = False
        """Whether a batch is in its step."""
        self.coming: deque[TracedBatch] = deque()
        self.handed_on: list[TracedBatch] = []
        self.times: list[float] = []
        """When each of them left, in seconds since the play began."""
        self.lost: deque[DroppedMessage] = deque(maxlen=MOST_LOST)
        self._failed: dict[int, str] = {}
        """Why messages that are in its step now were skipped, by what tells them apart."""
        self._course = course
        self._before = before
        self._following: deque[TracedBatch] | None = None
        if before is not None:
            before._following = self.coming
        self._is_apart = course.is_traced and transform.takes_each_alone
        self._count = 0
        self._kept: deque[tuple[JsonValue, Indices, float]] = deque()
        """What it holds and since when, if it is traced."""
        self._entry: tuple[bool, int | None] | None = None
        """Of a batch that is handed in now: whether it is a flush, and how many it takes to leave."""

    def report(self, cause: BaseException, lost: Batch = NOTHING) -> None:
        """Keep the first thing that was raised; the batch is out of the step."""
        self.is_working = False
        self.cause = self.cause or cause
        super().report(cause, lost)

    def lose(self, failed: FailedMessages) -> None:
        """Keep why each message went no further: that is told beside it, and the run goes on.

        Of a run that is not traced nobody is told of single messages: then it is a warning.
        """
        for why, (_, messages) in failed.items():
            said = BY_ERROR + self.redact(why)
            if self._course.is_traced:
                self._failed.update((id(message), said) for message in messages)
            else:
                self.warn_once(said)

    def still_held(self) -> Iterator[DroppedMessage]:
        """Yield what it still holds, if it is traced."""
        for message, origins, since in self._kept:
            yield self._lost(message, origins, since, held=len(self._kept))

    def lift(self, step: Step, paced: PacedStep | None = None) -> Operator:
        """Return the operator, its step watched: each of few messages on its way."""
        self.has_step = True

        def run(batch: Batch) -> list[Batch]:
            came = self._begin(batch)
            with self._acts(came):
                made = [step(part) for part in self._handed(batch)]
            return self._over(came, made)

        return super().lift(run)

    def in_parts(self, operator: Operator) -> Operator:
        return operator

    def lift_awaiting(self, step: AwaitingStep, retry: RetryOptions | None = None) -> Operator:
        self.has_step = True

        async def run(batch: Batch) -> list[Batch]:
            came = self._begin(batch)
            return self._over(came, [await step(part) for part in self._handed(batch)])

        return super().lift_awaiting(run)

    def lift_pausing(self, step: PausingStep) -> Operator:
        self.has_step = True

        def run(batch: Batch, seconds: float) -> list[Batch] | Paused:
            came = self._begin(batch)
            acts, over = partial(self._acts, came), partial(self._over, came)
            slices = StepSlices(step, self._handed(batch), acts, over)
            made = slices.resume(seconds)
            return slices if made is None else made

        return super().lift_pausing(run)

    def holding(self, operator: Operator) -> Operator:
        """Return the operator of what has no step, with a look at what comes and leaves.

        It is subscribed by itself: with operators before and behind it, 100 are deeper than the stack.
        """

        def entrance(
            inner: ObserverBase[Delivery], _: SchedulerBase | None = None
        ) -> DisposableBase:
            self._inner = inner
            return Disposable()

        def probed(source: Observable[Delivery]) -> Observable[Delivery]:
            def subscribe(
                observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
            ) -> DisposableBase:
                self._emit = observer.on_next
                within = operator(Observable(entrance)).subscribe(
                    self._leave, observer.on_error, observer.on_completed, scheduler=scheduler
                )
                upstream = source.subscribe(
                    self._take, self._inner.on_error, self._inner.on_completed, scheduler=scheduler
                )
                return CompositeDisposable(upstream, within)

            return Observable(subscribe)

        return probed

    def _take(self, delivery: Delivery) -> None:
        came, now = self._arrived(delivery.batch), self.clock.monotonic()
        if self._course.is_traced:
            known = zip(delivery.batch, came.origins, strict=True)
            self._kept.extend((message, of, now) for message, of in known)
        self._entry = came.is_flush, self.transform.fills_at(self)
        try:
            self._inner.on_next(delivery)
        finally:
            self._entry = None

    def _leave(self, delivery: Delivery) -> None:
        batch = delivery.batch
        origins = [self._kept.popleft()[1] for _ in batch] if self._course.is_traced else ()
        if self._hands_on(TracedBatch(batch, origins, self._is_unasked(batch))):
            self._emit(delivery)
        else:
            delivery.done()

    def _arrived(self, batch: Batch) -> TracedBatch:
        """Return what is known of a batch that is handed in.

        Raises:
            Interrupted: there is no time for it.
        """
        course = self._course
        course.reached = self.index
        if course.limit.is_over:
            raise Interrupted
        if self._before is not None:
            return self.coming.popleft()
        origins = [(next(course.numbers),) for _ in batch] if course.is_traced else ()
        return TracedBatch(batch, origins)

    def _begin(self, batch: Batch) -> TracedBatch:
        arrived = self._arrived(batch)
        self.is_working = True
        return arrived

    def _handed(self, batch: Batch) -> Sequence[Batch]:
        return [[message] for message in batch] if self._is_apart else [batch]

    @contextmanager
    def _acts(self, came: TracedBatch) -> Iterator[None]:
        course = self._course
        # The step of another stage may have made somebody let go of what is here now.
        outer = course.acting, course.is_flush
        course.acting, course.is_flush = self.index, came.is_flush
        try:
            yield
        finally:
            course.acting, course.is_flush = outer

    def _over(self, came: TracedBatch, made: Sequence[list[Batch]]) -> list[Batch]:
        """Return what goes on of what the step made, and note what has come to nothing."""
        self.is_working = False
        batches = made[0]
        if self._is_apart:
            whole = [message for part in made for batch in part for message in batch]
            batches = [whole] if whole else []
        origins: Sequence[Sequence[Indices]] = [()] * len(batches)
        if self._course.is_traced:
            origins = self._origins(came, made, batches)
        return [
            batch
            for batch, of in zip(batches, origins, strict=True)
            if batch and self._hands_on(TracedBatch(batch, of, came.is_flush))
        ]

    def _origins(
        self, came: TracedBatch, made: Sequence[list[Batch]], batches: Sequence[Batch]
    ) -> Sequence[Sequence[Indices]]:
        sources = self.transform.origins(came.batch, batches)
        if self._is_apart:
            each = [[index] for index, part in enumerate(made) for batch in part for _ in batch]
            sources = [each] if each else []
        now = self.clock.monotonic()
        for index in unused(came.batch, sources):
            self.lost.append(self._lost(came.batch[index], came.origins[index], now))
        self._failed.clear()
        return joined(came.origins, sources)

    def _is_unasked(self, batch: Batch) -> bool:
        """Return whether it lets go of a batch by itself, and not because one came."""
        course = self._course
        if self._entry is not None:
            is_flush, fills_at = self._entry
            # It was to wait for more when it came, and is not full: somebody further on opened a gate.
            return is_flush or (fills_at is not None and len(batch) != fills_at)
        if course.acting is not None and course.acting < self.index:
            return course.is_flush
        return True

    def _hands_on(self, batch: TracedBatch) -> bool:
        """Note what leaves, and return whether it may."""
        if (most := self._course.most_handed_on) is not None:
            self._count += len(batch.batch)
            if self._count > most:
                self.fail(f"handed on more than {most:,} messages: no further here")
                return False
            self.handed_on.append(batch)
            self.times.append(self.clock.monotonic())
        if self._following is not None:
            self._following.append(batch)
        return True

    def _lost(
        self, message: JsonValue, origins: Indices, seconds: float, held: int = 0
    ) -> DroppedMessage:
        how = f"held ({held} in all) " if held else ""
        why = how + (self._failed.get(id(message)) or self.transform.reason(message, self))
        return DroppedMessage(origins, self.index, why, seconds, is_held=held > 0)
