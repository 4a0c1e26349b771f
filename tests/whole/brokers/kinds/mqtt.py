"""MQTT with QoS 1: the broker keeps what a client with a session has not acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from aiomqtt import Client, MqttError

from tests.services.authority import Authority
from tests.services.mosquitto import SAVING, Mosquitto
from tests.services.server import Service
from tests.whole.brokers.kinds.kind import Channel, Json, Kind

_LIMIT = 2


class _Channel(Channel):
    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    async def send(self, payloads: Sequence[bytes]) -> None:
        # The client does not give up by itself when the broker is gone.
        publish = partial(self._client.publish, self._name, qos=1, timeout=_LIMIT)
        await asyncio.gather(*map(publish, payloads))


class MqttKind(Kind):
    """Mosquitto."""

    name = "mqtt"
    place = "topic"
    keeps = True
    lost = (MqttError, OSError)
    reads = {"qos": "at_least_once", "ack": "on_delivery"}
    writes = {"qos": "at_least_once"}

    def server(self, folder: Path, **options: Any) -> Service:
        extra = [*options.pop("extra", ()), "max_queued_messages 0"]
        return Mosquitto(folder, extra=extra, **options)

    def lasting(self, folder: Path) -> Service:
        """Return a server that has everything written down when it is killed, and logs every packet.

        It takes a hundred messages a second.
        """
        return self.server(folder, extra=[*SAVING, "log_type all"])

    def guarded(self, folder: Path, authority: Authority, user: str, password: str) -> Service:
        return Mosquitto(folder, tls=authority, user=user, password=password)

    def connection(self, server: Any, *, user: str = "", password: str = "", **tls: Any) -> Json:
        login = {"username": user, "password": password} if user else {}
        return {"type": "mqtt", "host": server.host, "port": server.port, **login, **tls}

    @asynccontextmanager
    async def dial(self, server: Any, place: str) -> AsyncIterator[Channel]:
        async with Client(server.host, server.port) as client:
            client.pending_calls_threshold = 10_000
            yield _Channel(client, place)

    async def listen(
        self, server: Any, place: str, heard: Callable[[], None]
    ) -> AsyncIterator[Sequence[bytes]]:
        host, port, who = server.host, server.port, f"tests-{place}"
        async with Client(host, port, identifier=who, clean_session=False) as client:
            await client.subscribe(place, qos=1)
            heard()
            async for message in client.messages:
                assert isinstance(message.payload, bytes)
                yield [message.payload]
