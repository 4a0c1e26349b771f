"""The variables under a node, found by following references level by level."""

from __future__ import annotations

from collections.abc import Sequence

from asyncua import ua
from asyncua.ua.object_ids import ObjectIds
from asyncua.ua.status_codes import StatusCodes

from headrace.connectors.opcua.connection import OpcuaClient
from headrace.connectors.opcua.login import Shortfall
from headrace.connectors.opcua.nodes import Node, NodeKey
from headrace.connectors.opcua.notifications import STATUSES, node_id, node_key

MOST_NODES = 50
"""That are asked about at once."""
_NO_ROOM = StatusCodes.BadNoContinuationPoints
_HIERARCHICAL = node_id(NodeKey(0, "i", ObjectIds.HierarchicalReferences))


class Browse:
    """One walk through the address space of a server, breadth first."""

    def __init__(self, client: OpcuaClient) -> None:
        self._client = client
        self._seen = set[NodeKey]()
        self._found = dict[NodeKey, Node]()
        self._said = "Good"

    async def variables(self, root: NodeKey, depth: int) -> list[Node]:
        """Return every variable that is at most ``depth`` references away from the root.

        Hierarchical references are followed through objects, and through variables as well.

        Raises:
            Shortfall: there is none.
        """
        level, self._seen = [root], {root}
        while level and depth:  # a depth may be any number
            level, depth = await self._below(level), depth - 1
        if not self._found:
            why = "" if self._said == "Good" else f" ({self._said})"
            raise Shortfall(f"has no variable under '{root.text}'{why}")
        return list(self._found.values())

    async def _below(self, level: Sequence[NodeKey]) -> list[NodeKey]:
        """Note the variables right below some nodes; return all nodes there that are new."""
        found, rest = list[NodeKey](), list(level)
        while rest:
            results = await self._client.in_portions(rest, self._asked, MOST_NODES)
            # A server remembers only so many answers that it has begun: of the others ask again.
            again = [
                key
                for key, one in zip(rest, results, strict=True)
                if one.StatusCode.value == _NO_ROOM
            ]
            for result in results:
                self._said = STATUSES[result.StatusCode.value][0]
                for reference in await self._whole(result):
                    self._note(reference, found)
            if len(again) == len(rest):
                raise Shortfall("has no room for browsing (BadNoContinuationPoints)")
            rest = again
        return found

    async def _asked(self, keys: Sequence[NodeKey]) -> Sequence[ua.BrowseResult]:
        wanted = [
            ua.BrowseDescription(
                node_id(key),
                ua.BrowseDirection.Forward,
                _HIERARCHICAL,
                IncludeSubtypes=True,
                NodeClassMask=ua.NodeClass.Object | ua.NodeClass.Variable,
                ResultMask=ua.BrowseResultMask.NodeClass | ua.BrowseResultMask.DisplayName,
            )
            for key in keys
        ]
        return await self._client.session.browse(
            ua.BrowseParameters(
                RequestedMaxReferencesPerNode=ua.Counter(self._client.limits.references),
                NodesToBrowse=wanted,
            )
        )

    async def _whole(self, result: ua.BrowseResult) -> list[ua.ReferenceDescription]:
        """Return all references of a node, of which the server may have sent a part."""
        references = list(result.References or ())
        while result.ContinuationPoint:
            rest = ua.BrowseNextParameters(False, [result.ContinuationPoint])
            (result,) = await self._client.session.browse_next(rest)
            references += result.References or ()
        return references

    def _note(self, reference: ua.ReferenceDescription, found: list[NodeKey]) -> None:
        where = reference.NodeId
        if getattr(where, "ServerIndex", 0) or getattr(where, "NamespaceUri", None):
            return  # a node of another server
        key = node_key(where)
        if key in self._seen:
            return
        self._seen.add(key)
        found.append(key)
        if reference.NodeClass == ua.NodeClass.Variable:
            self._found[key] = Node(key, key.text, reference.DisplayName.Text or key.text)
