"""The output of NATS: batches published over one connection, and over a new one when that is over."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.compiler.largejson import in_slices
from headrace.connectors.nats.connection import NatsClient, NatsServers
from headrace.connectors.network.messageoutput import MessageBodies


class NatsSink(AwaitingSink):
    """Publishes over one connection, and over a new one when that is over."""

    def __init__(
        self, subject: str, servers: NatsServers, bodies: MessageBodies, ctx: Context
    ) -> None:
        self._subject, self._servers, self._ctx = subject, servers, ctx
        self._bodies = bodies
        self._client: NatsClient | None = None

    async def start(self) -> None:
        """Connect, so that a wrong credential is known now."""
        await self._connected()

    async def write(self, batch: Batch) -> None:
        """Publish all messages, then wait for the server's word on them."""
        is_sliced = is_large(batch)
        bodies = await self._bodies.of_any(batch)
        try:
            client = await self._connected()
        except BuildRefused as cause:  # it let us in before: worth waiting, as for any lost server
            raise Unreachable(str(cause)) from cause
        check = self._checking(len(bodies), client)
        if is_sliced:
            await in_slices(bodies, check, self._ctx.clock)
        else:
            check(bodies)
        try:
            await client.send(self._subject, bodies)
        except (Unreachable, asyncio.CancelledError):
            await self.finish()
            raise

    async def finish(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.end()

    async def _connected(self) -> NatsClient:
        if self._client is None or self._client.is_over:
            await self.finish()
            self._client = await self._servers.connect()
        return self._client

    def _checking(self, count: int, client: NatsClient) -> Callable[[list[bytes]], None]:
        """Return what raises `BatchFailed` for a message that the server would hang up on.

        It is handed the messages of one batch in order, so many in all.
        """
        most, places = client.driver.max_payload, itertools.count(1)

        def check(bodies: list[bytes]) -> None:
            for body, place in zip(bodies, places, strict=False):
                if len(body) > most:
                    self._ctx.warn_once(f"message {place} of {count} has {len(body):,} bytes")
                    raise BatchFailed(
                        f"a message is larger than the {most:,} bytes that {client.server.where}"
                        " takes: nothing of the batch was sent"
                    )

        return check
