"""What is told of pipelines: values of one moment, which whoever has them may send anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from headrace.compiler.component.families import Stage
from headrace.compiler.errors import FailureClass
from headrace.compiler.runtime.lifecycle import Status
from headrace.compiler.runtime.monitoring.losses import ComponentLoss
from headrace.compiler.runtime.monitoring.pipelinelive import PipelineLive, live_of
from headrace.compiler.runtime.pipeline import Pipeline


class ComponentOutage(msgspec.Struct, frozen=True):
    """What a component that bridges outages waits for, if it does, and how often it has tried again."""

    stage: Stage
    component: int
    waits_for: FailureClass | None
    retries: int


class PipelineFigures(msgspec.Struct, frozen=True):
    """A pipeline as others see it, and what it has counted so far."""

    id: str
    text: bytes
    """Id and config as JSON, secrets as templates."""
    live: PipelineLive
    inbound: int
    outbound: int
    skipped: int
    failures: Mapping[Stage, int]
    """Failures by stage, repeated ones included."""
    losses: Sequence[ComponentLoss]
    """Messages lost, by component and reason."""
    outages: Sequence[ComponentOutage]
    """Of the components that bridge outages."""
    held: int
    """Messages held on purpose by buffers."""
    in_flight: int
    """Batches on their way."""
    letters: Mapping[str, int] | None = None
    """Dead letters put down, by stage; None: it keeps none."""

    @property
    def version(self) -> str:
        """What tells its config from any other that has run, or will run, under its id."""
        return blake2b(self.text, digest_size=12).hexdigest()

    @property
    def status(self) -> Status:
        """What others are told of its phase."""
        return self.live.status


def figures_of(pipeline: Pipeline) -> PipelineFigures:
    """Return the figures of this moment."""
    counters = pipeline.counters
    return PipelineFigures(
        pipeline.id,
        pipeline.text(),
        live_of(pipeline),
        counters.inbound,
        counters.outbound,
        counters.skipped,
        dict(pipeline.failures.by_stage),
        [*pipeline.failures.losses],
        [
            ComponentOutage(each.place.stage, each.place.index, each.waits_for, each.retries)
            for each in pipeline.parts.outages
        ],
        pipeline.parts.held,
        pipeline.in_flight,
        None if pipeline.parts.letters is None else dict(pipeline.parts.letters.put_down),
    )
