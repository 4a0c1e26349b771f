"""The `kafka` input, against a real broker."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import Unreachable
from headrace.connectors.kafka import KafkaInput
from headrace.connectors.kafka.connection import Limits
from headrace.connectors.kafka.member import COMMIT_SECONDS, TOMBSTONE
from headrace.connectors.kafka.source import FETCH_BYTES, HEARTBEAT_SECONDS
from tests.kafka_sides import (
    Gathered,
    committed,
    context,
    engine,
    joined,
    payloads,
    produce,
    read,
    source,
)
from tests.promises import promise
from tests.services.kafka import Kafka
from tests.stand_ins import pipeline, running, takes
from tests.stopwatch import Stopwatch

NUMBERS = [b"%d" % number for number in range(100)]


def reading(topic: str, **options) -> KafkaInput:
    return KafkaInput.load({"connection": "plant", "topic": topic, "group": topic, **options})


class Gate(AwaitingSink):
    """Holds every batch until it is let through, by its first message."""

    def __init__(self) -> None:
        self.taken: list[Batch] = []
        self.open = asyncio.Event()

    async def write(self, batch: Batch) -> None:
        await self.open.wait()
        self.taken.append(batch)


@promise("delivery.begins.ready")
async def test_nothing_is_lost_that_is_produced_as_soon_as_it_is_connected(kafka: Kafka):
    kafka.create_topic("pinned", partitions=3)
    await produce(kafka.bootstrap, "pinned", [b"before"], partition=1)

    async with joined(source(context(kafka.bootstrap), "pinned")) as reader:
        for partition in range(3):
            await produce(kafka.bootstrap, "pinned", [b"after"], partition=partition)

        assert await payloads(reader, 3) == [b"after"] * 3


async def test_a_group_without_a_position_begins_where_it_is_told(kafka: Kafka):
    await produce(kafka.bootstrap, "begun", [b"1", b"2"])

    async with joined(source(context(kafka.bootstrap), "begun", start_at="earliest")) as reader:
        assert await payloads(reader, 2) == [b"1", b"2"]


@promise("kafka.on_receipt.away")
async def test_what_was_produced_while_nobody_read_arrives_even_before_a_first_message(
    kafka: Kafka,
):
    it = context(kafka.bootstrap)
    async with joined(source(it, "between")):
        pass

    await produce(kafka.bootstrap, "between", [b"1"])

    async with joined(source(it, "between")) as reader:
        assert await payloads(reader, 1) == [b"1"]


@promise("delivery.case.stopped")
async def test_after_a_clean_end_nothing_comes_twice(kafka: Kafka):
    await produce(kafka.bootstrap, "clean", NUMBERS)
    first = source(context(kafka.bootstrap), "clean", start_at="earliest")
    async with joined(first) as reader:
        arrivals = await read(reader, len(NUMBERS))
        first.acknowledge([record for _, record in arrivals[:60]])
        first.stop()
        assert list(await anext(reader)) == []

    assert await committed(kafka.bootstrap, "clean") == 60
    async with joined(source(context(kafka.bootstrap), "clean")) as reader:
        assert await payloads(reader, 40) == NUMBERS[60:]


@promise("kafka.on_receipt.twice")
async def test_positions_are_committed_while_it_runs(kafka: Kafka):
    await produce(kafka.bootstrap, "running", NUMBERS)
    it = source(context(kafka.bootstrap), "running", start_at="earliest")
    async with joined(it) as reader:
        it.acknowledge([record for _, record in await read(reader, len(NUMBERS))])
        async with it._ctx.clock.timeout(5 * COMMIT_SECONDS):
            while await committed(kafka.bootstrap, "running") != 100:
                pass


@promise("kafka.on_delivery.twice", "delivery.ack.order")
async def test_with_on_delivery_a_position_waits_for_the_slowest_output(kafka: Kafka):
    await produce(kafka.bootstrap, "slow", NUMBERS[:3])
    gate = Gate()
    config = pipeline(
        "p", [reading("slow", start_at="earliest", ack="on_delivery")], [], [takes(gate)]
    )
    async with engine(kafka.bootstrap) as it:
        await it.compile(config)
        await produce(kafka.bootstrap, "slow", NUMBERS[3:6])
        # Held back: whatever was taken, nothing is committed.
        await it.clock.sleep(2 * COMMIT_SECONDS)
        assert await committed(kafka.bootstrap, "slow") == 0
        gate.open.set()
        await it.dispose("p")

    assert [message for batch in gate.taken for message in batch] == [0, 1, 2, 3, 4, 5]
    assert await committed(kafka.bootstrap, "slow") == 6


async def test_batches_hold_what_has_arrived_up_to_max_batch(kafka: Kafka):
    await produce(kafka.bootstrap, "batches", NUMBERS)
    kept = Gathered()
    async with engine(kafka.bootstrap) as it:
        config = reading("batches", start_at="earliest", max_batch=40)
        await it.compile(pipeline("p", [config], [], [takes(kept)]))
        await kept.until(100)

    assert max(map(len, kept.batches)) == 40
    assert kept.messages == list(range(100))


async def test_what_is_no_message_is_skipped_with_one_warning_of_its_kind(kafka: Kafka, caplog):
    odd = [b"", b"\xff", b"{", b"[1,", b"{ nope }", b"[" * 1000, b"[1, nope]", b"   nope", b"{x}"]
    await produce(kafka.bootstrap, "odd", [*odd * 100, b"1"])
    await produce(kafka.bootstrap, "odd", [None] * 3, key=b"k")
    await produce(kafka.bootstrap, "odd", [b"2"])
    await produce(kafka.bootstrap, "odd", [None], key=b"k")
    kept = Gathered()
    async with engine(kafka.bootstrap) as it:
        await it.compile(
            pipeline("p", [reading("odd", start_at="earliest", max_batch=7)], [], [takes(kept)])
        )
        assert await kept.until(2) == [1, 2]
        await it.dispose("p")

    assert await committed(kafka.bootstrap, "odd") == len(odd) * 100 + 6
    skipped = [each.getMessage() for each in caplog.records if "skipped" in each.getMessage()]
    assert len(skipped) == len(set(skipped)) <= 8
    assert sum(TOMBSTONE in each for each in skipped) == 1


async def test_tombstones_are_counted_and_warned_of_once(kafka: Kafka):
    await produce(kafka.bootstrap, "graves", [None] * 3, key=b"k")
    await produce(kafka.bootstrap, "graves", [b"1"])
    ctx = context(kafka.bootstrap)
    async with joined(source(ctx, "graves", start_at="earliest")) as reader:
        assert await payloads(reader, 1) == [b"1"]

    assert ctx.skipped == 3
    assert ctx.warnings == [TOMBSTONE]


async def test_an_envelope_shows_where_a_record_was(kafka: Kafka):
    await produce(
        kafka.bootstrap, "shown", [b"1"], key=b"k\xc3\xbc", timestamp_ms=1_700_000_000_123
    )
    await produce(kafka.bootstrap, "shown", [b"2"], key=b"\xff", timestamp_ms=1)
    it = source(context(kafka.bootstrap), "shown", start_at="earliest")
    async with joined(it) as reader:
        first, second = [it.describe(record) for _, record in await read(reader, 2)]

    assert first == {
        "connection": "plant",
        "topic": "shown",
        "partition": 0,
        "offset": 0,
        "key": "kü",
        "timestamp": "2023-11-14T22:13:20.123+00:00",
    }
    assert (second["offset"], second["key"]) == (1, None)


@promise("delivery.case.rebalance")
async def test_two_of_a_group_share_the_partitions_and_take_over(kafka: Kafka):
    kafka.create_topic("shared", partitions=4)
    one, two = (source(context(kafka.bootstrap), "shared") for _ in range(2))
    async with joined(one) as first:
        async with joined(two) as second:
            for partition in range(4):
                await produce(kafka.bootstrap, "shared", [b"1"], partition=partition)
            mine, others = await asyncio.gather(read(first, 2), read(second, 2))
            parts = [{record.partition for _, record in each} for each in (mine, others)]
            assert sorted(map(len, parts)) == [2, 2]
            assert parts[0] | parts[1] == {0, 1, 2, 3}
            two.acknowledge([record for _, record in others])
            one.acknowledge([record for _, record in mine])

        seen = set()
        for partition in range(4):
            await produce(kafka.bootstrap, "shared", [b"2"], partition=partition)
        while seen != {0, 1, 2, 3}:
            for payload, record in await read(first, 1):
                assert payload == b"2"
                seen.add(record.partition)
                one.acknowledge([record])


@promise("kafka.on_delivery.twice", "delivery.case.rebalance")
async def test_partitions_are_given_up_when_what_is_out_is_finished(kafka: Kafka):
    kafka.create_topic("handed", partitions=2)
    one, two = (source(context(kafka.bootstrap), "handed") for _ in range(2))
    async with joined(one) as first:
        for partition in range(2):
            await produce(kafka.bootstrap, "handed", [b"1"], partition=partition)
        out = await read(first, 2)

        second = two.read()
        joining = asyncio.ensure_future(anext(second))
        await one._ctx.clock.sleep(1.5)  # the group is asked; what is out is waited for
        assert not joining.done()
        one.acknowledge([record for _, record in out])
        fetching = asyncio.ensure_future(anext(first))  # finds nothing: it was not given up
        await joining
        for partition in range(2):
            await produce(kafka.bootstrap, "handed", [b"2"], partition=partition)

        assert await payloads(second, 1) == [b"2"]
        [(payload, _)] = await fetching
        assert payload == b"2"
        await second.aclose()


@promise("kafka.input.beyond")
async def test_a_source_that_nobody_reads_stays_in_its_group_and_fetches_no_more(kafka: Kafka):
    body = b'"' + b"x" * 500_000 + b'"'
    await produce(kafka.bootstrap, "held", [body] * 20)
    it = source(context(kafka.bootstrap), "held", start_at="earliest")
    async with joined(it) as reader:
        first = await anext(reader)
        consumer = it._member._consumer
        generation = consumer._coordinator.generation
        consumer._subscription._last_fetch_ended -= 86_400  # as if it had been a day
        await it._ctx.clock.sleep(2 * HEARTBEAT_SECONDS)
        [fetched] = consumer._fetcher._records.values()

        assert len(first) <= 3
        assert fetched._partition_records._records.size_in_bytes() < 1.1 * FETCH_BYTES
        assert consumer._coordinator.generation == generation
        assert len(await read(reader, 20 - len(first))) == 20 - len(first)


async def test_what_is_out_for_too_long_comes_again_at_another_member(kafka: Kafka):
    kafka.create_topic("stuck", partitions=2)
    limits = Limits(revoke_seconds=0.2)
    one, two = (source(context(kafka.bootstrap), "stuck", limits) for _ in range(2))
    async with joined(one) as first:
        for partition in range(2):
            await produce(kafka.bootstrap, "stuck", [b"1"], partition=partition)
        out = await read(first, 2)
        async with joined(two) as second:
            [(payload, record)] = await read(second, 1)
            assert payload == b"1"
            one.acknowledge([mine for _, mine in out])  # too late for the one that went
            two.acknowledge([record])

    for partition in range(2):
        assert await committed(kafka.bootstrap, "stuck", partition) == 1


async def test_a_group_that_lets_one_wait_holds_up_no_pipeline(kafka: Kafka):
    await produce(kafka.bootstrap, "patient", [b"1"])
    limits = Limits(connect_seconds=0.0)
    it = source(context(kafka.bootstrap), "patient", limits, start_at="earliest")

    async with joined(it) as reader:
        assert await payloads(reader, 1) == [b"1"]


async def test_a_partition_that_does_not_say_where_it_begins_breaks_the_reader(kafka: Kafka):
    it = source(context(kafka.bootstrap), "unpinned", Limits(pin_seconds=0.0))
    async with joined(it) as reader:
        with pytest.raises(Unreachable, match="reading 'unpinned' broke off: TimeoutError"):
            await anext(reader)


async def test_a_record_larger_than_what_is_fetched_at_once_arrives(kafka: Kafka):
    body = b'"' + b"x" * 1_040_000 + b'"'
    await produce(kafka.bootstrap, "wide", [b"1", body, b"2"])

    async with joined(source(context(kafka.bootstrap), "wide", start_at="earliest")) as reader:
        assert await payloads(reader, 3) == [b"1", body, b"2"]


async def test_partitions_that_are_added_are_read_from_their_beginning(kafka: Kafka):
    kafka.create_topic("grown")
    it = source(context(kafka.bootstrap), "grown", Limits(metadata_seconds=1.0))
    async with joined(it) as reader:
        await added(kafka, "grown", 2)
        await produce(kafka.bootstrap, "grown", [b"new"], partition=1)

        assert await payloads(reader, 1) == [b"new"]


async def added(kafka: Kafka, topic: str, total: int) -> None:
    """Give a topic more partitions."""
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.create_partitions({topic: NewPartitions(total)})
    finally:
        await admin.close()


async def test_a_topic_is_made_by_whoever_asks_for_it_first(kafka: Kafka):
    async with joined(source(context(kafka.bootstrap), "made")) as reader:
        await produce(kafka.bootstrap, "made", [b"1"])

        assert await payloads(reader, 1) == [b"1"]


@pytest.mark.parametrize("ack", ["on_receipt", "on_delivery"])
async def test_a_deleted_pipeline_answers_soon_and_repeats_nothing(kafka: Kafka, ack: str):
    topic = f"deleted-{ack}"
    await produce(kafka.bootstrap, topic, [b"%d" % n for n in range(3000)])
    config = reading(topic, start_at="earliest", ack=ack)
    first, second = Gathered(), Gathered()
    async with engine(kafka.bootstrap) as it:
        await it.compile(pipeline("p", [config], [], [takes(first)]))
        await first.until(100)
        watch = Stopwatch()
        await it.dispose("p")
        assert watch.seconds < 2
        await it.compile(pipeline("p", [config], [], [takes(second)]))
        await second.until(3000 - len(first.messages))
        assert running(it, "p").status == "running"

    assert first.messages + second.messages == list(range(3000))
