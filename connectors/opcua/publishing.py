"""What a subscription sends: notifications, asked for one after the other and read as they come."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.object_ids import ObjectIds
from asyncua.ua.ua_binary import nodeid_from_binary, struct_from_binary
from asyncua.ua.uaerrors import (
    BadRequestTimeout,
    BadTimeout,
    BadTooManyPublishRequests,
    UaStatusCodeError,
)

from headrace.connectors.opcua.changes import messages
from headrace.connectors.opcua.connection import Link
from headrace.connectors.opcua.items import KEEP_ALIVES
from headrace.connectors.opcua.nodes import Node, NodeKey
from headrace.connectors.opcua.values import (
    STATUSES,
    Malformed,
    extension_object,
)

AT_ONCE = 2
"""Publish requests that wait at the server, so that it need not wait for the next while one is answered."""
GRACE_SECONDS = 5.0
"""How much later than announced a keep-alive may come."""
LAST_NUMBER = 2**32 - 1
"""Of a notification; behind it comes 1."""
MOST_MISSED = 100
"""Notifications in a row that are asked for again."""

MOST_PARTS = 100
MOST_CHANGES = 100_000
"""In one notification. A server is asked for less, but may not care; more would keep others waiting."""

UNREADABLE = (Malformed, struct.error, IndexError, RecursionError, ValueError)
"""What comes of reading octets that do not mean what they should."""

_CHANGES = NodeKey(0, "i", ObjectIds.DataChangeNotification_Encoding_DefaultBinary)
_STATUS = NodeKey(0, "i", ObjectIds.StatusChangeNotification_Encoding_DefaultBinary)
_HEAD = struct.Struct("<Ii").unpack_from
_CODE = struct.Struct("<I").unpack_from
_COUNT = struct.Struct("<i").unpack_from
_MESSAGE = struct.Struct("<Iqi").unpack_from


class SubscriptionEnded(Exception):
    """The server has ended a subscription; the text is the status that it gave."""


class Notification(NamedTuple):
    """What a server tells at once."""

    sequence: int
    parts: list[tuple[NodeKey, int]]
    """The type of each part, and where it begins. None: a sign of life."""

    @classmethod
    def read(cls, data: bytes, at: int) -> Self:
        """Read a NotificationMessage."""
        sequence, _, count = _MESSAGE(data, at)
        if count > MOST_PARTS:
            raise Malformed
        at += 16
        parts = []
        for _ in range(count):
            kind, begin, at = extension_object(data, at)
            parts.append((kind, begin))
        return cls(sequence, parts)


class Publishing:
    """Asks for the notifications of one subscription and hands on what they tell."""

    def __init__(
        self,
        link: Link,
        created: ua.CreateSubscriptionResult,
        nodes: Sequence[Node],
        take: Callable[[list[dict[str, Any]]], None],
    ) -> None:
        self._link, self._nodes, self._take = link, nodes, take
        self._ctx, self._where = link.access.ctx, link.access.where
        self._subscription = created.SubscriptionId
        keep_alives = created.RevisedMaxKeepAliveCount or KEEP_ALIVES
        self._patience = keep_alives * created.RevisedPublishingInterval / 1000 + GRACE_SECONDS
        self._done = list[ua.SubscriptionAcknowledgement]()
        self._awaited: int | None = None
        self._publishers = 0

    def begin(self, over: Callable[[Exception], None]) -> None:
        """Ask, from now until the link ends; ``over`` is told why if it is sooner."""
        for _ in range(AT_ONCE):
            self._publishers += 1
            self._link.attend(self._publish, over)

    async def _publish(self) -> None:
        while True:
            done, self._done = self._done, []
            try:
                async with self._ctx.clock.timeout(self._patience):
                    answer = await self._link.session.publish_raw(done)
            except BadTooManyPublishRequests:
                self._done += done
                if self._publishers > 1:
                    self._publishers -= 1
                    return
                raise
            except (BadTimeout, BadRequestTimeout):
                continue  # the request was too old for the server, not the subscription
            await self._answered(answer)

    async def _answered(self, answer: Buffer) -> None:
        data = _parameters(answer)
        subscription, available = _HEAD(data, 0)
        if subscription != self._subscription:
            return
        notification = Notification.read(data, 9 + 4 * max(available, 0))
        await self._catch_up(notification.sequence)
        if notification.parts:  # else its number is that of the next
            self._awaited = notification.sequence % LAST_NUMBER + 1
            self._hand_on(notification, data)

    def _hand_on(self, notification: Notification, data: bytes) -> None:
        changes = (_COUNT(data, at)[0] for kind, at in notification.parts if kind == _CHANGES)
        if sum(changes) > MOST_CHANGES:
            raise Malformed
        for kind, at in notification.parts:
            if kind == _CHANGES:
                self._take(messages(data, at, self._nodes, self._skip))
            elif kind == _STATUS:
                name, is_bad = STATUSES[_CODE(data, at)[0]]
                if is_bad or name == "GoodSubscriptionTransferred":
                    raise SubscriptionEnded(name)
        self._done.append(ua.SubscriptionAcknowledgement(self._subscription, notification.sequence))

    def _skip(self, node: Node) -> None:
        self._ctx.skip(f"skipped a value of '{node.text}': it is a structure")

    async def _catch_up(self, sequence: int) -> None:
        """Have the server send again what was numbered and did not come."""
        awaited = self._awaited
        if awaited is None or not awaited < sequence <= awaited + MOST_MISSED:
            return
        self._awaited = sequence
        for number in range(awaited, sequence):
            await self._again(number)

    async def _again(self, number: int) -> None:
        try:
            data = _parameters(await self._link.session.republish_raw(self._subscription, number))
        except UaStatusCodeError:
            data = b""
        notification = Notification.read(data, 0) if data else None
        if notification is None or notification.sequence != number:
            self._ctx.fail(
                f"a notification of {self._where} did not arrive, and the server has it no more:"
                " the changes in it are lost"
            )
            return
        self._hand_on(notification, data)


def _parameters(answer: Buffer) -> bytes:
    """Return what an answer holds behind its header, if that says that it is good."""
    nodeid_from_binary(answer)
    struct_from_binary(ua.ResponseHeader, answer).ServiceResult.check()
    return bytes(answer)
