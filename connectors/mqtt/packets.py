"""What a broker sends, packet by packet: looked at first, because paho trusts whoever sends it.

A packet that is too short raises in paho, one that nobody asked for is an error in the log of aiomqtt, and
a PINGREQ, which no broker sends, is answered. Here each of them ends the connection.

Two of paho's handlers are replaced altogether, because it cannot hold back an acknowledgement of QoS 2: it
sends the PUBREC by itself and hands a message over only at the PUBREL, when the broker will not send it
again. Here a message is handed over as it comes, and every PUBREL is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.connectors.mqtt.access import REFUSALS

if TYPE_CHECKING:
    from aiomqtt import Client

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, PINGRESP = 2, 3, 4, 5, 6, 7, 9, 13
"""Kinds of packets that a broker sends to who subscribes and publishes."""

REFUSED = 128
"""The code of a subscription that is refused; else it is the QoS that is granted."""
GRANTS = (0, 1, 2, REFUSED)

DONE = 0
PROTOCOL = 2
TURNED_AWAY = 5
"""What handlers answer to paho, which ends the connection unless it is `DONE`."""

Taker = Callable[[bytes, int, int, bytes, bool], None]
"""Takes a message: payload, packet id, QoS, topic, and whether it was retained."""


class Packets:
    """Handles what comes in, in paho's place: a CONNACK first and only then, the others later.

    ``take`` is given the messages, ``refuse`` the code of a CONNACK that does not let us in.
    """

    def __init__(self, client: Client, take: Taker, refuse: Callable[[int], None]) -> None:
        self._client = client
        self._paho: Any = client._client
        self._take, self._refuse = take, refuse
        self._handlers: dict[int, Callable[[int, bytearray], int]] = {CONNACK: self._connected}

    def handle(self) -> int:
        """Handle the packet that has come."""
        packet = self._paho._in_packet
        command: int = packet["command"]
        handler = self._handlers.get(command >> 4)
        return PROTOCOL if handler is None else handler(command, packet["packet"])

    def _connected(self, _: int, body: bytearray) -> int:
        """Learn whether the broker lets us in."""
        if len(body) != 2 or body[1] not in (DONE, *REFUSALS):
            return PROTOCOL
        if body[1]:
            self._refuse(body[1])
            return TURNED_AWAY
        self._handlers = {
            PUBLISH: self._published,
            PUBACK: self._confirmed,
            PUBREC: self._confirmed,
            PUBREL: self._released,
            PUBCOMP: self._confirmed,
            SUBACK: self._subscribed,
            PINGRESP: self._alive,
        }
        return int(self._paho._handle_connack())

    def _published(self, command: int, body: bytearray) -> int:
        """Hand a message over."""
        qos, packet = command >> 1 & 3, 0
        start = 2 + _number(body, 0)
        topic = bytes(body[2:start])
        if qos:
            packet = _number(body, start)
            start += 2
        if qos > 2 or start > len(body) or (qos and not packet):
            return PROTOCOL
        self._take(bytes(memoryview(body)[start:]), packet, qos, topic, bool(command & 1))
        return DONE

    def _released(self, _: int, body: bytearray) -> int:
        """Let the broker forget a message of QoS 2, also one that an earlier connection had."""
        if len(body) != 2:
            return PROTOCOL
        return int(self._paho._send_pubcomp(_number(body, 0)))

    def _confirmed(self, command: int, body: bytearray) -> int:
        """Go on with a message that we have published."""
        paho = self._paho
        if len(body) != 2 or _number(body, 0) not in paho._out_messages:
            return PROTOCOL
        if command >> 4 == PUBREC:
            return int(paho._handle_pubrec())
        return int(paho._handle_pubackcomp("PUBACK" if command >> 4 == PUBACK else "PUBCOMP"))

    def _subscribed(self, _: int, body: bytearray) -> int:
        """Learn what became of a subscription, which is always one topic."""
        asked = self._client._pending_subscribes
        if len(body) != 3 or _number(body, 0) not in asked or body[2] not in GRANTS:
            return PROTOCOL
        self._paho._handle_suback()
        return DONE

    def _alive(self, _: int, body: bytearray) -> int:
        """Learn that the broker is still there."""
        return PROTOCOL if body else int(self._paho._handle_pingresp())


def _number(body: bytearray, at: int) -> int:
    """Return the number of two bytes that stands there, 0 where there are none."""
    return body[at] << 8 | body[at + 1] if at + 2 <= len(body) else 0
