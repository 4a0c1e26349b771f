"""The input of NATS: a subscription, and what it brought and nobody has read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Arrival
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.connectors.nats import NatsInput
from headrace.connectors.nats.connection import NatsClient, NatsMessage, NatsServers
from headrace.connectors.network.arrivals import Arrivals, PushedSource


class NatsSource(PushedSource):
    """A subscription for as long as its connection lives, and what it brought and nobody has read."""

    def __init__(self, config: NatsInput, servers: NatsServers, ctx: Context) -> None:
        super().__init__(config.max_batch)
        self._config, self._servers, self._ctx = config, servers, ctx
        self._bytes = 0
        self._was_connected = False
        ctx.expect_losses("dropped")

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Subscribe, and yield what arrives; when it is to stop, what has arrived by then."""
        arrivals = Arrivals[Arrival](self._servers.limits.waiting_messages)
        client = await self._subscribed(arrivals)
        try:
            self._arrivals, self._was_connected = arrivals, True
            yield ()
            while len(arrivals) or not self._is_stopping:
                taken = await arrivals.take()
                self._bytes = 0
                yield taken
        finally:
            self._arrivals = None
            await client.end()

    def describe(self, origin: NatsMessage) -> dict[str, Any]:
        """Return what an envelope shows of a message."""
        return {
            "connection": self._config.connection,
            "subject": origin.subject.decode(errors="replace"),
            "reply": origin.reply.decode(errors="replace") or None,
            "headers": _headers(origin.headers or b""),
        }

    async def _subscribed(self, arrivals: Arrivals[Arrival]) -> NatsClient:
        """Return a connection whose messages are put among the arrivals, while there is room."""
        try:
            client = await self._servers.connect(
                lambda client: arrivals.break_off(self._broken(client))
            )
            try:
                await client.listen(self._config.subject, self._taking(arrivals))
            except BaseException:
                await client.end()
                raise
        except Unreachable:
            if self._was_connected:
                raise self._gap() from None
            raise
        return client

    def _taking(self, arrivals: Arrivals[Arrival]) -> Callable[[NatsMessage], None]:
        """Return what takes a message, or counts it as dropped."""
        limits, put, lose_count = self._servers.limits, arrivals.put, self._ctx.lose_count
        dropped = (
            "dropped a message: they arrive faster than they are worked off, and"
            f" {limits.waiting_messages:,} of them or {limits.waiting_bytes >> 20} MiB wait already"
        )
        self._bytes = 0

        def take(message: NatsMessage) -> None:
            size = len(message.data)
            if self._is_stopping:
                return
            if self._bytes + size <= limits.waiting_bytes and put((message.data, message)):
                self._bytes += size
            else:
                lose_count(dropped, 1, "invalid", "dropped")

        return take

    def _broken(self, client: NatsClient) -> Exception:
        """Return what ended a life: what the server said, or the gap that comes now."""
        if client.denied:
            return BatchFailed(
                f"{client.server.where} does not permit it any more: {client.denied}"
            )
        if client.last_words:
            return Unreachable(f"{client.server.where} hung up: {client.last_words}")
        return self._gap()

    def _gap(self) -> Unreachable:
        """Return the one failure of an outage, however it is noticed, and however often."""
        return Unreachable(
            f"lost the connection to {self._servers.where}: what is published until it is back does"
            " not arrive"
        )


def _headers(raw: bytes) -> dict[str, list[str]]:
    """Return the values of each header; the line before them is a version, perhaps with a status."""
    found: dict[str, list[str]] = {}
    for line in raw.split(b"\r\n")[1:]:
        name, is_header, value = line.decode(errors="replace").partition(":")
        if is_header:
            found.setdefault(name.strip(), []).append(value.strip())
    return found
