"""The `opcua` input at work: one connection with its subscription after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Arrival
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.network.arrivals import Arrivals, PushedSource
from headrace.connectors.network.refusal import CONNECT_SECONDS, Outage
from headrace.connectors.opcua.browse import Browse
from headrace.connectors.opcua.connection import Limits, OpcuaClient
from headrace.connectors.opcua.login import OpcuaServer, ended, reason
from headrace.connectors.opcua.nodes import Node, NodeKey
from headrace.connectors.opcua.subscription import Subscription

if TYPE_CHECKING:
    from headrace.connectors.opcua import OpcuaInput

PATIENT_SECONDS = 30.0
"""How long connecting, browsing and subscribing may take when no pipeline waits for it to be built."""
MOST_WAITING = 10_000
"""Changes that may wait to be read into the pipeline."""
PORTION = 500
"""Of them that are handed over at once, so that the others still count as waiting."""
MOST_NAMED = 10
"""Nodes that a line of the log names."""
LOST = "BadConnectionClosed"
"""The status of every node when the connection is lost."""

DROPPED = (
    "dropped a change: they arrive faster than they are worked off, and of"
    f" {MOST_WAITING:,} that wait the oldest makes room for the newest"
)

DataChange = dict[str, Any]
"""A message of this input."""


class OpcuaSource(PushedSource):
    """A subscription for as long as its connection lives, and what it brought and nobody has read."""

    is_raw: ClassVar[bool] = False

    def __init__(
        self, config: OpcuaInput, server: OpcuaServer, ctx: Context, limits: Limits
    ) -> None:
        super().__init__(config.max_batch)
        self._config, self._server, self._ctx, self._limits = config, server, ctx, limits
        self._outage = Outage(server.where)
        self._seconds = CONNECT_SECONDS

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Subscribe, and yield the changes; when it is to stop, what has arrived by then.

        When the connection is lost, every node says so before that is raised.

        Raises:
            BuildRefused: the server says no.
            Unreachable: it does not answer, or not so that it could be read, or no more.
        """
        changes = Arrivals[DataChange](MOST_WAITING)
        client = OpcuaClient(self._server, self._limits)
        publishing: asyncio.Task[None] | None = None
        try:
            nodes, subscription = await self._subscribed(client, changes)
            publishing = asyncio.create_task(self._publish(subscription, changes))
            self._arrivals = changes
            yield ()
            try:
                while len(changes) or not self._is_stopping:
                    yield self._batches(await changes.take(PORTION))
            except Unreachable:
                yield self._batches(_without_value(nodes, LOST))
                raise
        finally:
            self._arrivals = None
            if publishing is not None:
                publishing.cancel()
            await client.end()

    async def _subscribed(
        self, client: OpcuaClient, changes: Arrivals[DataChange]
    ) -> tuple[list[Node], Subscription]:
        """Connect and subscribe; return the nodes that are watched, and what is heard of them."""
        seconds, self._seconds = self._seconds, PATIENT_SECONDS
        browse = self._config.browse

        def take(some: list[DataChange]) -> None:
            for _ in range(changes.put_newest(some)):
                self._ctx.skip(DROPPED)

        try:
            async with self._ctx.clock.within(seconds):
                await client.open(lambda cause: self._lost(changes, cause))
                nodes = {node.key: node for node in self._config.listed_nodes()}
                if browse is not None:
                    root = NodeKey.of(browse.root)
                    for node in await Browse(client).variables(root, browse.depth):
                        nodes.setdefault(node.key, node)
                wanted = list(nodes.values())
                subscription = Subscription(client, self._config, wanted, take)
                refused = await subscription.create()
        except BuildRefused:
            raise
        except Exception as cause:
            await client.end()
            refusal = self._server.refusal(cause) or await self._explained(cause)
            raise refusal or self._outage.of(reason(cause)) from None
        self._outage.over()
        for status, some in refused.items():
            self._tell(status, some)
            take(_without_value(some, status))
        without = {node.key for some in refused.values() for node in some}
        return [node for node in wanted if node.key not in without], subscription

    async def _publish(self, subscription: Subscription, changes: Arrivals[DataChange]) -> None:
        try:
            await subscription.publish()
        except Exception as cause:
            self._lost(changes, cause)

    def _lost(self, changes: Arrivals[DataChange], cause: Exception) -> None:
        changes.break_off(
            self._outage.of(f"{ended(cause)}: what changes until it is back does not arrive")
        )

    def _tell(self, status: str, refused: Sequence[Node]) -> None:
        names = ", ".join(f"'{node.text}'" for node in refused[:MOST_NAMED])
        more = len(refused) - MOST_NAMED
        self._ctx.warn_once(
            f"{self._server.where} refuses nodes ({status}): {names}"
            + (f" and {more:,} more" if more > 0 else "")
        )

    async def _explained(self, cause: Exception) -> BuildRefused | None:
        """Ask a server that just hung up, or said nothing clear, whether it has what we want."""
        if isinstance(cause, OSError) and not isinstance(cause, ConnectionError):
            return None
        try:
            async with self._ctx.clock.within(self._limits.explain_seconds):
                self._server.endpoint(await OpcuaClient(self._server, self._limits).endpoints())
        except BuildRefused as refused:
            return refused
        except Exception:  # it tells nothing: what it did before is what is known
            return None
        return None

    def _batches(self, changes: Sequence[DataChange]) -> list[Arrival]:
        most = self.max_batch
        return [
            (list(changes[start : start + most]), None) for start in range(0, len(changes), most)
        ]

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where it came from; the node is in the message itself."""
        return {"connection": self._config.connection}


def _without_value(nodes: Iterable[Node], status: str) -> list[DataChange]:
    return [
        {
            "node": node.text,
            "name": node.name,
            "value": None,
            "status": status,
            "source_timestamp": None,
            "server_timestamp": None,
        }
        for node in nodes
    ]
