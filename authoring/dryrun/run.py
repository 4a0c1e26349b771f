"""One dry run: a play of one pipeline whose input is scripted, and whose stages are each watched.

The clock is the play's own and starts at the time it is given; the one bucket is its own; nobody reads or
writes anything that runs. What a transform does outside (a post to a server) it does here as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import ClassVar, Literal

from headrace.authoring.dryrun.stage import Course, DroppedMessage, ProbedStage
from headrace.authoring.dryrun.watchedchain import ProbedChain
from headrace.authoring.playing.played import END, Played, SaidAt
from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.authoring.playing.player import play
from headrace.authoring.playing.scenario import (
    Arriving,
    BucketLook,
    GivenArrival,
    GivenState,
    Scenario,
)
from headrace.compiler.buckets import Values
from headrace.compiler.component.families import Input, Transform
from headrace.compiler.component.pipelineconfig import LIST_OF, PipelineConfig
from headrace.compiler.component.states import BucketDeclaration, PipelineState
from headrace.compiler.config.program import Program
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import Refused
from headrace.compiler.runtime.componentcontext import MOST_SAID
from headrace.compiler.runtime.limitedthreads import MOST_SECONDS, Interrupted, TimeLimit
from headrace.compiler.text.diagnostics import Fault

NAME = "dry-run"
"""What the pipeline is called."""
MOST_MESSAGES = 200
"""Messages that go in."""

_PATIENCE = 10 * MOST_SECONDS
"""How long virtual time stands still for a peer: longer than there is time for."""

_TICK = 1e-6
"""What lies between two batches at one moment: of what they write, the bucket shows what is later first."""

DryRunPhase = Literal["build", "apply"]

GivenBatch = tuple[float, Batch]
"""Messages that are handed in as one batch, and when: in seconds since the dry run began."""


@dataclass(frozen=True)
class DryRunLimits:
    """How much a dry run may make."""

    keys: int = 100_000
    """Keys that the bucket holds."""
    handed_on: int = 100_000
    """Messages that one stage may hand on: a script can make ten thousand of each that comes."""


_LIMITS = DryRunLimits()


class GivenInput(Input):
    """Where the messages of a dry run come from."""

    is_raw: ClassVar[bool] = False


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
        limit: TimeLimit,
        *,
        state: PipelineState | None = None,
        seeds: Mapping[str, Values] | None = None,
        is_traced: bool = False,
        limits: DryRunLimits = _LIMITS,
    ) -> None:
        self.refusals: list[tuple[int, Fault]] = []
        """Which transforms cannot be built, and why: then nothing has run."""
        self.failure: Failure | None = None
        self._pipeline = PipelineConfig(
            id=NAME, inputs=(GivenInput(),), transforms=tuple(transforms), state=state
        )
        self._surroundings = surroundings
        self._limit = limit
        self._seeds = seeds or {}
        self._limits = limits
        self._played = Played()
        self._chain = ProbedChain(Course(is_traced, limits.handed_on, limit))

    def perform(
        self, given: Sequence[GivenBatch], *, started_at: datetime, advance_seconds: float = 0
    ) -> None:
        """Build the chain, hand each batch in at its time, then let so much time pass.

        Whatever its author did wrong is a `failure`, and so is a limit that expires.
        """
        try:
            play(
                self._program(),
                self._scenario(given, started_at, advance_seconds),
                surroundings=self._surroundings,
                lowering=self._chain.lower_without_end,
                limit=self._limit,
                played=self._played,
            )
        except Refused:
            found = [(index, fault) for (*_, index), fault in self._played.objections]
            self.refusals = sorted(found, key=itemgetter(0))
        except (asyncio.CancelledError, Interrupted):
            self.failure = self._late()
        for each in self._played.failures:
            if each.place == f"{NAME}.{LIST_OF['transform']}":  # of no stage: an operator is broken
                raise RuntimeError(each.text)
        self.failure = self._failed() or self.failure

    @property
    def stages(self) -> Sequence[ProbedStage]:
        """The stages; of a chain that cannot be built, some of them."""
        return self._chain.stages

    @property
    def completed(self) -> Sequence[ProbedStage]:
        """The stages up to the one that it ended at."""
        return self.stages if self.failure is None else self.stages[: self.failure.at]

    @property
    def remembered(self) -> Mapping[str, Values]:
        """What its bucket holds in the end, what was written last first."""
        state = self._pipeline.state
        return {} if state is None else self._played.states.get((state.bucket, END), {})

    def warnings(self, stage: ProbedStage) -> list[str]:
        """Return what a stage has warned of."""
        return [each.text for each in self._played.warnings if _is_of(stage, each)][:MOST_SAID]

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

    def _program(self) -> Program:
        state = self._pipeline.state
        bucket = BucketDeclaration(max_keys=self._limits.keys)
        return Program((self._pipeline,), {} if state is None else {state.bucket: bucket})

    def _scenario(
        self, given: Sequence[GivenBatch], started_at: datetime, advance_seconds: float
    ) -> Scenario:
        to, state = (NAME, 0), self._pipeline.state
        steps: list[GivenArrival | GivenState | BucketLook] = []
        if state is not None:
            steps += [GivenState(0.0, state.bucket, self._seeds), BucketLook(END, state.bucket)]
        last = -_TICK
        for at, batch in given:
            if batch:
                last = round(max(float(at), last + _TICK), 6)
                steps.append(GivenArrival(last, to, Arriving(batch)))
        return Scenario(
            steps,
            until=max(last, 0.0) + advance_seconds,
            started_at=started_at,
            feeds_all=True,
            asks=True,
            ends_on_failure=True,
            max_moments=None,
            patience=_PATIENCE,
        )

    def _failed(self) -> Failure | None:
        """Return the first failure of the first stage that has one."""
        failed = (
            Failure(stage.index, "apply", each.text, stage.cause)
            for stage in self.stages
            for each in self._played.failures
            if _is_of(stage, each)
        )
        return next(failed, None)

    def _late(self) -> Failure:
        """Return the failure of not being over in time: of the stage that was at work, if one was."""
        told = f"not over after {self._limit.seconds:g} seconds, which is all that a dry run gets"
        if not self._chain.is_built:
            return Failure(max(len(self.stages) - 1, 0), "build", told)
        at_work = [stage.index for stage in self.stages if stage.is_working]
        return Failure([*at_work, self._chain.course.reached][0], "apply", told)


def _is_of(stage: ProbedStage, said: SaidAt) -> bool:
    return said.place == f"{NAME}.{stage.place}"
