"""What is told of a running pipeline: values of one moment, which whoever has them may send anywhere."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headrace.compiler.component.families import Stage
from headrace.compiler.runtime.lifecycle import Status
from headrace.compiler.runtime.pipeline import Pipeline


class PipelineFigures(msgspec.Struct, frozen=True):
    """A pipeline as others see it, and what it has counted so far."""

    id: str
    text: bytes
    """Id and config as JSON, secrets as templates."""
    status: Status
    inbound: int
    outbound: int
    skipped: int
    failures: Mapping[Stage, int]
    """Failures by stage, repeated ones included."""
    held: int
    """Messages held on purpose by buffers."""
    in_flight: int
    """Batches on their way."""


def figures_of(pipeline: Pipeline) -> PipelineFigures:
    """Return the figures of this moment."""
    counters = pipeline.counters
    return PipelineFigures(
        pipeline.id,
        pipeline.text(),
        pipeline.status,
        counters.inbound,
        counters.outbound,
        counters.skipped,
        dict(pipeline.failures.by_stage),
        pipeline.held,
        pipeline.in_flight,
    )
