"""Kafka: the broker keeps everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from tests.clients import Gone
from tests.services.authority import Authority
from tests.services.kafka import Kafka
from tests.services.server import Service
from tests.whole.brokers.kinds.kind import Channel, Json, Kind

MOST_BYTES = 20_000_000


class _Channel(Channel):
    def __init__(self, producer: AIOKafkaProducer, name: str) -> None:
        self._producer, self._name = producer, name

    async def send(self, payloads: Sequence[bytes]) -> None:
        sent = [await self._producer.send(self._name, payload) for payload in payloads]
        await asyncio.gather(*sent)


class KafkaKind(Kind):
    """Apache Kafka."""

    name = "kafka"
    place = "topic"
    keeps = True
    lost = (KafkaError, OSError)
    reads = {"group": "headrace", "start_at": "earliest", "ack": "on_delivery"}

    def server(self, folder: Path, **options: Any) -> Service:
        return Kafka(folder, **options)

    def roomy(self, folder: Path) -> Service:
        return self.server(folder, extra=["message.max.bytes=20000000"])

    def guarded(self, folder: Path, authority: Authority, user: str, password: str) -> Service:
        return Kafka(folder, tls=authority, users={user: password})

    def connection(self, server: Any, *, user: str = "", password: str = "", **tls: Any) -> Json:
        login = {"sasl_mechanism": "SCRAM-SHA-256", "username": user, "password": password}
        listener = "PLAINTEXT" if server.tls is None else "SASL_SSL"
        brokers = {"type": "kafka", "brokers": server.bootstrap_for(listener)}
        return {**brokers, **(login if user else {}), **tls}

    def create(self, server: Any, place: str) -> None:
        try:
            server.create_topic(place)
        except Gone as cause:
            if "error 36" not in str(cause):  # a pipeline that waited for the broker was quicker
                raise

    async def told_of(self, server: Any, place: str) -> None:
        """Return when a position is committed: of all that is done by then, at most a second later."""
        admin = AIOKafkaAdminClient(bootstrap_servers=server.bootstrap)
        partition, group = TopicPartition(place, 0), self.reads["group"]
        try:
            await admin.start()
            while True:
                offsets = await admin.list_consumer_group_offsets(group, partitions=[partition])
                if offsets[partition].offset > 0:
                    return
        finally:
            await admin.close()

    @asynccontextmanager
    async def dial(self, server: Any, place: str) -> AsyncIterator[Channel]:
        producer = AIOKafkaProducer(
            bootstrap_servers=server.bootstrap, max_request_size=MOST_BYTES, retry_backoff_ms=50
        )
        try:
            await producer.start()
            yield _Channel(producer, place)
        finally:
            await producer.stop()

    async def listen(
        self, server: Any, place: str, heard: Callable[[], None]
    ) -> AsyncIterator[Sequence[bytes]]:
        reader = AIOKafkaConsumer(
            bootstrap_servers=server.bootstrap,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            retry_backoff_ms=50,
        )
        try:
            await reader.start()
            reader.assign([TopicPartition(place, 0)])
            heard()
            while True:
                fetched = await reader.getmany(timeout_ms=1000)
                yield [record.value for records in fetched.values() for record in records]
        finally:
            await reader.stop()
