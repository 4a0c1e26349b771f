"""The `mqtt` input, against a real broker."""

from __future__ import annotations

import asyncio
import re

import pytest
import uvloop

from headrace.compiler.errors import Unreachable
from headrace.connectors.mqtt.connection import LIMITS, Limits
from headrace.connectors.mqtt.source import FLOODED
from tests.connected import subscribed
from tests.mqtt_sides import arrived, context, origins, payloads, somebody, source
from tests.promises import promise
from tests.services.mosquitto import Mosquitto

IMPATIENT = Limits(keepalive_seconds=1)
QOS = ["at_most_once", "at_least_once", "exactly_once"]
KEPT = [{"qos": "at_least_once"}, {"qos": "exactly_once"}]
ODD = [b"", b"\xff\xfe", b"{half", b"[" * 100_000, bytes(range(256)), b"x" * (16 << 20), b"1"]


async def published(server: Mosquitto, topic: str, count: int, qos: int = 1) -> None:
    """Publish the numbers below ``count`` and wait until the broker has them."""
    async with somebody(server) as client:
        for n in range(count):
            await client.publish(topic, b"%d" % n, qos)


def numbers(arrivals) -> list[int]:
    """Return the numbers that arrived."""
    return [int(payload) for payload in payloads(arrivals)]


@pytest.mark.parametrize("published_with", [0, 1, 2])
@pytest.mark.parametrize("subscribed_with", [0, 1, 2])
async def test_metadata_tells_the_topic_and_the_qos_it_came_with(
    mosquitto: Mosquitto, published_with, subscribed_with
):
    it = source(context(mosquitto), "meta/+/#", qos=QOS[subscribed_with])
    async with subscribed(it) as reader, somebody(mosquitto) as client:
        await client.publish("meta/a/b", b'{"n":1}', published_with)

        ((payload, origin),) = await arrived(reader, 1)

    assert payload == b'{"n":1}'
    assert it.describe(origin) == {
        "connection": "bus",
        "topic": "meta/a/b",
        "qos": QOS[min(published_with, subscribed_with)],
        "retain": False,
    }


async def test_what_the_broker_had_kept_is_told_apart(mosquitto: Mosquitto):
    async with somebody(mosquitto) as client:
        await client.publish("retained/a", b"1", 1, retain=True)
        it = source(context(mosquitto), "retained/a")
        async with subscribed(it) as reader:
            kept = await arrived(reader, 1)
            await client.publish("retained/a", b"2", 1, retain=True)
            live = await arrived(reader, 1)
        await client.publish("retained/a", b"", 1, retain=True)

    assert payloads([*kept, *live]) == [b"1", b"2"]
    assert [it.describe(origin)["retain"] for origin in origins([*kept, *live])] == [True, False]


async def kept(server: Mosquitto, topic: str, payload: bytes) -> None:
    """Have the broker keep a payload under many topics; nothing, to have it keep none."""
    async with somebody(server, max_inflight_messages=20) as client:
        await asyncio.gather(
            *(client.publish(f"{topic}/{n}", payload, 1, retain=True) for n in range(600))
        )


@pytest.mark.parametrize("qos", QOS[:2])
async def test_more_than_may_wait_comes_before_the_subscription_is_confirmed(
    mosquitto: Mosquitto, qos
):
    await kept(mosquitto, "all", b"1")
    it = source(context(mosquitto), "all/+", qos=qos)
    async with subscribed(it) as reader:
        seen: set[str] = set()
        while len(seen) < 600:
            arrivals = await anext(reader)
            it.acknowledge(origins(arrivals))
            seen.update(it.describe(origin)["topic"] for origin in origins(arrivals))
    await kept(mosquitto, "all", b"")


async def test_a_session_may_hold_more_than_may_wait(tmp_path):
    with Mosquitto(tmp_path, extra=["max_inflight_messages 0"]) as server:
        it = source(context(server), "away", qos="at_least_once", ack="on_delivery")
        async with subscribed(it):
            pass
        async with somebody(server, max_inflight_messages=20) as client:
            await asyncio.gather(*(client.publish("away", b"%d" % n, 1) for n in range(900)))
        async with subscribed(it) as reader:
            seen = await arrived(reader, 900)

    assert numbers(seen) == [*range(900)]


@pytest.mark.long
async def test_what_floods_it_before_the_subscription_is_counted(mosquitto: Mosquitto):
    await kept(mosquitto, "flooded", b"1")
    failures: list[str] = []
    for _ in range(5):  # now and then the broker confirms first
        ctx = context(mosquitto)
        async with subscribed(source(ctx, "flooded/+", Limits(most_kept=10))) as reader:
            assert 0 < len(await anext(reader)) <= 10
        failures += ctx.failures
        if failures:
            break
    await kept(mosquitto, "flooded", b"")

    assert {*failures} == {FLOODED}


