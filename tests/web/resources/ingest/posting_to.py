"""An engine with one way in that keeps what it is offered, and the two ways on which it is posted to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import Decoding
from headrace.compiler.runtime.wayin import LargePosts, WayIn
from headrace.web.app import Application
from headrace.web.process.connectionlimit import ConnectionLimit
from headrace.web.process.posts import PostAnswers
from headrace.web.process.protocol import Protocol
from headrace.web.resources.ingest import Ingest
from headrace.web.service import Service
from tests.web.exchange import Exchange
from tests.web.process.wires import House, standing, steps, wire_of

PATH = "/api/pipelines/p/messages"
PEER = ("192.0.2.1", 4711)

Fields = Iterable[tuple[bytes, bytes]]


class Asked:
    """An engine with one way in that keeps what it is offered."""

    wants_origin = True
    has_room = has_bytes = True
    is_behind = is_stopped = False
    needs: str | None = None
    keep = None

    def __init__(self) -> None:
        self.offered: list[tuple[list[Any], Any]] = []
        self.sizes: list[int] = []
        self.decoding = Decoding()
        self.large = LargePosts()

    def way_in(self, pipeline: str) -> WayIn:
        self.pipeline = pipeline
        return WayIn(pipeline, self, self.large, Clock(asyncio.get_running_loop()))

    def admits(self, headers: Any) -> bool:
        return self.needs is None or headers("x-key") == self.needs

    def has_room_for(self, size: int) -> bool:
        return self.has_bytes

    def offer(self, batch: list[Any], origin: Any, size: int = 0) -> bool:
        if self.has_room:
            self.offered.append((batch, origin))
            self.sizes.append(size)
        return self.has_room


class ToTheApplication:
    """Posts that an application of ASGI is asked to answer."""

    def __init__(self, service: Service) -> None:
        self._application = Application(service)

    def exchange(self, body: Iterable[bytes], *, path: str = PATH, **rest: Any) -> Exchange:
        """Return a post that is not sent yet."""
        return Exchange(self._application, "POST", path, body=body, **rest)


class ToTheProtocol:
    """Posts that are answered in the protocol, each over a connection of its own."""

    def __init__(self, service: Service) -> None:
        self._house = House(ConnectionLimit(), Application(service))
        self._posts = PostAnswers(Ingest(service), standing(Clock(asyncio.get_running_loop())))

    def exchange(self, body: Iterable[bytes], **rest: Any) -> OverAWire:
        """Return a post that is not sent yet."""
        return OverAWire(self._house.enter(self._posts), body, **rest)


class OverAWire:
    """One post over a connection, with what is asked of an `Exchange`."""

    def __init__(
        self,
        connection: Protocol,
        body: Iterable[bytes],
        *,
        path: str = PATH,
        headers: Fields = (),
        leaves: bool = False,
        client: tuple[str, int] | None = PEER,
    ) -> None:
        self._connection = connection
        connection.client = client
        parts = [*body]
        fields = [*headers]
        is_chunked = leaves or len(parts) != 1
        if is_chunked:
            fields.append((b"transfer-encoding", b"chunked"))
            parts = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part]
            if not leaves:
                parts.append(b"0\r\n\r\n")
        elif b"content-length" not in dict(fields):
            fields.append((b"content-length", b"%d" % len(parts[0])))
        lines = b"".join(b"%b: %b\r\n" % field for field in fields)
        self._head = b"POST %b HTTP/1.1\r\nhost: x\r\n%b\r\n" % (path.encode(), lines)
        self._parts = parts
        self._leaves = leaves
        self._is_here = True
        self.was_asked_for_body = False

    async def run(self) -> None:
        """Send it, and wait for the answer or until it has left."""
        self._connection.data_received(self._head)
        self.was_asked_for_body = not self.messages
        for part in self._parts:
            if not self._connection.transport.is_closing():
                self._connection.data_received(part)
        if self._leaves:
            self.leave()
        async with asyncio.timeout(30):
            while self._is_here and not self.messages:
                await steps(1)
        if self._is_here:
            self.leave()

    def leave(self) -> None:
        """Close the connection."""
        self._is_here = False
        self._connection.connection_lost(None)

    @property
    def messages(self) -> list[bytes]:
        """What was answered: head and body, or nothing."""
        written = wire_of(self._connection).written
        return written.split(b"\r\n\r\n", 1) if written else []

    @property
    def status(self) -> int:
        return int(self.messages[0].split()[1])

    @property
    def headers(self) -> dict[str, str]:
        _, *lines = self.messages[0].decode("latin-1").split("\r\n")
        return {name: value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def json(self) -> Any:
        return json.loads(self.messages[1])


Way = ToTheApplication | ToTheProtocol


async def post(way: Way, *body: bytes, **rest: Any) -> Exchange | OverAWire:
    """Post once, and wait for the answer."""
    exchange = way.exchange(body, **rest)
    await exchange.run()
    return exchange


LARGE_BODY = b"[" + b'{"n": [1.5, {"a": "b"}]},' * 20_000 + b"2]"
