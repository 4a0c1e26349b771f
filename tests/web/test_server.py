"""The HTTP server around the application: its refusals, and its end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.feed import Event
from headrace.web.app import Application
from headrace.web.server import REQUEST_SECONDS, STREAM_SECONDS, Server
from headrace.web.service import Service

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(service: Service, engine: Engine) -> AsyncIterator[tuple[Server, int]]:
    """Serve on a free port; wait for the end that the block asks for."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready = asyncio.Event()
    server = Server(Application(service), engine.clock, on_ready=ready.set, on_stopping=engine.hush)
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    await ready.wait()
    yield server, listener.getsockname()[1]
    server.stop()
    await running


@pytest.mark.parametrize(
    "nonsense", [b"nonsense\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nx\r\n\r\n"]
)
async def test_what_is_not_http_is_refused_like_everything_else(
    service, engine, nonsense: bytes
) -> None:
    async with serving(service, engine) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(nonsense)
        answer = await reader.read()
        writer.close()

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/json" in head
    assert json.loads(body) == {"error": "the request is not HTTP: Invalid HTTP request received."}


async def test_a_request_that_asks_for_another_protocol_is_answered_in_ours(
    service, engine
) -> None:
    async with serving(service, engine) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        )
        line = await reader.readline()
        writer.close()

    assert line == b"HTTP/1.1 200 OK\r\n"


async def test_the_end_waits_for_no_client_that_has_stopped_reading(service, engine) -> None:
    loop = asyncio.get_running_loop()
    async with serving(service, engine) as (server, port):
        client = socket.create_connection(("127.0.0.1", port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n")
        client.setblocking(False)
        await loop.sock_recv(client, 1)
        [connection] = server.server_state.connections
        while not connection.flow.write_paused:
            engine._feed.publish(Event(b"x" * 65536))
            await asyncio.sleep(0)
        began = loop.time()

    assert STREAM_SECONDS <= loop.time() - began < REQUEST_SECONDS
    client.close()
