"""The lines of a capture, written piece by piece: nothing of them keeps others from the loop for long.

A payload that is JSON stands in its line as it came, every digit of it.
"""

from __future__ import annotations

from base64 import b64encode
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.jsontext import Decoding, NotJson, decode, decode_exact, encode
from headrace.compiler.largejson import LARGE, WritingTurn, decode_large, pieces
from headrace.compiler.runtime.capturing.capturerecords import (
    Exchanged,
    LargeLine,
    PayloadsArrived,
    Pieces,
    WaitingRecord,
    WrittenLine,
)
from headrace.compiler.runtime.capturing.redactor import Redactor

_BLANKS = bytes.maketrans(b"\r\n", b"  ")
"""A line end in JSON stands between values, where a blank means the same."""
CHUNK = 256 * 1024
"""Bytes of a text that become text of a line at once."""
TOGETHER = 32 * 1024
"""Bytes of small pieces that are joined."""
MOST_PIECES = 512
BASE64_CHUNK = 255 * 1024
"""The same for Base64, which is written in threes."""


def batch_line(at: float, to: str, batch: Batch, meta: Mapping[str, Any] | None) -> bytes:
    """Return the line of a batch that is small, as it is."""
    return b"".join([_begin(at, to), b'"batch":', encode(batch), *_end(meta, None)])


class CaptureWriter:
    """Writes the lines of one capture."""

    def __init__(self, clock: Clock, redactor: Redactor | None) -> None:
        self._clock, self._redactor = clock, redactor
        self._exact = Decoding()
        self._exact.keep_digits(keeps=True)

    async def lines(self, waiting: WaitingRecord) -> AsyncIterator[Pieces]:
        """Yield the lines of what has waited, each in pieces."""
        match waiting:
            case WrittenLine():
                yield [waiting.line]
            case LargeLine():
                yield await waiting.written
            case PayloadsArrived():
                async for line in self._payloads(waiting):
                    yield line
            case Exchanged():
                yield await self._exchange(waiting)

    async def batch(
        self, at: float, to: str, batch: Batch, meta: Mapping[str, Any] | None
    ) -> Pieces:
        """Return the line of a batch that is written in slices."""
        inside = await self._in_turns(self._shown(batch))
        return [_begin(at, to), b'"batch":', *inside, *_end(meta, self._redactor)]

    def _shown(self, value: JsonValue) -> Iterator[bytes]:
        return pieces(value) if self._redactor is None else self._redactor.pieces(value)

    async def _in_turns(self, inside: Iterable[bytes]) -> Pieces:
        """Return all pieces, few of them small; others have their turns meanwhile."""
        made: Pieces = []
        some: Pieces = []
        size = 0
        turn = WritingTurn(self._clock)
        for piece in inside:
            some.append(piece)
            size += len(piece)
            if size > TOGETHER or len(some) > MOST_PIECES:
                made.append(b"".join(some))
                some, size = [], 0
                await turn.end()
        return [*made, b"".join(some)]

    async def _payloads(self, arrived: PayloadsArrived) -> AsyncIterator[Pieces]:
        """Yield the lines: what is JSON and came together is one batch."""
        together: Pieces = []
        turn = WritingTurn(self._clock)
        for payload in arrived.payloads:
            message = await self._json(payload) if arrived.is_json else None
            if message is not None:
                together += (b"," if together else b"", *message)
            else:
                if together:
                    yield self._line(arrived, together)
                    together = []
                begin, end = _begin(arrived.at, arrived.to), _end(arrived.meta, self._redactor)
                yield [begin, *await self._not_json(payload), *end]
            if turn.is_over:
                await turn.end()
        if together:
            yield self._line(arrived, together)

    def _line(self, arrived: PayloadsArrived, messages: Pieces) -> Pieces:
        begin, end = _begin(arrived.at, arrived.to), _end(arrived.meta, self._redactor)
        return [begin, b'"batch":[', *messages, b"]", *end]

    async def _json(self, payload: bytes) -> Pieces | None:
        """Return a payload as the text of a message, None where it is no JSON."""
        redactor = self._redactor
        try:
            if len(payload) >= LARGE:
                # Of a list these are the items, of anything else it is the one.
                batch = await decode_large(payload, self._exact)
                if redactor is None:
                    return await self._in_turns(_on_one_line(payload))
                is_list = payload.lstrip()[:1] == b"["
                return await self._in_turns(self._shown(batch if is_list else batch[0]))
            if redactor is None:
                decode(payload)
                return [*_on_one_line(payload)]
            return await self._in_turns(redactor.pieces(decode_exact(payload)))
        except NotJson:
            return None

    async def _not_json(self, payload: bytes) -> Pieces:
        """Return a payload as text, or, where it is none, in Base64."""
        if self._redactor is not None:
            payload = self._redactor.payload(payload)
        try:
            text = await self._in_turns(_texts(payload))
        except UnicodeDecodeError:
            inside = await self._in_turns(map(b64encode, _cut(payload, BASE64_CHUNK)))
            return [b'"base64":"', *inside, b'"']
        return [b'"raw":"', *text, b'"']

    async def _exchange(self, told: Exchanged) -> Pieces:
        status = b"null" if told.status is None else b"%d" % told.status
        line = [
            b'{"at":%b,"reply":{"of":%b,"request":' % (encode(round(told.at, 6)), encode(told.of)),
            told.request,
            b',"status":%b,"seconds":%b' % (status, encode(round(told.seconds, 6))),
        ]
        if told.body is not None:
            body = await self._json(told.body)
            if body is None:
                inside = await self._in_turns(_texts(told.body, "replace"))
                line += (b',"raw":"', *inside, b'"')
            else:
                line += (b',"body":', *body)
        return [*line, b"}}\n"]


def _begin(at: float, to: str) -> bytes:
    return b'{"at":%b,"to":%b,' % (encode(round(at, 6)), encode(to))


def _end(meta: Mapping[str, Any] | None, redactor: Redactor | None) -> tuple[bytes, ...]:
    if meta is None:
        return (b"}\n",)
    shown = encode(meta) if redactor is None else redactor.metadata(meta)
    return (b',"meta":', shown, b"}\n")


def _on_one_line(text: bytes) -> Iterator[bytes]:
    if b"\n" in text or b"\r" in text:
        yield from (each.translate(_BLANKS) for each in _cut(text, CHUNK))
    else:
        yield text


def _texts(payload: bytes, errors: str = "strict") -> Iterator[bytes]:
    """Yield the inside of the JSON string that a payload is.

    Raises:
        UnicodeDecodeError: it is no text.
    """
    decoder = getincrementaldecoder("utf-8")(errors)
    for each in _cut(payload, CHUNK):
        yield encode(decoder.decode(each))[1:-1]
    yield encode(decoder.decode(b"", final=True))[1:-1]


def joined(made: Pieces) -> Iterator[bytes]:
    """Yield a line in parts that are sent at once: few, and none of them large."""
    some: Pieces = []
    size = 0
    for piece in chain.from_iterable(_cut(each, CHUNK) for each in made):
        if size + len(piece) > CHUNK:
            yield b"".join(some)
            some, size = [], 0
        some.append(piece)
        size += len(piece)
    yield b"".join(some)


def _cut(text: bytes, size: int) -> Iterator[bytes]:
    if len(text) <= size:
        yield text
        return
    for start in range(0, len(text), size):
        yield text[start : start + size]
