"""The `mqtt` output, against a real broker."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import pytest

from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import Unreachable
from headrace.compiler.largejson import SLICE_MESSAGES
from headrace.connectors.mqtt.connection import LIMITS, Limits
from headrace.connectors.mqtt.sink import Publisher
from tests.connected import started
from tests.doubles import TickingClock
from tests.mqtt_sides import context, heard, listening, sink, somebody
from tests.promises import promise
from tests.services.mosquitto import Mosquitto

QOS = ["at_most_once", "at_least_once", "exactly_once"]


def values(messages) -> list:
    """Return what messages hold."""
    return [json.loads(message.payload) for message in messages]


async def write(opened, batch) -> None:
    """Write a batch as the output's worker does."""
    if (rest := opened.begin(batch)) is not None:
        await rest()


@promise("mqtt.output_qos_0.written")
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_every_message_is_published_in_order(mosquitto: Mosquitto, qos):
    topic = f"order/{qos}"
    async with listening(mosquitto, "order/+", 1) as client:
        async with started(sink(context(mosquitto), topic, qos=QOS[qos])) as opened:
            await write(opened, [{"n": n} for n in range(200)])
            await write(opened, ["ü", 2.0])
        messages = await heard(client, 202)

    assert values(messages) == [*[{"n": n} for n in range(200)], "ü", 2.0]
    assert messages[-2].payload == '"ü"'.encode()
    assert {str(message.topic) for message in messages} == {topic}
    assert {message.qos for message in messages} == {min(qos, 1)}
    assert not any(message.retain for message in messages)


async def test_the_broker_keeps_what_it_is_asked_to(mosquitto: Mosquitto):
    async with started(
        sink(context(mosquitto), "kept", qos="at_least_once", retain=True)
    ) as opened:
        await write(opened, [1, 2])

    async with listening(mosquitto, "kept") as client:
        (message,) = await heard(client, 1)
        await client.publish("kept", b"", 1, retain=True)
    assert (message.payload, message.retain) == (b"2", True)


@pytest.mark.parametrize("qos", QOS)
async def test_a_long_batch_is_one_too(mosquitto: Mosquitto, qos):
    topic = f"long/{qos}"
    async with listening(mosquitto, topic) as client:
        async with started(sink(context(mosquitto), topic, qos=qos)) as opened:
            await write(opened, [*range(2500)])
        assert values(await heard(client, 2500)) == [*range(2500)]


async def test_confirmations_do_not_wait_for_each_other(mosquitto: Mosquitto):
    """A broker that sends them one by one would have each wait 40 ms for the system to confirm the last."""
    seconds = []
    ctx = context(mosquitto)
    async with started(sink(ctx, "swift", qos="at_least_once")) as opened:
        for _ in range(15):
            began = ctx.clock.monotonic()
            await write(opened, [*range(10)])
            seconds.append(ctx.clock.monotonic() - began)

    assert min(seconds) < 0.035


async def test_a_message_may_be_large(mosquitto: Mosquitto):
    async with listening(mosquitto, "wide") as client:
        async with started(sink(context(mosquitto), "wide", qos="at_least_once")) as opened:
            await write(opened, ["x" * (16 << 20)])
        (message,) = await heard(client, 1)

    assert len(message.payload) == (16 << 20) + 2


async def test_a_batch_that_is_no_json_fails_alone(mosquitto: Mosquitto):
    async with listening(mosquitto, "alone") as client:
        async with started(sink(context(mosquitto), "alone", qos="at_least_once")) as opened:
            with pytest.raises(TypeError):
                await write(opened, [1, object()])
            await write(opened, [2])
        assert values(await heard(client, 1)) == [2]


async def test_a_broker_that_is_not_there_is_unreachable(tmp_path):
    server = Mosquitto(tmp_path)
    opened = sink(context(server), "absent")

    for _ in range(2):
        with pytest.raises(Unreachable) as failed:
            await opened.start()

    assert str(failed.value) == f"{server.address} does not answer: connection refused"
    await opened.finish()


