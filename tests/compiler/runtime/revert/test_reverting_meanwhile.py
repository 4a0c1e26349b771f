"""A revert and what happens meanwhile: creates, deletes, other reverts, a client that leaves, the end."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.errors import PipelineDeleted, Refused
from headrace.compiler.runtime.revert.reverting import ShuttingDown
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from tests.compiler.runtime.reverts import Denying, Into, Saying, flow, slowly, staged
from tests.stand_ins import Kept, NeverUp, Slow, running
from tests.virtual import virtual


@virtual
async def test_creates_and_deletes_wait_for_a_revert_and_are_done_after_it():
    stage = staged()
    stage.sinks["p"] = Slow(stage.it.clock, 2)
    await stage.revert(flow("p"), flow("q"))
    await stage.it.clock.sleep(0.15)

    reverting = asyncio.ensure_future(stage.revert(flow("p", Saying(word=1)), flow("r")))
    await stage.it.clock.sleep(0.5)
    creating = asyncio.ensure_future(stage.it.compile(flow("q")))
    deleting = asyncio.ensure_future(stage.it.dispose("r"))
    await stage.it.clock.sleep(0.5)

    assert [reverting.done(), creating.done(), deleting.done()] == [False] * 3
    await asyncio.gather(reverting, creating, deleting)
    assert [*stage.it.names()] == ["p", "q"]
    await stage.it.close()


@virtual
async def test_a_second_revert_waits_for_the_first():
    stage = staged()
    stage.sinks["p"] = Slow(stage.it.clock, 1)
    await stage.revert(flow("p"))
    await stage.it.clock.sleep(0.15)

    first = asyncio.ensure_future(stage.revert(flow("p", Saying(word=1))))
    await stage.it.clock.sleep(0.1)
    second = asyncio.ensure_future(stage.revert(flow("p", Saying(word=2)), flow("q")))
    plans = await asyncio.gather(first, second)

    assert [[each.why for each in plan.pipelines.changed] for plan in plans] == [
        [("transforms",)],
        [("transforms[0].word",)],
    ]
    assert [*stage.it.names()] == ["p", "q"]
    await stage.it.close()


@virtual
async def test_a_create_that_is_under_way_is_deleted_by_a_revert_whatever_the_file_says():
    stage = staged()
    stage.sinks["hangs"] = NeverUp()
    creating = [
        asyncio.ensure_future(stage.it.compile(flow(id, into="hangs", claimed=f"seat {id}")))
        for id in ("a", "b")
    ]
    await stage.it.clock.sleep(1)
    assert {view.is_settled for view in stage.it.graph.pipelines.values()} == {False}

    plan = await stage.revert(flow("a", claimed="seat a"))

    assert [(each.id, each.why) for each in plan.pipelines.changed] == [
        ("a", ("it is being created",))
    ]
    said = await asyncio.gather(*creating, return_exceptions=True)
    assert [type(each) for each in said] == [PipelineDeleted, PipelineDeleted]
    assert [(view.id, view.status) for view in stage.it.graph.pipelines.values()] == [
        ("a", "running")
    ]
    assert [*stage.it._world.claims._holders] == ["seat a"]
    await stage.it.close()


@virtual
async def test_a_delete_that_is_under_way_ends_before_a_revert_brings_the_pipeline_back():
    stage = staged()
    slow = stage.sinks["p"] = Slow(stage.it.clock, 2)
    await stage.revert(flow("p", claimed="a seat"))
    await stage.it.clock.sleep(0.15)

    deleting = asyncio.ensure_future(stage.it.dispose("p"))
    await stage.it.clock.sleep(0.1)
    plan = await stage.revert(flow("p", claimed="a seat"))

    assert deleting.done()
    assert (plan.pipelines.added, slow.finished) == (("p",), 1)
    assert running(stage.it, "p").status == "running"
    await stage.it.close()


@virtual
async def test_whoever_asks_may_leave_in_the_middle():
    stage = staged()
    stage.sinks["p"] = Slow(stage.it.clock, 1)
    await stage.revert(flow("p"))
    await stage.it.clock.sleep(0.15)

    reverting = asyncio.ensure_future(stage.revert(flow("p", Saying(word=1)), flow("q")))
    await stage.it.clock.sleep(0.1)
    reverting.cancel()
    await stage.it.clock.sleep(5)

    assert reverting.cancelled()
    assert [(view.id, view.status) for view in stage.it.graph.pipelines.values()] == [
        ("p", "running"),
        ("q", "running"),
    ]
    assert next(iter(stage.it.graph.pipelines.values())).config.transforms == (Saying(word=1),)
    await stage.it.close()


@virtual
async def test_a_server_that_ends_in_the_middle_ends_old_and_new_within_its_grace():
    stage = staged()
    slow = stage.sinks["down"] = Slow(stage.it.clock, 0.5)
    down = flow("down", reads=[PipelineInput(upstream="up")])
    await stage.revert(flow("up", Buffer(seconds=60, max_messages=1000)), down)
    await stage.it.clock.sleep(0.35)
    reverting = asyncio.ensure_future(
        stage.revert(flow("up", Saying(word=1), into="hangs"), down, flow("new"))
    )
    stage.sinks["hangs"] = Slow(stage.it.clock, 1e9)

    while stage.it.changes._reverting is None:
        await stage.it.clock.sleep(0)
    begun = stage.it.clock.monotonic()
    await stage.it.close()

    with pytest.raises(ShuttingDown, match="the server is shutting down"):
        await reverting
    assert stage.it.clock.monotonic() - begun < 4.5
    assert slow.batches == [[0, 1, 2]]
    assert (slow.finished, [*stage.it.names()]) == (1, [])
    with pytest.raises(ShuttingDown):
        await stage.revert(flow("up"))


@virtual
async def test_a_server_that_ends_while_the_new_ones_are_opened_leaves_none_of_them():
    stage = staged()
    stage.sinks["hangs"] = NeverUp()
    reverting = asyncio.ensure_future(stage.revert(flow("p", into="hangs"), flow("q")))
    await stage.it.clock.sleep(1)

    begun = stage.it.clock.monotonic()
    await stage.it.close()
    await reverting

    assert ([*stage.it.names()], stage.it.clock.monotonic() - begun) == ([], 0)
    assert stage.kept("q").finished == 1


@virtual
async def test_what_ends_hands_on_to_its_readers_before_a_server_that_ends_stops_them():
    stage = staged()
    down = flow("down", reads=[PipelineInput(upstream="up")])
    await stage.revert(flow("up", slowly(stage)), down)
    await stage.it.clock.sleep(0.35)

    reverting = asyncio.ensure_future(stage.revert(flow("up", Saying(word=1)), down))
    await stage.it.clock.sleep(0.1)
    await stage.it.close()
    await reverting

    assert stage.written("down") == [0, 1, 2]
    assert stage.it.clock.monotonic() < 0.35 + 3.5


@virtual
async def test_a_create_that_is_taken_back_has_ended_before_a_revert_begins():
    class Lingering(Kept):
        async def finish(self) -> None:
            await stage.it.clock.sleep(1)

    stage = staged()
    stage.sinks.update(denied=Denying(), lingers=Lingering())
    config = flow("p", claimed="a seat", into="denied")
    both = PipelineConfig(
        id="p", inputs=config.inputs, outputs=(*config.outputs, Into(word="lingers"))
    )
    creating = asyncio.ensure_future(stage.it.compile(both))
    await stage.it.clock.sleep(0.1)

    await stage.revert(flow("other", claimed="a seat"))

    assert isinstance(creating.exception(), Refused)
    assert stage.it.clock.monotonic() == 1
    await stage.it.close()
