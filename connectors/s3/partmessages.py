"""The messages of a part, read back from how they stand in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import Decoding
from headrace.compiler.largejson import SLICE, decode_large
from headrace.connectors.disk.packing import PACKINGS
from headrace.connectors.disk.partformats import JSON_FORMATS
from headrace.connectors.s3.objectpart import Content, ObjectPart

MOST_TOGETHER = 1_000
"""Messages that become one dead letter: one that is replayed is written anew for each that goes through."""
MOST_BYTES = 1024 * 1024
"""The same in bytes, roughly, unless a single message has more."""


async def messages_of(part: ObjectPart, content: Content, decoding: Decoding) -> Batch | None:
    """Return the messages of a part; None: they do not stand in it, or it is damaged.

    Rows of CSV and texts say too little: their messages stand beside them, where they may be wanted.
    """
    text = await asyncio.to_thread(_array, part.key, content)
    if text is None:
        return None
    try:
        if len(text) >= SLICE:
            return await decode_large(text, decoding)
        batch: Batch = decoding.decode(text)
    except (ValueError, RecursionError):
        return None
    return batch


def together(messages: Batch, size: int) -> Iterator[Batch]:
    """Yield the messages of a part of so many bytes, as many at a time as become one dead letter."""
    most = min(MOST_TOGETHER, max(1, len(messages) * MOST_BYTES // max(1, size)))
    for start in range(0, len(messages), most):
        yield [*messages[start : start + most]]


def _array(key: str, content: Content) -> bytes | None:
    """Return the messages as a JSON array; None: they are not there. Takes its time."""
    if content.beside:
        return _joined(content.beside)
    name, body = key, content.body
    for packing in PACKINGS.values():
        if key.endswith(f".{packing.extension}"):
            name = key.removesuffix(f".{packing.extension}")
            if content.packing == "none":  # it is compressed already
                try:
                    body = packing.unpack(body)
                except Exception:  # each has errors of its own for what it did not write
                    return None
    if name.endswith(f".{JSON_FORMATS['json_array'].extension}"):
        return body
    return _joined(body) if name.endswith(f".{JSON_FORMATS['ndjson'].extension}") else None


def _joined(lines: bytes) -> bytes:
    return b"[" + lines.rstrip(b"\n").replace(b"\n", b",") + b"]"