@promise("mqtt.output.twice")
@pytest.mark.parametrize("qos", QOS[1:])
async def test_what_is_not_confirmed_is_published_again(tmp_path, qos):
    """The broker ends again and again under load. One that is killed may lose what it has confirmed."""
    with Mosquitto(tmp_path) as server:
        async with somebody(server, identifier="keeper", clean_session=False) as keeper:
            await keeper.subscribe("again", 1)
        ctx = context(server)
        async with started(sink(ctx, "again", qos=qos)) as opened:
            writing = asyncio.ensure_future(_batches(opened, 20, 10))
            for _ in range(3):
                await ctx.clock.sleep(random.uniform(0.05, 0.2))
                await asyncio.to_thread(server.restart)
            await writing

        async with somebody(server, identifier="keeper", clean_session=False) as keeper:
            await keeper.subscribe("again", 1)
            seen: set[int] = set()
            while len(seen) < 200:
                seen.update(values(await heard(keeper, 1)))

    assert seen == {*range(200)}
    assert len({*ctx.failures}) <= 1
    assert {*ctx.notes} <= {"connected again"}


async def _batches(opened, count: int, size: int) -> None:
    for n in range(count):
        await write(opened, [*range(n * size, n * size + size)])


@promise("mqtt.output.away")
async def test_a_broker_that_stays_away_fails_the_batch_in_time(tmp_path):
    with Mosquitto(tmp_path) as server:
        ctx = context(server)
        async with started(
            sink(ctx, "away", Limits(write_seconds=1.0), qos="at_least_once")
        ) as opened:
            server.kill()
            with pytest.raises(Unreachable) as failed:
                await write(opened, [1, 2])

    assert str(failed.value).startswith(f"{server.address} closed the connection")
    assert {*ctx.failures} == {str(failed.value)}


async def test_a_broker_that_does_not_confirm_fails_the_batch_and_the_next_is_written(
    tmp_path,
):
    with Mosquitto(tmp_path) as server:
        async with started(
            sink(context(server), "mute", Limits(write_seconds=0.5), qos="at_least_once")
        ) as opened:
            with server.halted(), pytest.raises(Unreachable) as failed:
                await write(opened, [1, 2])
            await write(opened, [3])

    assert str(failed.value) == f"{server.address} does not confirm what is published"


@promise("mqtt.output.written", "delivery.failed.told")
@pytest.mark.parametrize("count", [3, 7])
async def test_what_was_confirmed_of_a_batch_is_told(tmp_path, count):
    limits = Limits(write_seconds=0.5, at_once=2)
    with Mosquitto(tmp_path) as server:
        ctx = context(server)
        async with started(sink(ctx, "some", limits, qos="at_least_once")) as opened:
            published = opened._client.publish

            def halting(payloads):
                if payloads[0] == b"3":
                    stopped.__enter__()
                published(payloads)

            stopped = server.halted()
            opened._client.publish = halting
            with pytest.raises(Unreachable) as failed:
                await write(opened, [*range(1, count + 1)])
            stopped.__exit__(None, None, None)

    assert str(failed.value).endswith("; some messages of the batch are confirmed")
    assert ctx.warnings == [f"of a batch that is given up 2 of {count} messages are confirmed"]


@promise("mqtt.output_qos_0.written", "mqtt.output_qos_0.away", "mqtt.output_qos_0.twice")
async def test_with_qos_0_a_lost_broker_is_told_and_found_again(tmp_path):
    with Mosquitto(tmp_path) as server:
        ctx = context(server)
        async with started(sink(ctx, "lost")) as opened:
            await write(opened, [1])
            server.kill()
            while not ctx.failures:
                await ctx.clock.sleep(0)
            with pytest.raises(Unreachable) as failed:
                await write(opened, [2])
            server.restart()
            async with listening(server, "lost") as client:
                await write(opened, [3])
                assert values(await heard(client, 1)) == [3]

    assert ctx.failures == [str(failed.value)]


