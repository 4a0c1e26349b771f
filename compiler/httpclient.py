"""The HTTP client of whatever posts batches: one url, one session, failures in words.

What a config says must reach one place and no other. A redirect is followed only with 307 and 308,
which keep method and body, and only on the server that the url names. Any other is a failure that
tells where the server points: following 301, 302 or 303 turns a post into a GET, which loses the
batch and reports success, and another host is not to be sent the messages and the credentials.

Source: RFC 9110, section 15.4.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from headrace.compiler.errors import BatchFailed, Unreachable

if TYPE_CHECKING:
    from aiohttp import ClientError, ClientResponse, ClientSession
    from yarl import URL

    from headrace.compiler.clock import Clock
    from headrace.compiler.schema.urls import ParsedUrl

REDIRECTS = 10
EXCERPT_BYTES = 300
DISCARDED_BYTES = 64 * 1024
"""How much of a reply nobody wants is read to keep the connection; a longer one costs it."""

_KEEPS_METHOD = (307, 308)
_T = TypeVar("_T")


class HttpClient:
    """Sends JSON to one url.

    The user info of the url goes as Basic authentication; ``headers`` are other credentials. Both are
    handed to ``hide``: whoever tells of a failure has them taken out by ``redact``, the one place that
    does, whatever it is that repeats them.
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
    ) -> None:
        # The driver, imported when the first pipeline needs it: it takes a quarter of a second.
        from aiohttp import encode_basic_auth
        from multidict import CIMultiDict
        from yarl import URL

        self._address, self._url = address, URL(address.location)
        self._clock, self._redact = clock, redact
        self._verb, self._seconds = verb, timeout_seconds
        credentials = dict(headers or {})
        if address.user is not None:
            credentials["Authorization"] = encode_basic_auth(address.user, address.password)
        self._headers = CIMultiDict({"Content-Type": "application/json", "User-Agent": "headrace"})
        self._headers.update(credentials)
        for value in (*credentials.values(), address.password):
            credential = re.sub(r"^(Bearer|Basic) ", "", value)
            hide(credential)
            hide(credential.rstrip("="))  # Base64 is also written without its padding
        self._session: ClientSession | None = None

    async def send(self, body: bytes) -> None:
        """Send ``body`` and discard the reply.

        Raises:
            Unreachable: no answer, or one that asks for a pause (429, 5xx).
            BatchFailed: any other answer but 2xx.
        """

        async def discard(reply: ClientResponse) -> None:
            # To its end, so that the connection can be used again. The batch has been taken: the status
            # said so.
            await _beginning(reply, DISCARDED_BYTES, is_needed=False)

        await self._exchange(body, discard)

    async def ask(self, body: bytes, most: int) -> bytes:
        """Send ``body`` and return the reply, of at most ``most`` bytes.

        Raises:
            Unreachable, BatchFailed: as `send`; also for a longer reply.
        """

        async def take(reply: ClientResponse) -> bytes:
            answer = await _beginning(reply, most)
            if len(answer) > most:
                raise BatchFailed(self._say(f"the reply is longer than {most:,} bytes"))
            return answer

        return await self._exchange(body, take)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, body: bytes, take: Callable[[ClientResponse], Awaitable[_T]]) -> _T:
        """Send, and let ``take`` read a reply that is a success."""
        from aiohttp import ClientConnectionError, ClientError

        try:
            with self._clock.outside():
                async with await self._request(body) as reply:
                    if not 200 <= reply.status < 300:
                        raise await self._refusal(reply)
                    return await take(reply)
        # None of the driver's errors is a cause of ours: they show the headers of the request.
        except TimeoutError:
            raise Unreachable(self._say(f"no answer within {self._seconds} s")) from None
        except ClientError as cause:
            failure = Unreachable if isinstance(cause, ClientConnectionError) else BatchFailed
            raise failure(self._say(self._shown(_why(cause)))) from None

    async def _request(self, body: bytes) -> ClientResponse:
        """Return the last reply, redirects followed where they are safe."""
        if self._session is None:  # not before: it belongs to the running loop
            from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

            timeout = ClientTimeout(total=self._seconds)
            self._session = ClientSession(cookie_jar=DummyCookieJar(), timeout=timeout)
        url = self._url
        for _ in range(REDIRECTS):
            try:
                reply = await self._session.request(
                    self._verb, url, data=body, headers=self._headers, allow_redirects=False
                )
            except ValueError as cause:  # about the url: that of a redirect is what a server says
                said = f"cannot be requested: {self._shown(str(cause))}"
                raise BatchFailed(self._say(said)) from None
            target = _redirection(reply)
            if target is None:
                return reply
            reply.release()
            url = target
        raise BatchFailed(self._say(f"redirected more than {REDIRECTS} times"))

    async def _refusal(self, reply: ClientResponse) -> BatchFailed:
        """Return what to raise for a reply that is no success."""
        told = [f"{reply.status} {self._shown(reply.reason or '')}".rstrip()]
        if "Location" in reply.headers and 300 <= reply.status < 400:
            told.append(f"the server points to '{self._shown(reply.headers['Location'])}'")
        else:  # nothing of it where it cannot be read: the status says enough
            beginning = await _beginning(reply, 16 * EXCERPT_BYTES, is_needed=False)
            told.append(self._shown(beginning.decode("utf-8", "replace")))
        text = self._say(": ".join(filter(None, told)))
        is_passing = reply.status == 429 or reply.status >= 500
        return Unreachable(text) if is_passing else BatchFailed(text)

    def _shown(self, text: str) -> str:
        """Return what the server said: without credentials, on one line, of 300 bytes at most.

        Cut last, or half of a credential could stay.
        """
        line = " ".join(self._redact(text).split()).encode("utf-8", "replace")
        return line[:EXCERPT_BYTES].decode("utf-8", "ignore")

    def _say(self, what: str) -> str:
        return f"{self._verb} {self._address}: {what}"


