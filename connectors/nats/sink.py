"""The output of NATS: batches published over one connection, and over a new one when that is over."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable, class_of
from headrace.compiler.largejson import in_slices
from headrace.connectors.nats.connection import NatsClient, NatsServers
from headrace.connectors.nats.natsfailures import FAILURES, TOO_LARGE
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
            raise Unreachable(str(cause), class_of(cause)) from cause
        most, too_large = client.driver.max_payload, dict[int, int]()
        check = _checking(most, too_large)
        if is_sliced:
            await in_slices(bodies, check, self._ctx.clock)
        else:
            check(bodies)
        if too_large:
            raise self._too_large(too_large, len(bodies), most, client.server.where)
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

    def _too_large(
        self, sizes: Mapping[int, int], count: int, most: int, where: str
    ) -> BatchFailed:
        """Return what to raise for messages that a server would hang up on; warn of the first of them.

        ``sizes`` are theirs by index, of a batch of so many.
        """
        index, size = next(iter(sizes.items()))
        self._ctx.warn_once(f"message {index + 1} of {count} has {size:,} bytes")
        takes = f"larger than the {most:,} bytes that {where} takes"
        return BatchFailed(
            f"a message is {takes}: nothing of the batch was sent",
            FAILURES.of(TOO_LARGE),
            refused={index: f"its {size:,} bytes are {takes}" for index, size in sizes.items()},
        )


def _checking(most: int, too_large: dict[int, int]) -> Callable[[list[bytes]], None]:
    """Return what notes the sizes of messages that have more bytes, by index.

    It is handed the messages of one batch in order.
    """
    indices = itertools.count()

    def check(bodies: list[bytes]) -> None:
        for body, index in zip(bodies, indices, strict=False):
            if len(body) > most:
                too_large[index] = len(body)

    return check
