"""One request to an ASGI application, message by message: for streams and for half a body."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from headrace.web.asgi import Asgi, AsgiMessage


class Exchange:
    """Sends what it is told to, keeps what comes back, and knows whether anybody asked for a body."""

    def __init__(
        self,
        application: Asgi,
        method: str,
        path: str,
        *,
        headers: Iterable[tuple[bytes, bytes]] = (),
        body: Iterable[bytes] = (b"",),
        query: bytes = b"",
        leaves: bool = False,
        client: tuple[str, int] | None = ("192.0.2.1", 4711),
    ) -> None:
        self._application = application
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": list(headers),
            "client": client,
        }
        self._received = asyncio.Queue[AsgiMessage]()
        chunks = list(body)
        for number, chunk in enumerate(chunks, start=1):
            more = number < len(chunks) or leaves
            self._received.put_nowait({"type": "http.request", "body": chunk, "more_body": more})
        if leaves:
            self.leave()
        self.sent = asyncio.Queue[AsgiMessage]()
        self.messages: list[AsgiMessage] = []
        self.was_asked_for_body = False

    def leave(self) -> None:
        """Close the connection."""
        self._received.put_nowait({"type": "http.disconnect"})

    async def run(self) -> None:
        """Have the application answer."""
        await self._application(self._scope, self._receive, self._send)

    async def next_body(self) -> bytes:
        """Wait for the next part of the body."""
        while (message := await self.sent.get())["type"] != "http.response.body":
            pass
        body: bytes = message.get("body", b"")
        return body

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        pairs = self.messages[0]["headers"]
        return {name.decode(): value.decode() for name, value in pairs}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def unread(self) -> int:
        """How many parts of the body nobody has asked for."""
        return self._received.qsize()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def _receive(self) -> AsgiMessage:
        self.was_asked_for_body = True
        return await self._received.get()

    async def _send(self, message: AsgiMessage) -> None:
        self.messages.append(message)
        self.sent.put_nowait(message)
