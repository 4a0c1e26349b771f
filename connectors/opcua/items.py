"""What a subscription watches: one monitored item for each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncua import ua
from asyncua.ua.attribute_ids import AttributeIds
from asyncua.ua.status_codes import StatusCodes

from headrace.connectors.opcua.connection import Link, node_id
from headrace.connectors.opcua.nodes import Node, NodeKey
from headrace.connectors.opcua.values import STATUSES

KEEP_ALIVES = 10
"""Publishing intervals after which a server that has no news says so."""
LIFETIMES = 60
"""Publishing intervals after which a server ends a subscription that nobody asks for."""
MOST_CHANGES = 1000
"""Of one notification, so that none takes long."""

_SAMPLED_AS_PUBLISHED = -1.0
_ABSOLUTE = 1
_NUMERIC = range(ua.VariantType.SByte.value, ua.VariantType.Double.value + 1)

_UNFILTERED = {
    StatusCodes.BadFilterNotAllowed,
    StatusCodes.BadMonitoredItemFilterUnsupported,
    StatusCodes.BadDeadbandFilterInvalid,
    StatusCodes.BadMonitoredItemFilterInvalid,
}
"""What a server says of a deadband on a node that it cannot compare."""


@dataclass(frozen=True)
class Watching:
    """What is watched, and how. Units: milliseconds; the deadband is in that of the value."""

    nodes: Sequence[Node]
    root: NodeKey | None
    """Where browsing begins; None: nowhere."""
    depth: int
    publish_interval_ms: int
    sampling_interval_ms: int | None
    queue_size: int
    deadband: float


async def subscribed(link: Link, watching: Watching) -> ua.CreateSubscriptionResult:
    """Create a subscription; return its number and how often it will be heard of."""
    wanted = ua.CreateSubscriptionParameters(
        RequestedPublishingInterval=float(watching.publish_interval_ms),
        RequestedLifetimeCount=LIFETIMES,
        RequestedMaxKeepAliveCount=KEEP_ALIVES,
        MaxNotificationsPerPublish=MOST_CHANGES,
    )
    return await link.session.create_subscription(wanted, lambda _: None)


class Items:
    """Creates the items of a subscription."""

    def __init__(self, link: Link, subscription: int, watching: Watching) -> None:
        self._link, self._subscription, self._watching = link, subscription, watching

    async def create(self, nodes: Sequence[Node]) -> dict[str, list[Node]]:
        """Watch nodes, whose places become client handles; return those that are refused, by status.

        A deadband goes with numbers only. What the server refuses for it is asked for without.
        """
        places = range(len(nodes))
        filtered = set[int]()
        if self._watching.deadband:
            values = await self._link.in_portions(nodes, self._read)
            filtered = {place for place in places if _may_be_a_number(values[place])}
        statuses = await self._created(nodes, places, filtered)
        again = [place for place in places if statuses[place] in _UNFILTERED]
        for place, status in zip(again, await self._created(nodes, again, set()), strict=True):
            statuses[place] = status
        refused: dict[str, list[Node]] = {}
        for place, status in enumerate(statuses):
            name, is_bad = STATUSES[status]
            if is_bad:
                refused.setdefault(name, []).append(nodes[place])
        return refused

    async def _created(
        self, nodes: Sequence[Node], places: Sequence[int], filtered: set[int]
    ) -> list[int]:
        async def asked(some: Sequence[int]) -> Sequence[ua.MonitoredItemCreateResult]:
            wanted = [self._item(nodes[place], place, place in filtered) for place in some]
            return await self._link.session.create_monitored_items(
                ua.CreateMonitoredItemsParameters(
                    self._subscription, ua.TimestampsToReturn.Both, wanted
                )
            )

        return [each.StatusCode.value for each in await self._link.in_portions(places, asked)]

    async def _read(self, nodes: Sequence[Node]) -> Sequence[ua.DataValue]:
        ids = [node_id(node.key) for node in nodes]
        return await self._link.session.read_attributes(ids, AttributeIds.Value)

    def _item(self, node: Node, place: int, is_filtered: bool) -> ua.MonitoredItemCreateRequest:
        watching, interval = self._watching, self._watching.sampling_interval_ms
        wanted = ua.MonitoringParameters(
            ClientHandle=place,
            SamplingInterval=_SAMPLED_AS_PUBLISHED if interval is None else float(interval),
            QueueSize=watching.queue_size,
            DiscardOldest=True,
        )
        if is_filtered:
            wanted.Filter = ua.DataChangeFilter(
                ua.DataChangeTrigger.StatusValue, _ABSOLUTE, watching.deadband
            )
        return ua.MonitoredItemCreateRequest(
            ua.ReadValueId(node_id(node.key), AttributeIds.Value),
            ua.MonitoringMode.Reporting,
            wanted,
        )


def _may_be_a_number(value: ua.DataValue) -> bool:
    """Return whether a node has a number, or nothing that tells what it has."""
    found = value.Value
    if found is None or found.VariantType is None or found.VariantType == ua.VariantType.Null:
        return True
    return getattr(found.VariantType, "value", 0) in _NUMERIC
