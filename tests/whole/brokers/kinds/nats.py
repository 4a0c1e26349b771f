"""NATS: nothing is kept for anybody who is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, Error

from tests.services.authority import Authority
from tests.services.nats import Nats
from tests.services.server import Service
from tests.whole.brokers.kinds.kind import Channel, Json, Kind

_LIMIT = 5


class _Channel(Channel):
    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    async def send(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            await self._client.publish(self._name, payload)
        await self._client.flush(_LIMIT)
        if not self._client.is_connected:
            raise ConnectionClosedError


class NatsKind(Kind):
    """NATS."""

    name = "nats"
    place = "subject"
    lost = (Error, OSError)

    def server(self, folder: Path, **options: Any) -> Service:
        return Nats(folder, **options)

    def roomy(self, folder: Path) -> Service:
        return self.server(folder, extra=["max_payload: 20000000", "max_pending: 200000000"])

    def guarded(self, folder: Path, authority: Authority, user: str, password: str) -> Service:
        return Nats(folder, tls=authority, user=user, password=password)

    def connection(self, server: Any, *, user: str = "", password: str = "", **tls: Any) -> Json:
        login = f"{user}:{password}@" if user else ""
        return {"type": "nats", "urls": f"nats://{login}{server.address}", **tls}

    @asynccontextmanager
    async def dial(self, server: Any, place: str) -> AsyncIterator[Channel]:
        async with _connected(server) as (client, _):
            yield _Channel(client, place)

    async def listen(
        self, server: Any, place: str, heard: Callable[[], None]
    ) -> AsyncIterator[Sequence[bytes]]:
        async with _connected(server) as (client, arrivals):

            async def take(message: Msg) -> None:
                arrivals.put_nowait(message.data)

            await client.subscribe(place, cb=take, pending_msgs_limit=0, pending_bytes_limit=0)
            await client.flush(_LIMIT)
            heard()
            while (payload := await arrivals.get()) is not None:
                yield [payload]
        raise ConnectionClosedError


@asynccontextmanager
async def _connected(server: Any) -> AsyncIterator[tuple[Client, asyncio.Queue[bytes | None]]]:
    """Connect once; None in the queue says that the connection is lost."""
    arrivals: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def ended() -> None:
        arrivals.put_nowait(None)

    async def ignore(_: Exception) -> None:
        """Say nothing: who uses the connection is told."""

    client = await nats.connect(
        f"nats://{server.address}",
        allow_reconnect=False,
        max_reconnect_attempts=1,
        reconnect_time_wait=0,
        connect_timeout=_LIMIT,
        closed_cb=ended,
        error_cb=ignore,
    )
    try:
        yield client, arrivals
    finally:
        with suppress(Error, OSError):
            await client.close()
