"""Messages on which a broker hangs up are told from an outage, and others are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.connectors.mqtt.connection import LIMITS, Limits
from headrace.connectors.mqtt.sink import MqttSink
from tests.connected import started
from tests.mqtt_sides import context, heard, listening, sink
from tests.promises import promise
from tests.services.mosquitto import Mosquitto
from tests.waiting import until

FASTER = 20
"""How many seconds of ours pass in one."""
QOS = ["at_least_once", "exactly_once"]
LARGE = "x" * 3000
MOST = ["max_packet_size 2000"]
SOON = Limits(write_seconds=5.0)


class FastClock(Clock):
    """A clock on which more seconds pass than do."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        real = self.monotonic
        self.monotonic = lambda: real() * FASTER

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / FASTER)

    def call_later(self, seconds: float, action: Callable[[], object]) -> asyncio.TimerHandle:
        return super().call_later(seconds / FASTER, action)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return super().timeout(None if seconds is None else seconds / FASTER)


@asynccontextmanager
async def publishing(
    server: Mosquitto, topic: str, limits: Limits = LIMITS, **options: Any
) -> AsyncIterator[MqttSink]:
    """Give an output whose time passes faster."""
    async with started(
        sink(context(server, clock=FastClock()), topic, limits, **options)
    ) as opened:
        yield opened


async def failure(opened: MqttSink, batch: Batch) -> BatchFailed:
    """Return why not all of a batch is written."""
    with pytest.raises(BatchFailed) as failed:
        await opened.write(batch)
    return failed.value


def payloads(messages: list[Any]) -> list[bytes]:
    """Return what came."""
    return [message.payload for message in messages]


@promise("mqtt.output.at_fault", "mqtt.output.fails.hung_up_on")
@pytest.mark.parametrize("qos", QOS)
@pytest.mark.parametrize("option", ["retry", "queue"])
async def test_messages_that_a_broker_hangs_up_on_are_told_and_all_others_written(
    tmp_path: Path, qos: str, option: str
) -> None:
    batch: Batch = [0, 1, LARGE, 3, LARGE, 5, 6, 7]
    with Mosquitto(tmp_path, extra=MOST) as server:
        async with listening(server, "some", 2) as client:
            async with publishing(server, "some", qos=qos, **{option: {}}) as opened:
                failed = await failure(opened, batch)
                await opened.write([8])
            came = dict.fromkeys(payloads(await heard(client, 7)))  # some may come twice
            while b"8" not in came:
                came |= dict.fromkeys(payloads(await heard(client, 1)))

    said = f"{server.address} hangs up on it, and takes others"
    assert (failed.failure, str(failed)) == ("invalid", said)
    assert failed.refused == {2: said, 4: said}
    assert failed.done == [0, 1, 3, 5, 6, 7]
    assert [*came] == [b"%d" % n for n in (0, 1, 3, 5, 6, 7, 8)]


@promise("mqtt.output.fails.cut_off")
@pytest.mark.parametrize("qos", QOS)
async def test_one_that_comes_alone_is_unclear_as_no_other_tells(tmp_path: Path, qos: str) -> None:
    with Mosquitto(tmp_path, extra=MOST) as server:
        async with publishing(server, "alone", qos=qos, retry={}) as opened:
            failed = await failure(opened, [LARGE])
            await opened.write([1])

    assert not isinstance(failed, Unreachable)  # what comes then is written
    assert (failed.failure, failed.was_alone, failed.refused) == ("unclear", True, {})


@promise("mqtt.output.fails.cut_off")
@pytest.mark.parametrize("qos", QOS)
async def test_what_was_on_its_way_to_a_broker_that_stays_away_is_unclear(
    tmp_path: Path, qos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Mosquitto(tmp_path) as server:
        async with publishing(server, "away", SOON, retry={}, qos=qos) as opened:
            with server.halted():
                writing = asyncio.ensure_future(failure(opened, [1, 2]))
                await until(lambda: opened._client is not None and opened._client.sent > 0)
                server.kill()
            cut_off = await writing
            never_sent = await failure(opened, [3])

    assert (cut_off.failure, cut_off.refused, never_sent.failure) == ("unclear", {}, "unavailable")


@pytest.mark.parametrize("is_killed", [True, False])
async def test_only_who_ends_a_connection_has_hung_up(tmp_path: Path, is_killed: bool) -> None:
    with Mosquitto(tmp_path) as server:
        async with publishing(server, "silent", Limits(keepalive_seconds=8), qos=QOS[0]) as opened:
            client = opened._client
            assert client is not None
            with server.halted():
                client.publish([b"1"])
                if is_killed:
                    server.kill()
                await until(lambda: client.is_lost)

    assert client.is_hung_up is is_killed


async def test_without_any_of_the_fields_it_is_an_outage_as_ever(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, extra=MOST) as server:
        async with publishing(server, "plain", SOON, qos=QOS[0]) as opened:
            failed = await failure(opened, [1, LARGE, 3])

    assert isinstance(failed, Unreachable)
    assert (failed.failure, failed.refused, failed.was_alone) == ("unavailable", {}, False)


async def test_dead_letters_alone_have_them_told(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, extra=MOST) as server:
        async with publishing(server, "letters", qos=QOS[0]) as opened:
            opened.tell_apart()
            failed = await failure(opened, [1, LARGE, 3, 4])

    assert [*failed.refused] == [1]


async def test_with_qos_0_what_comes_behind_it_is_written_as_ever(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, extra=MOST) as server:
        ctx = context(server, clock=FastClock())
        opened = sink(ctx, "once", retry={})
        async with listening(server, "once") as client, started(opened):
            await opened.write([1, LARGE])
            await until(lambda: bool(ctx.failures))
            await opened.write([2])
            came = payloads(await heard(client, 2))

    assert came == [b"1", b"2"]


@pytest.mark.long
@pytest.mark.parametrize("qos", QOS)
async def test_a_broker_that_is_stopped_under_load_again_and_again_costs_no_message(
    tmp_path: Path, qos: str
) -> None:
    with Mosquitto(tmp_path) as server:
        ctx = context(server)
        async with started(sink(ctx, "load", qos=qos, retry={})) as opened:
            written: list[int] = []
            writing = asyncio.ensure_future(write_on(opened, written))
            for _ in range(3):
                count = len(written) + 20
                await until(lambda count=count: len(written) > count or writing.done())
                await asyncio.to_thread(server.restart)
            await until(lambda: len(written) > count + 20 or writing.done())
            assert not writing.done()  # as it would be if any were refused
            writing.cancel()

    assert {*ctx.notes} == {"connected again"}
    assert {*ctx.warnings} == set()


async def write_on(opened: MqttSink, written: list[int]) -> None:
    """Write one batch after the other."""
    while True:
        await opened.write([*range(40)])
        written.append(40)