@pytest.mark.long
async def test_with_qos_0_a_broker_that_takes_nothing_holds_up_the_output(tmp_path):
    with Mosquitto(tmp_path) as server:
        ctx = context(server)
        async with started(sink(ctx, "stuck", Limits(keepalive_seconds=1))) as opened:
            with server.halted():
                batch = ["x" * (1 << 20)]
                waits = None
                while waits is None:
                    waits = opened.begin(batch)
                    await ctx.clock.sleep(0)
                with pytest.raises(Unreachable):
                    await waits()


@pytest.mark.long
@pytest.mark.parametrize("qos", QOS[:2])
async def test_a_broker_that_says_no_later_is_a_lost_connection(tmp_path, qos):
    with Mosquitto(tmp_path / "one") as server:
        ctx = context(server)
        async with started(sink(ctx, "later", Limits(write_seconds=1.0), qos=qos)) as opened:
            server.kill()
            while not ctx.failures:
                await ctx.clock.sleep(0)
            closed = Mosquitto(tmp_path / "other", user="u", password="p")
            closed.port = server.port
            with closed, pytest.raises(Unreachable) as failed:
                await write(opened, [1])
            said = {*ctx.failures, str(failed.value)}

    assert f"{server.address} does not let the client in: not authorized" in said


@pytest.mark.long
@pytest.mark.parametrize("qos", QOS[:2])
async def test_two_that_cut_each_other_off_tire_of_it(mosquitto: Mosquitto, qos):
    """Both want the client id whenever they have something to write, which is always."""
    one, other = context(mosquitto), context(mosquitto, host="localhost")

    async def insist(ctx) -> None:
        opened = sink(ctx, f"double/{qos}", qos=qos)
        await opened.start()
        try:
            while True:
                with suppress(Unreachable):
                    await write(opened, ["x" * 10_000] * 100)
                await ctx.clock.sleep(0)
        finally:
            await opened.finish()

    both = [asyncio.ensure_future(insist(ctx)) for ctx in (one, other)]
    await asyncio.wait(both, timeout=3)
    for each in both:
        each.cancel()
    await asyncio.wait(both)

    said = [*one.failures, *other.failures]
    assert 2 <= len(said) <= 15
    assert any("another client with the id" in each for each in said)


async def test_a_batch_that_is_given_up_leaves_no_connection(tmp_path):
    with Mosquitto(tmp_path) as server:
        opened = sink(context(server), "given up", qos="at_least_once")
        await opened.start()
        with server.halted():
            writing = asyncio.ensure_future(write(opened, [1]))
            await asyncio.sleep(0)
            writing.cancel()
            await opened.finish()

    assert writing.cancelled()


@pytest.mark.parametrize("qos", [0, 1])
async def test_many_messages_are_published_in_turns_with_others(
    mosquitto: Mosquitto, qos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, turns, made = f"turns/{qos}", 0, Counter[int]()
    batch, real = [{"n": n} for n in range(LARGE_BATCH + 500)], Publisher.publish

    def publish(client: Publisher, payloads: Sequence[bytes]) -> None:
        made[turns] += len(payloads)
        real(client, payloads)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(Publisher, "publish", publish)
    ctx = context(mosquitto, clock=TickingClock())
    async with listening(mosquitto, topic, 0) as client:
        async with started(sink(ctx, topic, qos=QOS[qos])) as opened:
            counting = asyncio.ensure_future(others())
            await write(opened, batch)
            counting.cancel()
            await write(opened, ["behind"])
        messages = await heard(client, len(batch) + 1)

    assert values(messages) == [*batch, "behind"]
    assert max(made.values()) <= (LIMITS.at_once if qos else 3 * SLICE_MESSAGES)


@pytest.mark.parametrize("qos", [0, 1])
async def test_of_many_messages_none_is_published_if_one_cannot_be(
    mosquitto: Mosquitto, qos: int
) -> None:
    topic = f"none/{qos}"
    async with listening(mosquitto, topic, 1) as client:
        async with started(sink(context(mosquitto), topic, qos=QOS[qos])) as opened:
            with pytest.raises(UnicodeEncodeError):
                await write(opened, [*range(2 * LARGE_BATCH), "\ud800"])
            await write(opened, ["behind"])
        messages = await heard(client, 1)

    assert values(messages) == ["behind"]
