"""A revert: what is as the file wants it goes on, everything else is built, ended and started."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Output
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.edges import Sink
from headrace.compiler.errors import BuildRefused, UnknownPipeline
from headrace.compiler.runtime.revert.reverting import NotReverted
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from tests.compiler.runtime.reverts import (
    Saying,
    Wire,
    flow,
    posts_are_taken_through,
    slowly,
    staged,
)
from tests.stand_ins import Kept, Slow, running
from tests.virtual import virtual


def started(word: str) -> list[object]:
    """Return the numbers that a flow says which has begun anew; three of them."""
    return [[word, n] for n in range(3)]


@virtual
async def test_what_is_as_the_file_says_sees_every_message():
    stage = staged()
    kept, changed = flow("kept", Saying(word="a")), flow("changed", Saying(word="a"))
    await stage.revert(kept, changed)
    before = stage.pipeline("kept")
    await stage.it.clock.sleep(1.05)

    plan = await stage.revert(flow("kept", Saying(word="a")), flow("changed", Saying(word="b")))
    await stage.it.clock.sleep(1)

    assert (plan.pipelines.kept, [each.id for each in plan.pipelines.changed]) == (
        ("kept",),
        ["changed"],
    )
    assert stage.pipeline("kept") is before
    assert stage.written("kept") == [["a", n] for n in range(20)]
    assert stage.written("changed") == [
        *([["a", n] for n in range(10)]),
        *([["b", n] for n in range(10)]),
    ]
    assert [source.lives for source in stage.read] == [1, 1, 1]
    await stage.it.close()


@virtual
async def test_a_window_that_a_revert_falls_into_ends_once_with_everything():
    stage = staged()
    window = flow("kept", Buffer(seconds=3, max_messages=1000))
    await stage.revert(window, flow("other"))
    await stage.it.clock.sleep(1.05)
    assert running(stage.it, "kept").parts.held == 10

    await stage.revert(window)
    await stage.it.clock.sleep(2.1)

    assert stage.kept("kept").batches == [[*range(30)]]
    assert stage.kept("kept").times == [pytest.approx(3.1)]
    await stage.it.close()


@virtual
async def test_what_a_changed_pipeline_holds_is_released_before_the_new_one_starts():
    stage = staged()
    await stage.revert(flow("p", Buffer(seconds=60, max_messages=1000)))
    await stage.it.clock.sleep(0.35)

    await stage.revert(flow("p", Saying(word="new")))
    await stage.it.clock.sleep(0.35)

    assert stage.kept("p").batches[0] == [0, 1, 2]
    assert stage.written("p")[3:] == started("new")
    await stage.it.close()


@virtual
async def test_the_graph_is_that_of_the_file_in_its_order():
    stage = staged()
    await stage.revert(flow("a"), flow("b"), flow("c"))
    await stage.it.dispose("a")
    await stage.it.compile(flow("over-the-api"))

    plan = await stage.revert(flow("c"), flow("a"), flow("b"))

    assert [*stage.it.names()] == ["c", "a", "b"]
    assert (plan.pipelines.kept, plan.pipelines.added) == (("c", "b"), ("a",))
    assert [each.id for each in plan.pipelines.removed] == ["over-the-api"]
    assert {view.status for view in stage.it.graph.pipelines.values()} == {"running"}
    assert stage.kept("over-the-api").finished == 1
    await stage.it.close()


@virtual
async def test_a_second_revert_finds_nothing_to_do():
    stage = staged()
    file = [flow("a", Saying(word=1)), flow("b", connection="bus")]
    bus = {"bus": Wire(host="here")}
    await stage.revert(*file, connections=bus, held=5)
    every = dict(stage.it.graph.pipelines)

    plan = await stage.revert(*file, connections=bus, held=5)

    assert (
        plan.pipelines.kept,
        plan.pipelines.added,
        plan.pipelines.changed,
        plan.pipelines.removed,
    ) == (("a", "b"), (), (), ())
    assert (plan.connections.added, plan.connections.changed) == ((), ())
    assert plan.buckets.kept == ("held",)
    assert stage.it.graph.pipelines == every
    assert stage.kept("a").finished == 0
    await stage.it.close()


@virtual
async def test_a_pipeline_that_cannot_be_built_leaves_everything_as_it_was():
    stage = staged()
    bus = {"bus": Wire(host="here")}
    down = flow("down", reads=[PipelineInput(upstream="up")])
    await stage.revert(flow("up", claimed="a seat"), down, connections=bus, held=5)
    await stage.it.clock.sleep(1.05)
    every, bucket = dict(stage.it.graph.pipelines), stage.it.state.get("held")
    configs = [each.config for each in every.values()]
    stage.refused.add("bad")

    with pytest.raises(NotReverted) as refused:
        await stage.revert(
            flow("up", Saying(word="b"), claimed="a seat"),
            flow("new", reads=[PipelineInput(upstream="up")]),
            flow("worse", word="bad", connection="bus"),
            flow("worst", word="bad"),
            connections={"bus": Wire(host="there")},
            held=6,
        )

    # Both are told, and nothing of those that could be built is left either.
    assert [each.message for each in refused.value.diagnostics] == ["'bad' is refused"] * 2
    assert str(refused.value).startswith("nothing was changed: inputs[0]: 'bad' is refused")
    assert stage.it.graph.pipelines == every
    assert [each.config for each in every.values()] == configs
    assert (stage.it.state.get("held"), [*stage.it.connections.values()]) == (
        bucket,
        [*bus.values()],
    )
    assert [len(holders) for holders in stage.it._world.claims._holders.values()] == [1]
    await stage.it.clock.sleep(1)
    assert stage.written("up") == stage.written("down") == [*range(20)]
    with pytest.raises(BuildRefused, match="a seat is taken by 'up' inputs"):
        stage.it._world.claims.take("a seat", object(), "somebody")
    await stage.it.close()


@virtual
async def test_a_kept_reader_takes_what_the_old_and_the_new_upstream_hand_on():
    stage = staged()
    down = flow("down", reads=[PipelineInput(upstream="up")])
    await stage.revert(flow("up", Buffer(seconds=60, max_messages=1000)), down)
    await stage.it.clock.sleep(0.35)

    plan = await stage.revert(flow("up", Saying(word="new")), down)
    await stage.it.clock.sleep(0.35)

    assert plan.pipelines.kept == ("down",)
    assert stage.written("down") == [0, 1, 2, *started("new")]
    await stage.it.close()


@virtual
async def test_a_changed_reader_misses_nothing_of_an_upstream_that_goes_on_and_sees_nothing_twice():
    stage = staged()
    slow = stage.sinks["down"] = Slow(stage.it.clock, 0.25)  # so the old one takes a while to end
    await stage.revert(
        flow("up"), flow("down", Saying(word="a"), reads=[PipelineInput(upstream="up")])
    )
    await stage.it.clock.sleep(1.05)

    begun = stage.it.clock.monotonic()
    await stage.revert(
        flow("up"), flow("down", Saying(word="b"), reads=[PipelineInput(upstream="up")])
    )
    took = stage.it.clock.monotonic() - begun
    await stage.it.clock.sleep(60)

    said = [message for batch in slow.batches for message in batch]
    assert took > 1
    assert [n for _, n in said][:200] == [*range(200)]
    assert [word for word, _ in said][:11] == ["a"] * 10 + ["b"]
    await stage.it.close()


@virtual
async def test_both_ends_of_an_edge_change_and_nothing_between_them_is_lost() -> None:
    stage = staged()
    reading = [PipelineInput(upstream="up")]
    await stage.revert(flow("up", slowly(stage)), flow("down", Saying(word="a"), reads=reading))
    await stage.it.clock.sleep(0.35)

    await stage.revert(flow("up", Saying(word=1)), flow("down", Saying(word="b"), reads=reading))
    await stage.it.clock.sleep(0.35)

    old, new = [["a", n] for n in range(3)], [["b", [1, n]] for n in range(3)]
    assert stage.written("down") == [*old, *new]
    await stage.it.close()


@virtual
async def test_posts_are_taken_all_through_a_revert():
    stage = staged()

    await posts_are_taken_through(stage, stage.revert)


@virtual
async def test_who_watches_the_events_goes_on_watching():
    stage = staged()
    await stage.revert(flow("p"))
    listener, seen = stage.it.observe(), list[bytes]()

    async def watch() -> None:
        async for told in listener:
            seen.extend(event.data for event in getattr(told, "events", ()))

    watching = asyncio.ensure_future(watch())
    await stage.it.clock.sleep(0.55)
    await stage.revert(flow("p", Saying(word="new")))
    await stage.it.clock.sleep(0.55)

    assert not watching.done()
    assert b"new" in seen[-1]
    await stage.it.close()
    await watching


@virtual
async def test_a_file_without_pipelines_ends_everything():
    stage = staged()
    await stage.revert(flow("a"), flow("b", reads=[PipelineInput(upstream="a")]), flow("c"))
    await stage.revert(flow("a"), flow("c"))

    plan = await stage.revert()

    assert ([each.id for each in plan.pipelines.removed], [*stage.it.names()]) == (["a", "c"], [])
    assert not stage.it.graph.outlets
    with pytest.raises(UnknownPipeline):
        await stage.it.dispose("a")
    await stage.it.close()


class Exacting(Output, kind="exacting"):
    """An output that wants numbers as they were written."""

    def keeps_digits(self) -> bool:
        return True

    def open(self, ctx: Context) -> Sink:
        return Kept()


@virtual
async def test_a_pipeline_that_goes_on_keeps_digits_as_soon_as_somebody_wants_them():
    stage = staged()
    up, down = flow("up"), flow("down", reads=[PipelineInput(upstream="up")])
    exacting = PipelineConfig(id="down", inputs=down.inputs, outputs=(Exacting(),))
    await stage.revert(up, down)
    decoding = stage.pipeline("up").parts.decoding
    plainly = decoding.decode

    plan = await stage.revert(up, exacting)

    assert plan.pipelines.kept == ("up",)
    assert (decoding.decode(b"1.10"), decoding.decode) != (plainly(b"1.10"), plainly)
    await stage.revert(up, down)
    assert decoding.decode is plainly
    await stage.it.close()


@virtual
async def test_no_refusal_tells_a_secret():
    stage = staged(secrets=Secrets({"WORD": "open-sesame"}, {}))
    stage.it.secrets.resolve(Secret("${WORD}"))  # as whoever was refused had it
    stage.refused.add("open-sesame")

    with pytest.raises(NotReverted) as refused:
        await stage.revert(flow("p", word="open-sesame"))

    assert "open-sesame" not in str(refused.value)
    assert "${WORD}" in str(refused.value)