def _redirection(reply: ClientResponse) -> URL | None:
    """Return where to send the same once more, or None."""
    from yarl import URL

    if reply.status not in _KEEPS_METHOD or "Location" not in reply.headers:
        return None
    try:
        target = reply.url.join(URL(reply.headers["Location"])).with_user(None)
        return target if target.origin() == reply.url.origin() else None
    except (ValueError, IndexError):  # no url, or none of HTTP; the latter by a slip of the library
        return None


async def _beginning(reply: ClientResponse, most: int, *, is_needed: bool = True) -> bytes:
    """Return the reply; when it is longer than ``most``, as much as showed that.

    One that is not needed may fail to come: then nothing is returned.
    """
    from aiohttp import ClientError

    read = bytearray()
    try:
        async for piece in reply.content.iter_any():
            read += piece
            if len(read) > most:
                break
    except (TimeoutError, ClientError):
        if is_needed:
            raise
        return b""
    return bytes(read)


def _why(cause: ClientError) -> str:
    """Return why there was no answer, without addresses that change from try to try, or none to read."""
    from aiohttp import (
        ClientConnectorDNSError,
        ClientOSError,
        ClientPayloadError,
        ClientResponseError,
        ClientSSLError,
        ServerDisconnectedError,
    )

    match cause:
        case ClientConnectorDNSError():
            return "the host name cannot be resolved"
        case ServerDisconnectedError():
            return "the server closed the connection without an answer"
        case ClientSSLError():
            refusal = getattr(cause, "certificate_error", None) or cause.os_error
            reason = str(getattr(refusal, "reason", None) or refusal).replace("_", " ").lower()
            return f"TLS: {getattr(refusal, 'verify_message', None) or reason}"
        case OSError() if cause.errno:
            return os.strerror(cause.errno).lower()
        # Its text repeats the url, that of a redirect with all it holds.
        case ClientOSError() if type(cause) is ClientOSError:
            return "the server closed the connection before it had the request"
        case ClientPayloadError():
            return "the reply broke off"
        case ClientResponseError():
            return "the reply is not HTTP"
    return str(cause) or type(cause).__name__