async def test_a_shared_filter_is_read_by_one_of_its_group(mosquitto: Mosquitto):
    ours, theirs = context(mosquitto), context(mosquitto)
    theirs.pipeline = "p2"
    filter = "$share/group/shared/#"
    async with (
        subscribed(source(ours, filter, qos="at_least_once")) as one,
        subscribed(source(theirs, filter, qos="at_least_once")) as other,
    ):
        await published(mosquitto, "shared/a", 10)
        seen = numbers([*await arrived(one, 5), *await arrived(other, 5)])

    assert sorted(seen) == [*range(10)]


async def test_payloads_are_handed_over_as_they_are(mosquitto: Mosquitto):
    async with subscribed(source(context(mosquitto), "odd")) as reader:
        async with somebody(mosquitto) as client:
            for payload in ODD:
                await client.publish("odd", payload)

        assert payloads(await arrived(reader, len(ODD))) == ODD


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_order_is_kept_and_nothing_is_lost_while_it_reads_on(mosquitto: Mosquitto, loop):
    async def run() -> list[int]:
        it = source(context(mosquitto), "order")
        async with subscribed(it) as reader:
            publishing = asyncio.ensure_future(published(mosquitto, "order", 2000, 0))
            seen = numbers(await arrived(reader, 2000))
            await publishing
            return seen

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(run()) == [*range(2000)]


@promise("mqtt.on_delivery.twice")
@pytest.mark.parametrize("options", KEPT)
async def test_what_is_not_acknowledged_comes_again(mosquitto: Mosquitto, options):
    it = source(context(mosquitto), f"again/{options['qos']}", ack="on_delivery", **options)
    async with subscribed(it) as reader:
        await published(mosquitto, f"again/{options['qos']}", 6, 2)
        first = await arrived(reader, 6)
        it.acknowledge([origin for payload, origin in first if payload in (b"0", b"4")])
    async with subscribed(it) as reader:
        await published(mosquitto, f"again/{options['qos']}", 1, 2)
        second = await arrived(reader, 5)
        it.acknowledge(origins(second))
    async with subscribed(it) as reader:
        await published(mosquitto, f"again/{options['qos']}", 1, 2)
        third = await arrived(reader, 1)
        it.acknowledge(origins(third))
    await it.forget()

    assert numbers(first) == [*range(6)]
    assert sorted(numbers(second)) == [0, 1, 2, 3, 5]
    assert numbers(third) == [0]


@promise("mqtt.on_delivery.away")
@pytest.mark.parametrize("options", KEPT)
async def test_what_is_published_while_it_is_away_waits(mosquitto: Mosquitto, options):
    it = source(context(mosquitto), f"away/{options['qos']}", ack="on_delivery", **options)
    async with subscribed(it):
        pass
    await published(mosquitto, f"away/{options['qos']}", 3, 2)

    async with subscribed(it) as reader:
        seen = await arrived(reader, 3)
    await it.forget()

    assert numbers(seen) == [0, 1, 2]


@pytest.mark.parametrize("options", KEPT)
async def test_a_broker_waits_for_acknowledgements_also_on_receipt(mosquitto: Mosquitto, options):
    topic = f"receipt/{options['qos']}"
    it = source(context(mosquitto), topic, **options)
    async with subscribed(it) as reader:
        await published(mosquitto, topic, 30, 1)
        first = await arrived(reader, 20)
        assert len(first) == 20
        it.acknowledge(origins(first))
        second = await arrived(reader, 10)

    assert numbers([*first, *second]) == [*range(30)]


@promise("mqtt.on_receipt.away", "mqtt.on_receipt.twice", "mqtt.qos_0.away", "mqtt.qos_0.twice")
@pytest.mark.parametrize("qos", ["at_most_once", "at_least_once", "exactly_once"])
async def test_nothing_comes_again_that_was_not_to_be_kept(mosquitto: Mosquitto, qos: str):
    topic = f"clean/{qos}"
    it = source(context(mosquitto), topic, qos=qos)
    async with subscribed(it) as reader:
        await published(mosquitto, topic, 3)
        await arrived(reader, 3)
    await published(mosquitto, topic, 3)
    async with subscribed(it) as reader:
        await published(mosquitto, topic, 1)

        assert numbers(await arrived(reader, 1)) == [0]


async def test_a_forgotten_one_begins_anew(mosquitto: Mosquitto):
    it = source(context(mosquitto), "forgotten", qos="at_least_once", ack="on_delivery")
    async with subscribed(it) as reader:
        await published(mosquitto, "forgotten", 3)
        await arrived(reader, 3)

    await it.forget()

    async with subscribed(it) as reader:
        async with somebody(mosquitto) as client:
            await client.publish("forgotten", b"7", 1)
        assert numbers(await arrived(reader, 1)) == [7]
    await it.forget()


