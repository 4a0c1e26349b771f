"""The `opcua` input at work: one connection with its subscription after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from typing import Any, ClassVar

from asyncua import ua
from asyncua.ua.object_ids import ObjectIds
from asyncua.ua.status_codes import StatusCodes

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Arrival
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.network.arrivals import Arrivals, PushedSource
from headrace.connectors.network.refusal import CONNECT_SECONDS, Outage
from headrace.connectors.opcua import MOST_WAITING, OpcuaInput
from headrace.connectors.opcua.connection import Limits, OpcuaClient, explained
from headrace.connectors.opcua.login import OpcuaServer, Shortfall, ended, reason
from headrace.connectors.opcua.nodes import Node, NodeKey
from headrace.connectors.opcua.notifications import STATUSES, node_id, node_key
from headrace.connectors.opcua.subscription import Subscription

PATIENT_SECONDS = 30.0
"""How long connecting, browsing and subscribing may take when no pipeline waits for it to be built."""
PORTION = 500
"""Of them that are handed over at once, so that the others still count as waiting."""
MOST_BROWSED = 50
"""Nodes whose references are asked for at once."""
MOST_NAMED = 10
"""Nodes that a line of the log names."""
LOST = "BadConnectionClosed"
"""The status of every node when the connection is lost."""

DROPPED = (
    "dropped a change: they arrive faster than they are worked off, and of"
    f" {MOST_WAITING:,} that wait the oldest makes room for the newest"
)

_NO_ROOM = StatusCodes.BadNoContinuationPoints
_HIERARCHICAL = node_id(NodeKey(0, "i", ObjectIds.HierarchicalReferences))

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
        ctx.expect_losses("dropped")

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
            if dropped := changes.put_newest(some):
                self._ctx.drop(DROPPED, dropped)

        try:
            async with self._ctx.clock.within(seconds):
                await client.open(lambda cause: self._lost(changes, cause))
                nodes = {node.key: node for node in self._config.listed_nodes()}
                if browse is not None:
                    for node in await _variables(client, NodeKey.of(browse.root), browse.depth):
                        nodes.setdefault(node.key, node)
                wanted = list(nodes.values())
                subscription = Subscription(client, self._config, wanted, take)
                refused = await subscription.create()
        except BuildRefused:
            raise
        except Exception as cause:
            await client.end()
            refusal = self._server.refusal(cause) or await explained(
                self._server, self._limits, cause
            )
            raise refusal or self._outage.of(reason(cause)) from None
        self._outage.over()
        for status, some in refused.items():
            names = ", ".join(f"'{node.text}'" for node in some[:MOST_NAMED])
            more = f" and {len(some) - MOST_NAMED:,} more" if len(some) > MOST_NAMED else ""
            self._ctx.warn_once(f"{self._server.where} refuses nodes ({status}): {names}{more}")
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


async def _variables(client: OpcuaClient, root: NodeKey, depth: int) -> list[Node]:
    """Return every variable that is at most ``depth`` references away from the root.

    Hierarchical references are followed through objects, and through variables as well.

    Raises:
        Shortfall: there is none.
    """
    found, seen = dict[NodeKey, Node](), {root}
    level, said = [root], "Good"
    while level and depth:  # a depth may be any number
        below = list[NodeKey]()
        async for status, references in _browsed(client, level):
            said = status
            for reference in references:
                where = reference.NodeId
                if getattr(where, "ServerIndex", 0) or getattr(where, "NamespaceUri", None):
                    continue  # a node of another server
                if (key := node_key(where)) in seen:
                    continue
                seen.add(key)
                below.append(key)
                if reference.NodeClass == ua.NodeClass.Variable:
                    found[key] = Node(key, key.text, reference.DisplayName.Text or key.text)
        level, depth = below, depth - 1
    if not found:
        why = "" if said == "Good" else f" ({said})"
        raise Shortfall(f"has no variable under '{root.text}'{why}")
    return list(found.values())


async def _browsed(
    client: OpcuaClient, keys: Sequence[NodeKey]
) -> AsyncIterator[tuple[str, list[ua.ReferenceDescription]]]:
    """Yield of each node the status, and the references to what is right below it."""

    async def asked(some: Sequence[NodeKey]) -> Sequence[ua.BrowseResult]:
        wanted = [
            ua.BrowseDescription(
                node_id(key),
                ua.BrowseDirection.Forward,
                _HIERARCHICAL,
                IncludeSubtypes=True,
                NodeClassMask=ua.NodeClass.Object | ua.NodeClass.Variable,
                ResultMask=ua.BrowseResultMask.NodeClass | ua.BrowseResultMask.DisplayName,
            )
            for key in some
        ]
        return await client.session.browse(
            ua.BrowseParameters(
                RequestedMaxReferencesPerNode=ua.Counter(client.limits.references),
                NodesToBrowse=wanted,
            )
        )

    rest = list(keys)
    while rest:
        results = await client.in_portions(rest, asked, MOST_BROWSED)
        # A server remembers only so many answers that it has begun: of the others ask again.
        again = [
            key for key, one in zip(rest, results, strict=True) if one.StatusCode.value == _NO_ROOM
        ]
        for result in results:
            name, _ = STATUSES[result.StatusCode.value]
            references = list(result.References or ())
            while result.ContinuationPoint:  # it may have sent a part
                (result,) = await client.session.browse_next(
                    ua.BrowseNextParameters(False, [result.ContinuationPoint])
                )
                references += result.References or ()
            yield name, references
        if len(again) == len(rest):
            raise Shortfall("has no room for browsing (BadNoContinuationPoints)")
        rest = again
