"""What the lines of a capture say, as types; and what waits to become one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count
from headrace.compiler.delivery import JsonValue

VERSION = 1
"""Of the format."""

Seconds = Annotated[float, Meta(description="Seconds since the capture began.")]
EndOfCapture = Literal["seconds", "bytes", "stopped", "signed out"]


class CaptureHeader(msgspec.Struct, kw_only=True):
    """The first line."""

    headrace: Literal["capture"] = "capture"
    version: int = VERSION
    started_at: Annotated[str, Meta(description="What the wall showed as it began, RFC 3339.")]
    pipelines: Annotated[
        Sequence[str], Meta(description="Those that were asked for; empty: all of them.")
    ]
    redacted: Annotated[
        Sequence[str],
        Meta(
            description="Paths whose values are replaced by digits. With any, no replies are captured."
        ),
    ]


class CapturedArrivals(msgspec.Struct, kw_only=True):
    """What arrived at an input at once."""

    at: Seconds
    to: Annotated[str, Meta(description="The input, such as `press-7.inputs[0]`.")]
    batch: Annotated[list[JsonValue] | UnsetType, Meta(description="Messages.")] = UNSET
    raw: Annotated[
        str | UnsetType,
        Meta(
            description="A payload that is not JSON, or is read in another format, in the place of `batch`."
        ),
    ] = UNSET
    base64: Annotated[
        str | UnsetType, Meta(description="The same for a payload that is no UTF-8 either.")
    ] = UNSET
    meta: Annotated[
        Mapping[str, JsonValue] | UnsetType,
        Meta(
            description="What the envelope of the input tells of it besides the time; without an envelope,"
            " nothing."
        ),
    ] = UNSET


class CapturedReply(msgspec.Struct, kw_only=True):
    """What the server of an `http` transform answered to a batch."""

    of: Annotated[str, Meta(description="The transform, such as `minutes.transforms[0]`.")]
    request: Annotated[list[JsonValue], Meta(description="What it was asked with.")]
    status: Annotated[int | None, Meta(description="Null: nobody answered.")]
    seconds: Annotated[float, Meta(description="How long that took.")]
    body: Annotated[
        JsonValue | UnsetType, Meta(description="What it answered, if that was a success.")
    ] = UNSET
    raw: Annotated[
        str | UnsetType, Meta(description="An answer that is not JSON, in the place of `body`.")
    ] = UNSET


class CapturedExchange(msgspec.Struct, kw_only=True):
    """An exchange of an `http` transform. ``at`` is when the request was sent."""

    at: Seconds
    reply: CapturedReply


class CaptureGap(msgspec.Struct, kw_only=True):
    """Something is missing here, because the reader was too slow, or it was too large."""

    at: Seconds
    gap: Annotated[Count, Meta(description="How much: payloads, batches and exchanges.")]


class CaptureEnd(msgspec.Struct, kw_only=True):
    """The last line, unless the reader has left before."""

    at: Seconds
    end: Annotated[EndOfCapture, Meta(description="Why it ends here.")]
    records: Annotated[Count, Meta(description="Lines of what arrived and was exchanged.")]
    dropped: Annotated[Count, Meta(description="What is missing, all in all.")]


CaptureLine = Annotated[
    CaptureHeader | CapturedArrivals | CapturedExchange | CaptureGap | CaptureEnd,
    Meta(title="CaptureLine"),
]


class PayloadsArrived(msgspec.Struct, frozen=True):
    """Payloads of a broker that arrived at once, and what is told of all of them."""

    at: float
    to: str
    payloads: Sequence[bytes]
    meta: Mapping[str, Any] | None
    size: int
    is_json: bool = True
    """Whether they are read as JSON: else they stay texts, also one that happens to be JSON."""


class LargeLine(msgspec.Struct, frozen=True):
    """The line of a large batch, which is being written: the batch itself waits for no reader."""

    written: asyncio.Task[list[bytes]]
    size: int = 0


class Exchanged(msgspec.Struct, frozen=True):
    """A request and its reply; without a status nobody answered. Units: seconds."""

    at: float
    of: str
    request: bytes
    status: int | None
    body: bytes | None
    seconds: float
    size: int


class WrittenLine(msgspec.Struct, frozen=True):
    """A line that is written already."""

    line: bytes
    size: int


Pieces = list[bytes]
"""A text in parts."""
WaitingRecord = PayloadsArrived | LargeLine | Exchanged | WrittenLine
