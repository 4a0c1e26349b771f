"""What a dry run answers: as much of what happened as an answer can hold.

Of a stage the first messages are shown, and of everything together so many bytes; where something
was left out, a note says so. Messages can share what they are made of, so that a small chain makes
what is too large for any answer: nothing is written out before it has been weighed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.authoring.dryrun.run import ChainDryRun, DryRunPhase
from headrace.authoring.dryrun.stage import ProbedStage
from headrace.authoring.dryrun.steps import Indices, TracedBatch
from headrace.compiler.annotated import Count
from headrace.compiler.buckets import Values
from headrace.compiler.component.states import PipelineState
from headrace.compiler.delivery import Batch, JsonValue
from headrace.web.apierror import Diagnostic
from headrace.web.shapes import JsonObject

MOST_SHOWN = 1000
"""Messages of one stage."""
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of all messages and values, about."""
MOST_ENTRIES = 200
"""Entries of the bucket."""
MOST_REASONS = 100
"""Reasons why one message came to nothing: each of the many that a script made of it can have its own."""


Batches = list[list[JsonValue]]
OriginIndices = Annotated[
    Sequence[Sequence[Sequence[Count]]],
    Meta(description="Per batch and message, the messages of the request that it came from."),
]
Times = Annotated[
    list[float],
    Meta(
        description="Per batch, when it left, in seconds from the beginning, to the millisecond. Where "
        "`given` was asked."
    ),
]
Entries = Annotated[
    Mapping[str, JsonObject],
    Meta(description="Key to values by name, at most 200 keys, the latest first."),
]
Warnings = Annotated[list[str], Meta(description="What a running pipeline would log.")]
DryRunNotes = Annotated[list[str], Meta(description="What is not as one might think.")]
DryRunStage = Annotated[Literal["compile", "runtime"], Meta(title="DryRunStage")]


class DryRunEmitted(msgspec.Struct, tag_field="outcome", tag="emitted"):
    """What a script emitted."""

    batches: Batches
    warnings: Annotated[list[str], Meta(description="Different texts, in order.")]
    state: Entries
    notes: DryRunNotes


class DryRunFailed(msgspec.Struct, tag_field="outcome", tag="failed"):
    """Why a script does not compile, or has failed."""

    stage: DryRunStage
    message: str
    line: Count | None
    column: Count | None


DryRunResponse = Annotated[DryRunEmitted | DryRunFailed, Meta(title="DryRunResponse")]


class PipelineDryRunStage(msgspec.Struct):
    """What one transform handed on."""

    index: Count
    kind: str
    batches: Annotated[Batches, Meta(description="Handed on because messages came.")]
    on_flush: Annotated[Batches, Meta(description="Let go of later, and what others made of that.")]
    origins: OriginIndices | UnsetType = UNSET
    on_flush_origins: OriginIndices | UnsetType = UNSET
    at: Times | UnsetType = UNSET
    on_flush_at: Times | UnsetType = UNSET


class LeftMessage(msgspec.Struct):
    """A message that has gone no further than a transform, and why."""

    message: Count
    at: Count
    kind: str
    why: str
    seconds: (
        Annotated[
            float, Meta(description="When, as of a batch; of what is still held, when it came.")
        ]
        | UnsetType
    ) = UNSET
    held: (
        Annotated[bool, Meta(description="Whether the transform may still let go of it.")]
        | UnsetType
    ) = UNSET


class PipelineDryRunRan(msgspec.Struct, tag_field="outcome", tag="ran"):
    """What each transform of a chain handed on."""

    stages: list[PipelineDryRunStage]
    buckets: Entries
    warnings: Warnings
    notes: DryRunNotes
    left: list[LeftMessage] | UnsetType = UNSET


class PipelineDryRunFailed(msgspec.Struct, tag_field="outcome", tag="failed"):
    """Which transform of a chain cannot be built, or has failed, and why."""

    at: Annotated[Count, Meta(description="Index of the transform.")]
    kind: str
    phase: DryRunPhase
    message: str
    diagnostics: list[Diagnostic]
    stages: list[PipelineDryRunStage]
    warnings: Warnings
    notes: DryRunNotes
    left: list[LeftMessage] | UnsetType = UNSET


PipelineDryRunResponse = Annotated[
    PipelineDryRunRan | PipelineDryRunFailed, Meta(title="PipelineDryRunResponse")
]


