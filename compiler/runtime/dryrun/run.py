"""One dry run: the operators of a chain as they are in production, each watched, on virtual time.

Nothing is fused, because every stage is to be seen. The clock is the chain's own and starts at the
time it is given; the one bucket is its own; nobody reads or writes anything that runs. What a
transform does outside (a post to a server) it does here as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from headrace.compiler.buckets import Bounds, Bucket, Buckets, Values
from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.component.buildcontext import Operator
from headrace.compiler.component.families import Connection, Transform
from headrace.compiler.component.states import PipelineState
from headrace.compiler.delivery import Batch, Delivery, Window
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lint.rules import missing_upstream
from headrace.compiler.lowering.chain import RefusedTransforms, plainly
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.componentcontext import World
from headrace.compiler.runtime.dryrun.stage import (
    ActiveStage,
    DroppedMessage,
    DryRunLimits,
    ProbedStage,
)
from headrace.compiler.runtime.dryrun.steprun import TracedBatch
from headrace.compiler.runtime.dryrun.threads import MOST_SECONDS, Interrupted, TimeLimit
from headrace.compiler.schema.redaction import Hidden
from headrace.compiler.schema.secrets import Secrets
from headrace.compiler.text.diagnostics import Fault

NAME = "dry-run"
"""What the pipeline is called."""
MOST_MESSAGES = 200
"""Messages that go in."""

_PATIENCE = 10 * MOST_SECONDS
"""How long virtual time stands still for a peer: longer than there is time for."""
_TICK = 1e-6
"""The least that the clock tells apart. Waiting for it lets everything happen that can happen now."""

DryRunPhase = Literal["build", "apply"]

GivenBatch = tuple[float, Batch]
"""Messages that are handed in as one batch, and when: in seconds since the dry run began."""

_LIMITS = DryRunLimits()


@dataclass(frozen=True)
class Surroundings:
    """What a chain may look at, and does not change."""

    connections: Mapping[str, Connection] = field(default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)
    base: Path | None = None


@dataclass(frozen=True)
class Failure:
    """What ended a dry run, as a running pipeline would report it, and the stage that it ended at."""

    at: int
    phase: DryRunPhase
    message: str
    cause: BaseException | None = None


class ChainDryRun:
    """A dry run and what came of it. Used once, and in one thread."""

    def __init__(
        self,
        transforms: Sequence[Transform],
        surroundings: Surroundings,
        *,
        state: PipelineState | None = None,
        seeds: Mapping[str, Values] | None = None,
        is_traced: bool = False,
        limits: DryRunLimits = _LIMITS,
    ) -> None:
        self.refusals: list[tuple[int, Fault]] = []
        """Which transforms cannot be built, and why: then nothing has run."""
        self.failure: Failure | None = None
        self.stages: list[ProbedStage] = []
        self.bucket: Bucket | None = None
        self._transforms = transforms
        self._surroundings = surroundings
        self._state = state
        self._seeds = seeds or {}
        self._is_traced = is_traced
        self._limits = limits
        self._is_building = True
        self._at = 0
        self._operators: list[Operator] = []
        self._window = Window(1)
        self._limit = TimeLimit()
        self._broken: Exception | None = None

    def perform(
        self,
        messages: Batch,
        limit: TimeLimit,
        *,
        started_at: datetime,
        advance_seconds: float = 0,
        later: Sequence[GivenBatch] = (),
    ) -> None:
        """Build the chain, hand the messages in as one batch, then let so much time pass.

        What is given ``later`` comes in before that, each batch at its time. Whatever its author did
        wrong is a `failure`, and so is a limit that expires.
        """
        self._limit = limit
        try:
            run_virtual(
                partial(self._play, [(0.0, messages), *later], advance_seconds),
                started_at=started_at,
                patience=_PATIENCE,
            )
        except (asyncio.CancelledError, Interrupted):
            if self._broken is not None:
                raise self._broken from None
            self.failure = self._late()
        self.failure = self._failed() or self.failure

    @property
    def completed(self) -> Sequence[ProbedStage]:
        """The stages up to the one that it ended at."""
        return self.stages if self.failure is None else self.stages[: self.failure.at]

    def left(self) -> list[tuple[int, DroppedMessage]]:
        """Return which message of the request has gone how far and why no further, in their order.

        Only of a chain that is traced, and of messages of which nothing has come through.
        """
        stages = self.completed
        out = [batch for stage in stages[-1:] for batch in stage.handed_on]
        arrived = {index for batch in out for origins in batch.origins for index in origins}
        lost = dict.fromkeys(
            (index, each)
            for stage in stages
            for each in (*stage.lost, *stage.still_held())
            for index in each.origins
            if index not in arrived
        )
        return sorted(lost, key=lambda told: (told[0], told[1].at))

    async def _play(self, given: Sequence[GivenBatch], advance_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_unless_interrupted)
        task = asyncio.current_task()
        assert task is not None
        self._limit.hold(task)
        hidden = Hidden(self._surroundings.secrets.redact)
        clock, parts = Clock(loop), BuiltComponents(NAME, self._state, hidden=hidden)
        try:
            self._build(self._world(clock), parts)
            if not self.refusals:
                with self._subscribed(clock, task):
                    await self._run(given, advance_seconds, clock)
        finally:
            try:
                for close in parts.closing:
                    await close()
            finally:
                hidden.let_go()

    def _world(self, clock: Clock) -> World:
        buckets = Buckets(clock, warn=lambda text: None)  # one of those that run may have that name
        if self._state is not None:
            buckets.declare({self._state.bucket: Bounds(self._limits.keys)})
            self.bucket = buckets.get(self._state.bucket)
            assert self.bucket is not None
            self.bucket.merge(self._seeds)
        return World(
            clock=clock,
            connections=self._surroundings.connections,
            secrets=self._surroundings.secrets,
            data_dir=None,
            base=self._surroundings.base,
            buckets=buckets,
            attach=_nobody,
        )

    def _build(self, world: World, parts: BuiltComponents) -> None:
        """Make every operator, or tell why which of them cannot be made."""
        acting = ActiveStage()
        for index, transform in enumerate(self._transforms):
            stage = ProbedStage(
                transform, index, world, parts, acting, self._limits, is_traced=self._is_traced
            )
            self.stages.append(stage)
            missing = world.missing(transform)
            refused: RefusedTransforms = []
            if not missing:
                self._operators += plainly([(transform, stage)], refused)
            faults = [*missing, *(cause.fault for _, cause in refused)]
            self.refusals += [(index, fault) for fault in faults]
        self._is_building = False

    @contextmanager
    def _subscribed(self, clock: Clock, task: asyncio.Task[Any]) -> Iterator[None]:
        """Have the stages connected, each to the one before it."""

        def broke(cause: Exception) -> None:
            self._broken = cause
            task.cancel()

        subscriptions = []
        for index, (stage, operator) in enumerate(zip(self.stages, self._operators, strict=True)):
            stage.onward = partial(self._drive, index + 1)
            chain = operator(_entrance(stage))
            subscriptions.append(chain.subscribe(stage.leave, broke, scheduler=clock.scheduler))
        try:
            yield
        finally:
            for each in subscriptions:
                each.dispose()

    async def _run(self, given: Sequence[GivenBatch], advance_seconds: float, clock: Clock) -> None:
        number = count()
        for at, messages in given:
            if not messages:
                continue
            if (ahead := at - clock.monotonic()) > 0:
                await clock.sleep(ahead)
                await self._window.room()
            if self._failed() is not None:
                return
            self._window.take()
            origins = [(next(number),) for _ in messages] if self._is_traced else ()
            self._drive(0, Delivery(messages, self._window), TracedBatch(messages, origins))
            await self._settled(clock)
        if advance_seconds and self._failed() is None:
            await clock.sleep(advance_seconds)
            await self._settled(clock)

    async def _settled(self, clock: Clock) -> None:
        """Wait until every batch has left the chain or is held, and nothing else happens by now."""
        while True:
            await self._window.room()
            await clock.sleep(_TICK)
            if not self._window.used:
                return

    def _drive(self, index: int, delivery: Delivery, batch: TracedBatch) -> None:
        """Take a batch through the rest of the chain, what a stage makes of it in the order it is made.

        As deep as the chain is, this stands on the stack once for each stage that holds messages.
        """
        ahead = [(index, delivery, batch)]
        while ahead:
            at, delivery, batch = ahead.pop()
            if at == len(self.stages):
                delivery.done()
                continue
            self._at = at
            if self._limit.is_over:
                raise Interrupted
            made = self.stages[at].take(delivery, batch)
            ahead += [(at + 1, *each) for each in reversed(made)]

    def _failed(self) -> Failure | None:
        """Return the failure of the first stage that has one."""
        failed = (
            Failure(stage.index, "apply", stage.failure, stage.cause)
            for stage in self.stages
            if stage.failure is not None
        )
        return next(failed, None)

    def _late(self) -> Failure:
        """Return the failure of not being over in time: of the stage that was at work, if one was."""
        told = f"not over after {self._limit.seconds:g} seconds, which is all that a dry run gets"
        if self._is_building:
            return Failure(max(len(self.stages) - 1, 0), "build", told)
        at_work = [stage.index for stage in self.stages if stage.is_working]
        waiting = [stage.index for stage in self.stages if stage.waiting]
        return Failure([*at_work, *waiting, self._at][0], "apply", told)


def _entrance(stage: ProbedStage) -> Observable[Delivery]:
    """Return what the operator of a stage subscribes to."""

    def subscribe(
        observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
    ) -> DisposableBase:
        stage.enter = observer.on_next
        return Disposable()

    return Observable(subscribe)


def _nobody(upstream: str) -> Source:
    raise BuildRefused(missing_upstream(upstream, ()))


def _unless_interrupted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Pass over what was interrupted: that it ended so is no news."""
    if not isinstance(context.get("exception"), Interrupted):
        loop.default_exception_handler(context)
