"""How a part is kept in the store of the engine: a line of JSON that tells about it, and its bytes."""

from __future__ import annotations

from typing import cast

import msgspec

from headrace.compiler.clock import Clock
from headrace.compiler.component.partskeep import KeptPart, PartsKeep
from headrace.connectors.s3.objectpart import (
    LONGEST_LINE,
    Content,
    ObjectPart,
    PartHeader,
    PartSource,
)

PIECE = 256 * 1024
"""Bytes that are copied before others have their turn."""


class KeptInStore(PartSource):
    """The source of a part that is kept there."""

    is_old = False
    place = "the store"

    def __init__(self, keep: PartsKeep, number: int, size: int) -> None:
        """Take the number of its entry, and how many bytes that has."""
        self._keep, self.number, self.size = keep, number, size

    async def content(self, part: ObjectPart) -> Content:
        entry = await self._keep.read(self.number)
        if entry is None:
            raise ValueError
        line, _, _ = entry[:LONGEST_LINE].partition(b"\n")
        told, start = _header(line), len(line) + 1
        end = start + told.size
        return Content(entry[start:end], told.packing, entry[end:])

    def sent(self, part: ObjectPart) -> None:
        self._keep.let_go(self.number)


def head_of(part: ObjectPart) -> bytes:
    """Return what stands before the bytes of a part."""
    assert part.content is not None
    body, packing, beside = part.content
    told = PartHeader(
        part.key,
        part.media_type,
        part.messages,
        part.token,
        packing,
        len(body),
        part.upload,
        len(beside),
    )
    return msgspec.json.encode(told) + b"\n"


def entry_at_once(part: ObjectPart) -> bytes:
    """Return what is kept of a part."""
    assert part.content is not None
    return head_of(part) + part.content.body + part.content.beside


async def entry_of(part: ObjectPart, clock: Clock) -> bytes:
    """Return what is kept of a part; others have their turn while a large one is copied."""
    assert part.content is not None
    texts = head_of(part), part.content.body, part.content.beside
    if sum(map(len, texts)) <= PIECE:
        return b"".join(texts)
    entry = bytearray(sum(map(len, texts)))
    end = 0
    for text in texts:
        view = memoryview(text)
        for start in range(0, len(text), PIECE):
            piece = view[start : start + PIECE]
            entry[end : end + len(piece)] = piece
            end += len(piece)
            await clock.sleep(0)
    return cast(
        bytes, entry
    )  # nobody changes it any more, and to make one of it is to copy it again


def part_of(kept: KeptPart, keep: PartsKeep) -> ObjectPart:
    """Return a part that was kept. Raises a `ValueError` for something else."""
    line, end, _ = kept.beginning.partition(b"\n")
    told = _header(line)
    if not end or len(line) + 1 + told.size + told.beside != kept.size:
        raise ValueError
    return ObjectPart(
        key=told.key,
        media_type=told.media_type,
        messages=told.messages,
        length=told.size,
        content=None,
        token=told.token,
        upload=told.upload,
        source=KeptInStore(keep, kept.number, kept.size),
    )


def _header(line: bytes) -> PartHeader:
    told = msgspec.json.decode(line, type=PartHeader)
    if not told.is_valid:
        raise ValueError
    return told
