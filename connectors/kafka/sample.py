"""What a sample reads of a topic: all partitions, at nobody's expense.

The group is named and never joined: the brokers keep no group that has neither members nor positions,
and nobody waits until its members are found. Nothing is committed, so nothing is left.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

from headrace.compiler.edges import Arrival
from headrace.compiler.errors import Unreachable
from headrace.connectors.kafka.clients import are_led, close_consumer
from headrace.connectors.kafka.member import MOST_RECORDS, POLL_SECONDS, TOMBSTONE
from headrace.connectors.kafka.source import KafkaSource
from headrace.connectors.refusal import CONNECT_SECONDS


class KafkaSample(KafkaSource):
    """Reads one topic without being a member of a group."""

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Fix where each partition is read from, as `start_at` says; hand out what is there."""
        from aiokafka.errors import KafkaError

        clock = self._ctx.clock
        ends = clock.monotonic() + CONNECT_SECONDS
        consumer = self._consumer(await self._reached())
        try:
            async with clock.timeout(ends - clock.monotonic()):
                await self._placed(consumer)
            yield ()
            while not self._stopping:
                fetched = await consumer.getmany(
                    timeout_ms=int(POLL_SECONDS * 1000), max_records=MOST_RECORDS
                )
                if fetched:
                    yield [*self._messages(fetched.values())]
                elif not are_led(consumer._client, consumer.assignment()):
                    raise Unreachable(
                        f"a broker that leads a partition of '{self._topic}' does not answer"
                    )
        except (KafkaError, TimeoutError) as cause:
            raise self._broke(cause) from cause
        finally:
            await close_consumer(consumer)

    async def _placed(self, consumer: Any) -> None:
        from aiokafka import TopicPartition

        await consumer.start()
        found = await consumer._client._wait_on_metadata(self._topic)
        places = [TopicPartition(self._topic, number) for number in sorted(found)]
        consumer.assign(places)
        for place in places:
            await consumer.position(place)

    def _messages(self, fetched: Iterable[Sequence[Any]]) -> Iterable[Arrival]:
        for record in (record for records in fetched for record in records):
            if record.value is None:
                self._ctx.skip(TOMBSTONE)
            else:
                yield record.value, record
