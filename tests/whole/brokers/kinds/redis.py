"""Redis Pub/Sub: nothing is kept for anybody who is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis as Client
from redis.exceptions import ConnectionError, TimeoutError

from tests.services.authority import Authority
from tests.services.redis import Redis
from tests.services.server import Service
from tests.whole.brokers.kinds.kind import Channel, Json, Kind


class _Channel(Channel):
    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    async def send(self, payloads: Sequence[bytes]) -> None:
        async with self._client.pipeline(transaction=False) as pipeline:
            for payload in payloads:
                pipeline.publish(self._name, payload)
            await pipeline.execute()


class RedisKind(Kind):
    """Redis."""

    name = "redis"
    place = "channel"
    lost = (ConnectionError, TimeoutError, OSError)

    def server(self, folder: Path, **options: Any) -> Service:
        return Redis(folder, **options)

    def roomy(self, folder: Path) -> Service:
        return self.server(folder, extra=["client-output-buffer-limit pubsub 0 0 0"])

    def guarded(self, folder: Path, authority: Authority, user: str, password: str) -> Service:
        return Redis(folder, tls=authority, user=user, password=password)

    def connection(self, server: Any, *, user: str = "", password: str = "", **tls: Any) -> Json:
        login = f"{user}:{password}@" if user else ""
        return {"type": "redis", "url": f"redis://{login}{server.address}", **tls}

    @asynccontextmanager
    async def dial(self, server: Any, place: str) -> AsyncIterator[Channel]:
        async with Client.from_url(server.url) as client:
            yield _Channel(client, place)

    async def listen(
        self, server: Any, place: str, heard: Callable[[], None]
    ) -> AsyncIterator[Sequence[bytes]]:
        async with Client.from_url(server.url) as client, client.pubsub() as reader:
            await reader.subscribe(place)
            async for message in reader.listen():
                if message["type"] == "message":
                    yield [message["data"]]
                else:
                    heard()
