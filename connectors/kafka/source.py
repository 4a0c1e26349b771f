"""The Kafka input at work, and what reads a sample for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.errors import Unreachable
from headrace.compiler.timestamps import rfc3339_of_seconds
from headrace.connectors.kafka.connection import Cluster, said
from headrace.connectors.kafka.healthcheck import LOOK_SECONDS, HealthCheck
from headrace.connectors.kafka.member import (
    MOST_RECORDS,
    POLL_SECONDS,
    TOMBSTONE,
    Answers,
    Member,
    leave,
)
from headrace.connectors.kafka.metadata import NoTopic
from headrace.connectors.kafka.partitions import is_refusal
from headrace.connectors.network.refusal import turned_away

FETCH_BYTES = 1 << 20
"""Bytes of one partition that the driver fetches ahead; a batch of records that is larger comes alone."""
HEARTBEAT_SECONDS = 1.0
"""How often a member is heard of, and hears that partitions are divided anew."""
NEVER_MS = 2**31 - 1


class KafkaSource(Source):
    """Reads one topic. An origin is the record as the driver gives it."""

    connects = True

    def __init__(
        self,
        cluster: Cluster,
        ctx: Context,
        *,
        connection: str,
        topic: str,
        group: str,
        start_at: str,
        max_batch: int,
    ) -> None:
        self.max_batch = max_batch
        self._cluster = cluster
        self._ctx = ctx
        self._connection = connection
        self._topic = topic
        self._group = group
        self._start_at = start_at
        self._health = HealthCheck(cluster, topic, ctx, group)
        self._known: frozenset[int] | None = None
        self._stopping = False
        self._member: Member | None = None

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Join the group; hand out what is in the partitions that it gives us."""
        from aiokafka.errors import KafkaError

        clock, limits = self._ctx.clock, self._cluster.limits
        ends = clock.monotonic() + limits.connect_seconds
        consumer = self._consumer(await self._reached())
        member = self._member = Member(consumer, self._ctx, self._topic, self._known, limits)
        try:
            # A group may let us wait for others. They commit, so nothing is lost by it.
            await member.joined(ends - clock.monotonic())
            yield ()
            while not self._stopping:
                if records := await member.fetch():
                    yield [(record.value, record) for record in records]
                elif member.is_answered:
                    self._health.over()
                else:
                    await self._health.look()
            yield ()
        except (KafkaError, TimeoutError) as cause:
            raise self._broke(cause) from cause
        finally:
            self._known = member.known
            await member.leave()

    async def _reached(self) -> str:
        try:
            address, _ = await self._cluster.reach(self._topic)
        except NoTopic:
            self._known = self._known or frozenset()  # whatever it will hold is new
            raise
        return address

    def _consumer(self, address: str) -> Any:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        return AIOKafkaConsumer(
            **self._cluster.options(),
            bootstrap_servers=address,
            group_id=self._group,
            auto_offset_reset=self._start_at,
            enable_auto_commit=False,
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_bytes=16 * FETCH_BYTES,
            session_timeout_ms=int(self._cluster.limits.session_seconds * 1000),
            heartbeat_interval_ms=int(HEARTBEAT_SECONDS * 1000),
            # A pipeline that is held up is alive: its heartbeat says so.
            max_poll_interval_ms=NEVER_MS,
            isolation_level="read_committed",
            # Two, so that a group may have members of other clients.
            partition_assignment_strategy=(RangePartitionAssignor, RoundRobinPartitionAssignor),
        )

    def _broke(self, cause: Exception) -> Exception:
        """Return what an error of the driver means to the pipeline."""
        if is_refusal(cause):
            whom = f"the topic '{self._topic}' or the group '{self._group}'"
            return turned_away(f"the brokers refuse {whom}: {said(cause)}")
        return Unreachable(f"reading '{self._topic}' broke off: {said(cause)}")

    def acknowledge(self, origins: Sequence[Any]) -> None:
        """Have positions committed that are finished, soon."""
        if self._member is not None:
            self._member.finish(origins)

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where a record was."""
        return {
            "connection": self._connection,
            "topic": origin.topic,
            "partition": origin.partition,
            "offset": origin.offset,
            "key": _text(origin.key),
            "timestamp": _time(origin.timestamp),
        }

    def stop(self) -> bool:
        """Have the reader end soon; what is out of the pipeline until it is closed is committed."""
        self._stopping = True
        return False


class KafkaSample(KafkaSource):
    """Reads all partitions of a topic at nobody's expense.

    The group is named and never joined: the brokers keep no group that has neither members nor positions,
    and nobody waits until its members are found. Nothing is committed, so nothing is left.
    """

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Fix where each partition is read from, as `start_at` says; hand out what is there."""
        from aiokafka import TopicPartition
        from aiokafka.errors import KafkaError

        clock = self._ctx.clock
        ends = clock.monotonic() + self._cluster.limits.connect_seconds
        address, numbers = await self._cluster.reach(self._topic)
        consumer = self._consumer(address)
        answers = Answers(consumer, self._ctx)
        try:
            async with clock.timeout(ends - clock.monotonic()):
                await consumer.start()
                consumer.assign([TopicPartition(self._topic, number) for number in sorted(numbers)])
                for each in consumer.assignment():
                    await consumer.position(each)
            yield ()
            while not self._stopping:
                fetched = await consumer.getmany(
                    timeout_ms=int(POLL_SECONDS * 1000), max_records=MOST_RECORDS
                )
                if fetched:
                    yield [*self._messages(record for some in fetched.values() for record in some)]
                elif not answers.are_coming:
                    await self._cluster.examine(self._topic, None, LOOK_SECONDS)
        except (KafkaError, TimeoutError) as cause:
            raise self._broke(cause) from cause
        finally:
            await leave(consumer)

    def _messages(self, records: Iterator[Any]) -> Iterator[Arrival]:
        for record in records:
            if record.value is None:
                self._ctx.skip(TOMBSTONE)
            else:
                yield record.value, record


def _text(key: bytes | None) -> str | None:
    """Return a key as text; None when it is absent, or something else than UTF-8."""
    try:
        return None if key is None else key.decode()
    except UnicodeDecodeError:
        return None


def _time(millis: int) -> str | None:
    """Return when a record was made, or taken by the broker; None when that is not known."""
    try:
        return rfc3339_of_seconds(millis / 1000) if millis >= 0 else None
    except ValueError:
        return None
