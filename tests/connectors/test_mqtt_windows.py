"""Windows behind a broker that has only so many messages in flight: in virtual time, one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.mqtt import MqttInput
from headrace.connectors.mqtt.source import IN_FLIGHT, LET_GO, starved
from headrace.operators.buffer import Buffer
from tests.mqtt_broker import LoopBroker
from tests.promises import promise
from tests.stand_ins import Kept, Slow, pipeline, takes
from tests.virtual import virtual

Publishes = Callable[[LoopBroker, Clock], Awaitable[None]]
TIMED = {
    "buffer": ({}, [Buffer(seconds=10, max_messages=10_000)]),
    "buffer with a size": ({}, [Buffer(size=10_000, seconds=10)]),
    "tumbling": ({"buffer": {"type": "tumbling", "window_seconds": 10}}, []),
    "batch": ({"buffer": {"type": "batch", "size": 10_000, "window_seconds": 10}}, []),
}
BY_SIZE = {
    "buffer": ({}, [Buffer(size=100)]),
    "static": ({"buffer": {"type": "static", "size": 100}}, []),
}
TIMES = pytest.mark.parametrize("held_by", TIMED)
SIZES = pytest.mark.parametrize("held_by", BY_SIZE)


async def handed_on(
    publishes: Publishes, options, transforms, *, grants: int = IN_FLIGHT, **more
) -> tuple[Kept, int]:
    """Return what came of it within a minute, and how much the broker then still had to send."""
    broker = LoopBroker(grants)
    it = Engine(Clock(asyncio.get_running_loop()), connections={"bus": broker.connection})
    kept = Kept(it.clock)
    await it.compile(pipeline("p", [reads(**options, **more)], transforms, [takes(kept)]))
    await publishes(broker, it.clock)
    await it.clock.sleep(60.5 - it.clock.monotonic())
    batches, times, left = kept.batches[:], kept.times[:], broker.left
    await it.close()
    kept.batches, kept.times = batches, times  # without what the end released
    return kept, left


def reads(**options) -> MqttInput:
    fixed = {"connection": "bus", "topic": "t", "qos": "at_least_once", "ack": "on_delivery"}
    return MqttInput.load(fixed | options)


def steadily(count: int) -> Publishes:
    """Publish so many, 50 a second."""

    async def publishes(broker: LoopBroker, clock: Clock) -> None:
        for number in range(count):
            broker.publish(b"%d" % number)
            await clock.sleep(0.02)

    return publishes


async def in_bursts(broker: LoopBroker, clock: Clock) -> None:
    """Publish 20 at once, each four seconds."""
    for number in range(15 * IN_FLIGHT):
        broker.publish(b"%d" % number)
        if number % IN_FLIGHT == IN_FLIGHT - 1:
            await clock.sleep(4)


def sizes(kept: Kept) -> set[int]:
    return {len(batch) for batch in kept.batches}


def gaps(kept: Kept) -> list[float]:
    return [round(b - a, 1) for a, b in zip([0.0, *kept.times], kept.times, strict=False)]


@TIMES
@pytest.mark.parametrize("count", [IN_FLIGHT - 1, IN_FLIGHT])
@virtual
async def test_as_many_as_the_broker_has_in_flight_leave_with_their_time_too(held_by, count):
    kept, _ = await handed_on(steadily(count), *TIMED[held_by])

    assert kept.batches == [[*range(count)]]
    assert gaps(kept) == [10]


@TIMES
@virtual
async def test_windows_of_a_broker_that_has_enough_in_flight_hold_all_that_came(held_by, caplog):
    kept, left = await handed_on(steadily(3000), *TIMED[held_by], grants=1000, in_flight=1000)

    assert gaps(kept) == [10] * 6
    assert sizes(kept) <= {500, 501}
    assert left == 0
    assert caplog.text == ""


@promise("delivery.mqtt.window")
@TIMES
@virtual
async def test_windows_of_a_broker_that_waits_for_them_keep_their_time_and_are_warned_of(
    held_by, caplog
):
    kept, left = await handed_on(steadily(3000), *TIMED[held_by])

    assert gaps(kept) == [10] * 6
    assert sizes(kept) == {IN_FLIGHT}
    assert left == 3000 - 7 * IN_FLIGHT
    assert caplog.text.count(starved(IN_FLIGHT)) == 1
    # What the broker has queued along may come as well: it is no promise.
    assert "may get no more than it lets us hold ('in_flight', 20)" in caplog.text


@TIMES
@virtual
async def test_bursts_that_are_in_flight_together_are_not_cut(held_by, caplog):
    """Nobody told that the broker grants more, and a source that is quiet looks like one that waits."""
    kept, _ = await handed_on(in_bursts, *TIMED[held_by], grants=1000)

    assert sizes(kept) == {3 * IN_FLIGHT}
    assert caplog.text == ""


@SIZES
@virtual
async def test_a_size_that_can_never_be_reached_lets_go_and_is_warned_of(held_by, caplog):
    caplog.set_level("INFO")

    kept, _ = await handed_on(steadily(3000), *BY_SIZE[held_by])

    assert sizes(kept) == {IN_FLIGHT}
    assert max(gaps(kept)) < 2
    assert caplog.text.count(LET_GO) == 1
    assert caplog.text.count(starved(IN_FLIGHT)) == 1


@SIZES
@virtual
async def test_the_broker_is_taken_at_its_word_about_what_it_has_in_flight(held_by, caplog):
    """Bursts of 20 every four seconds: with 20 in flight it might wait, with 1,000 it does not."""
    caplog.set_level("INFO")

    cut, _ = await handed_on(in_bursts, *BY_SIZE[held_by], grants=1000)
    assert sizes(cut) == {IN_FLIGHT}
    assert starved(IN_FLIGHT) not in caplog.text  # nothing came when it was acknowledged


@SIZES
@virtual
async def test_whoever_tells_what_the_broker_has_in_flight_gets_whole_sizes(held_by, caplog):
    caplog.set_level("INFO")

    kept, _ = await handed_on(in_bursts, *BY_SIZE[held_by], grants=1000, in_flight=1000)

    assert sizes(kept) == {100}
    assert LET_GO not in caplog.text


@SIZES
@virtual
async def test_a_broker_with_a_smaller_window_is_told_of_as_well(held_by):
    kept, left = await handed_on(steadily(100), *BY_SIZE[held_by], grants=5, in_flight=5)

    assert sizes(kept) == {5}
    assert left == 0


@virtual
async def test_an_output_that_is_slow_starves_nobody(caplog):
    """The broker waits for it as well, and no buffer is to blame."""
    broker = LoopBroker()
    it = Engine(Clock(asyncio.get_running_loop()), connections={"bus": broker.connection})
    await it.compile(pipeline("p", [reads()], [], [takes(Slow(it.clock, 5))]))
    await steadily(100)(broker, it.clock)

    await it.clock.sleep(60)

    assert broker.left
    assert caplog.text == ""
    await it.close()
