"""Connections packet by packet: what is sent over one, and what serves it."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from headrace.compiler.clock import Clock
from headrace.web.asgi import Asgi, AsgiMessage, Receive, Send, respond
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.posts import PostAnswers
from headrace.web.process.protocol import Protocol

HEAD = b"POST /in HTTP/1.1\r\nHost: x\r\n"


async def reading(scope: AsgiMessage, receive: Receive, send: Send) -> None:
    """Read a body to its end and answer."""
    while (await receive()).get("more_body"):
        pass
    await respond(send, 200, b"{}")


async def refusing(scope: AsgiMessage, receive: Receive, send: Send) -> None:
    """Answer without a look at the body."""
    await respond(send, 404, b"{}")


class Wire(asyncio.Transport):
    """The transport of a connection to nowhere: keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.unread = 0
        self.is_open = True
        self.has_ended = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unread

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.is_open = False

    def is_closing(self) -> bool:
        return not self.is_open

    def write_eof(self) -> None:
        assert self.is_open
        self.has_ended = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class House:
    """A server as its connections see it: they share a state, and a limit of how many they are."""

    def __init__(self, connection_limit: ConnectionLimit, application: Asgi = reading) -> None:
        self._config = uvicorn.Config(application, lifespan="off", log_config=None)
        self._config.load()
        self._state = ServerState()
        self._connection_limit = connection_limit
        self._clock = Clock(asyncio.get_running_loop())

    def enter(self, posts: PostAnswers | None = None) -> Protocol:
        """Return a new connection, on which posts may be answered in the protocol."""
        protocol = Protocol(
            self._config,
            self._state,
            {},
            clock=self._clock,
            connection_limit=self._connection_limit,
            posts=posts,
        )
        protocol.connection_made(Wire())
        return protocol


def wire_of(connection: Protocol) -> Wire:
    wire = connection.transport.inner
    assert isinstance(wire, Wire)
    return wire


def open_ones(connections: list[Protocol]) -> list[int]:
    return [n for n, each in enumerate(connections) if not each.transport.is_closing()]


BODY = HEAD + b"Content-Length: 5000\r\n\r\n"


def send(connection: Protocol, size: int = 5000) -> None:
    """Send a request, its body of so many bytes in two pieces."""
    connection.data_received(HEAD + b"Content-Length: %d\r\n\r\n" % size)
    connection.data_received(b"x" * 1000)
    connection.data_received(b"x" * (size - 1000))


def looked_at(clock: Clock, seconds: float) -> Clock:
    """Return a clock that goes on by so much whenever it is looked at."""
    readings = count(0.0, seconds)
    clock.monotonic = lambda: next(readings)  # type: ignore[method-assign]
    return clock


def standing(clock: Clock) -> Clock:
    """Return a clock that stands: no turn ends."""
    return looked_at(clock, 0.0)


async def steps(number: int = 5) -> None:
    """Let what has been started go on."""
    for _ in range(number):
        await asyncio.sleep(0)


class Slow:
    """An application that reads bodies, and answers when it is told to."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Answer one request."""
        while (await receive()).get("more_body"):
            pass
        await self.may_answer.wait()
        await respond(send, 200, b"{}")
