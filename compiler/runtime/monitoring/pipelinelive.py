"""How a pipeline is at the moment: its links, its queues, and what the pulse tells of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count, Millis
from headrace.compiler.component.families import Stage
from headrace.compiler.edges import QueueUnit
from headrace.compiler.runtime.lifecycle import Status
from headrace.compiler.runtime.monitoring.links import COMING, LinkState, PipelineHealth, health_of
from headrace.compiler.runtime.monitoring.pulses import PipelinePulse, StoredPulse
from headrace.compiler.runtime.pipeline import Pipeline


class QueueState(msgspec.Struct, frozen=True):
    """How full one of the bounded queues of a pipeline is."""

    stage: Stage
    component: Annotated[Count, Meta(description="Index in the list of the stage.")]
    unit: QueueUnit
    used: Annotated[
        Count, Meta(description="May exceed the capacity, by what was divided on its way.")
    ]
    capacity: Count


class PipelineLive(msgspec.Struct, frozen=True):
    """How a pipeline is at the moment."""

    status: Status
    started_at: Annotated[
        Millis,
        Meta(
            description="Milliseconds since 1970. Its counts began then, and those of history go on."
        ),
    ]
    health: PipelineHealth
    inputs: Annotated[Sequence[LinkState], Meta(description="In the order of the config.")]
    outputs: Annotated[Sequence[LinkState], Meta(description="In the order of the config.")]
    queues: Annotated[
        Sequence[QueueState],
        Meta(description="Those that are bounded: of inputs, buffers, and outputs."),
    ]


def live_of(pipeline: Pipeline) -> PipelineLive:
    """Return how a pipeline is."""
    inputs, outputs = links_of(pipeline)
    return PipelineLive(
        pipeline.status,
        pipeline.started_at,
        health_of((*inputs, *outputs), waits=_waits(pipeline)),
        inputs,
        outputs,
        [*_queues_of(pipeline)],
    )


def links_of(pipeline: Pipeline) -> tuple[Sequence[LinkState], Sequence[LinkState]]:
    """Return the links of the inputs and of the outputs, also of one that is not built yet."""
    now, parts, config = pipeline.clock.millis(), pipeline.parts, pipeline.config
    if parts.chain is None:
        return [COMING] * len(config.inputs), [COMING] * len(config.outputs)
    return [each.link(now) for each in parts.readers], [each.link(now) for each in parts.writers]


def _waits(pipeline: Pipeline) -> bool:
    """Return whether a component waits for the end of an outage, such as a transform that asks a server."""
    return any(each.waits_for is not None for each in pipeline.parts.outages)


def _queues_of(pipeline: Pipeline) -> Iterator[QueueState]:
    """Yield the queues in the order in which a message comes through them."""
    parts = pipeline.parts
    for stage in get_args(Stage):
        if stage == "input":
            for index, reader in enumerate(parts.readers):
                if (fill := reader.queue()) is not None:
                    yield QueueState(stage, index, *fill)
        if stage == "output":
            at_most = sum(reader.window.size for reader in parts.readers)
            for index, writer in enumerate(parts.writers):
                yield QueueState(stage, index, "batches", writer.waiting(), at_most)
                if (fill := writer.sink.queue()) is not None:
                    yield QueueState(stage, index, *fill)
            for kept in parts.kept:
                if kept.is_queue and kept.borrowed is not None:
                    yield QueueState(stage, kept.index, *kept.borrowed.journal.fill())
        for hold in sorted(parts.holding, key=lambda each: each.component):
            if hold.stage == stage and hold.most is not None:
                yield QueueState(stage, hold.component, "messages", hold.count(), hold.most)


def pulse_of(pipeline: Pipeline) -> PipelinePulse:
    """Return what the pulse tells of a pipeline."""
    counters = pipeline.counters
    return PipelinePulse(
        counters.inbound,
        counters.outbound,
        counters.skipped,
        pipeline.failures.total,
        pipeline.parts.held,
        pipeline.in_flight,
        pipeline.status,
        health_of(chain.from_iterable(links_of(pipeline)), waits=_waits(pipeline)),
        pipeline.started_at,
        _stored(pipeline),
    )


def _stored(pipeline: Pipeline) -> StoredPulse | UnsetType:
    """Return how much of a pipeline is on the disk; nothing where it keeps nothing there."""
    if not (kept := pipeline.parts.kept):
        return UNSET
    journals = [each.borrowed.journal for each in kept if each.borrowed is not None]
    since = [oldest for each in journals if (oldest := each.oldest()) is not None]
    return StoredPulse(
        sum(each.entries for each in journals),
        sum(each.fill().used for each in journals),
        round(min(since) * 1000) if since else None,
    )
