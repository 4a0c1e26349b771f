"""OPC UA servers that are killed, hang, forget us, or are not there yet: the input in a pipeline."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.opcua import OpcuaConnection, OpcuaInput
from headrace.connectors.opcua.connection import Limits
from headrace.connectors.opcua.subscription import KEEP_ALIVES
from tests.clients import PATIENCE
from tests.connected import subscribed
from tests.opcua_sides import SOON_MS, changes, context, source, values
from tests.promises import promise
from tests.services.opcua import Opcua
from tests.stand_ins import Kept, pipeline, running, takes
from tests.stopwatch import Stopwatch
from tests.waiting import until

BACK_SECONDS = 3.0
"""What may pass between the return of a server and the next value."""


def lost(server: Opcua, how: str = "hung up") -> str:
    """Return the one text of an outage."""
    return f"{server.address} {how}: what changes until it is back does not arrive"


@asynccontextmanager
async def engine(server: Opcua) -> AsyncIterator[Engine]:
    """Give an engine with a connection 'plc'; close it in the end."""
    filed = {"plc": OpcuaConnection.load({"endpoint": server.url})}
    made = Engine(Clock(asyncio.get_running_loop()), connections=filed, secrets=Secrets({}, {}))
    try:
        yield made
    finally:
        await made.close()


def reading(**options: Any) -> OpcuaInput:
    return OpcuaInput.load(
        {
            "connection": "plc",
            "nodes": [{"node_id": "ns=2;s=Temp"}, {"node_id": "ns=2;s=Nope"}],
            "publish_interval_ms": 50,
            **options,
        }
    )


def failures(it: Engine) -> dict[str, int]:
    return {each.message: each.count for each in running(it, "p").failures.table.latest()}


def seen(kept: Kept) -> list[tuple[str, Any, str]]:
    """Return name, value and status of every message."""
    return [
        (each["name"], each["value"], each["status"]) for batch in kept.batches for each in batch
    ]


@pytest.mark.long
async def test_an_input_goes_on_when_its_server_is_back_with_the_gap_marked(tmp_path, caplog):
    caplog.set_level("INFO", "headrace")
    kept = Kept()
    with Opcua(tmp_path) as server:
        async with engine(server) as it:
            await it.compile(pipeline("p", [reading()], [], [takes(kept)]))
            await until(lambda: len(seen(kept)) == 2)

            await asyncio.to_thread(server.kill)
            await until(lambda: sum(failures(it).values()) >= 3)
            await asyncio.to_thread(server.start)
            watch = Stopwatch()
            await until(lambda: len(seen(kept)) == 5)
            took = watch.seconds

            assert [*failures(it)] == [lost(server)]
            assert running(it, "p").status == "running"
    assert seen(kept) == [
        ("ns=2;s=Nope", None, "BadNodeIdUnknown"),
        ("ns=2;s=Temp", 20.0, "Good"),
        ("ns=2;s=Temp", None, "BadConnectionClosed"),
        ("ns=2;s=Nope", None, "BadNodeIdUnknown"),
        ("ns=2;s=Temp", 20.0, "Good"),
    ]
    assert took < BACK_SECONDS
    assert [each for each in caplog.messages if each.endswith("connected again")]


@promise("delivery.case.late")
@pytest.mark.long
async def test_a_pipeline_waits_for_a_server_that_is_not_there_yet(tmp_path):
    server, kept = Opcua(tmp_path), Kept()
    async with engine(server) as it:
        await it.compile(pipeline("p", [reading()], [], [takes(kept)]))
        assert [*failures(it)] == [f"{server.address} does not answer: connection refused"]
        assert seen(kept) == []

        with server:
            await until(lambda: len(seen(kept)) == 2)


async def added(server: Opcua, name: str) -> None:
    """Have the server add a variable that begins at 1."""
    await asyncio.to_thread(server.tell, f"add('{name}', 1)")


async def tell(server: Opcua, *expressions: str) -> None:
    """Have the server do things while the loop goes on."""
    for expression in expressions:
        await asyncio.to_thread(server.tell, expression)


async def test_a_frozen_server_is_noticed_and_left(opcua_server: Opcua):
    await added(opcua_server, "Frozen")
    built = source(context(opcua_server), "Frozen", limits=Limits(probe_seconds=0.3))
    async with subscribed(built) as reader:
        assert await values(reader, 1) == [1]
        with opcua_server.halted():
            [message] = await changes(reader, 1)
            with pytest.raises(Unreachable) as raised:
                await anext(reader)

    assert (message["value"], message["status"]) == (None, "BadConnectionClosed")
    assert str(raised.value) == lost(opcua_server, "does not answer any more")


async def test_a_server_that_is_silent_at_its_keep_alives_is_left(opcua_server):
    await added(opcua_server, "Silent")
    built = source(context(opcua_server), "Silent", limits=Limits(keep_alive_seconds=0.2))
    async with subscribed(built) as reader:
        assert await values(reader, 1) == [1]
        await tell(opcua_server, "[each._task.cancel() for each in subscriptions()]")

        [message] = await changes(reader, 1)
        with pytest.raises(Unreachable) as raised:
            await anext(reader)

    assert message["status"] == "BadConnectionClosed"
    assert str(raised.value) == lost(opcua_server, "does not answer any more")


class Unhurried(Clock):
    """Counts the time limits that are set, and waits far longer."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.limits = Counter[float]()

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        self.limits[seconds] += 1
        return super().timeout(PATIENCE)