async def test_an_acknowledgement_does_not_go_over_another_connection(mosquitto: Mosquitto):
    it = source(context(mosquitto), "late", qos="at_least_once", ack="on_delivery")
    async with subscribed(it) as reader:
        await published(mosquitto, "late", 2)
        first = await arrived(reader, 2)
    async with subscribed(it) as reader:
        await arrived(reader, 2)
        it.acknowledge(origins(first))
    async with subscribed(it) as reader:
        third = await arrived(reader, 2)
    await it.forget()

    assert sorted(numbers(third)) == [0, 1]


async def test_a_stopped_one_yields_once_more(mosquitto: Mosquitto):
    it = source(context(mosquitto), "stopped")
    async with subscribed(it) as reader:
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)

        assert it.stop() is False
        assert list(await waiting) == []


@promise("mqtt.qos_0.away")
async def test_a_broker_that_hangs_up_is_a_lost_connection(tmp_path):
    with Mosquitto(tmp_path) as server:
        it = source(context(server), "lost")
        async with subscribed(it) as reader:
            server.kill()
            with pytest.raises(Unreachable) as lost:
                await anext(reader)
        with pytest.raises(Unreachable) as refused:
            await anext(it.read())

    assert str(lost.value) == str(refused.value)
    assert str(lost.value).startswith(f"{server.address} closed the connection")


@promise("mqtt.qos_0.waits", "mqtt.qos_0.beyond")
async def test_who_publishes_too_fast_with_qos_0_is_not_listened_to(mosquitto: Mosquitto):
    it = source(context(mosquitto), "flood")
    async with subscribed(it) as reader:
        async with somebody(mosquitto) as client:
            for n in range(3000):
                await client.publish("flood", b"%d" % n)
        first = await anext(reader)
        seen = [*first, *await arrived(reader, 3000 - len(first))]

    assert len(first) == LIMITS.most_waiting
    assert numbers(seen) == [*range(3000)]


@promise("mqtt.input.waits")
async def test_large_messages_that_wait_are_few(mosquitto: Mosquitto):
    large = b"x" * (LIMITS.most_bytes // 2)
    it = source(context(mosquitto), "large")
    async with subscribed(it) as reader:
        async with somebody(mosquitto) as client:
            for _ in range(10):
                await client.publish("large", large)
        sizes = []
        while sum(sizes) < 10:
            sizes.append(len(await anext(reader)))

    assert max(sizes) <= 2


@pytest.mark.long
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_does_not_listen_is_still_there(mosquitto: Mosquitto, loop):
    """Nothing is read for longer than a broker waits for a sign of life."""

    async def run() -> list[int]:
        it = source(ctx := context(mosquitto), "patience", IMPATIENT)
        async with subscribed(it) as reader:
            await published(mosquitto, "patience", 2000, 0)
            await ctx.clock.sleep(3.5)
            return numbers(await arrived(reader, 2000))

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(run()) == [*range(2000)]


@pytest.mark.long
async def test_a_broker_that_is_silent_for_too_long_is_lost(mosquitto: Mosquitto):
    """One that is stopped keeps its connections and says nothing."""
    reader = source(context(mosquitto), "silent", IMPATIENT).read()
    await anext(reader)
    with mosquitto.halted(), pytest.raises(Unreachable):
        await anext(reader)
    await reader.aclose()


async def test_messages_are_acknowledged_in_the_order_they_came_whatever_is_finished_first(
    tmp_path,
):
    with Mosquitto(tmp_path, extra=["log_type all"]) as server:
        it = source(context(server), "t", qos="at_least_once")
        async with subscribed(it) as reader:
            await published(server, "t", 5)
            came = origins(await arrived(reader, 5))
            client = came[0][0]

            it.acknowledge([came[3], came[1]])
            assert client.unacknowledged == 5
            it.acknowledge([came[0]])
            assert client.unacknowledged == 3
            assert client.acknowledge_finished() == 1
    told = re.findall(r"Received PUBACK from headrace-p1-t .*Mid: (\d+)", server.log())

    assert [*map(int, told)] == [came[at][1] for at in (0, 1, 3)]


async def test_where_nothing_comes_any_more_what_is_finished_is_acknowledged_out_of_order(
    mosquitto: Mosquitto,
):
    it = source(context(mosquitto), "stall", qos="at_least_once", ack="on_delivery")
    async with subscribed(it) as reader:
        publishing = asyncio.ensure_future(published(mosquitto, "stall", 60))
        seen = await arrived(reader, 1)
        it.acknowledge(origins(seen)[1:])  # the first is held, by a gate perhaps
        while len(seen) < 60:
            seen += (came := await arrived(reader, 1))
            it.acknowledge(origins(came))
        await publishing

    assert sorted(numbers(seen)) == [*range(60)]
