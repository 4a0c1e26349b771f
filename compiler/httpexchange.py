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
from ssl import SSLEOFError, SSLError
from typing import TYPE_CHECKING, Protocol

from headrace.compiler.errors import HeadraceError

if TYPE_CHECKING:
    from aiohttp import ClientError, ClientResponse, ClientSession, ClientSSLError
    from yarl import URL

    from headrace.compiler.clock import Clock
    from headrace.compiler.httpbodies import SentBytes
    from headrace.compiler.schema.urls import ParsedUrl

REDIRECTS = 10
JSON = "application/json"

NO_CONNECTION = "no connection"
SENT = "no answer to what was sent"
NOT_HTTP = "not HTTP"
NOT_REDIRECTED = "a redirect that leads nowhere"

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
    """There is no answer; ``is_passing``: there may be one later.

    ``code`` is what it is known by: nothing was sent, all of it may have been, or who is there does not
    speak HTTP or points to nowhere. None: nobody knows.
    """

    def __init__(self, why: str, *, is_passing: bool = True, code: str | None = None) -> None:
        super().__init__(why)
        self.is_passing, self.code = is_passing, code


class TooLate(NoReply):
    """There is no answer in time, as a rule to what was sent."""

    def __init__(self, seconds: float, code: str = SENT) -> None:
        super().__init__(f"no answer within {seconds} s", code=code)


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

        from headrace.compiler.httpbodies import SentBytes

        self._sent_bytes = SentBytes
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
            async with await self._sent(body) as reply:
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
            reply = await self._answered(self._session, url, self._sent_bytes(body))
            target = _redirection(reply)
            if target is None:
                return reply
            reply.release()
            url = target
        why = f"redirected more than {REDIRECTS} times"
        raise NoReply(why, is_passing=False, code=NOT_REDIRECTED)

    async def _answered(self, session: ClientSession, url: URL, body: SentBytes) -> ClientResponse:
        with _worded(self._seconds, body):
            try:
                return await session.request(
                    self._verb, url, data=body, headers=self._headers, allow_redirects=False
                )
            # About the url: that of a redirect is what a server says. Or about a certificate.
            except ValueError as cause:
                code = NOT_HTTP if isinstance(cause, OSError) else NOT_REDIRECTED
                why = f"cannot be requested: {cause}"
                raise NoReply(why, is_passing=False, code=code) from None


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
def _worded(seconds: float, body: SentBytes | None = None) -> Iterator[None]:
    """Have the errors of the driver be ours. None is a cause of them: they show headers of the request.

    ``body`` is the one of a request without an answer; None: there is the beginning of an answer.
    """
    from aiohttp import ClientConnectionError, ClientError

    try:
        yield
    except TimeoutError:
        raise TooLate(seconds, _how_far(body)) from None
    except ClientError as cause:
        is_passing = isinstance(cause, ClientConnectionError)
        code = NOT_HTTP if _is_strange(cause) else _how_far(body)
        raise NoReply(_why(cause), is_passing=is_passing, code=code) from None


def _how_far(body: SentBytes | None) -> str:
    return SENT if body is None or body.is_begun else NO_CONNECTION


def _is_strange(cause: ClientError) -> bool:
    """Return whether somebody is there who does not speak as the url says."""
    from aiohttp import ClientResponseError, ClientSSLError

    if isinstance(cause, ClientSSLError):
        told = _told_of_tls(cause)
        # The end of a connection is none of its answers: it may be another one the next time.
        return isinstance(told, SSLError) and not isinstance(told, SSLEOFError)
    return isinstance(cause, ClientResponseError)


def _told_of_tls(cause: ClientSSLError) -> BaseException:
    refusal: BaseException = getattr(cause, "certificate_error", None) or cause.os_error
    return refusal


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
            refusal = _told_of_tls(cause)
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
