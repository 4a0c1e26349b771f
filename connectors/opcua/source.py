"""The `opcua` input at work: one connection with its subscription after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.network.refusal import CONNECT_SECONDS, Outage
from headrace.connectors.opcua.browse import Browse
from headrace.connectors.opcua.connection import Limits, OpcuaClient
from headrace.connectors.opcua.login import Login, ended, reason
from headrace.connectors.opcua.nodes import Node
from headrace.connectors.opcua.security import OpcuaServer
from headrace.connectors.opcua.subscription import Subscription, Watching

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


class Changes:
    """A bounded list between the subscription and who reads: the oldest makes room for the newest."""

    def __init__(self, drop: Callable[[str], None]) -> None:
        self._drop = drop
        self._waiting = list[DataChange]()
        self._news = asyncio.Event()
        self._cause: Exception | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, changes: Sequence[DataChange]) -> None:
        """Add changes, unless it is broken off: what would still come is of a connection that is over."""
        if self._cause is not None:
            return
        self._waiting += changes
        excess = max(len(self._waiting) - MOST_WAITING, 0)
        del self._waiting[:excess]
        for _ in range(excess):
            self._drop(DROPPED)
        self._news.set()

    def break_off(self, cause: Exception) -> None:
        """Have `take` raise, when all that is here has been taken."""
        self._cause = self._cause or cause
        self._news.set()

    def wake(self) -> None:
        """Have a waiting `take` return, with nothing if there is nothing."""
        self._news.set()

    async def take(self) -> list[DataChange]:
        """Return the oldest changes, as soon as there are any."""
        if not self._waiting and self._cause is None:
            self._news.clear()
            await self._news.wait()
        taken = self._waiting[:PORTION]
        del self._waiting[:PORTION]
        if not taken and self._cause is not None:
            raise self._cause
        return taken


class OpcuaSource(Source):
    """A subscription for as long as its connection lives, and what it brought and nobody has read."""

    is_raw: ClassVar[bool] = False
    connects: ClassVar[bool] = True

    def __init__(
        self,
        server: OpcuaServer,
        watching: Watching,
        connection: str,
        max_batch: int,
        ctx: Context,
        limits: Limits,
    ) -> None:
        self.max_batch = max(max_batch, 1)
        self._login, self._watching, self._ctx = Login(server, ctx), watching, ctx
        self._connection, self._limits = connection, limits
        self._outage = Outage(server.where)
        self._changes: Changes | None = None
        self._seconds = CONNECT_SECONDS
        self._is_stopping = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Subscribe, and yield the changes; when it is to stop, what has arrived by then.

        When the connection is lost, every node says so before that is raised.

        Raises:
            BuildRefused: the server says no.
            Unreachable: it does not answer, or not so that it could be read, or no more.
        """
        changes = Changes(self._ctx.skip)
        client = OpcuaClient(self._login, self._limits)
        publishing: asyncio.Task[None] | None = None
        try:
            nodes, subscription = await self._subscribed(client, changes)
            publishing = asyncio.create_task(self._publish(subscription, changes))
            self._changes = changes
            yield ()
            try:
                while len(changes) or not self._is_stopping:
                    yield self._batches(await changes.take())
            except Unreachable:
                yield self._batches(list(_without_value(nodes, LOST)))
                raise
        finally:
            self._changes = None
            if publishing is not None:
                publishing.cancel()
            await client.end()

    async def _subscribed(
        self, client: OpcuaClient, changes: Changes
    ) -> tuple[list[Node], Subscription]:
        """Connect and subscribe; return the nodes that are watched, and what is heard of them."""
        seconds, self._seconds = self._seconds, PATIENT_SECONDS
        clock, watching = self._ctx.clock, self._watching
        try:
            with clock.outside():
                async with clock.timeout(seconds):
                    await client.open(lambda cause: self._lost(changes, cause))
                    nodes = {node.key: node for node in watching.nodes}
                    if watching.root is not None:
                        for node in await Browse(client).variables(watching.root, watching.depth):
                            nodes.setdefault(node.key, node)
                    wanted = list(nodes.values())
                    subscription = Subscription(client, watching, wanted, changes.put)
                    refused = await subscription.create()
        except BuildRefused:
            raise
        except Exception as cause:
            await client.end()
            refusal = self._login.refusal(cause) or await self._explained(cause)
            raise refusal or self._outage.of(reason(cause)) from None
        self._outage.over()
        for status, some in refused.items():
            self._tell(status, some)
            changes.put(list(_without_value(some, status)))
        without = {node.key for some in refused.values() for node in some}
        return [node for node in wanted if node.key not in without], subscription

    async def _publish(self, subscription: Subscription, changes: Changes) -> None:
        try:
            await subscription.publish()
        except Exception as cause:
            self._lost(changes, cause)

    def _lost(self, changes: Changes, cause: Exception) -> None:
        changes.break_off(
            self._outage.of(f"{ended(cause)}: what changes until it is back does not arrive")
        )

    def _tell(self, status: str, refused: Sequence[Node]) -> None:
        names = ", ".join(f"'{node.text}'" for node in refused[:MOST_NAMED])
        more = len(refused) - MOST_NAMED
        self._ctx.warn_once(
            f"{self._login.where} refuses nodes ({status}): {names}"
            + (f" and {more:,} more" if more > 0 else "")
        )

    async def _explained(self, cause: Exception) -> BuildRefused | None:
        """Ask a server that just hung up, or said nothing clear, whether it has what we want."""
        if isinstance(cause, OSError) and not isinstance(cause, ConnectionError):
            return None
        clock = self._ctx.clock
        try:
            with clock.outside():
                async with clock.timeout(self._limits.explain_seconds):
                    self._login.endpoint(await OpcuaClient(self._login, self._limits).endpoints())
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
        return {"connection": self._connection}

    def stop(self) -> bool:
        """Take no more; what has arrived is read out, because it does not come again."""
        self._is_stopping = True
        if self._changes is None:
            return False
        self._changes.wake()
        return True

    def close(self) -> int:
        """Return how many batches have arrived that nobody will read."""
        waiting = 0 if self._changes is None else len(self._changes)
        return -(-waiting // self.max_batch)


def _without_value(nodes: Iterable[Node], status: str) -> Iterable[DataChange]:
    return (
        {
            "node": node.text,
            "name": node.name,
            "value": None,
            "status": status,
            "source_timestamp": None,
            "server_timestamp": None,
        }
        for node in nodes
    )
