"""What the `opcua` input finds by browsing, and how it asks."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.errors import Unreachable
from tests.connected import subscribed
from tests.opcua_sides import changes, context, source, told
from tests.services.opcua import Opcua


@pytest.mark.parametrize(
    ("depth", "names"),
    [
        (1, ["Speed"]),
        (2, ["Speed", "Temp"]),
        (3, ["Speed", "Temp", "Deep", "Unit"]),
        (None, ["Speed", "Temp", "Deep", "Unit"]),
        (9, ["Speed", "Temp", "Deep", "Unit"]),
        (10**30, ["Speed", "Temp", "Deep", "Unit"]),
    ],
)
async def test_browsing_finds_variables_down_to_a_depth(opcua_server: Opcua, depth, names):
    browse = {"root": "ns=2;s=Plant", "depth": depth}

    async with subscribed(source(context(opcua_server), browse=browse)) as reader:
        found = await changes(reader, len(names))

    assert sorted(each["name"] for each in found) == sorted(names)
    assert {each["node"] for each in found} <= {
        "ns=2;s=Speed", "ns=2;s=Temp", "ns=2;s=Deep", "ns=2;s=Temp.Unit"
    }  # fmt: skip


async def test_a_listed_node_that_is_browsed_as_well_keeps_its_name(opcua_server: Opcua):
    listed = {"node_id": "ns=2;s=Temp", "name": "mine"}
    built = source(context(opcua_server), listed, browse={"root": "ns=2;s=Plant"})

    async with subscribed(built) as reader:
        found = await changes(reader, 4)

    assert [each["name"] for each in found] == ["mine", "Speed", "Deep", "Unit"]


@pytest.mark.long
async def test_browsing_asks_about_50_nodes_at_a_time(tmp_path):
    with Opcua(tmp_path) as server:
        await told(server, "add_many(120)", "plant.count_browsed()")
        browse = {"root": "ns=2;s=Many", "depth": 2}
        async with subscribed(source(context(server), browse=browse)) as reader:
            assert len(await changes(reader, 120)) == 120

        found = await asyncio.to_thread(server.tell, "plant.browsed")
    assert found == [1, 50, 50, 20]


@pytest.mark.long
async def test_what_a_server_has_no_room_for_while_browsing_is_asked_again(tmp_path):
    with Opcua(tmp_path) as server:
        browsing = source(context(server), browse={"root": "ns=2;s=Plant"})
        await told(server, "plant.browse_few(1)")
        async with subscribed(browsing) as reader:
            assert len(await changes(reader, 4)) == 4

        await told(server, "plant.browse_few(0)")
        with pytest.raises(Unreachable) as raised:
            await anext(browsing.read())
    assert str(raised.value) == (
        f"{server.address} has no room for browsing (BadNoContinuationPoints)"
    )


async def test_a_node_of_another_server_is_not_browsed(opcua_server: Opcua):
    await told(
        opcua_server,
        "plant.folder('Shared')",
        "add('Near', 1, plant.node('Shared'))",
        "add('Far', 1, plant.node('Shared'))",
        "plant.disown('Far')",
    )

    async with subscribed(
        source(context(opcua_server), browse={"root": "ns=2;s=Shared"})
    ) as reader:
        assert [each["name"] for each in await changes(reader, 1)] == ["Near"]