async def test_a_quiet_server_is_not_left(opcua_server: Opcua):
    await added(opcua_server, "Quiet")
    ctx = context(opcua_server)
    ctx.clock = clock = Unhurried()
    limits = Limits(probe_seconds=0.1)
    keep_alive = KEEP_ALIVES * SOON_MS / 1000 + limits.keep_alive_seconds
    async with subscribed(source(ctx, "Quiet", limits=limits)) as reader:
        assert await values(reader, 1) == [1]
        next_change = asyncio.ensure_future(values(reader, 1))
        asked = 1 + 1  # at once, and after the first change
        await until(lambda: clock.limits[keep_alive] >= asked + 2)

        await tell(opcua_server, "write('Quiet', 2)")
        assert await next_change == [2]


@pytest.mark.long
async def test_a_frozen_server_at_the_start_is_told_of_in_time(opcua_server: Opcua):
    with opcua_server.halted():
        watch = Stopwatch()
        with pytest.raises(Unreachable) as raised:
            await anext(source(context(opcua_server), "Temp").read())
        assert watch.seconds < 5

    assert str(raised.value) == f"{opcua_server.address} does not answer in time"


async def test_the_end_of_a_frozen_server_is_not_waited_for(opcua_server: Opcua):
    async with subscribed(source(context(opcua_server), "Temp")) as reader:
        await values(reader, 1)
        with opcua_server.halted():
            watch = Stopwatch()
            await reader.aclose()
            assert watch.seconds < 2


ENDS = {
    "[each.enqueue_statuschange(ua.StatusCode(0x800A0000)) for each in subscriptions()][-1]": (
        "ended the subscription (BadTimeout)"
    ),
    "plant.forget()": "ended the session (BadSessionIdInvalid)",
    "plant.hang_up()": "hung up",
    "plant.garble() or write('Ending', 7)": "sent what cannot be read",
    "plant.say(b'ERRF' + (16).to_bytes(4, 'little') + bytes(8))": "hung up",
}


