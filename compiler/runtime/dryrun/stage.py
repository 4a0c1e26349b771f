"""One stage of a dry run: a transform, its probe, and what it says, which comes back to who asked."""

from __future__ import annotations

from headrace.compiler.component.buildcontext import (
    AwaitingStep,
    Operator,
    PacedStep,
    PausingStep,
    Step,
)
from headrace.compiler.component.families import Transform
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.componentcontext import MOST_SAID, ComponentContext, World
from headrace.compiler.runtime.dryrun.probe import ActiveStage, DryRunLimits, Probe
from headrace.compiler.runtime.monitoring.failures import Failures, cut
from headrace.compiler.runtime.monitoring.pipelinerecord import Signatures


class ProbedStage(ComponentContext):
    """A place that keeps what its transform says instead of logging it, and the first failure."""

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
        self.probe = Probe(transform, self, acting, limits, is_traced=is_traced)
        self.warnings: list[str] = []
        self.failure: str | None = None
        self.cause: BaseException | None = None
        """What the first failure was raised as."""

    def warn(self, text: str) -> None:
        if len(self.warnings) < MOST_SAID:
            self.warnings.append(self.redact(text))

    def fail(self, message: str) -> None:
        if self.failure is None:
            self.failure = cut(" ".join(self.redact(message).split()))

    def report(self, cause: BaseException) -> None:
        """Keep the first thing that was raised; the batch is out of the step."""
        self.probe.is_working = False
        if self.failure is None:
            self.cause = cause
        super().report(cause)

    def lift(self, step: Step, paced: PacedStep | None = None) -> Operator:
        return super().lift(self.probe.stepping(step))  # each of few messages is watched on its way

    def in_parts(self, operator: Operator) -> Operator:
        return operator

    def lift_awaiting(self, step: AwaitingStep) -> Operator:
        return super().lift_awaiting(self.probe.awaiting(step))

    def lift_pausing(self, step: PausingStep) -> Operator:
        return super().lift_pausing(self.probe.pausing(step))
