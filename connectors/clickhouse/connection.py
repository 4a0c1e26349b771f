"""A ClickHouse server over its HTTP interface: asked, and its failures in words.

The client library is not used for that. It sends an insert a second time when the connection breaks,
which doubles rows; it follows redirects with the rows, takes a proxy from the environment, tells the
server the name of the system's user, and asks three times for settings and such before the first query.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from yarl import URL

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.schema.urls import ParsedUrl
from headrace.connectors.clickhouse.error_codes import CODE_HEADER, answer
from headrace.connectors.network.refusal import (
    CONNECT_SECONDS,
    Outage,
    quoted,
    turned_away,
    unanswered,
)
from headrace.connectors.network.tls import handshake_fault, tls_fault

LARGE = 1024 * 1024
"""Bytes above which a body is sent in pieces."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a server may take, and how much of what it says is read. Units: seconds and bytes."""

    answer_seconds: float = CONNECT_SECONDS
    """How long connecting and the answer to a statement of the start may take."""
    insert_seconds: float = 30.0
    """How long the server may take over a batch."""
    idle_seconds: float = 2.0
    """How long a connection is kept that nobody uses: less than any server does, or a request could meet
    its end, and nobody knew what became of it."""
    error_bytes: int = 64 * 1024
    """What is read of an error: the server quotes rows in it, of whatever length."""


class ConnectionLost(Unreachable):
    """The connection broke after something was sent: nobody knows whether the server has it."""


class ClickHouseServer:
    """The server that a connection names, as one component meets it."""

    def __init__(
        self,
        address: ParsedUrl,
        user: str,
        password: str,
        tls: ssl.SSLContext | None,
        ctx: Context,
        limits: Limits,
    ) -> None:
        self._url = address.location.rstrip("/") + "/"
        parts = urlsplit(self._url)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls, self._ctx, self.limits = tls, ctx, limits
        self._headers = {
            "X-ClickHouse-User": user,
            "X-ClickHouse-Key": password,
            "User-Agent": "headrace",
            "Accept-Encoding": "identity",
            "Content-Type": "application/octet-stream",
        }
        self._session: ClientSession | None = None
        self._is_known = False
        self.where = f"{f'[{self._host}]' if ':' in self._host else self._host}:{self._port}"
        self._outage = Outage(self.where)

    async def ask(
        self,
        statement: str,
        parameters: Mapping[str, str],
        body: bytes = b"",
        *,
        seconds: float | None = None,
    ) -> bytes:
        """Run a statement with what belongs to it, within so many seconds; return what is answered.

        Raises:
            ErrorAnswer: it says no.
            BuildRefused: TLS as configured cannot work, or somebody else answers.
            Unreachable: it does not answer; `ConnectionLost` if it may have run the statement all the same.
        """
        session, seconds = self._session or self._opened(), seconds or self.limits.answer_seconds
        url = URL(self._url).with_query({"query": statement, **parameters})
        sent = body if len(body) <= LARGE else BytesIO(body)
        clock = self._ctx.clock
        try:
            with clock.outside():
                async with (
                    clock.timeout(seconds),
                    session.post(url, data=sent, allow_redirects=False) as response,
                ):
                    return await self._read(response)
        # None of the driver's errors is a cause of ours: they show the headers of the request.
        except TimeoutError:
            raise self._outage.of(f"does not answer within {seconds:g} s") from None
        except ClientError as cause:
            raise await self._not_answered(cause) from None

    async def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            with self._ctx.clock.outside():
                await session.close()

    def quoted(self, said: str) -> str:
        """Return what the server says without secrets, and no more of it than people read."""
        return quoted(said, self._ctx.redact)

    def stranger(self) -> BuildRefused:
        """Return what to raise when what is answered is not ClickHouse's."""
        return turned_away(
            f"{self.where} answers, and not as ClickHouse does",
            expected="the url of its HTTP interface, by default port 8123, or 8443 with TLS",
        )

    def _opened(self) -> ClientSession:
        """Return a session of the running loop. One connection carries one insert after the other."""
        self._session = ClientSession(
            connector=TCPConnector(
                limit=1, keepalive_timeout=self.limits.idle_seconds, ssl=self._tls or True
            ),
            headers=self._headers,
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None, sock_connect=None),  # the limits are ours
        )
        return self._session

    async def _read(self, response: ClientResponse) -> bytes:
        """Return the body of an answer that is a success."""
        self._is_known = True
        code = response.headers.get(CODE_HEADER)
        if response.status == 200 and code is None:
            body = await response.read()
            self._outage.over()
            return body
        said = await _beginning(response, self.limits.error_bytes)
        self._outage.over()
        if 300 <= response.status < 400:
            raise self._redirection(response)
        raise answer(response.status, code, said.decode("utf-8", "replace"))

    def _redirection(self, response: ClientResponse) -> BuildRefused:
        target = self.quoted(response.headers.get("Location", ""))
        return turned_away(
            f"{self.where} answers with a redirect to '{target}'",
            expected="the url of the server itself: rows and credentials are not sent elsewhere",
        )

    async def _not_answered(self, cause: Exception) -> Exception:
        """Return what to raise for a request without an answer."""
        if isinstance(cause, ClientConnectorCertificateError | ClientSSLError):
            told = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None)
            if isinstance(told, ssl.SSLError) and not isinstance(told, ssl.SSLEOFError):
                return turned_away(handshake_fault(self.where, told))
        elif isinstance(cause, ClientConnectorError):
            return self._outage.of(f"does not answer: {unanswered(cause.os_error)}")
        if not self._is_known and (fault := await self._plaintext_fault()):
            return turned_away(fault)
        if isinstance(cause, ClientResponseError):
            return self.stranger()
        return ConnectionLost(str(self._outage.of("closed the connection")))

    async def _plaintext_fault(self) -> str | None:
        """Return that the server speaks TLS, if it does: then it hangs up on whoever does not."""
        if self._tls is not None:
            return None
        with self._ctx.clock.outside():
            return await tls_fault(self._host, self._port, None, self._ctx.clock)


async def _beginning(response: ClientResponse, most: int) -> bytes:
    """Return the body of an answer, cut after so many bytes."""
    read = bytearray()
    async for piece in response.content.iter_any():
        read += piece
        if len(read) > most:
            break
    return bytes(read[:most])
