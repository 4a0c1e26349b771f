"""Posts of messages that are answered in the protocol, where they are read.

A post of one message costs less than the task, the scope and the awaits around an application of ASGI.
So a `Post` stands in the place of uvicorn's cycle of request and response: it gathers the body as the
parser hands it over, queues the messages, and writes the answer. What is promised of posts is
`web/resources/ingest.py`'s; the two ways differ in nothing that a client can see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.beingstored import BeingStored
from headrace.compiler.runtime.wayin import PostBody
from headrace.web import statuses
from headrace.web.apierror import api_error
from headrace.web.asgi import CLOSE, AsgiMessage, unless_gone
from headrace.web.endpoint import pattern
from headrace.web.engineprotocol import PostTaker
from headrace.web.process.postturns import PostTurns
from headrace.web.resources.ingest import (
    LARGEST,
    OPERATION,
    PATH,
    REFUSALS,
    Ingest,
    IngestResponse,
    PostRefused,
    origin_of,
    refusal_of,
    too_large,
)

if TYPE_CHECKING:
    from headrace.web.process.protocol import Protocol

_PATH = pattern(PATH)
_NOBODY = asyncio.Event()


class PostAnswers:
    """How the posts of one server are answered."""

    def __init__(self, ingest: Ingest, clock: Clock) -> None:
        self.ingest = ingest
        self.turns = PostTurns(clock)
        self._default_headers: object = None
        self._accepted: dict[int, bytes] = {}

    def pipeline_of(self, url: bytes) -> str | None:
        """Return the id in the target of a request, percent-encoded; None if it is no plain post."""
        parts = httptools.parse_url(url)
        match = None if parts.query else _PATH.fullmatch(parts.path or b"")
        return match and match[1].decode("latin-1")

    def accepted(self, count: int, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        """Return the whole answer to a post of so many messages; the server goes on to listen."""
        if default_headers is not self._default_headers:  # it is another second
            self._default_headers = default_headers
            self._accepted.clear()
        answer = self._accepted.get(count)
        if answer is None:
            answer = answered(202, encode(IngestResponse(count)), default_headers)
            if len(self._accepted) < 1024:
                self._accepted[count] = answer
        return answer


def answered(
    status: int, body: bytes, headers: list[tuple[bytes, bytes]], *more: tuple[bytes, bytes]
) -> bytes:
    """Return a whole JSON answer as it is written."""
    lines = [
        b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode()),
        *(b"%b: %b\r\n" % header for header in headers),
        b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body),
        *(b"%b: %b\r\n" % header for header in more),
    ]
    return b"".join([*lines, b"\r\n", body])


class Post:
    """One post, from the end of its head until it is answered, in the place of uvicorn's cycle.

    What has no underscore is what the server looks at or sets.
    """

    message_event = _NOBODY
    """Set when something has come or the client has left; most posts wait for neither."""
    more_body = True
    disconnected = response_started = response_complete = _expects_100 = False
    _body: PostBody = b""
    _way_in: PostTaker | None = None
    """Known from when its turn has come, which is another one where its end comes later."""
    _turn = -1

    def __init__(self, protocol: Protocol, answers: PostAnswers, pipeline: str) -> None:
        """Take whom it came from, and what is read there at the moment: its head."""
        self._protocol, self._answers, self.pipeline = protocol, answers, pipeline
        self._headers, self._is_plain = protocol.headers, protocol.is_plain
        self.scope = protocol.scope
        """Which request it is."""
        self.keep_alive: bool = protocol.parser.should_keep_alive()
        if protocol.expect_100_continue:
            self._expects_100 = True

    @property
    def is_waiting(self) -> bool:
        """Whether it has come as a whole, and its turn has not."""
        is_whole = not self.more_body and not self.response_complete
        return is_whole and self.message_event is _NOBODY  # what takes long waits for its client

    def begin(self) -> None:
        """Look at the head, now that those before it are answered, and at the body if it is here."""
        if self._way_in is not None:
            self._take()
            return
        protocol = self._protocol
        self._turn = self._answers.turns.number
        try:
            self._way_in = self._answers.ingest.admitted(
                self.pipeline, self._headers, is_plain=self._is_plain
            )
            if self._expects_100:
                protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if len(self._body) > LARGEST:
                raise too_large()
        except Exception as cause:
            self._refuse(cause)
        else:
            if not self.more_body:
                self._take()

    def add(self, part: bytes) -> None:
        """Take a part of the body."""
        body = self._body
        if not body:
            self._body = part
        elif len(body) <= LARGEST:
            if isinstance(body, bytes):
                self._body = body = bytearray(body)
            body += part
            if len(body) > LARGEST and self._way_in is not None:
                self._refuse(too_large())

    def complete(self) -> None:
        """Take the end of the body."""
        self.more_body = False
        if self._way_in is not None:
            turns = self._answers.turns
            if self._turn == turns.number:
                self._take()
            else:
                turns.begin(self)

    async def run_asgi(self, _app: Any) -> None:
        """Begin when those before it are answered, and the client reads its answers."""
        await self._protocol.flow.drain()
        if not self.disconnected:
            self._answers.turns.begin(self)

    async def receive(self) -> AsgiMessage:
        """Wait until the client has left, as an application does that has read the body."""
        while not self.disconnected:
            await self.message_event.wait()
            self.message_event.clear()
        return {"type": "http.disconnect"}

    def _take(self) -> None:
        way_in = self._way_in
        assert way_in is not None
        try:
            origin = None
            if way_in.wants_origin:
                origin = origin_of("POST", self._protocol.client, self._headers)
            taken = way_in.take(self._body, origin)
        except Exception as cause:
            self._refuse(cause)
        else:
            if way_in.is_behind:
                self._answers.turns.hold_back(self.pipeline)
            if isinstance(taken, int):
                self._accept(taken)
            elif isinstance(taken, BeingStored):
                taken.then(self._stored)
            else:
                self.message_event = asyncio.Event()
                self._protocol.start(self._wait(taken))

    def _stored(self, count: int, cause: Exception | None) -> None:
        """Answer a post that is stored, or that could not be."""
        if cause is None:
            self._accept(count)
        else:
            self._refuse(cause)

    async def _wait(self, taking: Awaitable[int]) -> None:
        """Answer when it is queued, which takes long; cancel that when the client has left."""
        try:
            count = await unless_gone(self.receive, taking)
        except Exception as cause:
            self._refuse(cause)
        else:
            if count is None:
                self.drop()
            else:
                self._accept(count)

    def _accept(self, count: int) -> None:
        protocol = self._protocol
        default_headers = protocol.server_state.default_headers
        if self.keep_alive:
            self._answer(self._answers.accepted(count, default_headers))
        else:
            body = encode(IngestResponse(count))
            self._answer(answered(202, body, default_headers, CLOSE))

    def _refuse(self, cause: Exception) -> None:
        if isinstance(cause, REFUSALS):
            cause = refusal_of(self._body, cause)
        headers: tuple[tuple[bytes, bytes], ...] = ()
        if isinstance(cause, PostRefused):
            status, body, headers = cause.status, api_error(str(cause)), cause.headers
        else:
            status, body = statuses.answer(cause, OPERATION)
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers = (*headers, CLOSE)
        default_headers = self._protocol.server_state.default_headers
        self._answer(answered(status, body, default_headers, *headers))

    def drop(self) -> None:
        """Keep no body any more: connections may lie about as garbage for a while."""
        self._body = b""

    def _answer(self, answer: bytes) -> None:
        self._body = b""
        if not self.disconnected:
            self._protocol.transport.write(answer)
            self.response_started = self.response_complete = True
            self._protocol.on_post_answered(self)
