"""One HTTP request and its reply: how it is made over the network, and what stands for that offline.

What a config says must reach one place and no other. A redirect is followed only with 307 and 308,
which keep method and body, and only on the server that the url names. Any other is a reply like any
other: following 301, 302 or 303 turns a post into a GET, which loses the batch and reports success,
and another host is not to be sent the messages and the credentials.

Source: RFC 9110, section 15.4.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headrace.compiler.errors import HeadraceError

if TYPE_CHECKING:
    from aiohttp import ClientError, ClientResponse, ClientSession
    from yarl import URL

    from headrace.compiler.clock import Clock
    from headrace.compiler.schema.urls import ParsedUrl

REDIRECTS = 10
JSON = "application/json"

_KEEPS_METHOD = (307, 308)


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """Where requests go, and how. Units: ``seconds`` that an answer may take."""

    verb: str
    address: ParsedUrl
    seconds: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Credentials. The user info of the url comes beside them, as Basic authentication."""
    media_type: str = JSON
    """What is sent."""


class HttpReply(Protocol):
    """What is answered."""

    @property
    def status(self) -> int:
        """The number."""

    @property
    def reason(self) -> str:
        """The words beside it, or none."""

    @property
    def location(self) -> str | None:
        """Where the server points to."""

    async def beginning(self, most: int) -> bytes:
        """Return the body; when it is longer than ``most``, as much of it as showed that.

        Raises:
            NoReply: it breaks off.
        """


class NoReply(HeadraceError):
    """There is no answer; ``is_passing``: there may be one later."""

    def __init__(self, why: str, *, is_passing: bool = True) -> None:
        super().__init__(why)
        self.is_passing = is_passing


class TooLate(NoReply):
    """There is no answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds} s")


class Exchange(Protocol):
    """Sends bodies to one target and has the replies."""

    def __call__(self, body: bytes) -> AbstractAsyncContextManager[HttpReply]:
        """Send it, and have the reply for as long as the context lasts.

        Raises:
            NoReply: there is none.
        """

    async def close(self) -> None:
        """Let go of the connections."""


ExchangeWith = Callable[[HttpTarget], Exchange]
"""Makes what sends to a target."""


class ServerExchange:
    """The exchange with a server, over one session of the driver."""

    def __init__(self, clock: Clock, target: HttpTarget) -> None:
        # The driver, imported when the first pipeline needs it: it takes a quarter of a second.
        from aiohttp import encode_basic_auth
        from multidict import CIMultiDict
        from yarl import URL

        self._clock, self._verb, self._seconds = clock, target.verb, target.seconds
        self._url = URL(target.address.location)
        self._headers = CIMultiDict({"Content-Type": target.media_type, "User-Agent": "headrace"})
        self._headers.update(target.headers)
        if target.address.user is not None:
            credential = encode_basic_auth(target.address.user, target.address.password)
            self._headers["Authorization"] = credential
        self._session: ClientSession | None = None

    @asynccontextmanager
    async def __call__(self, body: bytes) -> AsyncIterator[HttpReply]:
        """Send it; redirects are followed where they are safe."""
        with self._clock.outside():
            with _worded(self._seconds):
                reply = await self._sent(body)
            async with reply:
                yield ServerReply(reply, self._seconds)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _sent(self, body: bytes) -> ClientResponse:
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
                raise NoReply(f"cannot be requested: {cause}", is_passing=False) from None
            target = _redirection(reply)
            if target is None:
                return reply
            reply.release()
            url = target
        raise NoReply(f"redirected more than {REDIRECTS} times", is_passing=False)


class ServerReply:
    """What a server answers."""

    def __init__(self, reply: ClientResponse, seconds: float) -> None:
        self._reply, self._seconds = reply, seconds
        self.status = reply.status
        self.reason = reply.reason or ""
        self.location: str | None = reply.headers.get("Location")

    async def beginning(self, most: int) -> bytes:
        """Read the body up to there."""
        read = bytearray()
        with _worded(self._seconds):
            async for piece in self._reply.content.iter_any():
                read += piece
                if len(read) > most:
                    break
        return bytes(read)


@contextmanager
def _worded(seconds: float) -> Iterator[None]:
    """Have the errors of the driver be ours. None is a cause of them: they show headers of the request."""
    from aiohttp import ClientConnectionError, ClientError

    try:
        yield
    except TimeoutError:
        raise TooLate(seconds) from None
    except ClientError as cause:
        is_passing = isinstance(cause, ClientConnectionError)
        raise NoReply(_why(cause), is_passing=is_passing) from None


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
