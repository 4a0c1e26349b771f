"""What hands to captures what happens: at inputs, ahead of decoding, and between transforms and servers.

While nobody captures, all of it is one look at whether anybody does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from headrace.compiler.delivery import is_large
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.errors import HeadraceError
from headrace.compiler.httpexchange import Exchange, ExchangeWith, HttpReply, NoReply
from headrace.compiler.largejson import are_small
from headrace.compiler.runtime.capturing.capturerecords import Exchanged
from headrace.compiler.runtime.capturing.captures import OVERHEAD, Captures
from headrace.compiler.runtime.turns import Turn

MOST_TOGETHER = 512
"""Payloads of one record."""
MOST_BYTES_TOGETHER = 256 * 1024
"""Bytes of the payloads of one record, unless the first has more."""


class InputRecorder:
    """Hands what arrives at one input to those who capture it."""

    __slots__ = ("_is_json", "_pipeline", "_source", "_tells", "_to", "captures")

    def __init__(
        self,
        captures: Captures,
        pipeline: str,
        place: str,
        source: Source,
        *,
        tells: bool,
        is_json: bool = True,
    ) -> None:
        """Take where it is; ``tells``: it has an envelope, so what is told of a message may be seen.

        ``is_json``: payloads are; else they have another format.
        """
        self.captures = captures
        """Those it hands to; while none is under way, nobody calls it."""
        self._pipeline, self._source = pipeline, source
        self._to = f"{pipeline}.{place}"
        self._tells, self._is_json = tells, is_json

    async def take(self, arrivals: Sequence[Arrival], turn: Turn) -> None:
        """Hand on what has arrived; others have their turns meanwhile, but nobody waits for a reader."""
        if not self.captures.of(self._pipeline):
            return
        if self._source.is_raw:
            self._take_payloads(arrivals)
            return
        for batch, origin in arrivals:
            meta = self._meta(origin)
            large = is_large(batch) or not are_small(batch)
            for capture in self.captures.of(self._pipeline):
                if large:
                    capture.large_batch(self._to, batch, meta)
                elif capture.redactor is None:
                    capture.small_batch(self._to, batch, meta)
                else:
                    await capture.redacted_batch(self._to, batch, meta)
            if turn.is_over:
                await turn.give_way()

    def _take_payloads(self, arrivals: Sequence[Arrival]) -> None:
        together: list[bytes] = []
        told: Mapping[str, Any] | None = None
        size = 0
        for payload, origin in arrivals:
            meta = self._meta(origin)
            size += len(payload)
            is_full = len(together) >= MOST_TOGETHER or size > MOST_BYTES_TOGETHER
            if together and (is_full or meta != told):
                self._hand_on(together, told)
                together, size = [], len(payload)
            told = meta
            together.append(payload)
        if together:
            self._hand_on(together, told)

    def _hand_on(self, payloads: Sequence[bytes], meta: Mapping[str, Any] | None) -> None:
        for capture in self.captures.of(self._pipeline):
            capture.payloads(self._to, payloads, meta, is_json=self._is_json)

    def _meta(self, origin: Any) -> Mapping[str, Any] | None:
        return self._source.describe(origin) if self._tells else None


def recorded(captures: Captures, pipeline: str, place: str, exchange: ExchangeWith) -> ExchangeWith:
    """Return what exchanges as before, and hands requests and replies to those who capture them."""
    return lambda target: RecordedExchange(captures, pipeline, place, exchange(target))


class RecordedExchange:
    """An exchange whose requests and replies are handed to those who capture them.

    Neither the url nor any header is; nor is what a server answers that refuses, which may repeat them.
    """

    def __init__(self, captures: Captures, pipeline: str, place: str, exchange: Exchange) -> None:
        self._captures, self._pipeline, self._exchange = captures, pipeline, exchange
        self._of = f"{pipeline}.{place}"

    def __call__(self, body: bytes) -> AbstractAsyncContextManager[HttpReply]:
        """Send it, as the exchange does."""
        return self._recorded(body) if self._captures.under_way else self._exchange(body)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._exchange.close()

    @asynccontextmanager
    async def _recorded(self, body: bytes) -> AsyncIterator[HttpReply]:
        began = self._captures.clock.monotonic()
        kept: KeptReply | None = None
        try:
            async with self._exchange(body) as reply:
                kept = KeptReply(reply)
                yield kept
        except NoReply:
            self._told(body, None, began)
            raise
        except HeadraceError:  # it was no success, or is too large
            self._told(body, kept, began)
            raise
        self._told(body, kept, began)

    def _told(self, request: bytes, reply: KeptReply | None, began: float) -> None:
        seconds = self._captures.clock.monotonic() - began
        status, body = (None, None) if reply is None else (reply.status, reply.body)
        size = len(request) + len(body or b"") + OVERHEAD
        for capture in self._captures.of(self._pipeline):
            at = max(0.0, capture.now - seconds)
            capture.exchange(Exchanged(at, self._of, request, status, body, seconds, size))


class KeptReply:
    """A reply whose body is kept as it is read, if it is a success."""

    def __init__(self, reply: HttpReply) -> None:
        self._reply = reply
        self.status, self.reason, self.location = reply.status, reply.reason, reply.location
        self.body: bytes | None = None

    async def beginning(self, most: int) -> bytes:
        """Return the body, or its beginning."""
        body = await self._reply.beginning(most)
        if 200 <= self.status < 300 and len(body) <= most:
            self.body = body
        return body
