"""The `opcua` input against an independent server: node-opcua.

Deadbands are tested here alone: the server of asyncua compares with the sample before, not with the
value that was reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from headrace.connectors.opcua.connection import Limits
from tests.connected import subscribed
from tests.opcua_sides import changes, context, source
from tests.services.opcua import NodeOpcua
from tests.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeOpcua]:
    with NodeOpcua(tmp_path_factory.mktemp("node")) as made:
        yield made


def node(name: str) -> dict[str, str]:
    return {"node_id": f"ns=1;s={name}", "name": name}


FAST = {"sampling_interval_ms": 50, "queue_size": 100}


@pytest.mark.long
async def test_a_deadband_is_how_far_a_number_moves_between_two_messages(server: NodeOpcua):
    async with subscribed(source(context(server), node("Ramp"), deadband=1, **FAST)) as reader:
        found = [each["value"] for each in await changes(reader, 5)]

    steps = [after - before for before, after in pairwise(found)]
    assert steps == [1.25] * len(steps)


@pytest.mark.parametrize("deadband", [None, 0])
async def test_without_a_deadband_every_change_is_reported(server: NodeOpcua, deadband):
    async with subscribed(
        source(context(server), node("Ramp"), deadband=deadband, **FAST)
    ) as reader:
        found = [each["value"] for each in await changes(reader, 6)]

    steps = [after - before for before, after in pairwise(found)]
    assert steps == [0.25] * len(steps)


async def test_a_deadband_leaves_texts_and_booleans_alone(server: NodeOpcua):
    nodes = [node(name) for name in ("Text", "Flag", "Ramp")]
    seen: dict[str, list] = {"Text": [], "Flag": [], "Ramp": []}

    async with subscribed(source(context(server), *nodes, deadband=1, **FAST)) as reader:
        while len(seen["Ramp"]) < 4:
            for each in await changes(reader, 1):
                seen[each["name"]].append(each["value"])

    assert {type(value) for value in seen["Text"]} == {str}
    assert {*seen["Flag"]} == {True, False}
    assert len(seen["Text"]) > 2 * len(seen["Ramp"])
    assert len(seen["Flag"]) > 2 * len(seen["Ramp"])


async def test_what_is_refused_for_its_deadband_is_asked_for_without(server: NodeOpcua):
    ctx = context(server)

    async with subscribed(source(ctx, node("Late"), node("Ramp"), deadband=1)) as reader:
        found = await changes(reader, 2)

    assert {each["name"]: each["status"] for each in found} == {
        "Late": "UncertainInitialValue",
        "Ramp": "Good",
    }
    assert ctx.warnings == []


async def test_a_server_that_takes_small_pieces_is_sent_small_pieces_and_may_send_large_ones(
    server: NodeOpcua,
):
    long_ids = [node(f"{n}" * 4000) for n in range(9)]

    async with subscribed(source(context(server), *long_ids, node("Long"))) as reader:
        found = await changes(reader, 10)

    assert [each["status"] for each in found] == ["BadNodeIdUnknown"] * 9 + ["Good"]
    assert found[-1]["value"] == "x" * 200_000


async def test_a_bad_status_has_no_value_even_if_the_server_sends_one(server: NodeOpcua):
    async with subscribed(source(context(server), node("Failing"))) as reader:
        [message] = await changes(reader, 1)

    assert (message["status"], message["value"]) == ("BadSensorFailure", None)


async def test_a_32_bit_float_has_its_own_digits(server: NodeOpcua):
    async with subscribed(source(context(server), node("Small"))) as reader:
        [message] = await changes(reader, 1)

    assert message["value"] == 0.1


async def test_a_server_that_takes_few_nodes_at_a_time_is_asked_for_few(server: NodeOpcua):
    browse = {"root": "ns=1;s=Device", "depth": 1}
    ctx = context(server)

    async with subscribed(source(ctx, browse=browse, nodes=[], deadband=1)) as reader:
        found = await changes(reader, 30)

    names = {each["name"] for each in found}
    assert {f"N{n}" for n in range(25)} <= names
    assert {"Ramp", "Text", "Flag", "Failing", "Small"} <= names
    assert ctx.warnings == []


@pytest.mark.parametrize("most", [1, 4, 29])
async def test_references_that_come_in_pieces_are_put_together(server, most):
    browse = {"root": "ns=1;s=Device", "depth": 2}

    built = source(context(server), browse=browse, limits=Limits(references=most))
    async with subscribed(built) as reader:
        found = await changes(reader, 30)

    assert len({each["node"] for each in found}) == 30


async def test_a_node_that_is_not_there_says_so(server: NodeOpcua):
    ctx = context(server)

    async with subscribed(source(ctx, node("Nope"), node("Small"))) as reader:
        found = await changes(reader, 2)

    assert [(each["name"], each["status"]) for each in found] == [
        ("Nope", "BadNodeIdUnknown"),
        ("Small", "Good"),
    ]
    await until(lambda: len(ctx.warnings) == 1)
