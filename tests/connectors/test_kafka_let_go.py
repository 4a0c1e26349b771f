"""What a pipeline holds on purpose when its Kafka group divides the partitions anew: it is let go of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Output, Transform
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.kafka import KafkaConnection, KafkaInput
from headrace.operators.buffer import Buffer
from tests.connectors.test_s3_letters import landed
from tests.kafka_sides import Gathered, committed, context, joined, payloads, produce, source
from tests.promises import promise
from tests.s3_sides import connection, output
from tests.services.kafka import Kafka
from tests.services.s3 import KEY, S3, SECRET
from tests.stand_ins import pipeline, running, takes
from tests.waiting import until

HOUR = {"interval_secs": 3_600}
NUMBERS = [b"%d" % number for number in range(10)]

pytestmark = pytest.mark.long


@asynccontextmanager
async def holding(
    kafka: Kafka,
    store: S3,
    topic: str,
    outputs: Sequence[Output],
    transforms: Sequence[Transform] = (),
) -> AsyncIterator[Engine]:
    """Give an engine that holds ten messages of a topic with two partitions, acknowledged on delivery."""
    kafka.create_topic(topic, partitions=2)
    plant = KafkaConnection.load({"brokers": kafka.bootstrap})
    it = Engine(
        Clock(asyncio.get_running_loop()),
        connections={"plant": plant, "lake": connection(store)},
        secrets=Secrets({"KEY": KEY, "SECRET": SECRET}, {}),
    )
    reads = {"connection": "plant", "topic": topic, "group": topic, "ack": "on_delivery"}
    try:
        await it.compile(pipeline("p", [KafkaInput.load(reads)], transforms, outputs))
        for partition in range(2):
            await produce(kafka.bootstrap, topic, NUMBERS[partition::2], partition=partition)
        await until(lambda: running(it, "p").parts.held == len(NUMBERS))
        yield it
    finally:
        await it.close()


async def positions(kafka: Kafka, topic: str) -> list[int]:
    """Return what is committed of both partitions."""
    return [await committed(kafka.bootstrap, topic, partition) for partition in range(2)]


@promise("delivery.case.rebalance")
async def test_an_open_part_is_uploaded_before_somebody_else_has_its_partitions(
    kafka: Kafka, object_store: S3
):
    out = output(prefix="rebalanced", rotate=HOUR)
    async with holding(kafka, object_store, "rebalanced", [out]) as it:
        before = landed(object_store, "rebalanced"), await positions(kafka, "rebalanced")
        async with joined(source(context(kafka.bootstrap), "rebalanced")) as reader:
            await until(lambda: len(landed(object_store, "rebalanced")) == len(NUMBERS))
            await produced_to_both(kafka, "rebalanced")
            came = await payloads(reader, 1)

            assert (before[0], max(before[1])) == ([], 0)
            assert await positions(kafka, "rebalanced") == [5, 5]
            assert came == [b"99"]  # and nothing of what is uploaded
        assert running(it, "p").failures.total == 0


@promise("delivery.case.rebalance")
async def test_a_buffer_hands_on_before_somebody_else_has_its_partitions(
    kafka: Kafka, object_store: S3
):
    kept, buffer = Gathered(), Buffer.load({"size": 1_000})
    async with (
        holding(kafka, object_store, "buffered", [takes(kept)], [buffer]),
        joined(source(context(kafka.bootstrap), "buffered")) as reader,
    ):
        await produced_to_both(kafka, "buffered")

        assert await payloads(reader, 1) == [b"99"]
        assert sorted(kept.messages) == [*range(10)]


async def produced_to_both(kafka: Kafka, topic: str) -> None:
    """Produce one more message to each partition."""
    for partition in range(2):
        await produce(kafka.bootstrap, topic, [b"99"], partition=partition)
