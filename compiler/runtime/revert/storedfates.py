"""What becomes of what is kept on disk for pipelines, when others take their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.runtime.keptparts import kept_parts
from headrace.compiler.runtime.monitoring.storedfigures import StoredPart, StoredPartKind


class StoredFate(msgspec.Struct, frozen=True):
    """What is kept of a pipeline, and what becomes of it."""

    id: Annotated[int, Meta(description="As `GET /api/stored` has it.")]
    pipeline_id: str
    target: str
    part: StoredPartKind
    entries: Annotated[Count, Meta(description="As many as there are now; some may go before.")]
    bytes: Count
    becomes: Annotated[
        Literal["goes_on", "left_over", "taken_up"],
        Meta(
            description="`goes_on`: the pipeline that takes the place goes on with it. `left_over`: what"
            " cannot leave within 3.5 seconds stays, and nobody reads it until a pipeline of this id has"
            " such a part again. `taken_up`: it is left over now, and is read again."
        ),
    ]


def stored_fates(
    parts: Sequence[StoredPart], made: Mapping[str, PipelineConfig], ending: Sequence[str]
) -> Iterator[StoredFate]:
    """Yield what becomes of parts, as the pipelines of ``made`` are built and those of ``ending`` end."""
    wanted = {name for id, config in made.items() for name in kept_parts(id, config)}
    for each in parts:
        is_wanted = (each.pipeline, each.target, each.part) in wanted
        if each.ended or not each.entries:
            continue
        if is_wanted or (each.pipeline in ending and not each.left_over):
            taken: Literal["goes_on", "taken_up"] = "taken_up" if each.left_over else "goes_on"
            yield StoredFate(
                each.id,
                each.pipeline,
                each.target,
                each.part,
                each.entries,
                each.bytes,
                taken if is_wanted else "left_over",
            )
