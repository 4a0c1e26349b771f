"""What comes over one connection: HTTP/1.1 as it is parsed, a slice at a time and within bounds.

What is not bounded, or read in another way than a proxy in front would read it, is what the parser
leaves open: heads without an end, bodies that never come, transfer codings, trailers, offers of another
protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headrace.compiler.clock import Clock
from headrace.web.apierror import api_error
from headrace.web.process.connectionlimit import LEAVING, ConnectionLimit, LimitedConnection
from headrace.web.process.framing import FEW_DIGITS, TELLING, head_without_upgrade
from headrace.web.process.lingering import Lingering

if TYPE_CHECKING:
    from headrace.web.process.posts import Post

MOST_HEAD_BYTES = 64 * 1024
"""Bytes of a head, or of what stands in a body in chunks and is not body: the parser copies all of a field
for each part of it that comes."""
SMALL = 4096
"""Bytes that are not counted when they are a request as a whole: 16 MiB of as many as may be here."""
_SLICE, _SLICE_OF_BODY = 4096, 16 * 1024
"""Bytes that are parsed at once: of requests, and where a body is being read."""
_MOST_UNPARSED = 64 * 1024
"""Bytes behind requests that wait from which on nothing more is read, whoever asks for it."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a request with everything: several times those of a body, for its chunks."""


class NotTaken(Exception):
    """A request is refused by its head: the parser is to read no further."""


