"""What a limit does with the body of a post: it decodes and appends, runs the tight loop, or a script.

`bench/bareprotocol.py` gives it bodies. Around what inserts (`bench/inserting.py`) there is a bare ASGI
app, which answers what the product answers, from the same server with the same settings.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from bench import limits
from bench.load import HOST
from headrace.compiler.clock import Clock
from headrace.web.commands.collecting import collect_less
from headrace.web.process.server import Server

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

MOST_HELD = 1024
MOST_WAITING = 64 * 1024


def appending() -> Callable[[bytes], int]:
    """Return what decodes a body and appends it, and says how many messages it had."""
    held: list[Any] = []

    def take(body: bytes) -> int:
        batch = limits.decode(body)
        if batch.__class__ is not list:
            batch = [batch]
        held.append(batch)
        if len(held) > MOST_HELD:
            held.clear()
        return len(batch)

    return take


def reducing() -> Callable[[bytes], int]:
    """Return what runs the tight loop on a body and writes the lines to standard output."""
    waiting = bytearray()

    def take(body: bytes) -> int:
        nonlocal waiting
        batch = limits.decode(body)
        if batch.__class__ is not list:
            batch = [batch]
        waiting += limits.chain(batch)
        if len(waiting) > MOST_WAITING:
            sys.stdout.buffer.write(waiting)
            sys.stdout.buffer.flush()
            waiting.clear()
        return len(batch)

    return take


def scripting() -> Callable[[bytes], int]:
    """Return what runs a script on every message of a body."""
    run = limits.script_of_body(limits.SCRIPT)
    return lambda body: len(run(body))


def filtering(least: str, file: str) -> Callable[[bytes], int]:
    """Return what appends the messages of a body with a temperature above ``least`` to a file."""
    keep = limits.above(float(least))
    lines = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def take(body: bytes) -> int:
        batch = limits.decode(body)
        if batch.__class__ is not list:
            batch = [batch]
        if kept := keep(batch):
            os.write(lines, limits.encode_lines(kept))
        return len(batch)

    return take


KINDS: dict[str, Callable[..., Callable[[bytes], int]]] = {
    "append": appending,
    "reduce": reducing,
    "script": scripting,
    "filter": filtering,
}
"""What makes the function that takes bodies, of further arguments of the command line if it has any."""


def app(take: Callable[[bytes], int]) -> Any:
    """Return an app that gives each body to ``take``."""
    headers = [(b"content-type", b"application/json")]

    async def answer(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        event = await receive()
        body = event["body"] or b"[]"  # empty when it is asked whether it is there
        while event["more_body"]:
            event = await receive()
            body += event["body"]
        accepted = b'{"accepted":%d}' % take(body)
        length = (b"content-length", b"%d" % len(accepted))
        await send({"type": "http.response.start", "status": 202, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": accepted})

    return answer


async def serve(application: Any, port: int) -> None:
    """Serve until told to end, with the settings of the product."""
    loop = asyncio.get_running_loop()
    clock = Clock(loop)
    server = Server(application, clock, on_ready=collect_less, on_stopping=lambda: None)
    loop.add_signal_handler(signal.SIGTERM, server.stop)
    with socket.create_server((HOST, port)) as listener:
        await server.serve(sockets=[listener])
