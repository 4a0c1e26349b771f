"""One pipeline gets another config, as a revert gives it one; all the others go on."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.errors import (
    ChangedMeanwhile,
    PipelineDeleted,
    Refused,
    UnknownPipeline,
)
from headrace.compiler.runtime.monitoring.figures import PipelineFigures
from headrace.compiler.runtime.revert.reverting import RevertedInPart
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from tests.compiler.runtime.reverts import (
    Denying,
    Saying,
    Stage,
    flow,
    posts_are_taken_through,
    staged,
)
from tests.stand_ins import NeverUp, Slow, running
from tests.virtual import virtual


async def exchange(stage: Stage, config: PipelineConfig, id: str | None = None) -> PipelineFigures:
    return await stage.it.exchange(id or config.id or "", config, None)


def reads(upstream: str, id: str, *transforms: Saying) -> PipelineConfig:
    return flow(id, *transforms, reads=[PipelineInput(upstream=upstream)])


@virtual
async def test_one_is_exchanged_and_the_others_go_on():
    stage = staged()
    await stage.revert(flow("a"), flow("b", Saying(word="old")), flow("c"))
    others = stage.pipeline("a"), stage.pipeline("c")
    await stage.it.clock.sleep(0.35)

    figures = await exchange(stage, flow("b", Saying(word="new")))
    await stage.it.clock.sleep(0.35)

    assert (figures.id, figures.status) == ("b", "running")
    assert [*stage.it.names()] == ["a", "b", "c"]
    assert (stage.pipeline("a"), stage.pipeline("c")) == others
    assert stage.written("a") == [*range(6)]
    assert [word for word, _ in stage.written("b")] == ["old"] * 3 + ["new"] * 3
    await stage.it.close()


@virtual
async def test_what_it_holds_is_released_before_the_new_one_starts():
    stage = staged()
    await stage.revert(flow("p", Buffer(seconds=60, max_messages=1000)))
    await stage.it.clock.sleep(0.35)

    await exchange(stage, flow("p", Saying(word="new")))
    await stage.it.clock.sleep(0.35)

    assert stage.kept("p").batches[0] == [0, 1, 2]
    assert stage.written("p")[3:] == [["new", n] for n in range(3)]
    await stage.it.close()


@virtual
async def test_a_reader_takes_what_the_old_and_the_new_one_hand_on():
    stage = staged()
    await stage.revert(flow("up", Buffer(seconds=60, max_messages=1000)), reads("up", "down"))
    await stage.it.clock.sleep(0.35)

    await exchange(stage, flow("up", Saying(word="new")))
    await stage.it.clock.sleep(0.35)

    assert stage.written("down") == [0, 1, 2, *(["new", n] for n in range(3))]
    await stage.it.close()


@virtual
async def test_a_reader_that_is_exchanged_misses_nothing_and_sees_nothing_twice():
    stage = staged()
    slow = stage.sinks["down"] = Slow(stage.it.clock, 0.25)
    await stage.revert(flow("up"), reads("up", "down", Saying(word="a")))
    await stage.it.clock.sleep(1.05)

    await exchange(stage, reads("up", "down", Saying(word="b")))
    await stage.it.clock.sleep(60)

    said = [message for batch in slow.batches for message in batch]
    assert [n for _, n in said][:200] == [*range(200)]
    assert [word for word, _ in said][:11] == ["a"] * 10 + ["b"]
    await stage.it.close()


@virtual
async def test_posts_are_taken_all_through_an_exchange():
    stage = staged()

    await posts_are_taken_through(stage, lambda config: exchange(stage, config))


@virtual
async def test_a_config_that_says_the_same_changes_nothing():
    stage = staged()
    await stage.revert(flow("p", Buffer(seconds=60, max_messages=1000)))
    before = stage.pipeline("p")
    await stage.it.clock.sleep(0.35)

    await exchange(stage, flow("p", Buffer(seconds=60, max_messages=1000)))

    assert stage.pipeline("p") is before
    assert before.parts.held == 3
    await stage.it.close()


@virtual
async def test_one_that_has_failed_is_built_again():
    stage = staged()
    denying = stage.sinks["p"] = Denying()
    with pytest.raises(RevertedInPart):
        await stage.revert(flow("p"))
    del stage.sinks["p"]

    figures = await exchange(stage, flow("p"))

    assert (figures.status, denying.asked) == ("running", 1)
    await stage.it.close()


@virtual
async def test_of_two_who_have_seen_the_same_the_second_is_told():
    stage = staged()
    await stage.revert(flow("p"))
    seen = [(await stage.it.pipeline("p")).version]

    first, second = await asyncio.gather(
        *(stage.it.exchange("p", flow("p", Saying(word=word)), seen) for word in ("a", "b")),
        return_exceptions=True,
    )

    assert isinstance(first, PipelineFigures)
    assert isinstance(second, ChangedMeanwhile)
    assert first.version not in seen
    assert running(stage.it, "p").config.transforms == (Saying(word="a"),)
    await stage.it.close()


@virtual
async def test_what_passes_leaves_the_version_as_it_is():
    stage = staged()
    await stage.revert(flow("p"))
    seen = (await stage.it.pipeline("p")).version
    await stage.it.clock.sleep(1)

    assert (await stage.it.pipeline("p")).version == seen
    assert (await exchange(stage, flow("p", Saying(word=1)))).version != seen
    assert (await exchange(stage, flow("p"))).version == seen
    await stage.it.close()


@virtual
async def test_one_that_cannot_be_built_leaves_the_old_one_as_it_was():
    stage = staged()
    await stage.revert(flow("p"), flow("q"))
    before = dict(stage.it.graph.pipelines)
    stage.refused.add("nothing")

    with pytest.raises(Refused) as refused:
        await exchange(stage, flow("p", word="nothing"))
    await stage.it.clock.sleep(0.35)

    assert type(refused.value) is Refused
    assert str(refused.value) == "pipeline 'p' was not exchanged: inputs[0]: 'nothing' is refused"
    assert stage.it.graph.pipelines == before
    assert stage.written("p") == [0, 1, 2]
    await stage.it.close()


@virtual
async def test_what_has_come_and_gone_since_the_config_was_read_counts():
    stage = staged()
    await stage.revert(flow("a"), reads("a", "b"))
    await stage.it.compile(reads("b", "c"))
    before = dict(stage.it.graph.pipelines)

    with pytest.raises(Refused, match="in a circle: a -> b -> c -> a"):
        await exchange(stage, reads("c", "a"))
    await stage.it.dispose("c")
    with pytest.raises(Refused, match="there is no pipeline 'c' to read from"):
        await exchange(stage, reads("c", "a"))

    del before["c"]
    assert stage.it.graph.pipelines == before
    await stage.it.close()


@virtual
async def test_one_that_is_turned_down_is_failed_and_the_others_run():
    stage = staged()
    stage.sinks["denied"] = Denying()
    await stage.revert(flow("p"), flow("q"))

    with pytest.raises(RevertedInPart) as refused:
        await exchange(stage, flow("p", into="denied"))

    assert str(refused.value) == (
        "pipeline 'p' was exchanged, and has failed: outputs[0]: wrong password"
    )
    assert [running(stage.it, id).status for id in ("p", "q")] == ["failed", "running"]
    await stage.it.close()


@virtual
async def test_there_is_nothing_to_exchange_where_nobody_runs():
    stage = staged()

    for asked in (
        stage.it.pipeline("p"),
        exchange(stage, flow("p")),
        stage.it.plan_exchange("p", flow("p")),
    ):
        with pytest.raises(UnknownPipeline):
            await asked
    assert [*stage.it.names()] == []


@virtual
async def test_without_an_id_it_goes_by_the_one_it_had():
    stage = staged()
    await stage.revert(flow("p"), flow(None))
    [generated] = {*stage.it.names()} - {"p"}

    for id, called in (("p", "p"), (generated, None)):
        await exchange(stage, flow(None, Saying(word=1)), id)
        assert running(stage.it, id).config.id == called
    await stage.it.close()


@virtual
async def test_creates_that_are_under_way_go_on():
    stage = staged()
    stage.sinks["hangs"] = NeverUp()
    stage.sinks["denied"] = Denying()
    await stage.revert(flow("p"))
    creating = asyncio.ensure_future(stage.it.compile(flow("new", into="hangs")))
    refused = asyncio.ensure_future(stage.it.compile(flow("no", into="denied")))
    while len(stage.it.names()) < 3:
        await stage.it.clock.sleep(0)

    await exchange(stage, flow("p", Saying(word=1)))
    said = await asyncio.gather(creating, refused, return_exceptions=True)

    assert [type(each) for each in said] == [PipelineFigures, Refused]
    assert [*stage.it.names()] == ["p", "new"]
    await stage.it.close()


@virtual
async def test_one_that_is_being_created_is_there_as_exchanged():
    stage = staged()
    stage.sinks["hangs"] = NeverUp()
    creating = asyncio.ensure_future(stage.it.compile(flow("p", into="hangs")))
    await stage.it.clock.sleep(1)

    await exchange(stage, flow("p"))

    with pytest.raises(PipelineDeleted):
        await creating
    assert running(stage.it, "p").status == "running"
    await stage.it.close()


@virtual
async def test_whoever_asks_may_leave_in_the_middle():
    stage = staged()
    stage.sinks["p"] = Slow(stage.it.clock, 1)
    await stage.revert(flow("p"))
    await stage.it.clock.sleep(0.15)

    exchanging = asyncio.ensure_future(exchange(stage, flow("p", Saying(word=1), into="other")))
    await stage.it.clock.sleep(0.1)
    exchanging.cancel()
    await stage.it.clock.sleep(5)

    assert stage.written("other")[:1] == [[1, 0]]
    await stage.it.close()


@virtual
async def test_the_plan_tells_what_it_would_cost_and_changes_nothing():
    stage = staged()
    await stage.revert(flow("a"), flow("p", Buffer(seconds=60, max_messages=1000)), flow("z"))
    await stage.it.clock.sleep(0.35)
    before = dict(stage.it.graph.pipelines)

    plan = await stage.it.plan_exchange("p", flow("p", Saying(word=1)))

    assert plan.pipelines.kept == ("a", "z")
    assert [(each.id, each.why, each.held) for each in plan.pipelines.changed] == [
        ("p", ("transforms[0]",), 3)
    ]
    assert (plan.pipelines.added, plan.pipelines.removed) == ((), ())
    assert stage.it.graph.pipelines == before
    same = await stage.it.plan_exchange("p", before["p"].config)
    assert same.pipelines.kept == ("a", "p", "z")
    await stage.it.close()
