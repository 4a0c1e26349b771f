"""The Kafka output at work: each batch as few requests as its partitions allow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.compiler.jsontext import encode
from headrace.compiler.language.context import Context
from headrace.compiler.lowering.paths import MISSING, DottedPath
from headrace.connectors.drivers.kafka_clients import LOOK_SECONDS, Outage, close_producer, said
from headrace.connectors.drivers.kafka_cluster import Cluster

WRITE_SECONDS = 30.0
"""How long a batch may wait for its confirmations. The driver gives up a little earlier."""
WIRE_BYTES = 1 << 17
"""Bytes of the records that are sent to a partition together; a larger record goes alone."""
MOST_BYTES = 100_000_000
"""Bytes of one record: brokers hang up on requests of 100 MiB, before they look at them."""

ACKS: Mapping[str, int] = {"all": -1, "leader": 1, "none": 0}

Wires = dict[int, list[Any]]
"""By partition, what is sent together, in order."""


class KafkaSink(AwaitingSink):
    """Writes to one topic."""

    def __init__(
        self,
        cluster: Cluster,
        ctx: Context,
        *,
        topic: str,
        key: str | None,
        headers: Mapping[str, str],
        compression: str,
        acks: str,
    ) -> None:
        self._cluster = cluster
        self._ctx = ctx
        self._topic = topic
        self._key = None if key is None else DottedPath(key)
        self._headers = [(name, DottedPath(path)) for name, path in headers.items()]
        self._compression = None if compression == "none" else compression
        self._acks = ACKS[acks]
        self._outage = Outage(cluster, topic, ctx)
        self._producer: Any = None
        self._is_idle = True

    async def start(self) -> None:
        """Reach the brokers, and see that they have the topic."""
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaError

        producer = AIOKafkaProducer(
            **self._cluster.options(),
            bootstrap_servers=await self._cluster.reach(self._topic),
            acks=self._acks,
            compression_type=self._compression,
            max_batch_size=WIRE_BYTES,
        )
        self._producer, self._is_idle = producer, True
        try:
            with self._ctx.clock.outside():
                await producer.start()
                await producer.partitions_for(self._topic)
        except BaseException as cause:
            await self.finish()
            if isinstance(cause, KafkaError):
                what = f"writing to '{self._topic}' could not begin: {said(cause)}"
                raise Unreachable(what) from cause
            raise

    async def finish(self) -> None:
        """Close. Whatever is not confirmed by now was given up."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await close_producer(producer, is_idle=self._is_idle)

    async def write(self, batch: Batch) -> None:
        """Send the batch, and wait until all of it is confirmed."""
        if not self._has_topic:
            await self._start_again()
        letter = Letter(self._producer, self._topic, self._wires(batch))
        self._is_idle = False
        with self._ctx.clock.outside():
            await self._wait(letter)
        self._is_idle = True
        if letter.faults:
            raise await self._failure(letter, len(batch))

    @property
    def _has_topic(self) -> bool:
        """Whether there is a producer, and it knows the topic: that may have been deleted."""
        producer = self._producer
        return producer is not None and bool(
            producer.client.cluster.partitions_for_topic(self._topic)
        )

    async def _start_again(self) -> None:
        await self.finish()
        try:
            await self.start()
        except BuildRefused as cause:  # nobody is there to be refused; a password may be rotated
            raise Unreachable(str(cause)) from cause

    async def _wait(self, letter: Letter) -> None:
        """Wait for a letter, and tell when that takes long because nobody answers."""
        ends = self._ctx.clock.monotonic() + WRITE_SECONDS
        try:
            while not await letter.arrives(LOOK_SECONDS):
                if self._ctx.clock.monotonic() >= ends:
                    letter.faults.append(TimeoutError())
                    return
                await self._outage.look(self._producer.client, letter.waiting())
            self._outage.over()
        finally:
            letter.drop()

    async def _failure(self, letter: Letter, records: int) -> BatchFailed:
        """Return what to say of a letter that did not arrive whole; make what it broke anew."""
        from aiokafka.errors import BrokerResponseError, KafkaError, MessageSizeTooLargeError

        confirmed = f"; {letter.confirmed} of {records} records were confirmed"
        rest = confirmed if letter.confirmed else ""
        for cause in letter.faults:
            if isinstance(cause, MessageSizeTooLargeError):
                limit = "'max.message.bytes'"
                return BatchFailed(f"'{self._topic}' takes no record of that size ({limit}){rest}")
            if isinstance(cause, BrokerResponseError) and not cause.retriable:
                return BatchFailed(f"'{self._topic}' refuses records: {said(cause)}{rest}")
        cause = letter.faults[0]
        if not (isinstance(cause, KafkaError) and cause.retriable):
            self._is_idle = False  # what is still under way would arrive after we have given it up
            await self.finish()
        what = said(cause) if isinstance(cause, KafkaError) else type(cause).__name__
        # The outage, if there is one, has been told in the same words: it is one failure.
        reason = self._outage.reason or f"'{self._topic}' did not confirm records: {what}"
        return Unreachable(reason + rest)

    def _wires(self, batch: Batch) -> Wires:
        """Return the batch as what is sent together, by partition, in order."""
        producer, millis, wires = self._producer, self._ctx.clock.millis(), Wires()
        place = self._placing()
        for message in batch:
            value = encode(message)
            if len(value) > MOST_BYTES:
                raise BatchFailed(
                    f"a record for '{self._topic}' has more than {MOST_BYTES:,} bytes"
                )
            key = None if self._key is None else _text(self._key.read(message))
            headers = [
                (name, text)
                for name, path in self._headers
                if (text := _text(path.read(message))) is not None
            ]
            lines = wires.setdefault(place(key), [])
            record = {"timestamp": millis, "key": key, "value": value, "headers": headers}
            if not lines or lines[-1].append(**record) is None:  # it is full
                lines.append(producer.create_batch())
                lines[-1].append(**record)
        return wires

    def _placing(self) -> Callable[[bytes | None], int]:
        """Return which partition a key belongs to: as ever, or without a key one for the batch."""
        from aiokafka.partitioner import DefaultPartitioner

        cluster = self._producer.client.cluster
        everyone = sorted(cluster.partitions_for_topic(self._topic))
        place = DefaultPartitioner()
        any_of_them = place(None, everyone, [*cluster.available_partitions_for_topic(self._topic)])

        def placed(key: bytes | None) -> int:
            found: int = any_of_them if key is None else place(key, everyone, everyone)
            return found

        return placed


