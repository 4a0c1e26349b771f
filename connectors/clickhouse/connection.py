"""A ClickHouse server over its HTTP interface: asked, and what it answers when it says no, in words.

The client library is not used for that. It sends an insert a second time when the connection breaks,
which doubles rows; it follows redirects with the rows, takes a proxy from the environment, tells the
server the name of the system's user, and asks three times for settings and such before the first query.

The sentences of the server quote rows, queries and versions. In the text of a failure stand the code and
its name, and the column or constraint if one of ours is named; the sentence is for the log.

Source: https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
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
from headrace.compiler.component.failureclasses import FailureCode
from headrace.compiler.errors import BuildRefused, FailureClass, Unreachable
from headrace.compiler.httpbodies import SentBytes, SentPieces
from headrace.compiler.httpfailures import CONTENT_TOO_LARGE
from headrace.compiler.schema.urls import ParsedUrl
from headrace.connectors.clickhouse.errorcodes import (
    CHECKED_FIRST,
    CLICKHOUSE_FAILURES,
    OVERLOADED,
    PASSING_STATUSES,
    TOO_MANY_PARTITIONS,
    by_status,
)
from headrace.connectors.network.refusal import (
    CONNECT_SECONDS,
    MOST_SAID,
    Outage,
    quoted,
    turned_away,
    unanswered,
)
from headrace.connectors.network.tls import handshake_fault, tls_fault

LARGE = 1024 * 1024
"""Bytes above which a body is sent in pieces."""

CODE_HEADER = "X-ClickHouse-Exception-Code"

_MOST_READ = 4 * MOST_SAID
"""Characters of a sentence, and of the end of an answer, that are looked at: rows may stand there."""

_MOST_DIGITS = 9  # of a code: what has more is none
_CODE = re.compile(r"Code: (\d+)\. ")
_SENTENCE = re.compile(r"(?:Code: \d+\. |DB::\w+: )+(.*)")
_NAME = re.compile(r"\(([A-Z][A-Z0-9_]{2,})\)\s*+(?:\(version .*\)\s*)?$")
_NOISE = re.compile(
    # Of a run of blanks from its beginning only: from each of them it would be quadratic.
    r"(?:[.:]|(?<!\s))\s*+(?:\b[Ii]n scope\b.*|: ?[Ww]hile (?:executing|processing|reading)\b.*"
    r"|: \(in file/uri .*|\(version .*|\([A-Z][A-Z0-9_]{2,}\))\s*$"
)
"""What stands behind a sentence: queries, the part of the server that speaks, its version."""
_ELSEWHERE = re.compile(r"\bwhile pushing to view\b|\bReceived from \S+:\d+\b", re.IGNORECASE)
"""What is said of a failure that came when the table may have had its rows already: a materialized view, or
one of several servers that each get a part, has failed."""
_TOO_MANY_AT_ONCE = "Too many partitions for single INSERT block"
_CONSTRAINT = re.compile(r"Constraint `([^`]+)`")
_COLUMN = re.compile(r"\b(?:[Cc]olumn|key|name:) [`'\"]?(\w+)\b")


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


class NotAnswered(Unreachable):
    """There was no answer. Where something was sent, nobody knows whether the server has it."""

    def __init__(self, text: str, *, is_sent: bool) -> None:
        super().__init__(text)
        self.is_sent = is_sent


class ConnectionLost(NotAnswered):
    """The connection broke before there was an answer."""


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
            Unreachable: it does not answer; `NotAnswered` if it may have run the statement all the same.
        """
        if self._session is None:
            # Of the running loop. One connection carries one insert after the other.
            self._session = ClientSession(
                connector=TCPConnector(
                    limit=1, keepalive_timeout=self.limits.idle_seconds, ssl=self._tls or True
                ),
                headers=self._headers,
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=None, sock_connect=None),  # the limits are ours
            )
        seconds = seconds or self.limits.answer_seconds
        url = URL(self._url).with_query({"query": statement, **parameters})
        sent = SentBytes(body) if len(body) <= LARGE else SentPieces(body)
        clock = self._ctx.clock
        try:
            with clock.outside():
                async with (
                    clock.timeout(seconds),
                    self._session.post(url, data=sent, allow_redirects=False) as response,
                ):
                    return await self._read(response)
        # None of the driver's errors is a cause of ours: they show the headers of the request.
        except TimeoutError:
            told = self._outage.of(f"does not answer within {seconds:g} s")
            raise NotAnswered(str(told), is_sent=sent.is_begun) from None
        except ClientError as cause:
            raise await self._not_answered(cause, is_sent=sent.is_begun) from None

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

    async def _read(self, response: ClientResponse) -> bytes:
        """Return the body of an answer that is a success."""
        self._is_known = True
        code = response.headers.get(CODE_HEADER)
        if response.status == 200 and code is None:
            body = await response.read()
            self._outage.over()
            return body
        said, most = bytearray(), self.limits.error_bytes
        async for piece in response.content.iter_any():
            said += piece
            if len(said) > most:
                break
        self._outage.over()
        if 300 <= response.status < 400:
            target = self.quoted(response.headers.get("Location", ""))
            raise turned_away(
                f"{self.where} answers with a redirect to '{target}'",
                expected="the url of the server itself: rows and credentials are not sent elsewhere",
            )
        raise answer(response.status, code, said[:most].decode("utf-8", "replace"))

    async def _not_answered(self, cause: Exception, *, is_sent: bool) -> Exception:
        """Return what to raise for a request without an answer."""
        if isinstance(cause, ClientConnectorCertificateError | ClientSSLError):
            told = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None)
            if isinstance(told, ssl.SSLError) and not isinstance(told, ssl.SSLEOFError):
                return turned_away(handshake_fault(self.where, told))
        elif isinstance(cause, ClientConnectorError):
            return self._outage.of(f"does not answer: {unanswered(cause.os_error)}")
        if not self._is_known and self._tls is None:  # one that speaks TLS hangs up on who does not
            with self._ctx.clock.outside():
                fault = await tls_fault(self._host, self._port, None, self._ctx.clock)
            if fault:
                return turned_away(fault)
        if isinstance(cause, ClientResponseError):
            return self.stranger()
        return ConnectionLost(str(self._outage.of("closed the connection")), is_sent=is_sent)


