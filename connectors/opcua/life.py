"""One life of the `opcua` input: connected, browsed, subscribed, until the connection is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from asyncua.ua.uaerrors import UaStatusCodeError

from headrace.compiler.errors import BuildRefused
from headrace.compiler.language.context import Context
from headrace.connectors.opcua.access import Access, named, reason
from headrace.connectors.opcua.browse import Browse
from headrace.connectors.opcua.connection import Link
from headrace.connectors.opcua.items import Items, Watching, subscribed
from headrace.connectors.opcua.nodes import Node
from headrace.connectors.opcua.publishing import (
    UNREADABLE,
    Publishing,
    SubscriptionEnded,
)
from headrace.connectors.opcua.security import Server
from headrace.connectors.refusal import Outage

Change = dict[str, Any]
"""A message of this input."""

EXPLAIN_SECONDS = 0.9
"""How long a server may take to tell what it offers, when something else did not work."""
MOST_NAMED = 10
"""Nodes that a line of the log names."""
LOST = "BadConnectionClosed"
"""The status of every node when the connection is lost."""
GAP = "what changes until it is back does not arrive"


class Life:
    """A connection with its subscription. Begun once, and ended however it went."""

    def __init__(self, server: Server, watching: Watching, outage: Outage, ctx: Context) -> None:
        self._watching, self._outage, self._ctx = watching, outage, ctx
        self._access = Access(server, ctx)
        self._link = Link(self._access)
        self._nodes: Sequence[Node] = ()

    async def begin(
        self,
        take: Callable[[list[Change]], None],
        over: Callable[[Exception], None],
        seconds: float,
    ) -> None:
        """Have ``take`` called with every change from now on, and ``over`` when that ends.

        Raises:
            BuildRefused: the server says no.
            Unreachable: it does not answer, or not so that it could be read.
        """
        try:
            with self._ctx.clock.outside():
                async with self._ctx.clock.timeout(seconds):
                    publishing = await self._subscribed(take)
        except Exception as cause:
            await self.end()
            raise await self._told(cause) from None
        except BaseException:
            await self.end()
            raise
        self._outage.over()

        def ended(cause: Exception) -> None:
            over(self._outage.of(f"{_end(cause)}: {GAP}"))

        publishing.begin(ended)
        self._link.keep(ended)

    async def end(self) -> None:
        """Close the connection."""
        await self._link.end()

    def lost(self) -> list[Change]:
        """Return what every node says when the connection is lost."""
        return list(_without_value(self._nodes, LOST))

    async def _subscribed(self, take: Callable[[list[Change]], None]) -> Publishing:
        link, watching = self._link, self._watching
        await link.open()
        nodes = {node.key: node for node in watching.nodes}
        if watching.root is not None:
            for node in await Browse(link).variables(watching.root, watching.depth):
                nodes.setdefault(node.key, node)
        wanted = list(nodes.values())
        created = await subscribed(link, watching)
        refused = await Items(link, created.SubscriptionId, watching).create(wanted)
        for status, some in refused.items():
            self._tell(status, some)
            take(list(_without_value(some, status)))
        without = {node.key for some in refused.values() for node in some}
        self._nodes = [node for node in wanted if node.key not in without]
        return Publishing(link, created, wanted, take)

    def _tell(self, status: str, refused: Sequence[Node]) -> None:
        names = ", ".join(f"'{node.text}'" for node in refused[:MOST_NAMED])
        more = len(refused) - MOST_NAMED
        self._ctx.warn_once(
            f"{self._access.where} refuses nodes ({status}): {names}"
            + (f" and {more:,} more" if more > 0 else "")
        )

    async def _told(self, cause: Exception) -> Exception:
        """Return what to say of a life that did not begin."""
        if isinstance(cause, BuildRefused):
            return cause
        refusal = self._access.refusal(cause) or await self._explained(cause)
        return refusal or self._outage.of(reason(cause))

    async def _explained(self, cause: Exception) -> BuildRefused | None:
        """Ask a server that just hung up, or said nothing clear, whether it has what we want."""
        if isinstance(cause, OSError) and not isinstance(cause, ConnectionError):
            return None
        try:
            with self._ctx.clock.outside():
                async with self._ctx.clock.timeout(EXPLAIN_SECONDS):
                    self._access.endpoint(await self._link.endpoints())
        except BuildRefused as refused:
            return refused
        except Exception:  # it tells nothing: what it did before is what is known
            return None
        return None


def _without_value(nodes: Iterable[Node], status: str) -> Iterable[Change]:
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


def _end(cause: Exception) -> str:
    """Return how a life ended, as what comes behind the name of the server."""
    if isinstance(cause, SubscriptionEnded):
        return f"ended the subscription ({cause})"
    if isinstance(cause, UaStatusCodeError):
        return f"ended the session ({named(cause)})"
    if isinstance(cause, TimeoutError):
        return "does not answer any more"
    if isinstance(cause, UNREADABLE):
        return "sent what cannot be read"
    return "hung up"
