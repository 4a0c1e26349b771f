"""An MQTT broker on the loop of the test itself, over no network: virtual time works with it.

It does the least of MQTT 3.1.1 with QoS 1, for one client, and keeps its window exactly: of what is
published it sends so many messages, and the next one when one is acknowledged. A real broker may send
more at times (Mosquitto 2.0.11 does).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace.connectors.mqtt import MqttConnection

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, DISCONNECT = 1, 2, 3, 4, 8, 9, 14
PACKET_IDS = 65_535


class LoopBroker(asyncio.Transport):
    """A broker that lets its one client hold so many messages unacknowledged."""

    def __init__(self, in_flight: int = 20) -> None:
        super().__init__()
        self._in_flight = in_flight
        self._loop = asyncio.get_running_loop()
        self._loop.create_connection = self._connected  # type: ignore[method-assign,assignment]
        self._client: asyncio.Protocol | None = None
        self._topic = b""
        self._waiting: deque[bytes] = deque()
        self._sent: dict[int, bytes] = {}
        self._packets = 0

    @property
    def connection(self) -> MqttConnection:
        """The connection to it."""
        return MqttConnection.load({"host": "broker"})

    @property
    def left(self) -> int:
        """Messages that it still has to send."""
        return len(self._waiting)

    def publish(self, payload: bytes) -> None:
        """Take a message on, and send it as soon as that may be."""
        self._waiting.append(payload)
        self._go_on()

    def _go_on(self) -> None:
        """Send what the window has room for, once there is a subscription."""
        while self._topic and self._waiting and len(self._sent) < self._in_flight:
            self._packets = self._packets % PACKET_IDS + 1
            payload = self._sent[self._packets] = self._waiting.popleft()
            topic = len(self._topic).to_bytes(2, "big") + self._topic
            self._answer(PUBLISH, 2, topic + self._packets.to_bytes(2, "big") + payload)

    async def _connected(
        self, protocol: Callable[[], asyncio.Protocol], *_: Any, **__: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        self._client = protocol()
        self._client.connection_made(self)
        return self, self._client

    def _answer(self, kind: int, flags: int, body: bytes) -> None:
        assert self._client is not None
        assert len(body) < 128  # a longer one has a longer length
        self._loop.call_soon(
            self._client.data_received, bytes([kind << 4 | flags, len(body)]) + body
        )

    # What a client does with its transport.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Do what the packets ask for."""
        rest = bytes(data)
        while rest:
            kind, length = rest[0] >> 4, rest[1]
            body, rest = rest[2 : 2 + length], rest[2 + length :]
            if kind == CONNECT:
                self._answer(CONNACK, 0, bytes(2))
            elif kind == SUBSCRIBE:
                self._topic = body[4:-1]
                self._answer(SUBACK, 0, body[:2] + body[-1:])
            elif kind == PUBACK:
                del self._sent[int.from_bytes(body, "big")]
            elif kind == DISCONNECT:
                self.abort()
                return
            self._go_on()

    def is_closing(self) -> bool:
        """Return whether the client is gone."""
        return self._client is None

    def abort(self) -> None:
        """Let the client go."""
        if self._client is not None:
            self._loop.call_soon(self._client.connection_lost, None)
        self._client = None

    def pause_reading(self) -> None:
        """Nobody publishes so much."""
        raise AssertionError("more came than may wait")

    def resume_reading(self) -> None:
        """Nor is anything paused."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """There is no socket."""
        return default