@dataclass(eq=False)
class ErrorAnswer(Exception):
    """An answer that is no success: its HTTP status, and what ClickHouse says if it says anything."""

    status: int
    code: int | None
    name: str
    sentence: str
    is_elsewhere: bool = False
    """Whether it is of something that comes behind the table, which may have the rows."""

    @property
    def is_passing(self) -> bool:
        """Whether the answer may be another one in a while."""
        if self.code is None:
            return self.status in PASSING_STATUSES
        return self.code in OVERLOADED and not self._is_of_one_insert

    @property
    def failure(self) -> FailureClass:
        """The class of what was not done because of it."""
        if self.code is None:
            return CLICKHOUSE_FAILURES.of(*by_status(self.status, f"{self.status // 100}xx"))
        return CLICKHOUSE_FAILURES.of(self._known_as)

    @property
    def took_nothing(self) -> bool:
        """Whether it came before anything was taken of what was sent."""
        if self.code is None:
            return self.status == CONTENT_TOO_LARGE
        return self._known_as in CHECKED_FIRST and not self.is_elsewhere

    @property
    def _known_as(self) -> FailureCode | None:
        return TOO_MANY_PARTITIONS if self._is_of_one_insert else self.code

    @property
    def _is_of_one_insert(self) -> bool:
        return self.sentence.startswith(_TOO_MANY_AT_ONCE)

    @property
    def title(self) -> str:
        """Code and name, or the HTTP status: never anything of a query or of its rows."""
        if self.code is None:
            return f"HTTP status {self.status}"
        return f"Code {self.code} {self.name}".rstrip()

    @property
    def words(self) -> str:
        """What is said, its title first."""
        return f"{self.title}: {self.sentence}" if self.sentence else self.title

    def signature(self, columns: Collection[str]) -> str:
        """Return the title in quotes, and the constraint or which of the columns it is about."""
        said = f"'{self.title}'"
        if found := _CONSTRAINT.match(self.sentence):
            return f"{said} of the constraint '{found[1]}'"
        named = self.column(columns)
        return said if named is None else f"{said} of the column '{named}'"

    def column(self, columns: Collection[str]) -> str | None:
        """Return which of the columns it is about, if it names one."""
        return next((each for each in _COLUMN.findall(self.sentence) if each in columns), None)


def answer(status: int, code: str | None, body: str) -> ErrorAnswer:
    """Return what an answer says; ``code`` is that of its header."""
    found = _CODE.search(body)
    number = code if code is not None and code.isdecimal() else found[1] if found else None
    if number is None or len(number) > _MOST_DIGITS:
        return ErrorAnswer(status, None, "", "")
    name = _NAME.search(body[-_MOST_READ:])
    sentence = _SENTENCE.search(body)  # the first line of it: then come rows, or advice
    said = sentence[1][:_MOST_READ] if sentence else ""
    while (less := _NOISE.sub("", said)) != said:
        said = less
    said = said.strip().rstrip(".:")
    is_elsewhere = _ELSEWHERE.search(body) is not None
    return ErrorAnswer(status, int(number), name[1] if name else "", said, is_elsewhere)
