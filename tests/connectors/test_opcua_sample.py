"""Samples of OPC UA variables, from real servers that must not notice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.runtime.sampling import Unread
from headrace.connectors.opcua import OpcuaConnection, OpcuaInput
from tests.clients import PATIENCE
from tests.connected import subscribed
from tests.opcua_sides import SOON_MS, context, source, values
from tests.sampled import engine, failed, reading, shown, take, taken
from tests.services.opcua import Opcua
from tests.stopwatch import Stopwatch
from tests.waiting import until


def plc(url: str, **options: Any) -> OpcuaConnection:
    return OpcuaConnection.load({"endpoint": url, **options})


def nodes(*names: str, **options: Any) -> OpcuaInput:
    listed = [{"node_id": f"ns=2;s={name}"} for name in names]
    document = {"connection": "plc", "nodes": listed, "publish_interval_ms": SOON_MS, **options}
    return OpcuaInput.load(document)


async def test_the_current_value_comes_first(opcua_server: Opcua):
    async with engine(plc=plc(opcua_server.url)) as it:
        said = await taken(it, nodes("Speed"), most=1)

    assert [(each["node"], each["status"]) for each in said.messages] == [("ns=2;s=Speed", "Good")]
    assert said.notes == []


async def test_a_node_that_is_refused_is_told_of(opcua_server: Opcua):
    async with engine(plc=plc(opcua_server.url)) as it:
        said = await taken(it, nodes("Nowhere"), most=1)

    assert said.messages[0]["status"] == "BadNodeIdUnknown"
    assert said.notes == [
        f"{opcua_server.address} refuses nodes (BadNodeIdUnknown): 'ns=2;s=Nowhere'"
    ]


async def test_another_subscription_gets_everything(opcua_server: Opcua):
    opcua_server.tell("add('Sampled', 1)")
    async with (
        subscribed(source(context(opcua_server), "Sampled")) as reader,
        engine(plc=plc(opcua_server.url)) as it,
        reading(it, nodes("Sampled"), most=2) as asking,
    ):
        await until(lambda: shown(it) == 1)
        opcua_server.tell("write('Sampled', 2)")

        assert [each["value"] for each in (await asking).messages] == [1, 2]
        assert await values(reader, 2) == [1, 2]


async def test_it_has_a_session_of_its_own_and_the_server_keeps_no_subscription(tmp_path: Path):
    # A server of its own: another one still has the subscriptions of clients that were cut off.
    with Opcua(tmp_path) as server:
        async with engine(plc=plc(server.url)) as it:
            async with reading(it, nodes("Speed"), most=50, seconds=PATIENCE) as asking:
                name = server.tell("plant.asked[-3].SessionName")
                assert name.startswith("headrace-sample-")
                assert server.tell("len(plant.subscriptions())") == 1
                it.hush()
                await asking

            assert server.tell("len(plant.subscriptions())") == 0


async def test_metadata_is_that_of_the_connection(opcua_server: Opcua):
    async with engine(plc=plc(opcua_server.url)) as it:
        said = await taken(it, nodes("Speed", envelope={"type": "merge"}), most=1)

    assert said.messages[0]["_meta"]["connection"] == "plc"
    assert said.messages[0]["_meta"]["pipeline"].startswith("sample-")


async def test_a_server_that_is_not_there_is_told():
    async with engine(plc=plc("opc.tcp://127.0.0.1:1")) as it:
        why = await failed(it, nodes("Speed"), seconds=0.5)

    assert why == "127.0.0.1:1 does not answer: connection refused"


@pytest.mark.long
async def test_a_server_that_hangs_is_told_and_let_go_of(tmp_path: Path):
    with Opcua(tmp_path) as server, server.halted():
        async with engine(plc=plc(server.url)) as it:
            watch = Stopwatch()
            why = await failed(it, nodes("Speed"), seconds=0.5)
            busy = watch.busy
            assert it.samples._under_way == {}

    told = re.fullmatch(r"nothing that speaks 'opcua' has answered after ([0-9.]+) s", why)
    assert told is not None
    assert 0.5 <= float(told[1]) < 1.5 + busy


@pytest.mark.long
async def test_a_wrong_credential_is_told_at_once_and_is_in_no_answer(tmp_path: Path):
    with Opcua(tmp_path, users={"ann": "open-sesame"}) as server:
        ours = plc(server.url, username="ann", password="${PASSWORD}")
        async with engine({"PASSWORD": "close-sesame"}, plc=ours) as it:
            said = await take(it, nodes("Speed"))

    assert isinstance(said, Unread)
    assert server.address in said.reason
    assert "close-sesame" not in str(said)
