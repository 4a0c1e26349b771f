"""What is told of each bounded queue: how full it is, in what it counts."""

from __future__ import annotations

from headrace.compiler.component.inputbuffers import Static, Tumbling
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.edges import INBOX_BATCHES, QueueFill
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.pipelinelive import live_of
from headrace.connectors.http import HttpInput
from headrace.connectors.pipelineinput import PipelineInput
from headrace.operators.buffer import Buffer
from tests.stand_ins import (
    Kept,
    NeverUp,
    Slow,
    Told,
    batches,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
)
from tests.virtual import virtual

Queue = tuple[str, int, str, int, int]


def queues(it: Engine, id: str = "p") -> list[Queue]:
    return [
        (each.stage, each.component, each.unit, each.used, each.capacity)
        for each in live_of(running(it, id)).queues
    ]


@virtual
async def test_what_buffers_hold_is_told_with_their_bounds() -> None:
    it = engine()
    inputs = [
        reads(Told(it.clock, [batches([1])]), buffer=Static(size=5)),
        reads(Told(it.clock, [batches([1, 2])]), buffer=Tumbling(window_seconds=1)),
        reads(Told(it.clock, [batches([1, 2, 3])])),
    ]
    transforms = [Buffer(size=7), Buffer(seconds=60, max_messages=9)]
    await run(it, pipeline("p", inputs, transforms))

    assert queues(it) == [
        ("input", 0, "messages", 1, 5),
        ("transform", 0, "messages", 3, 7),
        ("transform", 1, "messages", 0, 9),
    ]
    await it.clock.sleep(2)
    assert queues(it)[1] == ("transform", 0, "messages", 5, 7)
    await it.close()


@virtual
async def test_what_an_output_was_handed_is_told_in_batches_of_all_inputs() -> None:
    it = engine()
    script = [batches([1], [2], [3])]
    inputs = [reads(Told(it.clock, script)), reads(Told(it.clock, []))]
    outputs = [takes(Kept()), takes(Slow(it.clock, 10.0))]
    await run(it, pipeline("p", inputs, [], outputs))

    assert queues(it) == [("output", 0, "batches", 0, 32), ("output", 1, "batches", 3, 32)]
    await it.close()


@virtual
async def test_an_inbox_is_told_with_the_pipeline_that_reads() -> None:
    it = engine()
    await run(it, pipeline("up", [reads(Told(it.clock, [1.0, batches([1], [2])]))]))
    reader = PipelineConfig(
        id="p", inputs=(PipelineInput(upstream="up"),), outputs=(takes(NeverUp()),)
    )
    await it.compile(reader)

    assert queues(it)[0] == ("input", 0, "batches", 2, INBOX_BATCHES)
    await it.close()


@virtual
async def test_posts_that_wait_are_told() -> None:
    it = engine()
    config = PipelineConfig(id="p", inputs=(HttpInput(capacity=3),), outputs=(takes(NeverUp()),))
    await it.compile(config)

    way_in = it.way_in("p")
    assert way_in is not None
    way_in.take(b"1", None)
    way_in.take(b"[1, 2]", None)

    assert queues(it)[0] == ("input", 0, "batches", 2, 3)
    await it.close()


class Filling(Kept):
    """A sink that tells of what it holds."""

    def queue(self) -> QueueFill:
        return QueueFill("bytes", 5, 8)


@virtual
async def test_what_a_sink_holds_is_told_behind_what_it_is_handed() -> None:
    it = engine()
    await run(it, pipeline("p", [reads(Told(it.clock, []))], [], [takes(Filling())]))

    assert queues(it) == [("output", 0, "batches", 0, 16), ("output", 0, "bytes", 5, 8)]
    await it.close()
