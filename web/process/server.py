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
from functools import partial
from typing import Any, cast

import uvicorn

from headrace.compiler.clock import Clock
from headrace.web.asgi import Asgi
from headrace.web.process.connectionlimit import ConnectionLimit, room
from headrace.web.process.posts import PostAnswers
from headrace.web.process.protocol import Protocol
from headrace.web.resources.ingest import Ingest

REQUEST_SECONDS = 10
"""What requests get to finish, once no new ones are accepted."""
STREAM_SECONDS = 1.0
"""What event streams get to take their end."""
IDLE_SECONDS = 75
"""How long a connection may idle. Longer than proxies and clients keep theirs, so that it is they
who close it: a post that crosses our own close would be lost without an answer."""
LOOK_SECONDS = 15
"""Between looks at what is late (`LOOKS`)."""


class Server(uvicorn.Server):
    """Serves one application on one socket until `stop` is called."""

    def __init__(
        self,
        application: Asgi,
        clock: Clock,
        *,
        on_ready: Callable[[], None],
        on_stopping: Callable[[], None],
        ingest: Ingest | None = None,
    ) -> None:
        """Take what posts of messages are given to in the protocol; None: they go to the application."""
        posts = None if ingest is None else PostAnswers(ingest, clock)
        super().__init__(
            uvicorn.Config(
                application,
                http=cast(
                    Any,
                    partial(
                        Protocol, clock=clock, connection_limit=ConnectionLimit(room()), posts=posts
                    ),
                ),
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
            # Nobody takes what was sent; and a client that does not go on has posted nothing.
            self._clock.call_later(STREAM_SECONDS, partial(self._cut_off, Protocol.is_streaming)),
            self._clock.call_later(REQUEST_SECONDS, self._cut_off),
        ]
        await super().shutdown(sockets)
        for cut_off in later:
            cut_off.cancel()

    def _look_after_requests(self) -> None:
        """Drop the requests that do not arrive, now and again."""
        self._cut_off(Protocol.is_stuck)
        self._look = self._clock.call_later(LOOK_SECONDS, self._look_after_requests)

    def _cut_off(self, is_meant: Callable[[Protocol], bool] | None = None) -> None:
        """Drop those that are meant of the connections, or all of them."""
        for connection in tuple(self.server_state.connections):
            if isinstance(connection, Protocol) and (is_meant is None or is_meant(connection)):
                connection.transport.abort()
