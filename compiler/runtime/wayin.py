"""The way in of a pipeline for what is posted to it: bytes are decoded here, and queued.

A large body is decoded in slices, one body at a time, while everybody else has their turn. Those that wait
for it are bounded by their bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from headrace.compiler.component.buildcontext import Ingress, Origin
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import UNSEEN, has_slow_numbers
from headrace.compiler.largejson import LARGE, SLICE, decode_large

MOST_WAITING = 64 * 1024 * 1024
"""Bytes of large bodies that are decoded or wait for it; beyond it a post is not taken."""

MANY_BRACKETS = 8192
"""Each takes up to 0.4 µs where digits are kept: 256 KiB that nest, 130,000, held the loop for 48 ms."""

PostBody = bytes | bytearray


class NoRoom(HeadraceError):
    """A post was not taken: it has to wait until others are through."""


class LargePosts:
    """The large bodies of one engine: whose turn it is, and how many more may wait for theirs."""

    def __init__(self, most_bytes: int = MOST_WAITING) -> None:
        self.turn = asyncio.Lock()
        self.room = most_bytes
        """Bytes that may wait beside those that do."""


class WayIn:
    """What takes the posts of one pipeline, as long as it runs."""

    __slots__ = (
        "_decoding",
        "_large",
        "_pipeline",
        "admits",
        "ingress",
        "is_behind",
        "wants_origin",
    )

    def __init__(self, pipeline: str, ingress: Ingress, large: LargePosts) -> None:
        """Take what queues messages, and what the large bodies share with those of other pipelines."""
        self.ingress = ingress
        self.wants_origin = ingress.wants_origin
        """Whether it looks at where a post came from."""
        self.admits = ingress.admits
        """Returns whether the credential of the input is satisfied; None: it has none."""
        self.is_behind = False
        """Whether so many posts waited, when the last one came, that the pipeline is to catch up first."""
        self._decoding = ingress.decoding
        self._pipeline = pipeline
        self._large = large

    def take(self, body: PostBody, origin: Origin | None) -> int | Coroutine[Any, Any, int]:
        """Queue the messages of a post and return how many there were; what takes long is awaited.

        An array is one batch, anything else one message.

        Raises:
            NotJson: the body is none.
            NoRoom: nothing was taken; it may be sent again.
        """
        size, decoding = len(body), self._decoding
        if size <= UNSEEN or (size < LARGE and not self._takes_long(body)):
            try:
                decoded = decoding.decode_usual(body)
            except ValueError:
                pass
            else:
                return self._queued(decoded, origin, size)
        if size < SLICE:
            return self._queued(decoding.decode(body), origin, size)
        # Also what nests deeper than messages do: at once, 100 KB of it would take some ten milliseconds.
        return self._in_slices(body, origin)

    def _takes_long(self, body: PostBody) -> bool:
        """Return whether a body that is not large takes long to decode all the same."""
        return has_slow_numbers(body) or (self._decoding.keeps_digits and _has_many_brackets(body))

    def _queued(self, decoded: JsonValue, origin: Origin | None, size: int) -> int:
        batch = decoded if isinstance(decoded, list) else [decoded]
        if batch and not self.ingress.offer(batch, origin, size):
            raise self._full(size)
        self.is_behind = self.ingress.is_behind
        return len(batch)

    async def _in_slices(self, body: PostBody, origin: Origin | None) -> int:
        """Decode a large body, when it is its turn, unless it would not be taken anyway."""
        size, large = len(body), self._large
        if self.ingress.is_stopped or not self.ingress.has_room_for(size):
            raise self._full(size)
        if size > large.room:
            raise NoRoom("too many large bodies wait to be decoded, nothing was taken")
        large.room -= size
        try:
            async with large.turn:
                batch = await decode_large(body, self._decoding)
        finally:
            large.room += size
        return self._queued(batch, origin, size)

    def _full(self, size: int) -> NoRoom:
        why = "the queue is full"
        if self.ingress.is_stopped:
            why = "it is being stopped"
        elif not self.ingress.has_room_for(size):
            why = "too many bytes are queued"
        return NoRoom(f"pipeline '{self._pipeline}': {why}, nothing was taken")


def _has_many_brackets(body: PostBody) -> bool:
    """Return whether the depth of a body may take long to count, which is done where digits are kept."""
    return body.count(b"[") + body.count(b"{") > MANY_BRACKETS
