"""Both sides of an MQTT broker in a test: our input and output, and plain clients of somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiomqtt
import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.edges import Arrival
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.connectors.mqtt import MqttConnection, MqttInput, MqttOutput
from headrace.connectors.mqtt.connection import LIMITS, Limits
from headrace.connectors.mqtt.sink import MqttSink
from headrace.connectors.mqtt.source import MqttSource
from tests.clients import PATIENCE
from tests.connected import Reader
from tests.doubles import StubContext
from tests.services.mosquitto import Mosquitto
from tests.stopwatch import Stopwatch


def connection(server: Mosquitto, **options: Any) -> MqttConnection:
    """Return the connection to a server."""
    return MqttConnection.load({"host": server.host, "port": server.port} | options)


def context(
    server: Mosquitto,
    *,
    secrets: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> StubContext:
    """Return what a component is handed whose connection `bus` is this server."""
    connections = {"bus": connection(server, **options)}
    return StubContext(connections=connections, secrets=secrets or {}, clock=clock)


def source(ctx: StubContext, topic: str, limits: Limits = LIMITS, **options: Any) -> MqttSource:
    """Return a built input."""
    built = MqttInput.load({"connection": "bus", "topic": topic, **options}).source(ctx, limits)
    assert isinstance(built, MqttSource)
    return built


def sink(ctx: StubContext, topic: str, limits: Limits = LIMITS, **options: Any) -> MqttSink:
    """Return a built output."""
    opened = MqttOutput.load({"connection": "bus", "topic": topic, **options}).open(ctx, limits)
    assert isinstance(opened, MqttSink)
    return opened


async def arrived(reader: Reader, count: int) -> list[Arrival]:
    """Return so many arrivals, and whatever came with the last of them."""
    arrivals: list[Arrival] = []
    async with asyncio.timeout(PATIENCE):
        while len(arrivals) < count:
            arrivals += await anext(reader)
    return arrivals


def payloads(arrivals: Sequence[Arrival]) -> list[bytes]:
    """Return what arrived."""
    return [payload for payload, _ in arrivals]


def origins(arrivals: Sequence[Arrival]) -> list[Any]:
    """Return where it came from."""
    return [origin for _, origin in arrivals]


def somebody(server: Mosquitto, **options: Any) -> aiomqtt.Client:
    """Return a plain client."""
    client = aiomqtt.Client(server.host, server.port, **options)
    client.pending_calls_threshold = 1000
    return client


@asynccontextmanager
async def listening(server: Mosquitto, topic: str, qos: int = 0) -> AsyncIterator[aiomqtt.Client]:
    """Give a plain client that has subscribed to a topic."""
    async with somebody(server) as client:
        await client.subscribe(topic, qos)
        yield client


async def heard(client: aiomqtt.Client, count: int) -> list[aiomqtt.Message]:
    """Return the next so many messages that a plain client gets."""
    messages: list[aiomqtt.Message] = []
    async with asyncio.timeout(PATIENCE):
        async for message in client.messages:
            messages.append(message)
            if len(messages) == count:
                break
    return messages


async def unreachable(server: Any) -> str:
    """Return why a broker counts as not there, which takes no long time to see."""
    watch = Stopwatch()
    reader = source(context(server), "t").read()
    with pytest.raises(Unreachable) as failed:
        await anext(reader)
    assert watch.seconds < 5
    return str(failed.value).replace(f"127.0.0.1:{server.port}", "HOST")


def view(it: Engine, id: str = "p") -> Pipeline:
    """Return a running pipeline."""
    return it.graph.pipelines[id]
