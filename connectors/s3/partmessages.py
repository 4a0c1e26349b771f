"""The messages of a part, read back from how they stand in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

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


async def messages_of(
    part: ObjectPart, content: Content, decoding: Decoding
) -> AsyncIterator[Batch]:
    """Yield the messages of a part, as many at a time as become one dead letter.

    Rows of CSV and texts say too little: their messages stand beside them, where they may be wanted. What
    does not stand there, or is damaged, is not yielded.
    """
    try:
        text = await asyncio.to_thread(_json, part.key, content)
        if text is None:
            return
        if content.beside or _form(part.key) == "ndjson":
            for lines in _pieces(text):
                yield [*await _decoded(b"[" + b",".join(lines) + b"]", decoding)]
        else:  # one array, which is not taken apart before it is decoded
            messages = await _decoded(text, decoding)
            most = min(MOST_TOGETHER, max(1, len(messages) * MOST_BYTES // len(text)))
            for start in range(0, len(messages), most):
                yield [*messages[start : start + most]]
    except (ValueError, RecursionError):
        return


async def _decoded(text: bytes, decoding: Decoding) -> Batch:
    if len(text) >= SLICE:
        return await decode_large(text, decoding)
    batch: Batch = decoding.decode(text)
    return batch


def _pieces(text: bytes) -> Iterator[list[bytes]]:
    """Yield the lines of a text, some at a time."""
    lines: list[bytes] = []
    size = start = 0
    while start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        lines.append(text[start:end])
        size += end - start
        start = end + 1
        if size >= MOST_BYTES or len(lines) >= MOST_TOGETHER:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _json(key: str, content: Content) -> bytes | None:
    """Return what the messages stand in as JSON; None: nothing does. Takes its time."""
    if content.beside:
        return content.beside
    if _form(key) is None:
        return None
    packing = _packing(key)
    if packing is None or content.packing != "none":  # it is not compressed, or not yet
        return content.body
    try:
        return PACKINGS[packing].unpack(content.body)
    except Exception:  # each has errors of its own for what it did not write
        return None


def _packing(key: str) -> str | None:
    """Return the word for how a part of that name is compressed; None: it is not."""
    found = (word for word, each in PACKINGS.items() if key.endswith(f".{each.extension}"))
    return next(found, None)


def _form(key: str) -> str | None:
    """Return the word for the JSON that is in a part of that name; None: it is something else."""
    packing = _packing(key)
    name = key if packing is None else key.removesuffix(f".{PACKINGS[packing].extension}")
    found = (word for word, each in JSON_FORMATS.items() if name.endswith(f".{each.extension}"))
    return next(found, None)
