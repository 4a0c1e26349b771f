"""One connection: HTTP/1.1 as it is read, with bounds, from its first byte until it is closed.

What is not bounded, or read in another way than a proxy in front would read it, is what the parser
leaves open: heads without an end, bodies that never come, transfer codings, trailers, offers of another
protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headrace.compiler.clock import Clock
from headrace.web.apierror import api_error
from headrace.web.process.connectionlimit import LEAVING, ConnectionLimit, LimitedConnection
from headrace.web.process.framing import FEW_DIGITS, TELLING, head_without_upgrade, refused_framing
from headrace.web.process.lingering import Lingering
from headrace.web.process.posts import Post, PostAnswers
from headrace.web.process.postturns import PostTurns
from headrace.web.resources import STREAMS
from headrace.web.resources.events import EVENTS_PATH

LOOKS = 5
"""After so many looks in vain, a request that does not arrive is dropped, as is an answer that is
not taken. An event stream is not: who does not read it loses events (`runtime/monitoring/feed.py`)."""
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


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds, and with the refusal of what is not HTTP in the shape of all others.

    The parser takes a head, or what follows a body, however long it is, and waits for it for ever.
    """

    transport: Lingering

    def __init__(
        self,
        *arguments: Any,
        clock: Clock,
        connection_limit: ConnectionLimit | None = None,
        posts: PostAnswers | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(*arguments, **keywords)
        self._clock = clock
        self._connection_limit = connection_limit or ConnectionLimit()
        self._neighbours = cast(set[LimitedConnection], self.connections)
        self.turn = next(self._connection_limit.turns)
        self.held = 0
        self._answers = posts
        """How posts are answered here; None: like everything else."""
        self._post: Post | None = None
        """The post whose body is being read."""
        self.is_plain = True
        """Whether the head that is read says no more of its body than that it is not large."""
        self._idle_since = 0.0
        """When the last answer was given."""
        self._last_url = b""
        self._last_pipeline: str | None = None
        """What the last target was, and what it named."""
        self._unparsed = b""
        """What has come behind requests that wait, and is parsed when the last of them has its turn."""
        self._is_refused = False
        self._refusal: tuple[bytes, str] | None = None
        """What a request is refused with once those before it are answered."""
        self._answering: RequestResponseCycle | Post | None = None
        self._counted: object = None
        self._bytes = self._bytes_of_fields = 0
        self._has_body_come = False
        self._seen: object = None
        self._looks = 0

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

    def eof_received(self) -> bool:  # type: ignore[override]
        """Have a post answered that has come as a whole and waits, though nothing comes behind it.

        Whoever sends no more may still read: where this returns False, the connection is closed at once.
        """
        post = self._answering
        if not isinstance(post, Post) or not post.is_waiting or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered, also when others have arrived behind it."""
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:  # it would keep all of this for as long
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
        for cycle in (self.cycle, self._answering, *(each for each, _ in self.pipeline)):
            if isinstance(cycle, Post):
                cycle.drop()
        self._unparsed = b""
        self.transport.forget()
        self._connection_limit.release(self)
        self._drop_request()

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

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the parser takes what follows for another protocol.

        Raises:
            NotTaken: it is refused here. What the parser says of that comes too late to be told.
        """
        if not self.parser.should_upgrade():
            if self.transport.is_closing():
                raise NotTaken  # what was asked before was answered as the last
            version = self.parser.get_http_version()
            if not self.is_plain and (refused := refused_framing(self.headers, version)):
                self._refuse(*refused)
                raise NotTaken
            answers = self._answers
            pipeline = None if answers is None else self._posted_to(answers, version)
            if answers is not None and pipeline is not None:
                self._take_post(Post(self, answers, pipeline), answers.turns)
            else:
                self._make_scope()
                super().on_headers_complete()
                if not self.pipeline:  # else those before it are answered first
                    self._answering = self.cycle
            # What follows a body is no header: it must not change who asks, or for what.
            self.headers = []
        elif self.parser.get_method() == b"CONNECT":
            self._refuse(b"501 Not Implemented", "CONNECT: this is no proxy")
            raise NotTaken

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._has_body_come = True
        if (post := self._post) is None:
            super().on_body(body)
        elif not post.response_complete:
            post.add(body)

    def on_message_complete(self) -> None:
        """Take the end of a body; a request that was not begun to be answered has none."""
        if (post := self._post) is not None:
            self._post = None
            if not post.response_complete:
                post.complete()
                return
        elif self.parser.should_upgrade():
            return
        else:
            super().on_message_complete()
        if (
            cycle := self.cycle
        ).response_complete:  # its rest was dropped, and nothing more of it comes
            cycle.more_body = False
            if self.timeout_keep_alive_task is None:
                self._idle_until(self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        """Wait for the next request. What else has come with this one may still be waited for."""
        if self.held and not self.pipeline:
            self._connection_limit.release(self)
        self.turn = LEAVING if self.transport.is_lingering else next(self._connection_limit.turns)
        if self.pipeline and not self.transport.is_closing():
            self._answering, _ = self.pipeline[-1]
        super().on_response_complete()
        self._idle_since = self._clock.monotonic()
        if self._refusal is not None and not self._is_answering:
            self._say(*self._refusal)
        elif (self.pipeline or self._unparsed) and not self.transport.is_closing():
            self.flow.pause_reading()  # what is here comes first
            if not self.pipeline:
                self.loop.call_soon(self._parse_on)

    def on_post_answered(self, post: Post) -> None:
        """Wait for the next request, as `on_response_complete` does, at less cost where all is as usual."""
        if not post.keep_alive:
            self.transport.close()
        if (
            self.pipeline
            or self.flow.read_paused  # also where something is unparsed
            or not post.keep_alive
            or self._refusal is not None
            or self.timeout_keep_alive_task is None
        ):
            self.on_response_complete()
            return
        if self.held:
            self._connection_limit.release(self)
        self.turn = next(self._connection_limit.turns)
        self.server_state.total_requests += 1
        self._idle_since = self._clock.monotonic()

    def timeout_keep_alive_handler(self) -> None:
        """Close what has idled for so long.

        That the timer is not set anew for each request, but looks at what has come since, makes a post
        cheaper by a sixth.
        """
        self.timeout_keep_alive_task = None
        own = self._own
        if own is None or own.more_body or self._is_answering or self._unparsed:
            return  # the next answer sets it anew, or the end of a body that was refused
        left = self._idle_since + self.timeout_keep_alive - self._clock.monotonic()
        if left > 0:
            self._idle_until(left)
        else:
            super().timeout_keep_alive_handler()

    def _idle_until(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self._clock.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start what the answer to a request takes; a server that ends waits for it."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @property
    def is_awaited(self) -> bool:
        """Whether nobody is being answered: a request, or the rest of one, has to come first."""
        cycle = self._answering
        return self._is_refused or cycle is None or cycle.response_complete or cycle.more_body

    def is_streaming(self) -> bool:
        """Whether it is answering with a stream."""
        cycle = self._answering
        return cycle is not None and cycle.scope.get("path") in STREAMS

    def is_stuck(self) -> bool:
        """Look again; whether it is as it was, so many looks ago.

        That is a head that is not complete, a body that is no longer, an answer nobody reads on.
        """
        cycle = self.cycle
        waits: tuple[int, int] | None = None
        # Who does not read events on loses events, and takes nobody's place.
        is_listening = cycle is not None and cycle.scope.get("path") == EVENTS_PATH
        if (unread := self.transport.get_write_buffer_size()) and not is_listening:
            waits = (id(self._answering), -unread)
        elif not self._unparsed and (cycle is None or cycle.scope is not self.scope):
            waits = (id(self.scope), 0)
        elif cycle.more_body:  # whether or not it has been answered
            waits = (id(self.scope), self._bytes)
        self._looks = self._looks + 1 if waits is not None and waits == self._seen else 0
        self._seen = waits
        return self._looks >= LOOKS

    def _make_scope(self) -> None:
        """Make of the head that was read what an application of ASGI is told of it."""
        url, headers, expects, scope = self.url, self.headers, self.expect_100_continue, self.scope
        super().on_message_begin()
        scope.update(self.scope)
        scope["headers"] = headers
        self.url, self.headers, self.expect_100_continue, self.scope = url, headers, expects, scope

    def _posted_to(self, answers: PostAnswers, version: str) -> str | None:
        """Return the id of the pipeline that messages are posted to; None: it is another request."""
        if version != "1.1" or self.parser.get_method() != b"POST":
            return None
        if self.url != self._last_url:  # who posts again posts to the same
            self._last_url, self._last_pipeline = self.url, answers.pipeline_of(self.url)
        return self._last_pipeline

    def _take_post(self, post: Post, turns: PostTurns) -> None:
        """Begin to answer a post, unless there are others before it."""
        is_first = self.cycle is None or self.cycle.response_complete
        self._post, self.cycle = post, cast(RequestResponseCycle, post)
        if not is_first:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))
            return
        self._answering = self.cycle
        if self.flow.write_paused:
            self.start(post.run_asgi(self.app))
        else:
            turns.begin(post)

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
