"""The way in of a pipeline for what is posted to it: bytes are decoded here, and queued.

A large body is decoded in slices, one body at a time, while everybody else has their turn. Those that wait
for it are bounded by their bytes. So is one that was compressed unpacked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import suppress

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Ingress, Origin
from headrace.compiler.contentcodings import PIECE, unpacked
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.errors import HeadraceError
from headrace.compiler.formats import Intake, PayloadFormat
from headrace.compiler.jsontext import Decoding, NotJson
from headrace.compiler.largejson import SLICE, TURN_SECONDS, WritingTurn, decode_large, takes_long
from headrace.compiler.slownumbers import UNSEEN

MOST_WAITING = 64 * 1024 * 1024
"""Bytes of large bodies that are decoded or wait for it; beyond it a post is not taken."""

LEAST_COUNTED = 32
"""Bytes that a message counts as where its text is shorter: it takes up to 208 of memory. Longer ones take
some five times their text, if they do not nest many lists and objects."""
CELL_COUNTED = 8
"""Bytes that a cell of a table counts as beside its text: it takes 40 of memory where that is empty, and 90
where it is short."""

PostBody = bytes | bytearray
PostTaken = int | Awaitable[int]
"""How many messages a post had that is taken, or what is awaited until it is."""


class NoRoom(HeadraceError):
    """A post was not taken: it has to wait until others are through."""


class TooLargeToKeep(HeadraceError):
    """A post is larger than all that may be kept of its input: it never will be taken."""


class LargePosts:
    """The large bodies of one engine: whose turn it is, and how many more may wait for theirs."""

    def __init__(self, most_bytes: int = MOST_WAITING) -> None:
        self.turn = asyncio.Lock()
        self.room = most_bytes
        """Bytes that may wait beside those that do."""


class WayIn:
    """What takes the posts of one pipeline, as long as it runs."""

    __slots__ = (
        "_clock",
        "_decoding",
        "_keep",
        "_large",
        "_pipeline",
        "admits",
        "ingress",
        "is_behind",
        "wants_origin",
    )

    reads_json: bool = True
    """Whether what is posted is JSON."""

    def __init__(self, pipeline: str, ingress: Ingress, large: LargePosts, clock: Clock) -> None:
        """Take what queues messages, and what the large bodies share with those of other pipelines."""
        self.ingress = ingress
        self.wants_origin = ingress.wants_origin
        """Whether it looks at where a post came from."""
        self.admits = ingress.admits
        """Returns whether the credential of the input is satisfied; None: it has none."""
        self._keep = ingress.keep
        self.is_behind = False
        """Whether so many posts waited, when the last one came, that the pipeline is to catch up first."""
        self._decoding = ingress.decoding
        self._pipeline = pipeline
        self._large = large
        self._clock = clock

    def take(self, body: PostBody, origin: Origin | None) -> PostTaken:
        """Queue the messages of a post and return how many there were; what takes long is awaited.

        Where posts are stored, that is awaited as well. An array is one batch, anything else one message.

        Raises:
            NotJson: the body is none.
            NoRoom: nothing was taken; it may be sent again.
        """
        size, decoding = len(body), self._decoding
        if size <= UNSEEN or not takes_long(body, decoding):
            try:
                decoded = decoding.decode_usual(body)
            except ValueError:
                pass
            else:
                return self._queued(decoded, origin, size, body)
        if size < SLICE:
            return self._queued(decoding.decode(body), origin, size, body)
        # Also what nests deeper than messages do: at once, 100 KB of it would take some ten milliseconds.
        return self._in_slices(body, origin)

    def take_json(self, body: bytes, origin: Origin | None) -> PostTaken:
        """Queue messages that are given as JSON, whatever is posted: a test gives them."""
        return self.take(body, origin)

    def failed(self) -> FailedWayIn | None:
        """Return the way in of its pipeline when that has failed; None: there is none.

        What is kept goes on when the pipeline is exchanged, and so do those who send.
        """
        if self._keep is None:
            return None
        return FailedWayIn(self._pipeline, self.ingress, self._large, self._clock)

    def unpacking(self, coding: str, most: int) -> PackedWayIn:
        """Return the way in for a body in a content coding, of at most so many bytes."""
        return PackedWayIn(self, self._large, self._clock, coding, most)

    def _queued(
        self, decoded: JsonValue, origin: Origin | None, size: int, body: PostBody
    ) -> PostTaken:
        batch = decoded if isinstance(decoded, list) else [decoded]
        size = max(size, LEAST_COUNTED * len(batch))
        if self._keep is not None:
            return self._keep(batch, origin, size, body, is_json=False) if batch else 0
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
            raise crowded()
        large.room -= size
        try:
            async with large.turn:
                batch, counted = await self._decoded(body)
        finally:
            large.room += size
        taken = self._queued(batch, origin, counted, body)
        return taken if isinstance(taken, int) else await taken

    async def _decoded(self, body: PostBody) -> tuple[Batch, int]:
        """Return the messages of a body, and how many bytes it counts as."""
        return await decode_large(body, self._decoding), len(body)

    def _full(self, size: int) -> NoRoom:
        why = "the queue is full"
        if self.ingress.is_stopped:
            why = "it is being stopped"
        elif not self.ingress.has_room_for(size):
            why = "too many bytes are queued"
        return NoRoom(f"pipeline '{self._pipeline}': {why}, nothing was taken")


class FailedWayIn(WayIn):
    """That of a pipeline that has failed and keeps its posts: whoever sends again may be taken later."""

    __slots__ = ()

    def take(self, body: PostBody, origin: Origin | None) -> PostTaken:
        """Take nothing.

        Raises:
            NoRoom: always.
        """
        raise NoRoom(f"pipeline '{self._pipeline}': it has failed, nothing was taken")

    def take_json(self, body: bytes, origin: Origin | None) -> PostTaken:
        """Take nothing, as `take` does."""
        return self.take(body, origin)


def at_once(body: PostBody, decoding: Decoding) -> JsonValue:
    """Return what a text is that is decoded at once. Raises `NotJson`."""
    if len(body) <= UNSEEN or not takes_long(body, decoding):
        with suppress(ValueError):  # it is unusual
            return decoding.decode_usual(body)
    return decoding.decode(body)


def crowded() -> NoRoom:
    """Return the refusal of a large body beside others."""
    return NoRoom("too many large bodies wait to be decoded, nothing was taken")


class FormattedWayIn(WayIn):
    """The same where bodies have a format. Raises a `FormatMisfit` for a body that does not fit."""

    __slots__ = ("_format",)

    reads_json = False

    def __init__(
        self,
        pipeline: str,
        ingress: Ingress,
        large: LargePosts,
        format: PayloadFormat,
        clock: Clock,
    ) -> None:
        super().__init__(pipeline, ingress, large, clock)
        self._format = format

    def take(self, body: PostBody, origin: Origin | None) -> PostTaken:
        """Queue the messages of a post, at once where that takes no longer than a slice."""
        if len(body) > SLICE:
            return self._in_slices(body, origin)
        monotonic = self._clock.monotonic
        into = Intake(len(body))
        slices = self._format.slices(body, into, self._decoding)
        ends = monotonic() + TURN_SECONDS
        for _ in slices:
            if monotonic() > ends:
                return self._go_on(slices, into, origin, body)
        return self._queued(into.batch, origin, _counted(into, len(body)), body)

    def take_json(self, body: bytes, origin: Origin | None) -> PostTaken:
        """Queue messages as if they had come of a body."""
        decoded = self._decoding.decode(body)
        if self._keep is None:
            return self._queued(decoded, origin, len(body), body)
        batch = decoded if isinstance(decoded, list) else [decoded]
        size = max(len(body), LEAST_COUNTED * len(batch))
        return self._keep(batch, origin, size, body, is_json=True) if batch else 0

    async def _go_on(
        self, slices: Iterator[None], into: Intake, origin: Origin | None, body: PostBody
    ) -> int:
        await self._in_turns(slices)
        taken = self._queued(into.batch, origin, _counted(into, len(body)), body)
        return taken if isinstance(taken, int) else await taken

    async def _decoded(self, body: PostBody) -> tuple[Batch, int]:
        into = Intake(len(body))
        await self._in_turns(self._format.slices(body, into, self._decoding))
        return into.batch, _counted(into, len(body))

    async def _in_turns(self, slices: Iterator[None]) -> None:
        turn = WritingTurn(self._clock)
        for _ in slices:
            await turn.end()


def _counted(into: Intake, size: int) -> int:
    return size + CELL_COUNTED * into.cells


class PackedJson(NotJson):
    """What was unpacked is not JSON; ``beginning`` is that of it."""

    def __init__(self, text: str, beginning: bytes) -> None:
        super().__init__(text)
        self.beginning = beginning


class PackedWayIn:
    """The way in for one body that was compressed: it is unpacked, and then taken like any other."""

    def __init__(
        self, way_in: WayIn, large: LargePosts, clock: Clock, coding: str, most: int
    ) -> None:
        self._way_in, self._large, self._clock = way_in, large, clock
        self._coding, self._most = coding, most
        self.admits = way_in.admits
        self.wants_origin = way_in.wants_origin
        self.is_behind = False

    def take(self, body: PostBody, origin: Origin | None) -> PostTaken:
        """Queue the messages of a post; one that unpacks to much is awaited.

        Raises:
            NotUnpacked: it is not in its coding.
            UnpacksToMore: it is too large.
        """
        monotonic = self._clock.monotonic
        pieces = unpacked(self._coding, body, self._most)
        whole = bytearray()
        ends = monotonic() + TURN_SECONDS
        for piece in pieces:
            whole += piece
            if len(whole) >= PIECE or monotonic() > ends:  # of much input little may come
                return self._in_slices(pieces, whole, len(body), origin)
        return self._take(whole, origin)

    def _take(self, whole: bytearray, origin: Origin | None) -> PostTaken:
        try:
            taken = self._way_in.take(whole, origin)
        except NotJson as cause:
            raise PackedJson(str(cause), bytes(whole[:BEGINNING])) from None
        self.is_behind = self._way_in.is_behind
        return taken

    async def _in_slices(
        self, pieces: Iterator[bytes], whole: bytearray, size: int, origin: Origin | None
    ) -> int:
        """Unpack the rest, when it is its turn."""
        large = self._large
        if size > large.room:
            raise crowded()
        large.room -= size
        try:
            async with large.turn:
                turn = WritingTurn(self._clock)
                for piece in pieces:
                    whole += piece
                    await turn.end()
        finally:
            large.room += size
        taken = self._take(whole, origin)
        if isinstance(taken, int):
            return taken
        try:
            return await taken
        except NotJson as cause:
            raise PackedJson(str(cause), bytes(whole[:BEGINNING])) from None


BEGINNING = 64
"""Bytes of a body that tell what it may be instead of JSON."""
