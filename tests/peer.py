"""A real HTTP server on a free port of this machine, for tests of what makes requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDictProxy

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Received:
    """One request as it arrived."""

    method: str
    path: str
    headers: CIMultiDictProxy[str]
    body: bytes
    port: int
    """The client's: the same for all requests of one connection."""


class Peer:
    """Keeps what it is sent; answers what it is told to, and then 200."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[Answer] = []
        self.origin = ""

    def url(self, path: str = "/in", user: str = "") -> str:
        """Return an address of this server."""
        return self.origin.replace("://", f"://{user}@" if user else "://") + path

    def bodies(self) -> list[bytes]:
        """Return the bodies received, in order."""
        return [request.body for request in self.received]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Keep the request and give the next answer."""
        assert request.transport is not None
        _, port, *_ = request.transport.get_extra_info("peername")
        body = await request.read()
        self.received.append(Received(request.method, request.path_qs, request.headers, body, port))
        return await self.answers.pop(0)(request) if self.answers else web.Response()


def replies(
    body: bytes | str = b"",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    reason: str | None = None,
) -> Answer:
    """Return an answer that is the same for every request."""
    octets = body.encode() if isinstance(body, str) else body

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=octets, status=status, headers=headers, reason=reason)

    return answer


@asynccontextmanager
async def peer() -> AsyncIterator[Peer]:
    """Run a server for as long as the block lasts."""
    it = Peer()
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", it.answer)
    server = TestServer(application)
    await server.start_server(shutdown_timeout=0.1)
    it.origin = str(server.make_url("")).rstrip("/")
    try:
        yield it
    finally:
        await server.close()
