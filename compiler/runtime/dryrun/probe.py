"""What comes to one stage of a dry run and what it hands on, seen from outside.

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
    Context,
    Paused,
    PausingStep,
    Step,
)
from headrace.compiler.component.families import Transform
from headrace.compiler.delivery import Batch, Delivery, JsonValue
from headrace.compiler.runtime.dryrun.steprun import (
    Indices,
    PausingStepRun,
    StepRun,
    TracedBatch,
    joined,
)


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
    """A message, or what was made of several, that went no further than one stage, and why."""

    origins: Indices
    at: int
    why: str


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


class Probe:
    """One stage: what is before it calls `take`, and its operator `leave`.

    ``enter`` is the operator's own way in. ``onward`` takes what leaves when nobody waits in `take`.
    """

    enter: Callable[[Delivery], None]
    onward: Callable[[Delivery, TracedBatch], None]

    def __init__(
        self,
        transform: Transform,
        ctx: Context,
        acting: ActiveStage,
        limits: DryRunLimits,
        *,
        is_traced: bool,
    ) -> None:
        self.transform = transform
        self.is_working = False
        """Whether a batch is in its step."""
        self.waiting: deque[TracedBatch] = deque()
        """What came and has not had its turn in the step."""
        self.handed_on: list[TracedBatch] = []
        self.lost: list[DroppedMessage] = []
        self._ctx = ctx
        self._acting = acting
        self._most = limits.handed_on
        self._is_traced = is_traced
        self._has_step = False
        self._count = 0
        self._made: deque[TracedBatch] = deque()
        self._held: deque[tuple[JsonValue, Indices]] = deque()
        self._entry: _Entry | None = None

    def take(self, delivery: Delivery, batch: TracedBatch) -> list[Coming]:
        """Hand a lot in; return what its step made of it there and then, to be handed on."""
        if self._has_step:
            self.waiting.append(batch)
        elif self._is_traced:
            self._held.extend(zip(batch.batch, batch.origins, strict=True))
        self._entry = entry = _Entry(batch.is_flush, self.transform.fills_at(self._ctx))
        try:
            self.enter(delivery)
        finally:
            self._entry = None
        return entry.out

    def leave(self, delivery: Delivery) -> None:
        """Take what the operator emits."""
        batch = self._made.popleft() if self._has_step else self._let_go(delivery.batch)
        self._count += len(batch.batch)
        if self._count > self._most:
            delivery.done()
            self._ctx.fail(f"handed on more than {self._most:,} messages: no further here")
            return
        self.handed_on.append(batch)
        if self._has_step and self._entry is not None:
            self._entry.out.append((delivery, batch))
        else:
            self.onward(delivery, batch)

    def held(self) -> Iterator[DroppedMessage]:
        """Yield what it still holds, if it is traced."""
        for message, origins in self._held:
            yield self._lose(message, origins, f"held ({len(self._held)} in all) ")

    def _let_go(self, batch: Batch) -> TracedBatch:
        origins = [self._held.popleft()[1] for _ in batch] if self._is_traced else ()
        return TracedBatch(batch, origins, self._is_unasked(batch))

    def _is_unasked(self, batch: Batch) -> bool:
        """Return whether it lets go of a batch by itself, and not because one came."""
        entry, acting = self._entry, self._acting
        if entry is not None:
            # It was to wait for more when it came, and is not full: somebody further on opened a gate.
            is_early = entry.fills_at is not None and len(batch) != entry.fills_at
            return entry.is_flush or is_early
        if acting.at is not None and acting.at < self._ctx.index:
            return acting.is_flush
        return True

    def stepping(self, step: Step) -> Step:
        """Return the step, watched."""
        self._has_step = True

        def run(_: Batch) -> list[Batch]:
            turn = self._turn()
            with self._acts(turn):
                while (part := turn.next) is not None:
                    turn.made.append(step(part))
            return self._over(turn)

        return run

    def awaiting(self, step: AwaitingStep) -> AwaitingStep:
        """Return the step, watched."""
        self._has_step = True

        async def run(_: Batch) -> list[Batch]:
            turn = self._turn()
            while (part := turn.next) is not None:
                turn.made.append(await step(part))
            return self._over(turn)

        return run

    def pausing(self, step: PausingStep) -> PausingStep:
        """Return the step, watched."""
        self._has_step = True

        def run(_: Batch, seconds: float) -> list[Batch] | Paused:
            slices = PausingStepRun(self._turn(), step, self._acts, self._over)
            made = slices.resume(seconds)
            return slices if made is None else made

        return run

    def _turn(self) -> StepRun:
        self.is_working = True
        return (StepRun.apart if self._is_apart else StepRun.whole)(self.waiting.popleft())

    @property
    def _is_apart(self) -> bool:
        return self._is_traced and self.transform.takes_each_alone

    @contextmanager
    def _acts(self, turn: StepRun) -> Iterator[None]:
        acting = self._acting
        # The step of another stage may have made somebody let go of what is here now.
        outer = acting.at, acting.is_flush
        acting.at, acting.is_flush = self._ctx.index, turn.batch.is_flush
        try:
            yield
        finally:
            acting.at, acting.is_flush = outer

    def _over(self, turn: StepRun) -> list[Batch]:
        """Return what the step made, and remember what that is, for when it leaves."""
        self.is_working = False
        batches = turn.together() if self._is_apart else turn.made[0]
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
                self.lost.append(self._lose(message, came))
        return joined(batch.origins, origins)

    def _lose(self, message: JsonValue, origins: Indices, how: str = "") -> DroppedMessage:
        return DroppedMessage(
            origins, self._ctx.index, how + self.transform.reason(message, self._ctx)
        )
