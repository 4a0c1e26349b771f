"""Of each input and output is told whether it is connected; if not, why, and when it is tried again."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BuildRefused, Ended, NotWritable, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.pipelinelive import PipelineLive, live_of
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.pipelineinput import PipelineInput
from tests.compiler.runtime.connected import GONE, Broker, of
from tests.stand_ins import (
    Kept,
    Slow,
    Taking,
    Told,
    batches,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
    with_attribute,
)
from tests.virtual import virtual

UP = ("up", None, None)


def live(it: Engine, id: str = "p") -> PipelineLive:
    return live_of(running(it, id))


def links(it: Engine, id: str = "p") -> list[tuple[str, str | None, float | None]]:
    """Return state, reason, and seconds to the next try, of all inputs and then of all outputs."""
    told = live(it, id)
    now = it.clock.millis()
    return [
        (each.state, each.why, None if each.retry_at is None else (each.retry_at - now) / 1000)
        for each in (*told.inputs, *told.outputs)
    ]


@virtual
async def test_what_needs_no_connection_is_up() -> None:
    it = engine()
    await run(it, pipeline("p", [reads(Told(it.clock, []))], [], [takes(Kept())]))

    assert (links(it), live(it).health) == ([UP, UP], "ok")
    await it.close()


@virtual
async def test_an_input_that_never_connected_is_coming_with_why_and_when_it_is_tried() -> None:
    it = engine()
    await it.compile(of(Broker(it.clock, *[GONE] * 5)))
    await it.clock.sleep(0.001)

    [(state, why, seconds)] = links(it)
    assert (state, why, live(it).health) == ("coming", "it does not answer", "degraded")
    assert live(it).status == "running"
    assert seconds is not None
    assert 0.19 < seconds < 0.31
    await it.clock.sleep(10)
    assert (links(it), live(it).health) == ([UP], "ok")
    await it.close()


@virtual
async def test_an_input_that_is_lost_is_down_until_it_is_connected_again() -> None:
    it = engine()
    source = Broker(it.clock)
    await it.compile(of(source))
    await it.clock.sleep(5)
    assert links(it) == [UP]

    source._faults[:] = [GONE] * 2
    source.lose(GONE)
    await it.clock.sleep(0.01)

    [(state, why, seconds)] = links(it)
    assert (state, why) == ("down", "it does not answer")
    assert seconds is not None
    assert 0 < seconds < 0.31
    await it.clock.sleep(5)
    assert links(it) == [UP]
    await it.close()


class Late(Kept):
    """A sink that comes up at the twentieth second."""

    async def start(self) -> None:
        if asyncio.get_running_loop().time() < 20:
            raise OSError("connection refused")


@virtual
async def test_while_an_output_is_coming_inputs_that_could_connect_wait_for_it() -> None:
    it = engine()
    config = of(Broker(it.clock), Late(), Kept())
    await it.compile(config)
    await it.clock.sleep(1)

    waiting, coming, other = links(it)
    assert live(it).status == "starting"
    assert waiting == ("waiting", "until all outputs are up", None)
    assert coming[:2] == ("coming", "connection refused")
    assert coming[2] is not None
    assert 0 < coming[2] < 3
    assert other == UP
    await it.clock.sleep(30)
    assert links(it) == [UP, UP, UP]
    await it.close()


@virtual
async def test_an_output_that_nobody_answers_is_down_until_something_is_written() -> None:
    it = engine()
    sink = Slow(it.clock, 0.0, [Unreachable("nobody answers")])
    script = [0.5, batches([1]), 10.0, batches([2]), 1.0]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [], [takes(sink)]))
    assert links(it) == [UP, UP]

    await it.clock.sleep(0.6)
    [_, (state, why, seconds)] = links(it)
    assert (state, why) == ("down", "nobody answers")
    assert seconds is not None
    assert 0 < seconds < 0.31
    await it.clock.sleep(5)
    assert links(it)[1] == ("down", "nobody answers", None)  # tried with the next batch
    await it.clock.sleep(6)
    assert links(it)[1] == UP
    await it.close()


@virtual
async def test_a_batch_that_is_refused_says_nothing_of_its_output_and_a_full_disk_does() -> None:
    it = engine()
    sink = Slow(it.clock, 0.0, [ValueError("it does not fit"), NotWritable("no space left")])
    script = [0.5, batches([1]), 1.0, batches([2]), 1.0, batches([3])]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [], [takes(sink)]))

    told = []
    for _ in range(3):
        await it.clock.sleep(0.9)
        told.append(links(it)[1])

    assert told == [UP, ("down", "no space left", None), UP]
    assert running(it, "p").failures.by_stage["output"] == 2
    await it.close()


@virtual
async def test_an_output_waits_while_the_other_side_takes_nothing() -> None:
    it = engine()
    script = [0.5, batches([1]), batches([2]), 60.0]
    config = pipeline("p", [reads(Told(it.clock, script))], [], [takes(Slow(it.clock, 10.0))])
    await run(it, config)

    await it.clock.sleep(2)
    assert links(it)[1] == UP
    await it.clock.sleep(2)
    assert links(it)[1] == ("waiting", "nothing has been taken for 3 s", None)
    assert live(it).health == "degraded"
    await it.clock.sleep(7)
    assert links(it)[1] == UP  # the first has been written, the second has just begun
    await it.clock.sleep(20)
    assert links(it)[1] == UP
    await it.close()


@virtual
async def test_a_pipeline_that_reads_another_waits_while_that_does_not_run() -> None:
    it = engine()
    await run(it, pipeline("up", [reads(Told(it.clock, []))]))
    await run(it, PipelineConfig(id="p", inputs=(PipelineInput(upstream="up"),)))
    assert links(it) == [UP]

    await it.dispose("up")
    assert links(it) == [("waiting", "no pipeline named 'up' runs", None)]

    await it.compile(pipeline("up", [reads(Told(it.clock, []))], [], [takes(Late())]))
    assert links(it) == [("waiting", "'up' is starting", None)]
    await it.clock.sleep(30)
    assert links(it) == [UP]
    await it.close()


@virtual
async def test_an_input_that_is_over_is_down_and_so_is_all_of_a_pipeline_that_failed() -> None:
    it = engine()
    ending, other = Told(it.clock, [1.0, Ended("it was removed")]), Told(it.clock, [5.0])
    other._stays = False
    await run(it, pipeline("p", [reads(ending), reads(other)], [], [takes(Kept())]))

    await it.clock.sleep(2)
    assert links(it) == [("down", "it was removed", None), UP, UP]
    await it.clock.sleep(5)
    assert live(it).status == "failed"
    assert links(it) == [
        ("down", "it was removed", None),
        ("down", None, None),
        ("down", None, None),
    ]
    await it.close()


@virtual
async def test_who_is_turned_down_after_all_says_why_and_is_not_tried_again() -> None:
    class TurnedDown(Kept):
        async def start(self) -> None:
            if asyncio.get_running_loop().time() < 8:
                raise OSError("connection refused")
            raise BuildRefused(Fault("credential", "wrong password"))

    it = engine()
    await it.compile(of(Broker(it.clock), TurnedDown()))
    await it.clock.sleep(20)

    assert live(it).status == "failed"
    [input, output] = links(it)
    assert input[0] == "down"
    assert output == ("coming", "wrong password", None)
    await it.close()


class Reconnecting(AwaitingSink):
    """A sink that connects again by itself, and takes what it is given meanwhile."""

    is_confirming = False

    def __init__(self) -> None:
        self.ctx: Any = None

    async def write(self, batch: Any) -> None:
        if batch == ["lost"]:
            self.ctx.disconnected("'sesame' is not taken:\n try another", 4.0)
        if batch == ["found"]:
            self.ctx.reconnected("there again")


class Telling(Taking, kind="telling"):
    def open(self, ctx: Any) -> Any:
        self.made.ctx = ctx  # type: ignore[attr-defined]
        ctx.hide("sesame")
        return self.made  # type: ignore[attr-defined]


@virtual
async def test_who_connects_again_by_itself_tells_it_without_secrets() -> None:
    it = engine()
    output = with_attribute(Telling(), "made", Reconnecting())
    script = [0.5, batches(["lost"]), batches(["other"]), 1.0, batches(["found"])]
    await run(it, pipeline("p", [reads(Told(it.clock, script))], [], [output]))

    await it.clock.sleep(1)
    [_, (state, why, seconds)] = links(it)
    assert state == "down"
    assert why is not None
    assert "sesame" not in why
    assert "\n" not in why
    assert seconds is not None
    assert 3 < seconds < 4
    await it.clock.sleep(1)
    assert links(it)[1] == UP
    assert running(it, "p").failures.by_stage["output"] == 1
    await it.close()
