"""What the data of the events are, for the description: they are encoded where they happen."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count
from headrace.compiler.component.families import Stage


class BatchPreview(msgspec.Struct):
    """The first messages of a batch, each as text, cut where it is long."""

    messages: list[str]
    total: Count
    skipped_messages: Count


class BatchPayload(msgspec.Struct):
    """A batch that came or went."""

    batch: BatchPreview


class ErrorPayload(msgspec.Struct):
    """A failure."""

    error: str


class UiEvent(msgspec.Struct):
    """What a pipeline tells of a batch, or of a failure."""

    pipeline_id: str
    stage: Stage
    ts: Annotated[int, Meta(description="Milliseconds since 1970.")]
    seq: Annotated[
        int, Meta(description="Per pipeline; a gap is what was missed, or not asked for.")
    ]
    component: Count | None
    payload: BatchPayload | ErrorPayload
    count: (
        Annotated[int, Meta(ge=1, description="Of an error: how many it tells of.")] | UnsetType
    ) = UNSET
    input_index: (
        Annotated[Count, Meta(description="Of an input that failed; absent where several did.")]
        | UnsetType
    ) = UNSET


class PingEvent(msgspec.Struct):
    """A sign of life; the object is empty."""


LaggedEvent = Annotated[
    int, Meta(title="LaggedEvent", ge=1, description="Events that were missed.")
]
FaultEvent = Annotated[str, Meta(title="FaultEvent", description="Why an event could not be made.")]
