"""What is told of dead letters: what failed alike, letters without their messages, and one as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count, DescribedAs, Millis

LetterStage = Literal["input", "transform", "output", "process"]
LETTER_STAGES: tuple[LetterStage, ...] = get_args(LetterStage)
"""Where a letter may be of."""
LetterStageName = Annotated[
    str,
    Meta(
        description="`input`, `transform` or `output`; `process`: it has ended the process several times."
    ),
]
LetterClassName = Annotated[
    str,
    Meta(
        description="Why it failed: `unavailable`, time heals it; `misconfigured`, somebody has to act;"
        " `invalid`, it is the content; `unclear`, nobody knows how far it came."
    ),
]
LetterComponent = Annotated[
    Count | None, Meta(description="Index in the list of its stage. Null: an input, of some index.")
]
LetterId = Annotated[
    int, Meta(description="What it is read, replayed and deleted by; later ones have higher ids.")
]


class DeadLetterSignature(msgspec.Struct, frozen=True, rename={"failure": "class"}):
    """What failed alike in a pipeline, of which there are dead letters."""

    pipeline: Annotated[
        str, Meta(description="The pipeline that they are of, which may be deleted.")
    ] = msgspec.field(name="pipeline_id")
    stage: LetterStageName
    component: LetterComponent
    message: str
    failure: LetterClassName
    count: Annotated[
        Count, Meta(description="Dead letters. An output may put many messages into one.")
    ]
    message_count: Annotated[Count, Meta(description="Messages, and payloads, in all of them.")]
    bytes: Annotated[Count, Meta(description="What they take on the disk, roughly.")]
    first_seen: Annotated[
        Millis,
        Meta(description="When the first one failed, which may be gone. Milliseconds since 1970."),
    ]
    last_seen: Annotated[
        Millis,
        Meta(description="When one failed last, or failed again. Milliseconds since 1970."),
    ]


class DeadLetterEntry(msgspec.Struct, frozen=True, rename={"failure": "class"}):
    """A dead letter without what is in it."""

    id: LetterId
    pipeline: str = msgspec.field(name="pipeline_id")
    stage: LetterStageName
    component: LetterComponent
    input_index: Annotated[
        Count | None, Meta(description="Index of the input that could not read it. Null: no input.")
    ]
    target: Annotated[
        str | None,
        Meta(description="The kind of what failed on it; of an output what it writes to."),
    ]
    failure: LetterClassName
    message: Annotated[str, Meta(description="What went wrong, as failures are grouped.")]
    detail: Annotated[
        str | None,
        Meta(description="What was said of it in particular. Null: nothing else than `message`."),
    ]
    first_seen: Annotated[
        Millis, Meta(description="When it failed first. Milliseconds since 1970.")
    ]
    last_seen: Annotated[Millis, Meta(description="When it failed last. Milliseconds since 1970.")]
    tries: Annotated[Count, Meta(description="How often it was tried; a replay is one more.")]
    maybe_written: Annotated[
        bool, Meta(description="Whether it may be written all the same: nobody knows.")
    ]
    received_at: Annotated[
        Millis | None,
        Meta(description="When an input received it. Milliseconds since 1970. Null: no input."),
    ]
    config: Annotated[
        str | None, Meta(description="The version of the pipeline that it failed in first.")
    ]
    message_count: Annotated[Count, Meta(description="How many messages, or payloads, it has.")]
    bytes: Annotated[Count, Meta(description="How many bytes those have.")]


class DeadLetterPage(msgspec.Struct, frozen=True):
    """Some dead letters of a pipeline, the newest first."""

    total: Annotated[
        Count, Meta(description="How many there are, of those that were asked for, on all pages.")
    ]
    bytes: Annotated[Count, Meta(description="What all of those take on the disk, roughly.")]
    truncated: Annotated[bool, Meta(description="Whether there are more behind these.")]
    next: Annotated[
        int | None,
        Meta(description="The `before` of the page behind this one. Null: there is none."),
    ]
    damaged: Annotated[
        Sequence[int],
        Meta(
            description="Ids of those of this page that are not what was written, of which nothing else is"
            " known. They can be deleted."
        ),
    ]
    entries: Sequence[DeadLetterEntry]


PayloadCoding = Literal["utf-8", "base64"]


class DeadLetterRecord(DeadLetterEntry, frozen=True):
    """A dead letter with what is in it: the messages, or what an input received; neither: it is damaged."""

    damaged: Annotated[
        bool,
        Meta(description="Whether what was in it is not what was written, and is not told."),
    ]
    messages: Annotated[
        Any | UnsetType,
        DescribedAs(list[Any]),
        Meta(description="The messages as they came to what failed on them."),
    ] = UNSET
    payload: Annotated[str | UnsetType, Meta(description="What an input received, as it came.")] = (
        UNSET
    )
    payload_encoding: Annotated[
        PayloadCoding | UnsetType,
        Meta(
            description="Whether the payload is the text that it is in UTF-8, or is none and has base64."
        ),
    ] = UNSET
    is_message: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether the payload is a message as JSON, whatever the format of the input says."
        ),
    ] = UNSET
    metadata: Annotated[
        Any | UnsetType,
        DescribedAs(dict[str, Any]),
        Meta(description="Where the payload came from, and when (`received_at`, RFC 3339)."),
    ] = UNSET


class StoredPayload(msgspec.Struct, frozen=True):
    """What is known of the payload in a dead letter."""

    is_message: bool
    """Whether it is a message as JSON, whatever the format of the input says."""
    metadata: bytes
    """Where it came from: an object, as JSON."""


class StoredLetter(msgspec.Struct, frozen=True):
    """A dead letter with its body as it is stored: it may be large, and nobody has copied it."""

    entry: DeadLetterEntry
    body: bytes | None
    """None: it is damaged."""
    start: int
    """Where in the body the content begins: the messages as a JSON array, or the payload."""
    payload: StoredPayload | None
    """None: it has messages."""


class LetterStock(msgspec.Struct, frozen=True):
    """How much there is of dead letters of one stage of a pipeline."""

    pipeline: str
    stage: str
    letters: int
    messages: int
    bytes: int


class LettersWanted(msgspec.Struct, frozen=True):
    """Which dead letters of a pipeline are meant: of a stage, of a message, of both, or all."""

    stage: str | None = None
    message: str | None = None
