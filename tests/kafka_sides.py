"""Both sides of a Kafka broker for tests: what writes to it and reads from it, and components on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Arrival, InlineSink
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.kafka import KafkaConnection, KafkaInput, KafkaOutput
from headrace.connectors.kafka import connection as kafka_connection
from headrace.connectors.kafka.connection import LIMITS, Limits
from headrace.connectors.kafka.sink import KafkaSink
from headrace.connectors.kafka.source import KafkaSource
from tests.clients import PATIENCE
from tests.doubles import StubContext

HANG_UP_SECONDS = 2.0
Reader = AsyncGenerator[Sequence[Arrival], None]


def context(brokers: str, *, clock: Clock | None = None, **options: Any) -> StubContext:
    """Return a context with one connection, `plant`; ``options`` are more of that."""
    connection = KafkaConnection.load({"brokers": brokers, **options})
    secrets = {"PASSWORD": "not-this-one"}
    return StubContext(connections={"plant": connection}, secrets=secrets, clock=clock)


def source(ctx: StubContext, topic: str, limits: Limits = LIMITS, **options: Any) -> KafkaSource:
    """Return what reads a topic, in a group of the same name unless it is said otherwise."""
    config = {"connection": "plant", "topic": topic, "group": topic, **options}
    made = KafkaInput.load(config).source(ctx, limits)
    assert isinstance(made, KafkaSource)
    return made


def sink(ctx: StubContext, topic: str, limits: Limits = LIMITS, **options: Any) -> KafkaSink:
    """Return what writes to a topic."""
    made = KafkaOutput.load({"connection": "plant", "topic": topic, **options}).open(ctx, limits)
    assert isinstance(made, KafkaSink)
    return made


@asynccontextmanager
async def joined(source: KafkaSource) -> AsyncIterator[Reader]:
    """Read a source up to where it is connected; close the reader in the end."""
    reader = source.read()
    try:
        assert list(await anext(reader)) == []
        yield reader
    finally:
        await reader.aclose()
        await hung_up()


@asynccontextmanager
async def started(sink: KafkaSink) -> AsyncIterator[KafkaSink]:
    """Start a sink; finish it in the end."""
    await sink.start()
    try:
        yield sink
    finally:
        await sink.finish()
        await hung_up()


async def hung_up() -> None:
    """Give connections a moment to be gone: over TLS the other side has to say goodbye."""
    if stopping := [*kafka_connection._stopping]:
        await asyncio.wait(stopping, timeout=HANG_UP_SECONDS)
    for _ in range(10):
        await asyncio.sleep(0)


async def read(reader: Reader, count: int) -> list[Arrival]:
    """Return so many arrivals, as soon as they are there."""
    arrivals: list[Arrival] = []
    async with Clock(asyncio.get_running_loop()).timeout(PATIENCE):
        while len(arrivals) < count:
            arrivals += await anext(reader)
    return arrivals


async def payloads(reader: Reader, count: int) -> list[bytes]:
    """Return so many payloads, as soon as they are there."""
    return [payload for payload, _ in await read(reader, count)]


async def produce(brokers: str, topic: str, values: Iterable[Any], **options: Any) -> None:
    """Write records as another client does; all are confirmed when it returns."""
    producer = AIOKafkaProducer(bootstrap_servers=brokers, acks="all", max_request_size=40_000_000)
    await producer.start()
    try:
        sent = [await producer.send(topic, value, **options) for value in values]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def records(brokers: str, topic: str, partitions: int = 1) -> list[Any]:
    """Return all that is in a topic, partition by partition."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        found: list[Any] = []
        while any([await consumer.position(place) < ends[place] for place in places]):
            for some in (await consumer.getmany(timeout_ms=1000)).values():
                found += some
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        await consumer.stop()


async def values(brokers: str, topic: str, partitions: int = 1) -> list[bytes]:
    """Return the values of all records of a topic."""
    return [record.value for record in await records(brokers, topic, partitions)]


async def create(brokers: str, topic: str, settings: Mapping[str, str]) -> None:
    """Create a topic of one partition with settings of its own."""
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=dict(settings))])
    finally:
        await admin.close()


async def deleted(brokers: str, topic: str) -> None:
    """Delete a topic; return when the broker has heard of it from its controller."""
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    try:
        await admin.delete_topics([topic])
        async with asyncio.timeout(PATIENCE):
            while topic in await admin.list_topics():
                pass
    finally:
        await admin.close()


async def committed(brokers: str, topic: str, partition: int = 0) -> int | None:
    """Return the position in a topic that the group of its name has committed."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, group_id=topic, enable_auto_commit=False)
    await consumer.start()
    try:
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        position: int | None = await consumer.committed(place)
        return position
    finally:
        await consumer.stop()


class Gathered(InlineSink):
    """Keeps batches, and says when there are enough messages."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._news = asyncio.Event()

    @property
    def messages(self) -> Batch:
        """All messages, in order."""
        return [message for batch in self.batches for message in batch]

    def write(self, batch: Batch) -> None:
        self.batches.append(batch)
        self._news.set()

    async def until(self, count: int) -> Batch:
        """Return the messages when there are so many."""
        async with Clock(asyncio.get_running_loop()).timeout(PATIENCE):
            while len(self.messages) < count:
                self._news.clear()
                await self._news.wait()
        return self.messages


@asynccontextmanager
async def engine(brokers: str) -> AsyncIterator[Engine]:
    """Give an engine with the connection `plant`; end its pipelines."""
    connection = KafkaConnection.load({"brokers": brokers})
    it = Engine(Clock(asyncio.get_running_loop()), connections={"plant": connection})
    try:
        yield it
    finally:
        await it.close()
