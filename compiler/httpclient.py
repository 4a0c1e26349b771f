"""The HTTP client of whatever posts batches: one url, failures in words.

No text of it shows a credential: what a server says of a request may repeat it, and is cut and redacted.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.httpexchange import (
    JSON,
    ExchangeWith,
    HttpReply,
    HttpTarget,
    NoReply,
    ServerExchange,
)
from headrace.compiler.httpfailures import CONTENT_TOO_LARGE, class_of_status, class_without_reply

if TYPE_CHECKING:
    from headrace.compiler.clock import Clock
    from headrace.compiler.schema.urls import ParsedUrl

EXCERPT_BYTES = 300
DISCARDED_BYTES = 64 * 1024
"""How much of a reply nobody wants is read to keep the connection; a longer one costs it."""

_T = TypeVar("_T")


class HttpClient:
    """Sends bodies to one url: JSON, unless ``media_type`` says otherwise.

    The user info of the url goes as Basic authentication; ``headers`` are other credentials. Both are
    handed to ``hide``: whoever tells of a failure has them taken out by ``redact``, the one place that
    does, whatever it is that repeats them. ``exchange`` stands for the server; None: it is asked.
    ``refuses_whole``: any 4xx means that nothing of a body was taken, as a 413 does anyway.
    """

    def __init__(
        self,
        address: ParsedUrl,
        *,
        clock: Clock,
        hide: Callable[[str], None],
        redact: Callable[[str], str],
        verb: str = "POST",
        timeout_seconds: float = 30,
        headers: Mapping[str, str] | None = None,
        media_type: str = JSON,
        exchange: ExchangeWith | None = None,
        refuses_whole: bool = False,
    ) -> None:
        self._refuses_whole = refuses_whole
        self._address, self._redact, self._verb = address, redact, verb
        target = HttpTarget(verb, address, timeout_seconds, headers or {}, media_type)
        self._exchange = (exchange or partial(ServerExchange, clock))(target)
        presented = [*target.headers.values(), address.password]
        if address.user is not None:
            presented.append(b64encode(f"{address.user}:{address.password}".encode()).decode())
        for value in presented:
            credential = re.sub(r"^(Bearer|Basic) ", "", value)
            hide(credential)
            hide(credential.rstrip("="))  # Base64 is also written without its padding

    async def send(self, body: bytes) -> None:
        """Send ``body`` and discard the reply.

        Raises:
            Unreachable: no answer, or one that asks for a pause (429, 5xx).
            BatchFailed: any other answer but 2xx.
        """

        async def discard(reply: HttpReply) -> None:
            # To its end, so that the connection can be used again. The batch has been taken: the status
            # said so.
            await _if_it_comes(reply, DISCARDED_BYTES)

        await self._exchanged(body, discard)

    async def ask(self, body: bytes, most: int) -> bytes:
        """Send ``body`` and return the reply, of at most ``most`` bytes.

        Raises:
            Unreachable, BatchFailed: as `send`; also for a longer reply.
        """

        async def take(reply: HttpReply) -> bytes:
            answer = await reply.beginning(most)
            if len(answer) > most:
                raise BatchFailed(self._say(f"the reply is longer than {most:,} bytes"))
            return answer

        return await self._exchanged(body, take)

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def _exchanged(self, body: bytes, take: Callable[[HttpReply], Awaitable[_T]]) -> _T:
        """Send, and let ``take`` read a reply that is a success."""
        try:
            async with self._exchange(body) as reply:
                if not 200 <= reply.status < 300:
                    raise await self._refusal(reply)
                return await take(reply)
        except NoReply as cause:
            failure = Unreachable if cause.is_passing else BatchFailed
            raise failure(self._say(self._shown(str(cause))), class_without_reply(cause)) from None

    async def _refusal(self, reply: HttpReply) -> BatchFailed:
        """Return what to raise for a reply that is no success."""
        told = [f"{reply.status} {self._shown(reply.reason)}".rstrip()]
        if reply.location is not None and 300 <= reply.status < 400:
            told.append(f"the server points to '{self._shown(reply.location)}'")
        else:  # nothing of it where it cannot be read: the status says enough
            beginning = await _if_it_comes(reply, 16 * EXCERPT_BYTES)
            told.append(self._shown(beginning.decode("utf-8", "replace")))
        text = self._say(": ".join(filter(None, told)))
        may_be_content = reply.status >= 500
        failure = Unreachable if may_be_content or reply.status == 429 else BatchFailed
        its_class = class_of_status(reply.status)
        is_answered = may_be_content or its_class == "invalid"
        took_nothing = reply.status == CONTENT_TOO_LARGE or (
            self._refuses_whole and 400 <= reply.status < 500
        )
        return failure(text, its_class, is_answered=is_answered, took_nothing=took_nothing)

    def _shown(self, text: str) -> str:
        """Return what the server said: without credentials, on one line, of 300 bytes at most.

        Cut last, or half of a credential could stay.
        """
        line = " ".join(self._redact(text).split()).encode("utf-8", "replace")
        return line[:EXCERPT_BYTES].decode("utf-8", "ignore")

    def _say(self, what: str) -> str:
        return f"{self._verb} {self._address}: {what}"


async def _if_it_comes(reply: HttpReply, most: int) -> bytes:
    """Return the beginning of a reply that nobody needs: nothing, if it fails to come."""
    try:
        return await reply.beginning(most)
    except NoReply:
        return b""
