"""One connection: whom each request is given to, in which order they are answered, how long it may idle.

`boundedreading.py` has what comes before: how the bytes are parsed, and bounded.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from headrace.web.process.boundedreading import BoundedReading, NotTaken
from headrace.web.process.connectionlimit import LEAVING
from headrace.web.process.framing import refused_framing
from headrace.web.process.posts import Post, PostAnswers
from headrace.web.process.postturns import PostTurns
from headrace.web.resources import STREAMS
from headrace.web.resources.events import EVENTS_PATH

LOOKS = 5
"""After so many looks in vain, a request that does not arrive is dropped, as is an answer that is
not taken. An event stream is not: who does not read it loses events (`runtime/monitoring/feed.py`)."""


class Protocol(BoundedReading):
    """HTTP/1.1 whose posts of messages are answered here, and all else by an application of ASGI."""

    def __init__(self, *arguments: Any, posts: PostAnswers | None = None, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._answers = posts
        """How posts are answered here; None: like everything else."""
        self._post: Post | None = None
        """The post whose body is being read."""
        self._idle_since = 0.0
        """When the last answer was given."""
        self._last_url = b""
        self._last_pipeline: str | None = None
        """What the last target was, and what it named."""
        self._seen: object = None
        self._looks = 0

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
        cycle = self.cycle
        if cycle.response_complete:  # its rest was dropped, and nothing more of it comes
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
