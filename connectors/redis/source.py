"""The input of Redis: a subscription, as long as its connection lives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from headrace.compiler.edges import Arrival, Source
from headrace.connectors.redis import RedisInput
from headrace.connectors.redis.connection import ErrorReply, RedisClient, RedisServer


class RedisSource(Source):
    """A subscription, as long as its connection lives."""

    connects = True

    def __init__(self, config: RedisInput, server: RedisServer) -> None:
        self.max_batch = config.max_batch
        self._config, self._server = config, server
        self._client: RedisClient | None = None
        self._is_stopping = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Subscribe, then yield what has arrived until the connection is lost.

        What is not asked for stays at the server.
        """
        client = self._client = await self._server.connect()
        try:
            confirmed = await client.ask("SUBSCRIBE", self._config.channel)
            if isinstance(confirmed, ErrorReply):
                raise self._server.refusal(confirmed)
            yield ()
            while True:
                yield () if self._is_stopping else await client.arrivals()
        finally:
            self._client = None
            await client.close()

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where it came from."""
        return {"connection": self._config.connection, "channel": self._config.channel}

    def stop(self) -> bool:
        """Hand out nothing more."""
        self._is_stopping = True
        if self._client is not None:
            self._client.wake()
        return False
