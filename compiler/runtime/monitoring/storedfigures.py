"""What is told of the store: how it is, and what is kept in it, target by target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count, Millis
from headrace.compiler.runtime.monitoring.letterfigures import LetterStock

StoredPartKind = Literal["journal", "queue", "parts", "bucket"]
"""What something is kept for: `journal`, what an input took in and has not left the outputs yet; `queue`,
what an output has not written; `parts`, what an output has gathered and not handed over; `bucket`, what is
remembered in a durable bucket."""
StoredState = Literal["open", "full", "failing"]
"""Whether something more is taken: it is; there is no room for it; the disk cannot be written."""


class StoredPart(msgspec.Struct, frozen=True):
    """What is kept on disk for one target of a pipeline."""

    id: Annotated[int, Meta(description="What it is discarded by. No other one ever had it.")]
    pipeline: Annotated[
        str,
        Meta(
            description="The pipeline that it was kept for, which may be deleted. Empty: it is a bucket,"
            " which belongs to none."
        ),
    ] = msgspec.field(name="pipeline_id")
    target: Annotated[
        str,
        Meta(
            description="What of the pipeline, by what it reads from or writes to; of a bucket its name."
        ),
    ]
    part: Annotated[
        StoredPartKind,
        Meta(
            description="`journal`: what an input took in and has not left the outputs yet. `queue`: what"
            " an output has not written. `parts`: what an output has gathered to a part each, and could not"
            " hand over. `bucket`: what is remembered in a bucket that is `durable`."
        ),
    ]
    entries: Annotated[
        Count,
        Meta(
            description="Of a journal a post is one, whatever the number of its messages; of a queue a"
            " batch; of parts a part; of a bucket a key."
        ),
    ]
    bytes: Count
    oldest: Annotated[
        Millis | None,
        Meta(description="When the oldest entry came, in milliseconds since 1970. Null: none."),
    ]
    state: Annotated[
        StoredState,
        Meta(
            description="`open`: more is taken. `full`: there is no room, on the disk or within"
            " `max_bytes`. `failing`: the disk cannot be written; it is tried again every second."
        ),
    ]
    left_over: Annotated[
        bool,
        Meta(
            description="Whether nobody reads it: its pipeline is deleted, has failed, or has no such part"
            " any more, or the bucket is not declared. It stays until somebody discards it, or the"
            " pipeline, or a bucket of that name, has it again."
        ),
    ]
    ended: Annotated[
        bool,
        Meta(
            description="Whether its pipeline was deleted: then no other one has it again, whatever its id."
        ),
    ] = False
    aside: Annotated[
        Count,
        Meta(
            description="Entries that were set aside, as they were damaged or have ended the process again"
            " and again: nobody is handed them, and they stay until somebody discards them."
        ),
    ] = 0
    aside_bytes: Annotated[Count, Meta(description="What those take.")] = 0


class StoreFigures(msgspec.Struct, frozen=True):
    """How the store of an engine is, and what it has counted since it was opened."""

    state: StoredState
    free_bytes: int | None
    """Free on the disk that it is on; None: it is in memory."""
    failures: int
    """How often something could not be written, also because there was no room."""
    damaged: int
    """Entries that were not what was written, and were set aside; and how often the file, or its log, was
    found damaged."""
    commit_seconds_total: float
    """How long all commits took together. Units: seconds."""
    commits: int
    """Commits that were written."""
    parts: Sequence[StoredPart]
    """What is kept, in the order of their ids."""
    letters: Sequence[LetterStock] = ()
    """How much there is of dead letters."""
    letters_dropped: int = 0
    """Dead letters that have gone to make room for later ones."""
    letters_replayed: int = 0
    """Dead letters that have gone through in replays."""
