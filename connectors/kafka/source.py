"""The Kafka input at work, and what reads a sample for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.compiler.edges import Arrival, Source
from headrace.compiler.errors import Unreachable
from headrace.compiler.timestamps import rfc3339_of_seconds
from headrace.connectors.kafka.connection import LOOK_SECONDS, Cluster, HealthCheck, said
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

if TYPE_CHECKING:
    from headrace.connectors.kafka import KafkaInput

FETCH_BYTES = 1 << 20
"""Bytes of one partition that the driver fetches ahead; a batch of records that is larger comes alone."""
HEARTBEAT_SECONDS = 1.0
"""How often a member is heard of, and hears that partitions are divided anew."""
NEVER_MS = 2**31 - 1


class KafkaSource(Source):
    """Reads one topic. An origin is the record as the driver gives it."""

    connects = True

    def __init__(self, config: KafkaInput, cluster: Cluster) -> None:
        self.max_batch = config.max_batch
        self._config, self._cluster, self._ctx = config, cluster, cluster.ctx
        self._health = HealthCheck(cluster, config.topic, config.group)
        self._known: frozenset[int] | None = None
        self._stopping = False
        self._member: Member | None = None

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Join the group; hand out what is in the partitions that it gives us."""
        from aiokafka.errors import KafkaError

        clock, limits = self._ctx.clock, self._cluster.limits
        ends = clock.monotonic() + limits.connect_seconds
        try:
            address, _ = await self._cluster.reach(self._config.topic)
        except NoTopic:
            self._known = self._known or frozenset()  # whatever it will hold is new
            raise
        member = self._member = Member(
            self._consumer(address), self._cluster, self._config.topic, self._known
        )
        try:
            # A group may let us wait for others. They commit, so nothing is lost by it.
            await member.joined(ends - clock.monotonic())
            yield ()
            while not self._stopping:
                if records := await member.fetch():
                    self._health.over()
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

    def _consumer(self, address: str) -> Any:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        return AIOKafkaConsumer(
            **self._cluster.options(),
            bootstrap_servers=address,
            group_id=self._config.group,
            auto_offset_reset=self._config.start_at,
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
            whom = f"the topic '{self._config.topic}' or the group '{self._config.group}'"
            return turned_away(f"the brokers refuse {whom}: {said(cause)}")
        return Unreachable(f"reading '{self._config.topic}' broke off: {said(cause)}")

    def acknowledge(self, origins: Sequence[Any]) -> None:
        """Have positions committed that are finished, soon."""
        if self._member is not None:
            self._member.finish(origins)

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where a record was."""
        return {
            "connection": self._config.connection,
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
        address, numbers = await self._cluster.reach(self._config.topic)
        consumer = self._consumer(address)
        answers = Answers(consumer, self._ctx)
        try:
            async with clock.timeout(ends - clock.monotonic()):
                await consumer.start()
                consumer.assign(
                    [TopicPartition(self._config.topic, number) for number in sorted(numbers)]
                )
                for each in consumer.assignment():
                    await consumer.position(each)
            yield ()
            while not self._stopping:
                fetched = await consumer.getmany(
                    timeout_ms=int(POLL_SECONDS * 1000), max_records=MOST_RECORDS
                )
                records = [record for some in fetched.values() for record in some]
                for _ in range(sum(record.value is None for record in records)):
                    self._ctx.skip(TOMBSTONE)
                if records:
                    yield [(each.value, each) for each in records if each.value is not None]
                elif not answers.are_coming:
                    await self._cluster.examine(self._config.topic, None, LOOK_SECONDS)
        except (KafkaError, TimeoutError) as cause:
            raise self._broke(cause) from cause
        finally:
            await leave(consumer)


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
