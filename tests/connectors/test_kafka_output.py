"""The `kafka` output, against a real broker."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.jsontext import decode_exact, encode
from headrace.compiler.largejson import ENCODED_AT_ONCE, SLICE_MESSAGES
from headrace.connectors.kafka.connection import Limits
from headrace.connectors.kafka.partitions import Partition, Pending
from headrace.connectors.kafka.sink import KafkaSink
from tests.doubles import TickingClock
from tests.kafka_sides import (
    context,
    create,
    joined,
    payloads,
    produce,
    records,
    sink,
    source,
    started,
    values,
)
from tests.promises import promise
from tests.services.kafka import Kafka


async def test_each_message_is_a_record_in_order_without_a_key(kafka: Kafka):
    batch = [{"b": 1, "a": "ü"}, 2.0, None, [1, 2], "x"]

    async with started(sink(context(kafka.bootstrap), "plain")) as it:
        await it.write(batch)
        await it.write([3])

    found = await records(kafka.bootstrap, "plain")
    expected = ['{"b":1,"a":"ü"}', "2.0", "null", "[1,2]", '"x"', "3"]
    assert [record.value.decode() for record in found] == expected
    assert {record.key for record in found} == {None}
    assert {tuple(record.headers) for record in found} == {()}


async def test_a_batch_of_any_size_is_written(kafka: Kafka):
    batch = [{"n": n, "text": "x" * 1000} for n in range(2000)]

    async with started(sink(context(kafka.bootstrap), "large")) as it:
        await it.write(batch)

    assert len(await values(kafka.bootstrap, "large")) == 2000


async def test_keys_and_headers_are_text_as_it_is_or_json(kafka: Kafka):
    options = {"key": "id", "headers": {"unit": "_meta.unit", "all": "_meta"}}
    batch = [
        {"id": "m-1", "_meta": {"unit": "°C"}},
        {"id": 7},
        {"id": {"a": 1}},
        {"id": None},
        {"_meta": None},
        "no object",
    ]

    async with started(sink(context(kafka.bootstrap), "keyed", **options)) as it:
        await it.write(batch)

    found = await records(kafka.bootstrap, "keyed")
    assert [record.key for record in found] == [b"m-1", b"7", b'{"a":1}', None, None, None]
    first = [("unit", "°C".encode()), ("all", '{"unit":"°C"}'.encode())]
    assert [list(record.headers) for record in found] == [first, [], [], [], [], []]


async def test_a_number_is_a_key_as_a_message_writes_it_whatever_is_downstream(kafka: Kafka):
    written = decode_exact(b'[{"id":0.00001},{"id":1.10},{"id":1e16}]')

    async with started(sink(context(kafka.bootstrap), "numbers", key="id")) as it:
        await it.write(written)
        await it.write([{"id": 1e-5}, {"id": 1.1}, {"id": 1e16}])

    found = await records(kafka.bootstrap, "numbers")
    assert sorted(record.key for record in found) == 2 * [b"0.00001"] + 2 * [b"1.1"] + 2 * [b"1e16"]


async def test_records_with_one_key_go_where_every_client_sends_them(kafka: Kafka):
    kafka.create_topic("spread", partitions=5)
    names = [f"sensor-{n}" for n in range(20)]

    async with started(sink(context(kafka.bootstrap), "spread", key="name")) as it:
        await it.write([{"name": name} for name in names])
    for name in names:
        await produce(kafka.bootstrap, "spread", [b"theirs"], key=name.encode())

    found = await records(kafka.bootstrap, "spread", partitions=5)
    places = {record.key: {r.partition for r in found if r.key == record.key} for record in found}
    assert len(places) == 20
    assert {len(each) for each in places.values()} == {1}
    assert len({each for place in places.values() for each in place}) == 5


async def test_batches_without_keys_are_spread_over_the_partitions(kafka: Kafka):
    kafka.create_topic("batches-spread", partitions=3)

    async with started(sink(context(kafka.bootstrap), "batches-spread")) as it:
        for n in range(40):
            await it.write([n, n])

    found = await records(kafka.bootstrap, "batches-spread", partitions=3)
    assert {record.partition for record in found} == {0, 1, 2}
    assert len(found) == 80


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_is_compressed_is_read_by_anybody(kafka: Kafka, compression: str):
    topic = f"compressed-{compression}"
    async with started(sink(context(kafka.bootstrap), topic, compression=compression)) as it:
        await it.write(["x" * 1000] * 10)

    assert await values(kafka.bootstrap, topic) == [b'"' + b"x" * 1000 + b'"'] * 10


@promise("kafka.output.written", "kafka.output_leader.written", "kafka.output_none.written")
@pytest.mark.parametrize("acks", ["all", "leader", "none"])
async def test_whoever_confirms_the_records_are_written(kafka: Kafka, acks: str):
    ctx, topic = context(kafka.bootstrap), f"acks-{acks}"
    async with started(sink(ctx, topic, acks=acks)) as it:
        await it.write([1, 2])
        await it.write([3])

    async with joined(source(ctx, topic, start_at="earliest")) as reader:
        assert await payloads(reader, 3) == [b"1", b"2", b"3"]


@promise("delivery.failed.told")
async def test_a_record_that_the_broker_finds_too_large_fails_its_batch_alone(kafka: Kafka):
    ctx = context(kafka.bootstrap)
    async with started(sink(ctx, "sized")) as it:
        with pytest.raises(BatchFailed) as failed:
            await it.write([1, 2, "x" * 2_000_000, 3])
        await it.write([4])

    assert str(failed.value) == (
        "'sized' takes no record of that size ('max.message.bytes');"
        " some records of the batch were confirmed"
    )
    assert ctx.warnings == ["of a batch that failed 3 of 4 records were confirmed"]
    assert await values(kafka.bootstrap, "sized") == [b"1", b"2", b"3", b"4"]


async def test_a_record_that_no_broker_would_look_at_is_not_sent(kafka: Kafka):
    limits = Limits(record_bytes=1000)
    async with started(sink(context(kafka.bootstrap), "huge", limits)) as it:
        with pytest.raises(BatchFailed, match="a record for 'huge' has more than 1,000 bytes"):
            await it.write([1, "x" * 1000])
        await it.write([2])

    assert await values(kafka.bootstrap, "huge") == [b"2"]


async def test_batches_that_wait_for_each_other_are_sent_together_in_order(kafka: Kafka):
    async with started(sink(context(kafka.bootstrap), "together")) as it:
        rests = [it.begin([n]) for n in range(100)]
        assert it._topic is not None
        [partition] = it._topic._partitions.values()
        requests = len(partition._waiting)
        await asyncio.gather(*(rest() for rest in reversed(rests)))

    assert requests == 1
    assert await values(kafka.bootstrap, "together") == [b"%d" % n for n in range(100)]


async def test_a_topic_that_takes_little_at_once_is_written_to_in_order(kafka: Kafka):
    narrow = {"max.message.bytes": "1000"}
    await create(kafka.bootstrap, "narrow", narrow)
    batches = [[f"{n}{'x' * 300}", n] for n in range(20)]
    batches[7].append("x" * 2000)

    async with started(sink(context(kafka.bootstrap), "narrow")) as it:
        rests = [it.begin(batch) for batch in batches]
        told = await asyncio.gather(*(rest() for rest in rests), return_exceptions=True)

    [failed] = [each for each in told if each is not None]
    assert told.index(failed) == 7
    assert str(failed) == (
        "'narrow' takes no record of that size ('max.message.bytes');"
        " some records of the batch were confirmed"
    )
    written = [message for batch in batches for message in batch if message != "x" * 2000]
    assert await values(kafka.bootstrap, "narrow") == [encode(message) for message in written]


async def test_a_producer_that_ends_by_itself_is_made_anew_and_keeps_the_order(kafka: Kafka):
    async with started(sink(context(kafka.bootstrap), "anew")) as it:
        await it.write([0])
        await it._producer.stop()
        with pytest.raises(Unreachable, match="'anew' did not confirm records: ProducerClosed"):
            await it.write(["lost"])
        rests = [it.begin([n]) for n in range(1, 9)]
        await asyncio.gather(*(rest() for rest in rests))
        await it.write([9])

    assert await values(kafka.bootstrap, "anew") == [b"%d" % n for n in range(10)]


async def test_a_batch_that_is_abandoned_leaves_the_others_alone(kafka: Kafka):
    async with started(sink(context(kafka.bootstrap), "abandoned")) as it:
        first, second = (asyncio.ensure_future(it.begin([n])()) for n in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()

    assert await values(kafka.bootstrap, "abandoned") == [b"0", b"1"]


async def test_a_topic_is_made_while_the_output_starts(kafka: Kafka):
    async with started(
        sink(context(kafka.bootstrap), "made by the output".replace(" ", "-"))
    ) as it:
        await it.write([1])

    assert await values(kafka.bootstrap, "made-by-the-output") == [b"1"]


async def test_one_that_was_never_started_has_nothing_to_finish(kafka: Kafka):
    await sink(context(kafka.bootstrap), "never").finish()


async def test_nothing_of_it_goes_on_when_it_is_finished(kafka: Kafka):
    async with started(sink(context(kafka.bootstrap), "over")) as it:
        await it.write([1])

    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("key", [None, "k"])
async def test_what_comes_behind_a_large_batch_is_written_behind_it(
    kafka: Kafka, key: str | None
) -> None:
    topic, ctx = f"behind-{key}", context(kafka.bootstrap, clock=TickingClock())
    large = [{"n": n, "k": "same"} for n in range(3 * LARGE_BATCH)]
    small = [[{"n": -n, "k": "same"}] for n in range(1, 6)]

    async with started(sink(ctx, topic, key=key)) as it:
        under_way = [
            it.begin(batch)() for batch in (small[0], large, *small[1:3], large, *small[3:])
        ]
        await asyncio.gather(*under_way)
        await it.write(small[0])

    expected = [*small[0], *large, *small[1], *small[2], *large, *small[3], *small[4], *small[0]]
    assert await values(kafka.bootstrap, topic) == [*map(encode, expected)]


async def test_a_large_batch_with_a_message_that_is_none_fails_whole(kafka: Kafka) -> None:
    ctx = context(kafka.bootstrap, clock=TickingClock())
    large = [*range(3 * LARGE_BATCH)]

    async with started(sink(ctx, "faulty")) as it:
        under_way = [it.begin(each)() for each in ([*large, "\ud800"], [1], large)]
        failed, *others = await asyncio.gather(*under_way, return_exceptions=True)

    assert isinstance(failed, UnicodeEncodeError)
    assert others == [None, None]
    assert await values(kafka.bootstrap, "faulty") == [*map(encode, [1, *large])]


async def test_others_have_their_turns_while_a_large_batch_is_framed_and_sent(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, framed, put = 0, Counter[int](), Counter[int]()
    ctx = context(kafka.bootstrap, clock=TickingClock())
    real_frame, real_put = KafkaSink._frame, Partition.put

    def frame(*arguments: Any) -> Any:
        framed[turns] += 1
        return real_frame(*arguments)

    def put_one(*arguments: Any) -> None:
        put[turns] += 1
        real_put(*arguments)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(KafkaSink, "_frame", frame)
    monkeypatch.setattr(Partition, "put", put_one)
    async with started(sink(ctx, "turns")) as it:
        counting = asyncio.ensure_future(others())
        await it.write([*range(3 * LARGE_BATCH)])
        counting.cancel()

    assert sum(framed.values()) == sum(put.values()) == 3 * LARGE_BATCH
    assert max(framed.values()) <= 3 * ENCODED_AT_ONCE
    assert max(put.values()) <= 3 * SLICE_MESSAGES


@pytest.mark.long
async def test_a_large_batch_that_is_cancelled_before_its_turn_is_not_sent(kafka: Kafka) -> None:
    ctx = context(kafka.bootstrap, clock=TickingClock())
    large = [*range(3 * LARGE_BATCH)]

    async with started(sink(ctx, "given-up")) as it:
        first, second, third = (
            asyncio.ensure_future(it.begin(each)()) for each in (large, large, [1])
        )
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, third)

    assert await values(kafka.bootstrap, "given-up") == [*map(encode, [*large, 1])]


async def test_a_large_batch_that_is_given_up_on_its_way_is_not_handed_on_any_further(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx, put = context(kafka.bootstrap, clock=TickingClock()), 0
    real_put = Partition.put

    def put_one(partition: Partition, record: Any, pending: Pending) -> None:
        nonlocal put
        put += 1
        if put == 1_000:
            pending.fail(KafkaConnectionError())
        real_put(partition, record, pending)

    monkeypatch.setattr(Partition, "put", put_one)
    async with started(sink(ctx, "given-up-on-its-way")) as it:
        with pytest.raises(Unreachable):
            await it.write([*range(3 * LARGE_BATCH)])

    assert put < 1_000 + SLICE_MESSAGES


async def test_a_large_batch_under_way_does_not_hold_up_the_end(kafka: Kafka) -> None:
    ctx = context(kafka.bootstrap, clock=TickingClock())

    async with started(sink(ctx, "ended")) as it:
        writing = asyncio.ensure_future(it.write([*range(50 * LARGE_BATCH)]))
        for _ in range(5):
            await asyncio.sleep(0)
        writing.cancel()

    assert len(await values(kafka.bootstrap, "ended")) < 50 * LARGE_BATCH