@promise("opcua.input.away")
@pytest.mark.parametrize(("does", "how"), ENDS.items())
async def test_however_the_server_ends_it_every_node_says_so(opcua_server: Opcua, does, how):
    if "Ending" not in opcua_server.tell("plant.added"):
        await added(opcua_server, "Ending")
    built = source(context(opcua_server), "Ending", "Speed", limits=Limits(probe_seconds=0.3))
    async with subscribed(built) as reader:
        await values(reader, 2)
        await tell(opcua_server, does)

        found = await changes(reader, 2)
        with pytest.raises(Unreachable) as raised:
            await anext(reader)

    assert [(each["name"], each["value"], each["status"]) for each in found] == [
        ("ns=2;s=Ending", None, "BadConnectionClosed"),
        ("ns=2;s=Speed", None, "BadConnectionClosed"),
    ]
    assert str(raised.value) == lost(opcua_server, how)


async def test_browsing_that_finds_nothing_is_tried_again(opcua_server: Opcua):
    kept = Kept()
    async with engine(opcua_server) as it:
        browsing = reading(browse={"root": "ns=2;s=Later"}, nodes=[])
        await it.compile(pipeline("p", [browsing], [], [takes(kept)]))
        told = f"{opcua_server.address} has no variable under 'ns=2;s=Later' (BadNodeIdInvalid)"
        assert [*failures(it)] == [told]

        await tell(opcua_server, "plant.folder('Later')", "add('New', 1, plant.node('Later'))")

        await until(lambda: seen(kept) == [("New", 1, "Good")])
        assert [*failures(it)] == [told]


async def test_nodes_that_are_new_are_found_after_an_outage(opcua_server: Opcua):
    kept = Kept()
    await tell(opcua_server, "plant.folder('Grows')", "add('One', 1, plant.node('Grows'))")
    async with engine(opcua_server) as it:
        browsing = reading(browse={"root": "ns=2;s=Grows", "depth": 1}, nodes=[])
        await it.compile(pipeline("p", [browsing], [], [takes(kept)]))
        await until(lambda: len(seen(kept)) == 1)

        await tell(opcua_server, "add('Two', 2, plant.node('Grows'))", "plant.hang_up()")

        await until(lambda: len(seen(kept)) == 4)
    assert seen(kept)[1:] == [
        ("One", None, "BadConnectionClosed"),
        ("One", 1, "Good"),
        ("Two", 2, "Good"),
    ]


async def test_a_notification_that_did_not_come_is_sent_again(opcua_server: Opcua):
    await added(opcua_server, "Swallowed")
    ctx = context(opcua_server)
    async with subscribed(source(ctx, "Swallowed")) as reader:
        assert await values(reader, 1) == [1]
        await tell(opcua_server, "plant.swallow()", "write('Swallowed', 2)")
        assert await values(reader, 1) == [2]
        await tell(opcua_server, "write('Swallowed', 3)")
        assert await values(reader, 1) == [3]

    assert ctx.failures == []


async def test_a_notification_that_is_gone_for_good_is_a_failure(opcua_server: Opcua):
    await added(opcua_server, "Skipping")
    ctx = context(opcua_server)
    async with subscribed(source(ctx, "Skipping")) as reader:
        assert await values(reader, 1) == [1]
        await tell(opcua_server, "plant.skip_numbers(2)", "write('Skipping', 2)")

        assert await values(reader, 1) == [2]
    text = (
        f"a notification of {opcua_server.address} did not arrive, and the server has it no more:"
        " the changes in it are lost"
    )
    assert ctx.failures == [text, text]


async def test_the_keys_of_a_channel_are_renewed_while_values_go_on(opcua_server):
    await added(opcua_server, "Renewed")
    built = source(context(opcua_server), "Renewed", limits=Limits(channel_seconds=0.2))
    async with subscribed(built) as reader:
        for n in range(20):
            await tell(opcua_server, f"write('Renewed', {n})")
            while (await values(reader, 1))[-1] != n:
                pass

        tokens = "[each.processor._connection.security_token.TokenId for each in plant.clients()]"
        assert max(opcua_server.tell(tokens)) > 13 + 2