class _Flow(FlowControl):
    """Reads on for whoever asks, unless enough lies here unparsed.

    uvicorn reads on whenever an application receives, to learn that the client has left.
    """

    def __init__(self, transport: asyncio.Transport, has_enough: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._has_enough = has_enough

    def resume_reading(self) -> None:
        """Read on; what is put off is parsed first, and then this is asked again (`_parse_on`)."""
        if self.read_paused and not self._has_enough():
            super().resume_reading()


class BoundedReading(HttpToolsProtocol):
    """HTTP/1.1 that is parsed with bounds, and the refusal of what is not HTTP in the shape of all others.

    The parser takes a head, or what follows a body, however long it is, and waits for it for ever. Of
    answers this knows which one is under way, and that some wait behind it.
    """

    transport: Lingering

    def __init__(
        self,
        *arguments: Any,
        clock: Clock,
        connection_limit: ConnectionLimit | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(*arguments, **keywords)
        self._clock = clock
        self._connection_limit = connection_limit or ConnectionLimit()
        self._neighbours = cast(set[LimitedConnection], self.connections)
        self.turn = next(self._connection_limit.turns)
        self.held = 0
        self.is_plain = True
        """Whether the head that is read says no more of its body than that it is not large."""
        self._unparsed = b""
        """What has come behind requests that wait, and is parsed when the last of them has its turn."""
        self._is_refused = False
        self._refusal: tuple[bytes, str] | None = None
        """What a request is refused with once those before it are answered."""
        self._answering: RequestResponseCycle | Post | None = None
        self._counted: object = None
        self._bytes = self._bytes_of_fields = 0
        self._has_body_come = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room."""
        super().connection_made(Lingering(transport, self._clock, self._has_more))
        self.flow = _Flow(self.transport, lambda: len(self._unparsed) > _MOST_UNPARSED)
        if not self._connection_limit.admits(self, self._neighbours):
            self._answer(b"503 Service Unavailable", "the server has no room for more connections")
            self.transport.close()  # at once: to wait for it there is no room either

    def data_received(self, data: bytes) -> None:
        """Read on, a slice at a time, unless nothing more is read."""
        if self.transport.is_lingering:
            self.transport.drop(len(data))
            return
        if self._refusal is not None:
            self.flow.pause_reading()  # nothing is read behind what is refused
            return
        if self._unparsed:
            self._put_off(data)
        elif len(data) <= _SLICE:
            self._parse(data)
        else:
            self._parse_in_slices(data)

    def on_message_begin(self) -> None:
        """Begin to read a head. What an application of ASGI is told of it is made when one is asked."""
        self.url, self.expect_100_continue = b"", False
        self.headers = []
        self.scope = {}  # type: ignore[typeddict-item]
        self.is_plain = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one line of a head, and whether it says what most posts do not."""
        name = name.lower()
        if name in TELLING and (name != b"content-length" or len(value) > FEW_DIGITS):
            self.is_plain = False
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
        self.headers.append((name, value))

    @property
    def is_awaited(self) -> bool:
        """Whether nobody is being answered: a request, or the rest of one, has to come first."""
        cycle = self._answering
        return self._is_refused or cycle is None or cycle.response_complete or cycle.more_body

    def _make_scope(self) -> None:
        """Make of the head that was read what an application of ASGI is told of it."""
        url, headers, expects, scope = self.url, self.headers, self.expect_100_continue, self.scope
        super().on_message_begin()
        scope.update(self.scope)
        scope["headers"] = headers
        self.url, self.headers, self.expect_100_continue, self.scope = url, headers, expects, scope

    def _parse_in_slices(self, data: bytes) -> None:
        """Parse until requests wait for others: however much has come, that does not take long.

        A packet may hold thousands of requests, and so may those of all other connections.
        """
        start, size = 0, _SLICE
        while start < len(data):
            if self.pipeline:
                self._put_off(data[start:])
                return
            self._parse(data[start : start + size])
            if self._has_refusal() or self.transport.is_closing():
                return
            start += size
            is_body = self.cycle is not None and self.cycle.more_body
            size = _SLICE_OF_BODY if is_body else _SLICE

    def _put_off(self, data: bytes) -> None:
        self._unparsed += data
        self.flow.pause_reading()
        self._hold(len(data))

    def _parse_on(self) -> None:
        """Parse what was put off, now that nobody waits any more."""
        if self._unparsed and not self.pipeline:
            data, self._unparsed = self._unparsed, b""
            self._connection_limit.give_back(self, len(data))
            if not self.transport.is_closing():
                self._parse_in_slices(data)
                if not self.pipeline and not self._has_refusal():
                    self.flow.resume_reading()

    def _parse(self, data: bytes) -> None:
        """Parse within bounds. A small request that is here as a whole is not counted."""
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserUpgrade, httptools.HttpParserError) as cause:
            self._parse_what_is_unusual(data, cause)
        cycle = self.cycle
        if self._refusal is not None:
            return
        if cycle is None or cycle.more_body or cycle.scope is not self.scope:
            self._count(len(data))
        elif self.held or len(data) > SMALL:
            self._hold(len(data))

    def _parse_what_is_unusual(self, data: bytes, cause: Exception) -> None:
        """Parse on behind the offer of another protocol; refuse what is not HTTP."""
        if not isinstance(cause, httptools.HttpParserUpgrade):
            self._refuse(b"400 Bad Request", f"the request is not HTTP: {cause}")
        elif not self.transport.is_closing():
            method, version = self.parser.get_method(), self.parser.get_http_version()
            head = head_without_upgrade(method, self.url, version, self.headers)
            rest = head + data[cause.args[0] :]
            # Another one: to this one, a request that also ends the connection is the last.
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            try:
                self.parser.feed_data(rest)
            except (httptools.HttpParserUpgrade, httptools.HttpParserError) as another:
                self._parse_what_is_unusual(rest, another)

    def _count(self, size: int) -> None:
        """Count what has come of a request since the packet it began in, which may hold others."""
        if self._counted is not self.scope:
            self._counted, self._bytes, self._bytes_of_fields = self.scope, 0, 0
        else:
            self._bytes += size
            self._bytes_of_fields = 0 if self._has_body_come else self._bytes_of_fields + size
        self._has_body_come = False
        self._hold(size)
        if self._bytes > MOST_BYTES:
            self.transport.abort()
        elif self._bytes_of_fields > MOST_HEAD_BYTES:
            part = "head" if self._own is None else "trailer"
            self._refuse(
                b"431 Request Header Fields Too Large",
                f"the {part} of a request has at most {MOST_HEAD_BYTES} bytes",
            )

    def _hold(self, size: int) -> None:
        """Count what has come and is kept until it is answered. Of what is answered nothing is kept."""
        own, cycle = self._own, self.cycle
        if own is not None and own.response_complete:
            return
        if not self._connection_limit.hold(self, size, self._neighbours):
            # Behind others it would be kept until they are answered, and there is no room for that.
            is_first = own is self._answering or not self._is_answering
            if is_first and (cycle is None or not cycle.response_started):
                self._refuse(
                    b"503 Service Unavailable",
                    "the server has no room for more requests: try again",
                )
            else:
                self.transport.abort()

    def _has_more(self) -> bool:
        """Whether the client may still be sending, or has sent, what is not read."""
        has_body = self.cycle is not None and self.cycle.more_body
        is_left_unread = self.flow.read_paused or bool(self._unparsed)
        return self._is_refused or self._refusal is not None or has_body or is_left_unread

    @property
    def _own(self) -> RequestResponseCycle | None:
        """What answers the request that is being read; None while its head is."""
        return self.cycle if self.cycle is not None and self.cycle.scope is self.scope else None

    @property
    def _is_answering(self) -> bool:
        return self._answering is not None and not self._answering.response_complete

    def _has_refusal(self) -> bool:
        return self._refusal is not None

    def _refuse(self, status: bytes, text: str) -> None:
        """Answer in place of whoever would have, after all that was asked before; read no further.

        Answers come in the order of the requests: the client would take this one for that of another.

        Source: RFC 9112, 9.3.2
        """
        if self.transport.is_closing() or self._refusal is not None:
            return
        own = self._own
        if own is not None and own is not self._answering:
            self.pipeline.popleft()  # it waits for its turn, the last of them
        if self._is_answering and own is not self._answering:
            self._refusal = status, text
            self.flow.pause_reading()
        else:
            self._say(status, text)

    def _say(self, status: bytes, text: str) -> None:
        """Answer the request that is refused, unless its answer has begun, and end the connection."""
        if self.transport.is_closing():
            return
        self._is_refused = True
        own = self._own
        if own is None or not own.response_started:
            self._answer(status, text)
        self._connection_limit.release(self)
        self._drop_request()
        self.transport.close()
        self.turn = LEAVING

    def _drop_request(self) -> None:
        """Tell a request that is being answered that its client is gone."""
        if (cycle := self._answering) is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def _answer(self, status: bytes, text: str) -> None:
        body = api_error(text)
        self.transport.write(
            b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%b" % (status, len(body), body)
        )
