"""What is dropped of what does not arrive: a connection, packet by packet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import pytest_asyncio
import uvicorn
from uvicorn.server import ServerState

from headrace.web.asgi import Message, Receive, Send, respond
from headrace.web.server import LOOKS, Protocol

HEAD = b"POST /in HTTP/1.1\r\nHost: x\r\n"


async def reading(scope: Message, receive: Receive, send: Send) -> None:
    """Read a body to its end and answer."""
    while (await receive()).get("more_body"):
        pass
    await respond(send, 200, b"{}")


class Wire(asyncio.Transport):
    """The transport of a connection to nowhere: keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_open = True

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_open = False

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


@pytest_asyncio.fixture
async def connection() -> Protocol:
    config = uvicorn.Config(reading, lifespan="off", log_config=None)
    config.load()
    protocol = Protocol(config, ServerState(), {})
    protocol.connection_made(Wire())
    return protocol


def looks_until_stuck(connection: Protocol) -> int:
    return next(look for look in range(3 * LOOKS) if connection.is_stuck())


@pytest.mark.parametrize(
    "begun",
    [b"", b"P", b"POST /in HTTP/1.1\r\nHost: ", HEAD, HEAD + b"Content-Length: 3\r\n\r\n1"],
)
async def test_a_request_that_does_not_arrive_is_stuck_at_last(
    connection: Protocol, begun: bytes
) -> None:
    if begun:
        connection.data_received(begun)

    assert looks_until_stuck(connection) == LOOKS


async def test_a_head_has_to_be_complete_in_time_and_a_body_only_to_go_on(
    connection: Protocol,
) -> None:
    connection.data_received(b"POST /in HTTP/1.1\r\n")
    heads = []
    for _ in range(LOOKS + 1):
        connection.data_received(b"X: x\r\n")
        heads.append(connection.is_stuck())
    connection.data_received(b"Content-Length: 1000\r\n\r\n")
    bodies = []
    for _ in range(3 * LOOKS):
        connection.data_received(b"1")
        bodies.append(connection.is_stuck())

    assert (heads[-1], any(bodies)) == (True, False)


async def test_what_has_arrived_is_never_stuck(connection: Protocol) -> None:
    connection.data_received(HEAD + b"Content-Length: 2\r\n\r\n{}")

    assert not any(connection.is_stuck() for _ in range(3 * LOOKS))


async def test_requests_that_come_in_one_packet_do_not_count_for_the_next(
    connection: Protocol,
) -> None:
    connection.data_received((HEAD + b"Content-Length: 2\r\n\r\n{}") * 5000 + HEAD)
    connection.data_received(b"Content-Length: 2\r\n\r\n{}")

    assert not connection.transport.is_closing()


async def test_after_a_body_no_more_follows_than_is_reasonable(connection: Protocol) -> None:
    aborted: list[bool] = []
    connection.transport.abort = lambda: aborted.append(True)  # type: ignore[method-assign]
    connection.data_received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ")

    for _ in range(65):
        connection.data_received(b"x" * 1024 * 1024)

    assert aborted
