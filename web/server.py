"""The HTTP server: uvicorn, with its end in our hands.

On SIGTERM uvicorn waits for open responses before anything else, and an event stream never ends by
itself. So the streams are ended first, and a stream whose client no longer reads is cut off.

Source: https://www.uvicorn.org/server-behavior/#graceful-process-shutdown
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headrace.compiler.clock import Clock
from headrace.web.asgi import Asgi
from headrace.web.errors import api_error
from headrace.web.events import EVENTS_PATH

REQUEST_SECONDS = 10
"""What requests get to finish, once no new ones are accepted."""
STREAM_SECONDS = 1.0
"""What event streams get to take their end."""
IDLE_SECONDS = 75
"""How long a connection may idle. Longer than proxies and clients keep theirs, so that it is they
who close it: a post that crosses our own close would be lost without an answer."""
LOOK_SECONDS = 15
LOOKS = 5
"""After so many looks in vain, a request that does not arrive is dropped."""
MOST_HEAD_BYTES = 64 * 1024
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a request with everything: several times those of a body, for its chunks."""


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds, and with the refusal of what is not HTTP in the shape of all others.

    The parser takes a head, or what follows a body, however long it is, and waits for it for ever.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._answering: RequestResponseCycle | None = None
        self._counted: object = None
        self._bytes = 0
        self._seen: object = None
        self._looks = 0

    def data_received(self, data: bytes) -> None:
        """Read on, within bounds. A request that is here as a whole is not counted."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.scope is not self.scope:
            self._count(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered, also when others have arrived behind it."""
        super().connection_lost(exc)
        if (cycle := self._answering) is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def send_400_response(self, msg: str) -> None:
        """Answer and close."""
        self._refuse(b"400 Bad Request", f"the request is not HTTP: {msg}")

    @property
    def is_streaming(self) -> bool:
        """Whether it is answering with an event stream."""
        cycle = self._answering
        return cycle is not None and cycle.scope["path"] == EVENTS_PATH

    def is_stuck(self) -> bool:
        """Look again; whether a head is not complete, or a body no longer, after so many looks."""
        cycle = self.cycle
        waits: tuple[int, int] | None = None
        if cycle is None or cycle.scope is not self.scope:
            waits = (id(self.scope), 0)
        elif cycle.more_body and not cycle.response_complete:
            waits = (id(self.scope), self._bytes)
        self._looks = self._looks + 1 if waits is not None and waits == self._seen else 0
        self._seen = waits
        return self._looks >= LOOKS

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _count(self, size: int) -> None:
        """Count what has come of a request since the packet it began in, which may hold others."""
        if self._counted is not self.scope:
            self._counted, self._bytes = self.scope, 0
            return
        self._bytes += size
        if self._bytes > MOST_BYTES:
            self.transport.abort()
        elif self._bytes > MOST_HEAD_BYTES and (
            self.cycle is None or self.cycle.scope is not self.scope
        ):
            self._refuse(
                b"431 Request Header Fields Too Large",
                f"the head of a request has at most {MOST_HEAD_BYTES} bytes",
            )

    def _refuse(self, status: bytes, text: str) -> None:
        body = api_error(text)
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n" % status
        self.transport.write(
            b"%bcontent-length: %d\r\nconnection: close\r\n\r\n%b" % (head, len(body), body)
        )
        self.transport.close()


class Server(uvicorn.Server):
    """Serves one application on one socket until `stop` is called."""

    def __init__(
        self,
        application: Asgi,
        clock: Clock,
        *,
        on_ready: Callable[[], None],
        on_stopping: Callable[[], None],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=Protocol,
                ws="none",
                lifespan="off",  # pipelines are started and ended around the server
                interface="asgi3",
                log_config=None,
                access_log=False,  # it costs more than what it logs
                server_header=False,
                # `remote_addr` is the peer we see. Who sent a request on behalf of whom is a claim
                # that any client can make; a proxy's own headers are not read.
                proxy_headers=False,
                timeout_keep_alive=IDLE_SECONDS,
                # Not what ends a request: it cancels, and logs a traceback for each. Those that are
                # cut off end by themselves before it.
                timeout_graceful_shutdown=REQUEST_SECONDS + 1,
            )
        )
        self._clock = clock
        self._on_ready, self._on_stopping = on_ready, on_stopping
        self._look: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """Stop accepting, let requests finish, return from `serve`."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: they are the process's, and uvicorn would raise them again."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept."""
        await super().startup(sockets)
        self._look_after_requests()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams, then everything else."""
        self._on_stopping()
        if self._look is not None:
            self._look.cancel()
        later = [
            self._clock.call_later(STREAM_SECONDS, self._cut_off_streams),
            self._clock.call_later(REQUEST_SECONDS, self._cut_off_all),
        ]
        await super().shutdown(sockets)
        for cut_off in later:
            cut_off.cancel()

    def _look_after_requests(self) -> None:
        """Drop the requests that do not arrive, now and again."""
        for connection in tuple(self.server_state.connections):
            if isinstance(connection, Protocol) and connection.is_stuck():
                connection.transport.abort()
        self._look = self._clock.call_later(LOOK_SECONDS, self._look_after_requests)

    def _cut_off_streams(self) -> None:
        """Drop the streams that are still open: nobody takes what was sent."""
        for connection in self.server_state.connections:
            if isinstance(connection, Protocol) and connection.is_streaming:
                connection.transport.abort()

    def _cut_off_all(self) -> None:
        """Drop the requests that are still open: a client that does not go on has posted nothing."""
        for connection in self.server_state.connections:
            if isinstance(connection, Protocol):
                connection.transport.abort()
