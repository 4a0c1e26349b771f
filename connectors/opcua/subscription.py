"""A subscription: a monitored item for each node, and the notifications that tell of their changes.

The client library can publish as well, and makes ten objects of every change: a fifth of the changes in
the same time (`docs/decisions/opcua.md`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from asyncua import ua
from asyncua.ua.attribute_ids import AttributeIds
from asyncua.ua.object_ids import ObjectIds
from asyncua.ua.status_codes import StatusCodes
from asyncua.ua.ua_binary import struct_from_binary
from asyncua.ua.uaerrors import BadRequestTimeout, BadTimeout, UaStatusCodeError

from headrace.connectors.opcua import OpcuaInput
from headrace.connectors.opcua.connection import OpcuaClient
from headrace.connectors.opcua.login import SubscriptionEnded
from headrace.connectors.opcua.nodes import Node, NodeKey
from headrace.connectors.opcua.notifications import STATUSES, extension_object, messages, node_id

KEEP_ALIVES = 10
"""Publishing intervals after which a server that has no news says so."""
LIFETIMES = 60
"""Publishing intervals after which a server ends a subscription that nobody asks for."""
MOST_CHANGES = 1000
"""Of one notification, so that none takes long."""
LAST_NUMBER = 2**32 - 1
"""Of a notification; behind it comes 1."""
MOST_MISSED = 100
"""Notifications in a row that are asked for again."""

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

_CHANGES = node_id(NodeKey(0, "i", ObjectIds.DataChangeNotification_Encoding_DefaultBinary))
_STATUS = node_id(NodeKey(0, "i", ObjectIds.StatusChangeNotification_Encoding_DefaultBinary))
_HEAD = struct.Struct("<Ii").unpack_from
_CODE = struct.Struct("<I").unpack_from
_MESSAGE = struct.Struct("<Iqi").unpack_from


class Subscription:
    """A subscription to some nodes, whose places are the client handles of their items."""

    def __init__(
        self,
        client: OpcuaClient,
        config: OpcuaInput,
        nodes: Sequence[Node],
        take: Callable[[list[dict[str, Any]]], None],
    ) -> None:
        self._client, self._config, self._nodes, self._take = client, config, nodes, take
        self._ctx = client.login.ctx
        self._number = 0
        self._patience = 0.0
        self._done = list[ua.SubscriptionAcknowledgement]()
        self._awaited: int | None = None

    async def create(self) -> dict[str, list[Node]]:
        """Watch the nodes; return those that the server refuses, by its status.

        A deadband goes with numbers only. What the server refuses for it is asked for without.
        """
        await self._create_subscription()
        places = range(len(self._nodes))
        filtered = set[int]()
        if self._config.deadband:
            values = await self._client.in_portions(self._nodes, self._read)
            filtered = {place for place in places if _may_be_a_number(values[place])}
        statuses = await self._create_items(places, filtered)
        again = [place for place in places if statuses[place] in _UNFILTERED]
        for place, status in zip(again, await self._create_items(again, set()), strict=True):
            statuses[place] = status
        refused: dict[str, list[Node]] = {}
        for node, status in zip(self._nodes, statuses, strict=True):
            name, is_bad = STATUSES[status]
            if is_bad:
                refused.setdefault(name, []).append(node)
        return refused

    async def _create_subscription(self) -> None:
        request = ua.CreateSubscriptionRequest()
        request.Parameters = ua.CreateSubscriptionParameters(
            RequestedPublishingInterval=float(self._config.publish_interval_ms),
            RequestedLifetimeCount=LIFETIMES,
            RequestedMaxKeepAliveCount=KEEP_ALIVES,
            MaxNotificationsPerPublish=MOST_CHANGES,
        )
        created = struct_from_binary(ua.CreateSubscriptionResult, await self._client.ask(request))
        self._number = created.SubscriptionId
        keep_alives = created.RevisedMaxKeepAliveCount or KEEP_ALIVES
        announced = keep_alives * created.RevisedPublishingInterval / 1000
        self._patience = announced + self._client.limits.keep_alive_seconds

    async def _create_items(self, places: Sequence[int], filtered: set[int]) -> list[int]:
        async def asked(some: Sequence[int]) -> Sequence[ua.MonitoredItemCreateResult]:
            wanted = [self._item(place, place in filtered) for place in some]
            return await self._client.session.create_monitored_items(
                ua.CreateMonitoredItemsParameters(self._number, ua.TimestampsToReturn.Both, wanted)
            )

        return [each.StatusCode.value for each in await self._client.in_portions(places, asked)]

    async def _read(self, nodes: Sequence[Node]) -> Sequence[ua.DataValue]:
        return await self._client.session.read_attributes(
            [node_id(node.key) for node in nodes], AttributeIds.Value
        )

    def _item(self, place: int, is_filtered: bool) -> ua.MonitoredItemCreateRequest:
        interval = self._config.sampling_interval_ms
        wanted = ua.MonitoringParameters(
            ClientHandle=place,
            SamplingInterval=_SAMPLED_AS_PUBLISHED if interval is None else float(interval),
            QueueSize=max(self._config.queue_size, 1),
            DiscardOldest=True,
        )
        if is_filtered:
            wanted.Filter = ua.DataChangeFilter(
                ua.DataChangeTrigger.StatusValue, _ABSOLUTE, float(self._config.deadband or 0)
            )
        return ua.MonitoredItemCreateRequest(
            ua.ReadValueId(node_id(self._nodes[place].key), AttributeIds.Value),
            ua.MonitoringMode.Reporting,
            wanted,
        )

    async def publish(self) -> None:
        """Hand on what the server tells, until that ends: why is raised."""
        while True:
            request = ua.PublishRequest()
            request.Parameters.SubscriptionAcknowledgements, self._done = self._done, []
            try:
                async with self._ctx.clock.timeout(self._patience):
                    data = bytes(await self._client.ask(request, 0))
            except (BadTimeout, BadRequestTimeout):
                continue  # the request was too old for the server, not the subscription
            subscription, available = _HEAD(data, 0)
            if subscription == self._number:
                await self._answered(data, 9 + 4 * max(available, 0))

    async def _answered(self, data: bytes, at: int) -> None:
        """Take in the notification at a place; without parts it is a sign of life."""
        sequence, _, parts = _MESSAGE(data, at)
        awaited = self._awaited
        if awaited is not None and awaited < sequence <= awaited + MOST_MISSED:
            self._awaited = sequence
            for number in range(awaited, sequence):
                await self._ask_again(number)
        if parts:  # else its number is that of the next
            self._awaited = sequence % LAST_NUMBER + 1
            self._pass_on(data, at)

    async def _ask_again(self, number: int) -> None:
        """Have the server send again what was numbered and did not come."""
        try:
            data = bytes(
                await self._client.ask(
                    ua.RepublishRequest(Parameters=ua.RepublishParameters(self._number, number))
                )
            )
        except UaStatusCodeError:
            data = b""
        if data and _MESSAGE(data, 0)[0] == number:  # some answer with an empty one
            self._pass_on(data, 0)
        else:
            self._ctx.fail(
                f"a notification of {self._client.login.where} did not arrive, and the server has it"
                " no more: the changes in it are lost"
            )

    def _pass_on(self, data: bytes, at: int) -> None:
        sequence, _, parts = _MESSAGE(data, at)
        at += 16
        for _ in range(parts):
            kind, begin, at = extension_object(data, at)
            if kind == _CHANGES:
                self._take(messages(data, begin, self._nodes, self._skip))
            elif kind == _STATUS:
                name, is_bad = STATUSES[_CODE(data, begin)[0]]
                if is_bad or name == "GoodSubscriptionTransferred":
                    raise SubscriptionEnded(name)
        self._done.append(ua.SubscriptionAcknowledgement(self._number, sequence))

    def _skip(self, node: Node) -> None:
        self._ctx.skip(f"skipped a value of '{node.text}': it is a structure")


def _may_be_a_number(value: ua.DataValue) -> bool:
    """Return whether a node has a number, or nothing that tells what it has."""
    kind = None if value.Value is None else value.Value.VariantType
    return kind in (None, ua.VariantType.Null) or getattr(kind, "value", 0) in _NUMERIC