class Excerpt:
    """As much of a dry run as its answer has room for, and notes on what has none."""

    def __init__(self, notes: Iterable[str] = ()) -> None:
        self.notes = [*notes]
        self._bytes = MOST_BYTES

    def stage(
        self, stage: ProbedStage, is_traced: bool, is_timed: bool = False
    ) -> PipelineDryRunStage:
        """Return what a stage handed on, because messages came and by itself; traced, also of which."""
        # What is shown are the first of its batches.
        shown = [*zip(self._shown(stage), stage.times, strict=False)]
        come, flushed = (
            [each for each in shown if each[0][0].is_flush is way] for way in (False, True)
        )
        told = PipelineDryRunStage(
            *_named(stage),
            [batch for (_, batch, _), _ in come],
            [batch for (_, batch, _), _ in flushed],
        )
        if is_traced:
            told.origins = [of for (*_, of), _ in come]
            told.on_flush_origins = [of for (*_, of), _ in flushed]
        if is_timed:
            told.at = [_told(at) for _, at in come]
            told.on_flush_at = [_told(at) for _, at in flushed]
        return told

    def messages(self, batch: Batch) -> Batch:
        """Return the messages of a batch."""
        shown = [message for message in batch if self._has_room(message)]
        if rest := len(batch) - len(shown):
            self.notes.append(f"{rest:,} more messages are not shown")
        return shown

    def batches(self, stage: ProbedStage) -> list[Batch]:
        """Return what one stage handed on."""
        return [batch for _, batch, _ in self._shown(stage)]

    def entries(
        self, state: PipelineState | None, held: Mapping[str, Values]
    ) -> dict[str, Mapping[str, JsonValue]]:
        """Return what the bucket of a pipeline holds, the latest first."""
        shown = {
            key: values
            for key, values in islice(held.items(), MOST_ENTRIES)
            if self._has_room((key, values))
        }
        if state is not None and (rest := len(held) - len(shown)) > 0:
            self.notes.append(f"bucket '{state.bucket}': {rest:,} more keys are not shown")
        return shown

    def left(self, run: ChainDryRun, is_timed: bool = False) -> list[LeftMessage]:
        """Return which message of the request has gone no further than which stage, and why."""
        lost = run.left()
        some = chain.from_iterable(
            islice(of_one, MOST_REASONS) for _, of_one in groupby(lost, key=itemgetter(0))
        )
        told = [
            LeftMessage(
                index,
                *_named(run.stages[each.at]),
                each.why,
                _told(each.seconds) if is_timed else UNSET,
                each.is_held if is_timed else UNSET,
            )
            for index, each in some
            if self._has_room(each.why)
        ]
        if rest := len(lost) - len(told):
            self.notes.append(f"'left': {rest:,} more reasons are not shown")
        return told

    def _shown(self, stage: ProbedStage) -> list[tuple[TracedBatch, Batch, Sequence[Indices]]]:
        """Return the batches of a stage, each with as much of it as is shown."""
        shown, left = list[tuple[TracedBatch, Batch, Sequence[Indices]]](), MOST_SHOWN
        for traced in stage.handed_on:
            batch, origins = traced.batch, traced.origins
            count, most = 0, min(len(batch), left)
            while count < most and self._has_room((batch[count], origins[count : count + 1])):
                count += 1
            left -= count
            if count:
                shown.append((traced, batch[:count], origins[:count]))
            if count < len(batch):
                break
        total = sum(len(traced.batch) for traced in stage.handed_on)
        if rest := total - (MOST_SHOWN - left):
            self.notes.append(f"{stage.place}: {rest:,} more messages are not shown")
        return shown

    def _has_room(self, value: Any) -> bool:
        """Take what a value needs. Once something is too large, there is no room for anything."""
        self._bytes -= weight(value, self._bytes)
        return self._bytes > 0


def weight(value: JsonValue, most: int) -> int:
    """Return about how many bytes a value is as JSON; beyond ``most`` it is not looked at further."""
    ahead, total = [value], 0
    while ahead and total < most:
        value = ahead.pop()
        if isinstance(value, str):
            total += len(value) + 3
        elif isinstance(value, dict):
            total += sum(map(len, value)) + 4 * len(value) + 2
            ahead += value.values()
        elif isinstance(value, list | tuple):
            total += 2
            ahead += value
        else:
            total += 3 + (value.bit_length() // 3 if isinstance(value, int) else 8)
    return total


def _told(seconds: float) -> float:
    """Return a time without the moments that the clock is moved on by to see what happens in one."""
    return round(seconds, 3)


def _named(stage: ProbedStage) -> tuple[int, str]:
    return stage.index, stage.transform.kind
