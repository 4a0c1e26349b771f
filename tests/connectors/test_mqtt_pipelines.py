"""Whole pipelines between MQTT topics: buffers and windows, outages, deletion."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.mqtt import MqttInput, MqttOutput
from headrace.connectors.mqtt.source import IN_FLIGHT, LET_GO, starved
from headrace.operators.buffer import Buffer
from tests.clients import PATIENCE
from tests.connected import started
from tests.mqtt_sides import connection, context, sink, somebody, view
from tests.promises import promise
from tests.services.mosquitto import Mosquitto
from tests.stand_ins import Kept, pipeline, takes
from tests.stopwatch import Stopwatch

RELIABLE = {"qos": "at_least_once", "ack": "on_delivery"}


class Awaited(Kept):
    """Keeps what it is given, and wakes whoever waits for so many messages."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, batch) -> None:
        super().write(batch)
        task = asyncio.ensure_future(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    @property
    def messages(self) -> list:
        return [message for batch in self.batches for message in batch]

    async def until(self, wanted: set, seconds: float = PATIENCE) -> None:
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(lambda: wanted <= {*self.messages})


@asynccontextmanager
async def running(server: Mosquitto):
    """Give an engine whose connection `bus` is this server."""
    it = Engine(Clock(asyncio.get_running_loop()), connections={"bus": connection(server)})
    try:
        yield it
    finally:
        await it.close()


def reads(topic: str, **options) -> MqttInput:
    return MqttInput.load({"connection": "bus", "topic": topic, **options})


def writes(topic: str, **options) -> MqttOutput:
    return MqttOutput.load({"connection": "bus", "topic": topic, **options})


async def publish(server: Mosquitto, topic: str, count: int, qos: int = 1) -> None:
    """Publish the numbers below ``count``, many at a time."""
    async with somebody(server, max_inflight_messages=20) as client:
        await asyncio.gather(*(client.publish(topic, b"%d" % n, qos) for n in range(count)))


BUFFERS = pytest.mark.parametrize(
    ("options", "transforms"),
    [({"buffer": {"type": "static", "size": 100}}, []), ({}, [Buffer(size=100)])],
    ids=["of the input", "transform"],
)


@promise("delivery.mqtt.size_alone")
@BUFFERS
async def test_a_buffer_that_waits_for_more_than_the_broker_sends_lets_go(
    mosquitto: Mosquitto, caplog, options, transforms
):
    """Of 300 messages 20 come; nothing is acknowledged before the buffer has 100."""
    caplog.set_level(logging.INFO)
    kept = Awaited()
    topic = f"stall/{len(transforms)}"
    async with running(mosquitto) as it:
        inputs = [reads(topic, **RELIABLE, **options)]
        await it.compile(pipeline("p", inputs, transforms, [takes(kept)]))
        await publish(mosquitto, topic, 300)
        await kept.until({*range(300)}, 10)
        await it.dispose("p")

    assert sorted(kept.messages) == [*range(300)]
    assert len(kept.batches[0]) == 20
    assert caplog.text.count(LET_GO) == 1


@BUFFERS
@pytest.mark.parametrize("window", [100, 0])
async def test_a_buffer_that_the_broker_can_fill_is_left_alone(
    tmp_path, caplog, options, transforms, window
):
    caplog.set_level(logging.INFO)
    kept = Awaited()
    with Mosquitto(tmp_path, extra=[f"max_inflight_messages {window}"]) as server:
        async with running(server) as it:
            inputs = [reads("fits", **RELIABLE, **options)]
            await it.compile(pipeline("p", inputs, transforms, [takes(kept)]))
            await publish(server, "fits", 300)
            await kept.until({*range(300)})

    assert kept.batches[0] == [*range(100)]
    assert LET_GO not in caplog.text


async def test_fewer_messages_than_the_window_wait_for_their_time(mosquitto: Mosquitto, caplog):
    caplog.set_level(logging.INFO)
    kept = Awaited()
    async with running(mosquitto) as it:
        inputs = [reads("few", buffer={"type": "static", "size": 100}, **RELIABLE)]
        await it.compile(pipeline("p", inputs, [], [takes(kept)]))
        await publish(mosquitto, "few", 19)
        await it.clock.sleep(1.5)
        assert view(it).parts.held == 19
        assert kept.batches == []

    assert LET_GO not in caplog.text


WINDOW_SECONDS = 2


async def windows(
    server: Mosquitto, count: int, is_over: Callable[[], bool] = lambda: True, **options
) -> Awaited:
    """Return so many windows of two seconds or more, of readings that come a hundred times a second."""
    async with running(server) as it:
        kept = Awaited(it.clock)
        inputs = [reads("windows", **RELIABLE, **options)]
        transforms = [Buffer(seconds=WINDOW_SECONDS, max_messages=10_000)]
        await it.compile(pipeline("p", inputs, transforms, [takes(kept)]))
        async with somebody(server) as client, it.clock.timeout(PATIENCE):
            while len(kept.batches) < count or not is_over():
                await client.publish("windows", b"1", 1)
                await it.clock.sleep(0.01)
        await it.dispose("p")
    return kept


def are_whole(kept: Awaited) -> bool:
    """Return whether no window but the last one, which the end released, was shorter than it should be."""
    times = kept.times[:-1]
    return all(b - a > WINDOW_SECONDS - 0.1 for a, b in pairwise(times))


@promise("delivery.mqtt.in_flight")
@pytest.mark.long
async def test_readings_that_keep_coming_fill_windows_of_their_time(tmp_path, caplog):
    with Mosquitto(tmp_path, extra=["max_inflight_messages 1000"]) as server:
        kept = await windows(server, 3, in_flight=1000)

    assert are_whole(kept)
    assert min(map(len, kept.batches[:-1])) > IN_FLIGHT
    assert caplog.text == ""


@pytest.mark.long
async def test_a_starved_window_keeps_its_time_and_is_warned_of(mosquitto: Mosquitto, caplog):
    """The first gets what the broker sends without an acknowledgement."""
    # A busy machine may be slower than a broker that waits: what it then saw is no evidence.
    kept = await windows(mosquitto, 3, lambda: starved(IN_FLIGHT) in caplog.text)

    assert are_whole(kept)
    assert len(kept.batches[0]) == IN_FLIGHT
    assert caplog.text.count(starved(IN_FLIGHT)) == 1


# With a time for the rest: how much comes twice, and so how much is left over, is chance.
@pytest.mark.parametrize(
    "transforms", [[], [Buffer(size=15, seconds=1)]], ids=["straight", "buffered"]
)
async def test_nothing_is_lost_when_the_broker_ends(tmp_path, transforms):
    """From a topic to a topic and into a sink, twice under load. It ends in order: one that is killed may
    lose what it has confirmed, however often it saves."""
    kept = Awaited()
    with Mosquitto(tmp_path) as server:
        async with running(server) as it:
            await it.compile(
                pipeline(
                    "p", [reads("in", **RELIABLE)], transforms, [writes("out", qos="at_least_once")]
                )
            )
            await it.compile(pipeline("q", [reads("out", **RELIABLE)], [], [takes(kept)]))
            publishing = asyncio.ensure_future(_published_for_good(server, "in", 150))
            for _ in range(2):
                await it.clock.sleep(0.3)
                await asyncio.to_thread(server.stop)
                await it.clock.sleep(0.2)
                await asyncio.to_thread(server.start)
            await publishing
            await kept.until({*range(150)})
            said = {
                each.message for name in "pq" for each in view(it, name).failures.table.latest()
            }
            await it.dispose("p")
            await it.dispose("q")

    # Also that somebody may have the same id, where a connection had only just been made.
    assert {each.partition(": another client")[0] for each in said} == {
        f"{server.address} closed the connection"
    }


async def _published_for_good(server: Mosquitto, topic: str, count: int) -> None:
    """Publish with QoS 1, and what is not confirmed again until it is."""
    async with started(sink(context(server), topic, qos="at_least_once")) as opened:
        for n in range(count):
            await opened.write([n])


async def test_it_goes_on_within_three_seconds_of_the_brokers_return(tmp_path):
    kept = Awaited()
    with Mosquitto(tmp_path) as server:
        async with running(server) as it:
            await it.compile(pipeline("p", [reads("back")], [], [takes(kept)]))
            await asyncio.to_thread(server.kill)
            await it.clock.sleep(5)
            await asyncio.to_thread(server.start)
            back = Stopwatch()
            async with somebody(server) as client:
                while not kept.batches:
                    await client.publish("back", b"1")
                    await it.clock.sleep(0.05)
            assert back.seconds < 3
            (failure,) = view(it).failures.table.latest()

    assert failure.count >= 4


async def test_a_pipeline_is_deleted_at_once_while_the_broker_is_dead(mosquitto: Mosquitto):
    async with running(mosquitto) as it:
        await it.compile(pipeline("p", [reads("dead", **RELIABLE)], [], [writes("dead/out")]))
        with mosquitto.halted():
            watch = Stopwatch()
            await it.dispose("p")
            assert watch.seconds < 5


@promise("delivery.case.session")
async def test_a_deleted_pipeline_leaves_nothing_at_the_broker(mosquitto: Mosquitto):
    topic = "deleted"
    async with running(mosquitto) as it:
        kept = Awaited()
        await it.compile(pipeline("p", [reads(topic, **RELIABLE)], [], [takes(kept)]))
        await it.dispose("p")
        await publish(mosquitto, topic, 3)

        await it.compile(pipeline("p", [reads(topic, **RELIABLE)], [], [takes(kept)]))
        async with somebody(mosquitto) as client:
            await client.publish(topic, b"7", 1)
        await kept.until({7})
        await it.dispose("p")

    assert kept.messages == [7]


@promise("delivery.case.stopped")
async def test_a_pipeline_that_ends_with_the_server_finds_its_session_again(mosquitto: Mosquitto):
    for expected in ([], [0, 1, 2]):
        kept = Awaited()
        async with running(mosquitto) as it:
            await it.compile(pipeline("p", [reads("kept", **RELIABLE)], [], [takes(kept)]))
            await kept.until({*expected})
        await publish(mosquitto, "kept", 3)

        assert kept.messages == expected


async def test_what_was_acknowledged_last_does_not_come_again(mosquitto: Mosquitto):
    for _ in range(2):
        kept = Awaited()
        async with running(mosquitto) as it:
            await it.compile(pipeline("p", [reads("last", **RELIABLE)], [], [takes(kept)]))
            await publish(mosquitto, "last", 15)
            await kept.until({*range(15)})

        assert kept.messages == [*range(15)]
