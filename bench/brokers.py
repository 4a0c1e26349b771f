"""Scenarios of brokers: a pipeline that reads a broker and writes to it, beside a program by hand.

Both are in one process on one core and do their work turn and turn about, over connections of their own;
the broker and whoever publishes (`bench/traffic.py`) are on the other core. A turn begins when readings are
published faster than anybody works them off, and is over when the last one has come out, so what it takes
on the clock is what the route takes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from bench import byhand
from bench.load import HOST
from bench.measuring import Compared, Cost, Effort, both, on_one_core, timed
from bench.running import Config, pipeline, service, talking
from bench.table import Row, clock_rows, ratio_row
from bench.traffic import ROUTES
from headrace.web.commands.collecting import collect_less
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.redis import Redis

Flood = Callable[[], Awaitable[None]]
"""Sends readings that are made through a route."""
Make = Callable[[str, int], Awaitable[Flood]]
"""Makes so many readings for a route."""

LONGER = 3
"""A turn is longer than one without a broker: it has the way there and back in it."""
FIRST_MESSAGES = 200
MOST_MESSAGES = 50_000
"""In a turn: 10 MB, which every broker holds for a subscriber that has not read them yet."""

ENDLESS_QUEUES = ["max_queued_messages 0", "set_tcp_nodelay true"]
"""And a broker that sends what it has: else much of the time is spent waiting for each other's TCP."""
UNASKED = ['ping_interval: "1h"']
"""A server that asks nobody whether he is there: who publishes says nothing but that."""


def kafka100(effort: Effort) -> list[Row]:
    """Kafka to Kafka, a hundred messages a batch."""
    return _kafka("kafka100", 100, effort, least=0.7)


def kafka1(effort: Effort) -> list[Row]:
    """Kafka to Kafka, every message a batch."""
    return _kafka("kafka1", 1, effort, least=0.4)


def _kafka(name: str, size: int, effort: Effort, least: float) -> list[Row]:
    with service(Kafka) as server:
        for route in ROUTES:
            server.create_topic(f"{route}.in")
            server.create_topic(f"{route}.out")
        connection = {"type": "kafka", "brokers": server.address}
        source = {"topic": "ours.in", "group": "ours", "max_batch": size}
        ours = _config("kafka", connection, source, {"topic": "ours.out"})
        beside = on_one_core(_beside("kafka", server.port, ours, byhand.kafka, size, effort))
    return _rows(name, beside, "aiokafka, consume and produce", least)


def nats100(effort: Effort) -> list[Row]:
    """NATS to NATS, a hundred messages a batch."""
    with service(Nats, extra=UNASKED) as server:
        connection = {"type": "nats", "urls": server.url}
        source = {"subject": "ours.in", "max_batch": 100}
        ours = _config("nats", connection, source, {"subject": "ours.out"})
        beside = on_one_core(_beside("nats", server.port, ours, byhand.nats, 100, effort))
    return _rows("nats100", beside, "nats-py, a callback that publishes", 0.6)


def natsdurable100(effort: Effort) -> list[Row]:
    """NATS to NATS, a hundred messages a batch, that are on the disk before anything else is done."""
    rows = []
    for sync in ("process", "power"):
        with service(Nats, extra=UNASKED) as server:
            source = {"subject": "ours.in", "max_batch": 100}
            connection = {"type": "nats", "urls": server.url}
            ours = _config("nats", connection, source | {"durable": True}, {"subject": "ours.out"})
            plain = _config(
                "nats", connection, source | {"subject": "by-hand.in"}, {"subject": "by-hand.out"}
            )
            beside = partial(_another, plain)
            turns = _beside("nats", server.port, ours, beside, 100, effort, sync)
            _, cpu = on_one_core(turns)
        limit = f"the same without 'durable', and sync: {sync} with"
        rows.append(ratio_row("natsdurable100", cpu, limit, unit="msg/CPU s"))
    return rows


