"""The `opcua` input, against a real server."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.errors import Unreachable
from headrace.connectors.network.arrivals import Arrivals
from headrace.connectors.opcua import source as opcua_source
from headrace.connectors.opcua.connection import Limits
from tests.clients import PATIENCE
from tests.connected import subscribed
from tests.opcua_sides import batches, changes, context, source, told, values
from tests.promises import promise
from tests.services.opcua import Opcua
from tests.waiting import until

WHEN = "datetime(2026, 3, 1, 8, 0, 0, tzinfo=UTC)"
AT = "2026-03-01T08:00:00Z"


async def test_a_message_has_all_keys_in_their_order(opcua_server: Opcua):
    await told(
        opcua_server, "add('Six', 20.0)", f"write('Six', 21.5, source={WHEN}, server={WHEN})"
    )

    async with subscribed(source(context(opcua_server), "Six")) as reader:
        [message] = await changes(reader, 1)

    assert [*message.items()] == [
        ("node", "ns=2;s=Six"),
        ("name", "ns=2;s=Six"),
        ("value", 21.5),
        ("status", "Good"),
        ("source_timestamp", AT),
        ("server_timestamp", AT),
    ]


@promise("opcua.input.twice")
async def test_the_current_value_comes_first_and_then_every_change(opcua_server: Opcua):
    await told(opcua_server, "add('Counted', 1)")

    async with subscribed(source(context(opcua_server), "Counted")) as reader:
        assert await values(reader, 1) == [1]
        for n in range(2, 6):
            await told(opcua_server, f"write('Counted', {n})")
            assert await values(reader, 1) == [n]


@promise("delivery.begins.ready")
async def test_a_change_right_after_the_start_arrives(opcua_server: Opcua):
    await told(opcua_server, "add('Soon', 0)")
    for n in range(1, 11):
        async with subscribed(source(context(opcua_server), "Soon", queue_size=10)) as reader:
            await told(opcua_server, f"write('Soon', {n})")

            found = await values(reader, 1)
            while found[-1] != n:
                found += await values(reader, 1)


async def test_timestamps_that_the_server_does_not_give_are_null(opcua_server: Opcua):
    await told(opcua_server, "add('Untimed', 1)", "write('Untimed', 2, source=None, server=None)")

    async with subscribed(source(context(opcua_server), "Untimed")) as reader:
        [message] = await changes(reader, 1)

    assert message["value"] == 2
    assert message["source_timestamp"] is None


@pytest.mark.parametrize(
    ("code", "status", "value"),
    [
        (0, "Good", 7),
        (0x00960000, "GoodLocalOverride", 7),
        (0x00000480, "Good", 7),
        (0x40900000, "UncertainLastUsableValue", 7),
        (0x80340000, "BadNodeIdUnknown", None),
        (0x808C0000, "BadSensorFailure", None),
        (0x80FE0000, "0x80FE0000", None),
        (0x40FE0000, "0x40FE0000", 7),
    ],
)
async def test_a_status_is_told_by_its_name_and_a_bad_one_has_no_value(
    opcua_server: Opcua, code, status, value
):
    name = f"Status{code}"
    await told(opcua_server, f"add('{name}', 1)", f"write('{name}', 7, status={code})")

    async with subscribed(source(context(opcua_server), name)) as reader:
        [message] = await changes(reader, 1)

    assert (message["status"], message["value"]) == (status, value)


async def test_a_listed_node_has_its_name_and_one_listed_twice_its_first(opcua_server: Opcua):
    await told(opcua_server, "add('Named', 1)", "add('Other', 2)")
    nodes = [
        {"node_id": "ns=2;s=Named", "name": "first"},
        {"node_id": "ns=2;s=Named", "name": "second"},
        {"node_id": "ns=2;s=Other"},
        {"node_id": "ns=0;i=2259", "name": "state"},
    ]

    async with subscribed(source(context(opcua_server), *nodes)) as reader:
        found = await changes(reader, 3)

    assert [(each["node"], each["name"]) for each in found] == [
        ("ns=2;s=Named", "first"),
        ("ns=2;s=Other", "ns=2;s=Other"),
        ("i=2259", "state"),
    ]


async def test_a_node_that_is_not_there_says_so_and_the_others_go_on(opcua_server: Opcua):
    await told(opcua_server, "add('There', 1)")
    ctx = context(opcua_server)

    async with subscribed(source(ctx, "Nope", "There", "Gone")) as reader:
        found = await changes(reader, 3)
        await told(opcua_server, "write('There', 2)")
        assert await values(reader, 1) == [2]

    missing = {
        "value": None,
        "status": "BadNodeIdUnknown",
        "source_timestamp": None,
        "server_timestamp": None,
    }
    assert found[:2] == [
        {"node": f"ns=2;s={name}", "name": f"ns=2;s={name}", **missing} for name in ("Nope", "Gone")
    ]
    assert found[2]["value"] == 1
    assert ctx.warnings == [
        f"{opcua_server.address} refuses nodes (BadNodeIdUnknown): 'ns=2;s=Nope', 'ns=2;s=Gone'"
    ]


async def test_a_node_without_a_value_is_refused_like_one_that_is_not_there(opcua_server: Opcua):
    async with subscribed(source(context(opcua_server), "Line")) as reader:
        [message] = await changes(reader, 1)

    assert (message["status"], message["value"]) == ("BadAttributeIdInvalid", None)


async def test_a_structure_is_skipped_with_a_warning(opcua_server: Opcua):
    await told(opcua_server, "add('Struct', ua.Range(1.0, 2.0))", "add('Plain', 1)")
    ctx = context(opcua_server)

    async with subscribed(source(ctx, "Struct", "Plain")) as reader:
        found = await changes(reader, 1)

    assert [each["name"] for each in found] == ["ns=2;s=Plain"]
    assert ctx.skipped == 1
    assert ctx.warnings == ["skipped a value of 'ns=2;s=Struct': it is a structure"]


@pytest.mark.parametrize(
    ("max_batch", "sizes"), [(0, [1] * 5), (1, [1] * 5), (2, [2, 2, 1]), (9, [5])]
)
async def test_what_has_arrived_is_put_together_up_to_max_batch(
    opcua_server: Opcua, max_batch, sizes
):
    names = [f"Batch{max_batch}-{n}" for n in range(5)]
    await told(opcua_server, *(f"add('{name}', 1)" for name in names))

    async with subscribed(source(context(opcua_server), *names, max_batch=max_batch)) as reader:
        assert [*map(len, await batches(reader))] == sizes


async def test_the_server_keeps_as_many_values_as_it_is_asked_to(opcua_server: Opcua):
    await told(opcua_server, "add('Queued', 0)")
    ctx = context(opcua_server)
    slow = {"publish_interval_ms": 500}

    async with (
        subscribed(source(ctx, "Queued", queue_size=3, **slow)) as three,
        subscribed(source(ctx, "Queued", **slow)) as one,
    ):
        assert await values(three, 1) == [0]
        assert await values(one, 1) == [0]
        await told(opcua_server, "asyncio.gather(*(write('Queued', n) for n in range(1, 11)))")

        assert await values(three, 3) == [8, 9, 10]
        assert await values(one, 1) == [10]


SAMPLING = "[(each.RequestedParameters.SamplingInterval, each.RequestedParameters.QueueSize,"
SAMPLING += " each.RequestedParameters.DiscardOldest) for each in plant.asked[-1].ItemsToCreate]"
PUBLISHING = "[(each.RequestedPublishingInterval, each.RequestedMaxKeepAliveCount,"
PUBLISHING += " each.RequestedLifetimeCount) for each in plant.asked[-2:-1]]"


@pytest.mark.parametrize(
    ("options", "sampling", "publishing"),
    [
        ({"publish_interval_ms": 1000}, [-1.0, 1, True], [1000.0, 10, 60]),
        ({"sampling_interval_ms": 0, "queue_size": 0}, [0.0, 1, True], [50.0, 10, 60]),
        ({"sampling_interval_ms": 250, "queue_size": 7}, [250.0, 7, True], [50.0, 10, 60]),
    ],
)
async def test_intervals_and_queue_are_always_sent(
    opcua_server: Opcua, options, sampling, publishing
):
    async with subscribed(source(context(opcua_server), "Temp", **options)):
        assert opcua_server.tell(SAMPLING) == [sampling]
        assert opcua_server.tell(PUBLISHING) == [publishing]


@pytest.mark.long
async def test_many_nodes_are_asked_for_in_portions_of_500(opcua_server: Opcua):
    await told(opcua_server, "plant.add_many(1200)")
    patient = Limits(request_seconds=PATIENCE)  # the server itself is slow with that many nodes
    many = source(context(opcua_server), browse={"root": "ns=2;s=Many"}, limits=patient)

    async with subscribed(many) as reader:
        found = await changes(reader, 1200)

    assert {each["name"] for each in found} == {f"N{n}" for n in range(1200)}
    assert len(found) == 1200
    sizes = "[len(each.ItemsToCreate) for each in plant.asked[-3:]]"
    assert opcua_server.tell(sizes) == [500, 500, 200]


async def test_the_session_has_the_name_of_the_pipeline(opcua_server: Opcua):
    ctx = context(opcua_server)
    ctx.pipeline = "line-1"

    async with subscribed(source(ctx, "Temp")):
        assert opcua_server.tell("plant.asked[-3].SessionName") == "headrace-line-1"


async def test_metadata_has_the_connection_and_nothing_else(opcua_server: Opcua):
    assert source(context(opcua_server), "Temp").describe(None) == {"connection": "plc"}


async def test_every_change_of_many_nodes_arrives_in_order(opcua_server: Opcua):
    await told(opcua_server, "plant.add_many(200, 'Busy', 'B')")
    ctx = context(opcua_server)
    busy = source(ctx, browse={"root": "ns=2;s=Busy"}, queue_size=100)
    seen: dict[str, list] = {f"B{n}": [] for n in range(200)}

    async with subscribed(busy) as reader:
        changing = asyncio.create_task(told(opcua_server, "change(200, 20, 0.02, 'B')"))
        while sum(map(len, seen.values())) < 200 * 21:
            for each in await changes(reader, 1):
                seen[each["name"]].append(each["value"])
        await changing

    assert all(found == [*range(21)] for found in seen.values())
    assert ctx.skipped == 0


@promise("opcua.input.waits", "opcua.input.beyond")
@pytest.mark.long
async def test_ten_thousand_changes_wait_and_beyond_that_the_oldest_are_dropped_and_counted(
    opcua_server: Opcua,
):
    await told(opcua_server, "plant.add_many(1000, 'Flood', 'F')")
    ctx = context(opcua_server)
    flooded = source(ctx, browse={"root": "ns=2;s=Flood"}, queue_size=100)

    async with subscribed(flooded) as reader:
        await until(lambda: flooded.close())  # all of them have told where they begin
        await told(opcua_server, "change(1000, 15, 0, 'F')")
        await until(lambda: ctx.skipped == 6000)
        found = await values(reader, 10_000)

    assert len(found) == 10_000
    assert found.count(15.0) == 1000  # the newest of each
    assert 0.0 not in found
    assert ctx.warnings == [opcua_source.DROPPED]
    assert ctx.lost == {opcua_source.DROPPED: 6000}


async def test_a_stop_hands_out_what_has_arrived_and_ends(opcua_server: Opcua):
    await told(opcua_server, "add('Last', 1)")
    built = source(context(opcua_server), "Last")

    async with subscribed(built) as reader:
        await until(lambda: built.close())
        assert built.stop()

        assert await values(reader, 1) == [1]
        assert await anext(reader, None) is None
    assert built.close() == []


async def test_an_end_leaves_no_session_behind(opcua_server: Opcua):
    async with subscribed(source(context(opcua_server), "Temp")):
        during = await asyncio.to_thread(opcua_server.tell, "len(subscriptions())")

    after = await asyncio.to_thread(opcua_server.tell, "len(subscriptions())")
    assert after == during - 1


async def test_a_value_of_many_chunks_arrives_whole(opcua_server: Opcua):
    await told(opcua_server, "add('Long', 'x' * 1_000_000)", "add('Array', [1.5] * 50_000)")

    async with subscribed(source(context(opcua_server), "Long", "Array")) as reader:
        long, array = await values(reader, 2)

    assert long == "x" * 1_000_000
    assert array == [1.5] * 50_000


async def test_a_message_that_is_too_large_ends_the_connection(opcua_server):
    await told(opcua_server, "add('Huge', 'x' * 200_000)")
    built = source(context(opcua_server), "Huge", limits=Limits(message_bytes=100_000))

    async with subscribed(built) as reader:
        assert (await changes(reader, 1))[0]["status"] == "BadConnectionClosed"
        with pytest.raises(Unreachable, match=r"ended the session \(BadRequestTooLarge\)"):
            await anext(reader)


async def test_a_publish_request_that_is_too_old_is_made_anew(opcua_server: Opcua):
    await told(opcua_server, "add('Late', 1)")

    async with subscribed(source(context(opcua_server), "Late")) as reader:
        assert await values(reader, 1) == [1]
        await told(opcua_server, "plant.time_out()", "write('Late', 2)")
        assert await values(reader, 1) == [2]


@pytest.mark.long
async def test_a_server_may_take_one_publish_request_at_a_time(tmp_path):
    with Opcua(tmp_path) as server:
        await told(server, "add('Single', 0)", "plant.take_one()")
        async with subscribed(source(context(server), "Single")) as reader:
            for n in range(5):
                await told(server, f"write('Single', {n})")
                while (await values(reader, 1))[-1] != n:
                    pass


async def test_nothing_is_taken_of_a_connection_that_is_over():
    kept = Arrivals[dict[str, int]](10)
    kept.put_newest([{"n": 1}])
    kept.break_off(Unreachable("first"))
    kept.break_off(Unreachable("second"))
    kept.put_newest([{"n": 2}])

    assert await kept.take() == [{"n": 1}]
    with pytest.raises(Unreachable, match="first"):
        await kept.take()
