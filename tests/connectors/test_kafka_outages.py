"""Kafka brokers that are killed, and come back: nothing is lost, and it is told as one failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Unreachable
from headrace.connectors.kafka import KafkaInput, KafkaOutput
from headrace.connectors.kafka.connection import Limits
from tests.kafka_sides import (
    Gathered,
    committed,
    context,
    engine,
    joined,
    payloads,
    produce,
    read,
    sink,
    source,
    started,
    values,
)
from tests.promises import promise
from tests.services.kafka import Kafka
from tests.stand_ins import pipeline, running, takes
from tests.stopwatch import Stopwatch

AWAY_SECONDS = 2.5
BACK_SECONDS = 3.0
"""What may pass between the return of a broker and the next message."""
OUTPUT_SECONDS, INPUT_SECONDS = 0.8, 1.2
"""What either side may take to close when nobody answers it."""
BUSY_SECONDS = 4.0
"""The same where somebody waited for a processor most of the time, which is counted only in part
(`tests/stopwatch.py`): less than the five that the end of a pipeline has. Whoever waits for an answer
waits for 29 s."""


@pytest.fixture(scope="module")
def mortal(tmp_path_factory) -> Iterator[Kafka]:
    """Give a broker that a test may kill, and has to start again."""
    with Kafka(tmp_path_factory.mktemp("mortal")) as server:
        yield server


def refused(server: Kafka) -> str:
    return f"{server.address} does not answer: connection refused"


async def overdue(closing: Awaitable[None], seconds: float) -> float:
    """Return how much longer something took than it may; below nought, how much less."""
    watch = Stopwatch()
    await closing
    took, busy = watch.seconds, watch.busy
    return took - (BUSY_SECONDS if busy > took else seconds)


async def alone(clock: Clock) -> None:
    """Wait until nothing of either side goes on: what was sent is confirmed when the broker is back."""
    async with clock.timeout(60):  # the driver waits half a minute for what it has sent
        while asyncio.all_tasks() != {asyncio.current_task()}:
            await clock.sleep(0.01)
    for _ in range(10):
        await asyncio.sleep(0)  # sockets that were closed are gone some turns later


def reading(topic: str, **options) -> KafkaInput:
    config = {"connection": "plant", "topic": topic, "group": topic, "start_at": "earliest"}
    return KafkaInput.load({**config, **options})


def writing(topic: str) -> KafkaOutput:
    return KafkaOutput.load({"connection": "plant", "topic": topic})


@promise("kafka.output.twice")
@pytest.mark.long
async def test_a_route_over_a_broker_that_was_killed_loses_nothing_and_goes_on(
    mortal: Kafka, caplog
):
    caplog.set_level("INFO", "headrace")
    mortal.create_topic("in")
    mortal.create_topic("out")
    kept = Gathered()
    config = pipeline(
        "p", [reading("in", max_batch=10, ack="on_delivery")], [], [takes(kept), writing("out")]
    )
    async with engine(mortal.bootstrap) as it:
        await it.compile(config)
        await produce(mortal.bootstrap, "in", [b"%d" % n for n in range(1000)])
        await kept.until(100)

        mortal.kill()
        await it.clock.sleep(AWAY_SECONDS)
        await asyncio.to_thread(mortal.start)
        await produce(mortal.bootstrap, "in", [b"%d" % n for n in range(1000, 1100)])
        back = Stopwatch()
        while 1099 not in kept.messages:
            await kept.until(len(kept.messages) + 1)
        assert back.seconds < BACK_SECONDS
        told = running(it, "p").failures.table.latest()
        await it.dispose("p")

    assert set(kept.messages) == set(range(1100))
    assert {int(value) for value in await values(mortal.bootstrap, "out")} == set(range(1100))
    assert {each.message for each in told} == {refused(mortal)}
    assert sum(each.getMessage().endswith("connected again") for each in caplog.records) >= 1
    assert await committed(mortal.bootstrap, "in") == 1100


@promise("kafka.output.away")
async def test_a_batch_waits_for_the_return_of_the_broker(mortal: Kafka):
    ctx = context(mortal.bootstrap)
    async with started(sink(ctx, "waits")) as it:
        await it.write([1])
        mortal.kill()
        writing = asyncio.ensure_future(it.write([2, 3]))
        await ctx.clock.sleep(AWAY_SECONDS)
        assert not writing.done()

        await asyncio.to_thread(mortal.start)
        back = Stopwatch()
        await writing
        assert back.seconds < BACK_SECONDS

    assert await values(mortal.bootstrap, "waits") == [b"1", b"2", b"3"]
    assert set(ctx.failures) == {refused(mortal)}
    assert 2 <= len(ctx.failures) <= 6
    assert ctx.notes == ["connected again"]


@promise("kafka.output.away")
@pytest.mark.long
async def test_a_batch_that_was_given_up_is_not_written_later(mortal: Kafka):
    ctx = context(mortal.bootstrap)
    async with started(sink(ctx, "given-up", Limits(request_seconds=2.0))) as it:
        await it.write([1])
        mortal.kill()
        said = []
        for n in (2, 3):
            with pytest.raises(Unreachable) as lost:
                await it.write([n])
            said.append(str(lost.value))
        await asyncio.to_thread(mortal.start)
        await it.write([4])

    assert said == [refused(mortal)] * 2
    assert set(ctx.failures) == {refused(mortal)}
    assert await values(mortal.bootstrap, "given-up") == [b"1", b"4"]


@pytest.mark.long
async def test_both_sides_close_soon_when_the_broker_is_gone(mortal: Kafka):
    await produce(mortal.bootstrap, "gone", [b"1", b"2"])
    ctx = context(mortal.bootstrap)
    it, out = source(ctx, "gone", start_at="earliest"), sink(ctx, "gone")
    await out.start()
    async with joined(it) as reader:
        it.acknowledge([record for _, record in await read(reader, 2)])
        mortal.kill()
        writing = asyncio.ensure_future(out.write([3]))
        await ctx.clock.sleep(0.5)
        writing.cancel()  # the grace is over
        output_late = await overdue(out.finish(), OUTPUT_SECONDS)
        input_late = await overdue(reader.aclose(), INPUT_SECONDS)
    await asyncio.to_thread(mortal.start)

    assert output_late < 0
    assert input_late < 0
    await asyncio.wait([writing])
    await alone(ctx.clock)


async def test_both_sides_close_soon_when_the_broker_says_nothing_any_more(mortal: Kafka):
    await produce(mortal.bootstrap, "mute", [b"1", b"2"])
    ctx = context(mortal.bootstrap)
    it, out = source(ctx, "mute", start_at="earliest"), sink(ctx, "mute")
    await out.start()
    reader = it.read()
    await anext(reader)
    it.acknowledge([record for _, record in await read(reader, 2)])
    with mortal.halted():
        writing = asyncio.ensure_future(out.write([3]))
        await ctx.clock.sleep(0.2)
        writing.cancel()
        output_late = await overdue(out.finish(), OUTPUT_SECONDS)
        input_late = await overdue(reader.aclose(), INPUT_SECONDS)
    await produce(mortal.bootstrap, "heard", [b"1"])  # when it takes new topics again

    assert output_late < 0
    assert input_late < 0
    await asyncio.wait([writing])
    await alone(ctx.clock)


@promise("delivery.case.deleted")
async def test_what_was_sent_when_an_output_ends_is_all_that_may_be_written_later(mortal: Kafka):
    ctx = context(mortal.bootstrap)
    out = sink(ctx, "ended")
    await out.start()
    await out.write(["confirmed"])
    with mortal.halted():
        sent = asyncio.ensure_future(out.write(["sent"]))
        assert out._topic is not None
        [partition] = out._topic._partitions.values()
        for _ in range(10):
            await asyncio.sleep(0)  # the driver has it some turns later
        assert not partition._waiting
        waiting = [asyncio.ensure_future(out.write(["waiting"])) for _ in range(3)]
        await asyncio.sleep(0)
        for each in (sent, *waiting):
            each.cancel()
        await out.finish()
    await alone(ctx.clock)

    assert await values(mortal.bootstrap, "ended") == [b'"confirmed"', b'"sent"']


@pytest.mark.long
async def test_a_deleted_pipeline_answers_soon_when_its_broker_is_gone(mortal: Kafka):
    mortal.create_topic("deleted")
    async with engine(mortal.bootstrap) as it:
        await it.compile(pipeline("p", [reading("deleted")], [], [writing("deleted-out")]))
        await produce(mortal.bootstrap, "deleted", [b"1"] * 10_000)
        mortal.kill()
        await it.clock.sleep(1)
        watch = Stopwatch()
        await it.dispose("p")
        seconds = watch.seconds
    await asyncio.to_thread(mortal.start)

    assert seconds < 5.1
    await alone(it.clock)


@pytest.mark.long
async def test_a_pipeline_waits_for_a_broker_that_comes_later(mortal: Kafka):
    mortal.create_topic("later")
    mortal.create_topic("later-in")
    mortal.kill()
    kept = Gathered()
    async with engine(mortal.bootstrap) as it:
        await it.compile(pipeline("in", [reading("later")], [], [takes(kept)]))
        starting = await it.compile(
            pipeline("out", [reading("later-in")], [], [writing("later-out")])
        )
        assert running(it, "in").status == "running"
        assert starting.status == "starting"

        await asyncio.to_thread(mortal.start)
        back = Stopwatch()
        while running(it, "out").status != "running":
            assert back.seconds < BACK_SECONDS + 1
            await it.clock.sleep(0.01)
        await produce(mortal.bootstrap, "later", [b"1"])
        assert await kept.until(1) == [1]
        [told] = running(it, "in").failures.table.latest()

    assert told.message == refused(mortal)


@pytest.mark.long
async def test_a_member_that_was_away_longer_than_its_group_waits_comes_back(mortal: Kafka):
    ctx = context(mortal.bootstrap)
    mortal.create_topic("expired")
    it = source(ctx, "expired", Limits(session_seconds=6.0))
    async with joined(it) as reader:
        with mortal.halted():
            await ctx.clock.sleep(7.0)
        await produce(mortal.bootstrap, "expired", [b"1"])

        assert await payloads(reader, 1) == [b"1"]