class Letter:
    """A batch under way: one task for each of its partitions."""

    def __init__(self, producer: Any, topic: str, wires: Wires) -> None:
        self.confirmed = 0
        self.faults: list[Exception] = []
        self._producer = producer
        self._topic = topic
        self._sending = {
            asyncio.ensure_future(self._send(partition, lines)): partition
            for partition, lines in wires.items()
        }

    async def _send(self, partition: int, lines: Sequence[Any]) -> None:
        sent = []
        try:
            for line in lines:
                send = self._producer.send_batch(line, self._topic, partition=partition)
                sent.append((line.record_count(), await send))
        except Exception as cause:
            self.faults.append(cause)
        for count, confirmation in sent:
            try:
                await confirmation
                self.confirmed += count
            except Exception as cause:
                self.faults.append(cause)

    async def arrives(self, seconds: float) -> bool:
        """Wait so long; return whether everything has been answered."""
        _, waiting = await asyncio.wait(self._sending, timeout=seconds)
        return not waiting

    def waiting(self) -> Iterable[Any]:
        """Return the partitions that have not answered, as the driver names them."""
        from aiokafka import TopicPartition

        return [
            TopicPartition(self._topic, partition)
            for task, partition in self._sending.items()
            if not task.done()
        ]

    def drop(self) -> None:
        """Wait for nothing any more."""
        for task in self._sending:
            task.cancel()


def _text(value: JsonValue) -> bytes | None:
    """Return a value as a key or a header has it: a string as it is, else JSON; None for nothing."""
    if value is MISSING or value is None:
        return None
    return value.encode() if isinstance(value, str) else encode(value)
