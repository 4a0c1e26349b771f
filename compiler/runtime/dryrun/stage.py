"""One stage of a dry run: what comes to its transform, what it hands on, and what it says.

The stage runs as in production: the same operator, lifted around the same step. Only the step gets
its batches in a `StepRun`, which knows what they are; so what the operator emits can be told apart: made
of what came with the messages, or let go of by itself; and, if it is traced, made of which of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.compiler.component.buildcontext import (
    AwaitingStep,
    Operator,
    PacedStep,
    Paused,
    PausingStep,
    Step,
)
from headrace.compiler.component.families import Transform
from headrace.compiler.delivery import Batch, Delivery, JsonValue
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.componentcontext import MOST_SAID, ComponentContext, World
from headrace.compiler.runtime.dryrun.steprun import (
    Indices,
    PausingStepRun,
    StepRun,
    TracedBatch,
    joined,
)
from headrace.compiler.runtime.monitoring.failures import Failures, cut
from headrace.compiler.runtime.monitoring.signatures import Signatures


@dataclass(frozen=True)
class DryRunLimits:
    """How much a dry run may make."""

    keys: int = 100_000
    """Keys that the bucket holds."""
    handed_on: int = 100_000
    """Messages that one stage may hand on: a script can make ten thousand of each that comes."""


Coming = tuple[Delivery, TracedBatch]


@dataclass(frozen=True, slots=True)
class DroppedMessage:
    """A message, or what was made of several, that went no further than one stage, and why.

    Units: ``seconds`` since the dry run began; of what is held, when it came.
    """

    origins: Indices
    at: int
    why: str
    seconds: float = field(default=0, compare=False)
    is_held: bool = False
    """Whether the stage may still let go of it."""


@dataclass(slots=True)
class ActiveStage:
    """The stage whose step runs now: what others let go of meanwhile, they do because of it."""

    at: int | None = None
    is_flush: bool = False


@dataclass(slots=True)
class _Entry:
    """A batch that is being handed in: how many it takes to leave, and what came out so far."""

    is_flush: bool
    fills_at: int | None
    out: list[Coming] = field(default_factory=list)


class ProbedStage(ComponentContext):
    """A place that keeps what its transform says instead of logging it, and the first failure.

    What is before it calls `take`, and its operator `leave`. ``enter`` is the operator's own way in.
    ``onward`` takes what leaves when nobody waits in `take`.
    """

    enter: Callable[[Delivery], None]
    onward: Callable[[Delivery, TracedBatch], None]

    def __init__(
        self,
        transform: Transform,
        index: int,
        world: World,
        parts: BuiltComponents,
        acting: ActiveStage,
        limits: DryRunLimits,
        *,
        is_traced: bool,
    ) -> None:
        # Nothing is counted: what fails is kept here, and the first time is enough.
        table = Signatures(world.clock, 0)
        failures = Failures(parts.pipeline, world.clock, lambda *_: None, table)
        super().__init__(world, parts, failures, "transform", index)
        self.transform = transform
        self.warnings: list[str] = []
        self.failure: str | None = None
        self.cause: BaseException | None = None
        """What the first failure was raised as."""
        self.is_working = False
        """Whether a batch is in its step."""
        self.waiting: deque[TracedBatch] = deque()
        """What came and has not had its turn in the step."""
        self.handed_on: list[TracedBatch] = []
        self.times: list[float] = []
        """When each of them left, in seconds since the dry run began."""
        self.lost: list[DroppedMessage] = []
        self._acting = acting
        self._most = limits.handed_on
        self._is_traced = is_traced
        self._is_apart = is_traced and transform.takes_each_alone
        self._has_step = False
        self._count = 0
        self._made: deque[TracedBatch] = deque()
        self._kept: deque[tuple[JsonValue, Indices, float]] = deque()
        """What it holds and since when, if it is traced."""
        self._entry: _Entry | None = None

    def warn(self, text: str) -> None:
        if len(self.warnings) < MOST_SAID:
            self.warnings.append(self.redact(text))

    def fail(self, message: str) -> None:
        if self.failure is None:
            self.failure = cut(" ".join(self.redact(message).split()))

    def report(self, cause: BaseException) -> None:
        """Keep the first thing that was raised; the batch is out of the step."""
        self.is_working = False
        if self.failure is None:
            self.cause = cause
        super().report(cause)

    def take(self, delivery: Delivery, batch: TracedBatch) -> list[Coming]:
        """Hand a lot in; return what its step made of it there and then, to be handed on."""
        if self._has_step:
            self.waiting.append(batch)
        elif self._is_traced:
            now = self.clock.monotonic()
            self._kept.extend(
                (message, of, now) for message, of in zip(batch.batch, batch.origins, strict=True)
            )
        self._entry = entry = _Entry(batch.is_flush, self.transform.fills_at(self))
        try:
            self.enter(delivery)
        finally:
            self._entry = None
        return entry.out

    def leave(self, delivery: Delivery) -> None:
        """Take what the operator emits."""
        if self._has_step:
            batch = self._made.popleft()
        else:
            origins = [self._kept.popleft()[1] for _ in delivery.batch] if self._is_traced else ()
            batch = TracedBatch(delivery.batch, origins, self._is_unasked(delivery.batch))
        self._count += len(batch.batch)
        if self._count > self._most:
            delivery.done()
            self.fail(f"handed on more than {self._most:,} messages: no further here")
            return
        self.handed_on.append(batch)
        self.times.append(self.clock.monotonic())
        if self._has_step and self._entry is not None:
            self._entry.out.append((delivery, batch))
        else:
            self.onward(delivery, batch)

    def still_held(self) -> Iterator[DroppedMessage]:
        """Yield what it still holds, if it is traced."""
        for message, origins, since in self._kept:
            yield self._lose(message, origins, since, held=len(self._kept))

    def _is_unasked(self, batch: Batch) -> bool:
        """Return whether it lets go of a batch by itself, and not because one came."""
        entry, acting = self._entry, self._acting
        if entry is not None:
            # It was to wait for more when it came, and is not full: somebody further on opened a gate.
            is_early = entry.fills_at is not None and len(batch) != entry.fills_at
            return entry.is_flush or is_early
        if acting.at is not None and acting.at < self.index:
            return acting.is_flush
        return True

    def lift(self, step: Step, paced: PacedStep | None = None) -> Operator:
        """Return the operator, its step watched: each of few messages on its way."""
        self._has_step = True

        def run(_: Batch) -> list[Batch]:
            turn = self._turn()
            with self._acts(turn):
                while (part := turn.next) is not None:
                    turn.made.append(step(part))
            return self._over(turn)

        return super().lift(run)

    def in_parts(self, operator: Operator) -> Operator:
        return operator

    def lift_awaiting(self, step: AwaitingStep) -> Operator:
        self._has_step = True

        async def run(_: Batch) -> list[Batch]:
            turn = self._turn()
            while (part := turn.next) is not None:
                turn.made.append(await step(part))
            return self._over(turn)

        return super().lift_awaiting(run)

    def lift_pausing(self, step: PausingStep) -> Operator:
        self._has_step = True

        def run(_: Batch, seconds: float) -> list[Batch] | Paused:
            slices = PausingStepRun(self._turn(), step, self._acts, self._over)
            made = slices.resume(seconds)
            return slices if made is None else made

        return super().lift_pausing(run)

    def _turn(self) -> StepRun:
        self.is_working = True
        return StepRun(self.waiting.popleft(), self._is_apart)

    @contextmanager
    def _acts(self, turn: StepRun) -> Iterator[None]:
        acting = self._acting
        # The step of another stage may have made somebody let go of what is here now.
        outer = acting.at, acting.is_flush
        acting.at, acting.is_flush = self.index, turn.batch.is_flush
        try:
            yield
        finally:
            acting.at, acting.is_flush = outer

    def _over(self, turn: StepRun) -> list[Batch]:
        """Return what the step made, and remember what that is, for when it leaves."""
        self.is_working = False
        batches = turn.batches()
        origins = self._origins(turn, batches) if self._is_traced else [()] * len(batches)
        for batch, of in zip(batches, origins, strict=True):
            if batch:  # an empty one is not handed on
                self._made.append(TracedBatch(batch, of, turn.batch.is_flush))
        return batches

    def _origins(self, turn: StepRun, batches: Sequence[Batch]) -> Sequence[Sequence[Indices]]:
        """Return what every message came from, and note those that have come to nothing."""
        batch = turn.batch
        origins = turn.sources() if self._is_apart else self.transform.origins(batch.batch, batches)
        used = {index for batch in origins for indices in batch for index in indices}
        for index, (message, came) in enumerate(zip(batch.batch, batch.origins, strict=True)):
            if index not in used:
                self.lost.append(self._lose(message, came, self.clock.monotonic()))
        return joined(batch.origins, origins)

    def _lose(
        self, message: JsonValue, origins: Indices, seconds: float, held: int = 0
    ) -> DroppedMessage:
        how = f"held ({held} in all) " if held else ""
        why = how + self.transform.reason(message, self)
        return DroppedMessage(origins, self.index, why, seconds, is_held=held > 0)