def _another(
    config: tuple[Config, Config], _port: int, _size: int
) -> AbstractAsyncContextManager[None]:
    """Run a pipeline in the place of a program by hand."""
    return pipeline(*config)


def redis100(effort: Effort) -> list[Row]:
    """Redis to Redis, a hundred messages a batch."""
    with service(Redis) as server:
        connection = {"type": "redis", "url": server.url}
        source = {"channel": "ours.in", "max_batch": 100}
        ours = _config("redis", connection, source, {"channel": "ours.out"})
        beside = on_one_core(_beside("redis", server.port, ours, byhand.redis, 100, effort))
    return _rows("redis100", beside, "redis-py, subscribe and pipelined publish", 0.7)


def mqtt0(effort: Effort) -> list[Row]:
    """MQTT to MQTT, at most once."""
    return _mqtt("mqtt0", 0, {"qos": "at_most_once"}, {}, effort)


def mqtt1(effort: Effort) -> list[Row]:
    """MQTT to MQTT, at least once: acknowledged when it is delivered."""
    return _mqtt("mqtt1", 1, {"qos": "at_least_once"}, {"ack": "on_delivery"}, effort)


def _mqtt(name: str, qos: int, quality: Config, ack: Config, effort: Effort) -> list[Row]:
    with service(Mosquitto, extra=ENDLESS_QUEUES) as server:
        connection = {"type": "mqtt", "host": HOST, "port": server.port}
        source = {"topic": "ours.in", "max_batch": 100, **quality, **ack}
        ours = _config("mqtt", connection, source, {"topic": "ours.out", **quality})
        beside = on_one_core(_beside(name, server.port, ours, byhand.mqtt(qos), 100, effort))
    return _rows(name, beside, "aiomqtt, its queue drained", 0.7)


def _config(kind: str, connection: Config, source: Config, target: Config) -> tuple[Config, Config]:
    """Return the config of a pipeline, and its connections."""
    both = {"type": kind, "connection": "broker"}
    config = {"id": "ours", "inputs": [both | source], "outputs": [both | target]}
    return config, {"broker": connection}


async def _beside(
    kind: str,
    port: int,
    ours: tuple[Config, Config],
    by_hand: byhand.Route,
    size: int,
    effort: Effort,
    sync: str | None = None,
) -> tuple[Compared, Compared]:
    """Return what a message costs either side, in seconds on the clock and in seconds of CPU."""
    async with pipeline(*ours, sync=sync), by_hand(port, size), _traffic(kind, port) as make:
        collect_less()
        counts = [await _fitting(make, route, effort) for route in ROUTES]
        turns = [
            [await _cost(make, *each) for each in zip(ROUTES, counts, strict=True)]
            for _ in range(effort.pairs)
        ]
    return both(turns)


@asynccontextmanager
async def _traffic(kind: str, port: int) -> AsyncIterator[Make]:
    """Run whoever publishes and counts."""
    async with talking("bench.traffic", kind, port) as ask:

        async def make(route: str, count: int) -> Flood:
            await ask(f"{route} {count}", "made")
            return lambda: ask("go", "done")

        yield make


async def _cost(make: Make, route: str, count: int) -> Cost:
    """Return the seconds of one message."""
    flood = await make(route, count)
    return await timed(flood(), count)


async def _fitting(make: Make, route: str, effort: Effort) -> int:
    """Return how many messages fill a turn. Warms up on the way, the broker as well."""
    wanted, count = LONGER * effort.seconds, FIRST_MESSAGES
    while (taken := (await _cost(make, route, count))[0] * count) < wanted / 2:
        if count == MOST_MESSAGES:
            return count
        count = min(2 * count, MOST_MESSAGES)
    return min(max(int(count * wanted / taken), FIRST_MESSAGES), MOST_MESSAGES)


def _rows(name: str, beside: tuple[Compared, Compared], limit: str, least: float) -> list[Row]:
    limit = f"{limit}, decoding and encoding"
    return clock_rows(name, beside, limit, unit="msg", least=least)
