"""The limit for posts: a bare protocol on httptools that gives each body to one function, and answers 202.

No bounds, no checks, one kind of request: what is left of a post when everything is left out that can
be. Run as a process of its own: ``python -m bench.bareprotocol PORT append|reduce|script|filter``.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import cast

import httptools
import uvloop

from bench.bare import KINDS
from bench.load import HOST
from headrace.web.commands.collecting import collect_less

_ANSWER = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class BareProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, take: Callable[[bytes], int]) -> None:
        self._take = take
        self._transport = asyncio.Transport()
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        """Gather a body."""
        self._body += part

    def on_message_complete(self) -> None:
        """Answer; a body is empty when it is asked whether anybody is there."""
        body, self._body = self._body or b"[]", b""
        accepted = b'{"accepted":%d}' % self._take(body)
        self._transport.write(_ANSWER % (len(accepted), accepted))


async def serve(take: Callable[[bytes], int], port: int) -> None:
    """Serve until told to end."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    server = await loop.create_server(lambda: BareProtocol(take), HOST, port)
    collect_less()
    await ended.wait()
    server.close()


def main(port: str, kind: str, *arguments: str) -> None:
    """Serve until told to end."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(KINDS[kind](*arguments), int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
