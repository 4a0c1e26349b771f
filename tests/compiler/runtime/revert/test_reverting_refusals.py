"""A revert to what is turned down, cannot be built or does not end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Output
from headrace.compiler.edges import Sink
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.revert.reverting import RevertedInPart
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.pipelineinput import PipelineInput
from tests.compiler.runtime.reverts import Denying, From, Saying, flow, staged
from tests.stand_ins import Kept, NeverUp, Slow, Told, running
from tests.virtual import virtual


@virtual
async def test_one_that_is_turned_down_is_failed_and_all_the_others_run():
    stage = staged()
    denying = stage.sinks["denied"] = Denying()
    await stage.revert(flow("kept"), flow("p"))
    await stage.it.clock.sleep(0.35)

    with pytest.raises(RevertedInPart) as refused:
        await stage.revert(flow("kept"), flow("p", into="denied"), flow("new"))
    await stage.it.clock.sleep(0.35)

    assert str(refused.value) == "reverted, but these failed: 'p': outputs[0]: wrong password"
    assert {view.id: view.status for view in stage.it.graph.pipelines.values()} == {
        "kept": "running",
        "p": "failed",
        "new": "running",
    }
    [failure] = running(stage.it, "p").failures.table.latest()
    assert (failure.stage, failure.component, failure.message) == ("output", 0, "wrong password")
    assert (stage.written("kept"), stage.written("new")) == ([*range(6)], [*range(3)])
    assert denying.asked == 1
    await stage.it.close()


@virtual
async def test_one_that_is_turned_down_shows_no_credential_though_it_is_over():
    class Hiding(Output, kind="hiding"):
        """An output whose other side repeats a token that the config writes out."""

        def open(self, ctx: Context) -> Sink:
            ctx.hide("written-out")
            return Repeating(ctx.clock)

    class Repeating(Kept):
        async def start(self) -> None:
            raise BuildRefused(Fault("turned-away", "no 'written-out' here"))

    stage = staged()
    stage.sinks["slow"] = NeverUp()  # by the time it is given up, the other is over
    config = replace(flow("p"), outputs=(Hiding(),))

    with pytest.raises(RevertedInPart, match=r"no '\*\*\*' here"):
        await stage.revert(flow("q", into="slow"), config)

    assert running(stage.it, "p").status == "failed"
    assert stage.it.secrets.redact("written-out") == "written-out"
    await stage.it.close()


@virtual
async def test_an_input_that_is_turned_down_is_told_as_one():
    class Shut(Told):
        connects = True

        async def read(self):
            raise BuildRefused(Fault("turned-away", "not authorized"))
            yield ()

    stage = staged()
    stage.sources["shut"] = lambda: Shut(stage.it.clock, [])

    with pytest.raises(RevertedInPart, match=r"'p': inputs\[0\]: not authorized"):
        await stage.revert(flow("p", word="shut"))

    [failure] = running(stage.it, "p").failures.table.latest()
    assert (failure.stage, failure.component, failure.message) == ("input", None, "not authorized")
    await stage.it.close()


@virtual
async def test_a_sink_that_does_not_answer_holds_up_no_other_pipeline():
    stage = staged()
    stage.sinks["hangs"] = NeverUp()

    reverting = asyncio.ensure_future(stage.revert(flow("p", into="hangs"), flow("q")))
    await stage.it.clock.sleep(1.05)
    assert len(stage.written("q")) >= 9
    await reverting

    assert stage.it.clock.monotonic() == 5.0
    assert (running(stage.it, "p").status, running(stage.it, "q").status) == ("starting", "running")
    await stage.it.close()


@virtual
async def test_a_pipeline_that_has_failed_is_built_again():
    stage = staged()
    stage.sources["ends"] = lambda: Told(stage.it.clock, [0.1, [([1], None)]], stays=False)
    await stage.revert(flow("p", word="ends"))
    await stage.it.clock.sleep(1)
    assert running(stage.it, "p").status == "failed"

    plan = await stage.revert(flow("p", word="ends"))

    assert [each.why for each in plan.pipelines.changed] == [("it has failed",)]
    assert running(stage.it, "p").status == "running"
    await stage.it.close()


@virtual
async def test_one_that_does_not_end_is_given_up_after_the_grace():
    stage = staged()
    stage.sinks["p"] = Slow(stage.it.clock, 1e9)
    await stage.revert(flow("p"))
    await stage.it.clock.sleep(0.15)

    plan = await stage.revert(flow("p", into="q"))

    assert 3.5 <= stage.it.clock.monotonic() - 0.15 <= 4.5
    assert plan.lost == 1
    assert str(plan).endswith("0 left alone, messages lost, because not written in time: 1")
    assert running(stage.it, "p").status == "running"
    await stage.it.close()


class Remembered(Told):
    """A source whose broker keeps something for it."""

    def __init__(self, forgotten: list[str], name: str, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._forgotten, self._name = forgotten, name

    async def forget(self) -> None:
        self._forgotten.append(self._name)


@virtual
async def test_brokers_forget_the_inputs_that_are_gone_and_no_others():
    stage, forgotten = staged(), list[str]()
    for name in ("stays", "goes", "removed"):
        stage.sources[name] = lambda name=name: Remembered(forgotten, name, stage.it.clock, [])
    both = [From(word="stays", claimed="id 1"), From(word="goes", claimed="id 2")]
    await stage.revert(
        flow("p", reads=both), flow("q", word="removed", claimed="id 3"), flow("r", word="stays")
    )

    await stage.revert(
        flow("p", Saying(word=1), reads=[From(word="stays", claimed="id 1")]),
        flow("r", word="stays"),
    )

    assert sorted(forgotten) == ["goes", "removed"]
    await stage.it.close()
    assert sorted(forgotten) == ["goes", "removed"]


@virtual
async def test_the_old_one_has_finished_before_the_new_one_opens():
    order = list[str]()

    class Alone(Kept):
        async def start(self) -> None:
            order.append("open")

        async def finish(self) -> None:
            await stage.it.clock.sleep(0.5)
            order.append("finished")

    stage = staged()
    stage.sinks["p"] = Alone()
    await stage.revert(flow("p"))

    await stage.revert(flow("p", Saying(word=1)))

    assert order == ["open", "finished", "open"]
    await stage.it.close()


@pytest.mark.long
@virtual
async def test_nothing_is_left_of_a_hundred_reverts():
    stage = staged()
    for n in range(100):
        await stage.revert(
            flow("p", Saying(word=n), claimed="a seat"),
            flow(f"q{n}", reads=[PipelineInput(upstream="p")]),
            held=n + 1,
        )

    outlets = stage.it.graph.outlets
    assert {id: bool(outlet.observers) for id, outlet in outlets.items()} == {
        "p": True,
        "q99": False,
    }
    assert [len(holders) for holders in stage.it._world.claims._holders.values()] == [1]
    assert len(asyncio.all_tasks()) < 10
    world = stage.pipeline("p")._world
    assert (world.buckets, world.connections) == (stage.it.state, stage.it.connections)
    await stage.it.close()
