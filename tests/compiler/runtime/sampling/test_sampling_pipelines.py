"""A sample of a running pipeline."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Input
from headrace.compiler.edges import INBOX_BATCHES, Source
from headrace.compiler.runtime import sampling as sampling_module
from headrace.compiler.runtime.sampling import (
    Sample,
)
from headrace.connectors.pipelineinput import PipelineInput
from tests.stand_ins import (
    Kept,
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

# A sample of a running pipeline.


def peeking(**options: Any) -> Input:
    return PipelineInput.load({"upstream": "above", **options})


@virtual
async def test_a_sample_of_a_pipeline_sees_what_it_hands_on_from_now_on():
    it = engine()
    source = Told(it.clock, [batches(["before"]), 1.0, batches([1], [2, 3]), 1.0, batches([4])])
    await run(it, pipeline("above", [reads(source)]))
    await it.clock.sleep(0.5)

    said = await it.samples.take(peeking(), most=4, seconds=5)

    assert said.messages == [1, 2, 3, 4]
    await it.close()


@virtual
async def test_metadata_of_a_sampled_pipeline_is_added_to():
    it = engine()
    source = Told(it.clock, [1.0, batches([{"_meta": {"line": 1}}])])
    await run(it, pipeline("above", [reads(source)]))

    said = await it.samples.take(peeking(envelope={"type": "merge"}), most=1, seconds=5)

    assert said.messages[0]["_meta"]["line"] == 1
    assert said.messages[0]["_meta"]["upstream"] == "above"
    await it.close()


class Stuck(PipelineInput, kind="stuck"):
    """A sample that reads nothing of what it attaches to."""

    def source(self, ctx: Context) -> Source:
        inbox = super().source(ctx)
        return with_attribute(Deaf(), "inbox", inbox)


class Deaf(Source):
    """Has an inbox and reads nothing of it."""

    async def read(self) -> Any:
        await asyncio.get_running_loop().create_future()
        yield ()

    def close(self) -> list[int]:
        return self.inbox.close()  # type: ignore[attr-defined]


@virtual
async def test_a_sample_holds_up_neither_the_pipeline_nor_its_acknowledgements(
    caplog: pytest.LogCaptureFixture,
):
    it, kept = engine(), Kept()
    many = INBOX_BATCHES + 500
    source = Told(it.clock, [0.5, batches(*([n] for n in range(many)))])
    given = reads(source, acknowledges=True, ack="on_delivery")
    await run(it, pipeline("above", [given], [], [takes(kept)]))

    asking = asyncio.ensure_future(
        it.samples.take(Stuck.load({"upstream": "above"}), most=5, seconds=5)
    )
    await it.clock.sleep(1)

    assert len(kept.batches) == len(source.acknowledged) == many
    assert running(it, "above").in_flight == 0
    assert (await asking).messages == []
    assert caplog.records == []  # what it did not read is no loss
    await it.close()


@virtual
async def test_a_sample_that_ends_while_it_takes_large_messages_gives_back_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
):
    it, large = engine(), ["x" * 600_000] * 10
    source = Told(it.clock, [0.5, batches(*[large] * 3)])
    given = reads(source, acknowledges=True, ack="on_delivery")
    await run(it, pipeline("above", [given]))
    sampling: list[asyncio.Future[Any]] = []
    monkeypatch.setattr(sampling_module, "encode", lambda _: sampling[0].cancel() or b"")

    sampling.append(asyncio.ensure_future(it.samples.take(peeking(), most=100, seconds=5)))
    await asyncio.wait(sampling)
    await it.clock.sleep(1)

    assert sampling[0].cancelled()
    assert len(source.acknowledged) == 3
    assert running(it, "above").in_flight == 0
    await it.close()


@virtual
async def test_a_pipeline_with_a_slow_reader_is_sampled_at_the_readers_pace_and_loses_nothing():
    it, kept = engine(), Kept()
    source = Told(it.clock, [n for k in range(20) for n in (0.1, batches([k]))])
    await run(it, pipeline("above", [reads(source)]))
    below = PipelineInput.load({"upstream": "above"})
    await run(it, pipeline("below", [below], [], [takes(kept)]))

    said = await it.samples.take(peeking(), most=5, seconds=5)
    await it.clock.sleep(5)

    assert len(said.messages) == 5
    assert kept.batches == [[k] for k in range(20)]
    await it.close()


@virtual
async def test_nothing_is_attached_to_a_pipeline_after_its_sample():
    it = engine()
    await run(it, pipeline("above", [reads(Told(it.clock, []))]))
    for seconds in (0.0, 1.0):
        await it.samples.take(peeking(), most=5, seconds=seconds)

    assert not it.graph.outlets["above"].observers
    await it.close()


@virtual
async def test_a_pipeline_that_is_not_there_cannot_be_sampled():
    it = engine()

    said = await it.samples.take(peeking(), most=5, seconds=1)

    assert [fault.code for fault in said.faults] == ["missing-upstream"]


@virtual
async def test_a_pipeline_that_is_deleted_meanwhile_is_waited_for_in_vain():
    it = engine()
    await run(it, pipeline("above", [reads(Told(it.clock, []))]))
    asking = asyncio.ensure_future(it.samples.take(peeking(), most=5, seconds=3))
    await it.clock.sleep(1)

    await it.dispose("above")

    assert await asking == Sample([], [], 3.0)
    assert "above" not in it.graph.outlets
