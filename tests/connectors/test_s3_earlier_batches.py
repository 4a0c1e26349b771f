"""Batches that the queue of an `s3` output has from before it kept parts, against a store that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.edges import Sink
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.keptparts import kept_parts
from headrace.connectors.http import HttpInput
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.test_outputqueue import Spooling
from tests.connectors.test_s3_letters import engine_with, landed
from tests.promises import promise
from tests.s3_sides import objects, output
from tests.services.s3 import S3
from tests.stand_ins import pipeline, run, running, with_attribute
from tests.virtual import virtual
from tests.waiting import until

TARGET = "s3 lake before/p"
ALL = [0, 1, 2, 10, 11, 12]


class AsBefore(Spooling, kind="as-before"):
    """What an `s3` output with a queue was: batches were stored under what it writes to."""

    def kept_as(self) -> str:
        return TARGET


def as_before(sink: Sink) -> PipelineConfig:
    """Return a pipeline of that time."""
    out = with_attribute(AsBefore.load({"queue": True}), "made", sink)
    return pipeline("p", [HttpInput.load({})], [], [out])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with three batches in the queue of that time."""

    async def leave() -> None:
        async with engine_on(tmp_path, as_before(Gated(is_open=False))) as it:
            for n in range(3):
                await post(it, [n, n + 10])
            await it.clock.sleep(1)

    run_virtual(leave)
    return tmp_path


async def parts_of(it: Engine) -> dict[tuple[str, bool], int]:
    """Return how many entries are kept, by part and whether they are left over."""
    figures = await it.stored()
    assert figures is not None
    return {(each.part, each.left_over): each.entries for each in figures.parts}


def today(**options: object) -> PipelineConfig:
    """Return the pipeline as it is now."""
    return pipeline("p", [HttpInput.load({})], [], [output(prefix="before/p", **options)])


def waits(it: Engine) -> int:
    """Return how much the one output holds."""
    fill = running(it, "p").parts.writers[0].sink.queue()
    assert fill is not None
    return fill.used


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """Give a store of the test's own."""
    with S3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@promise("delivery.parts.earlier")
@pytest.mark.parametrize("queue", [{}, {"queue": {}}])
async def test_they_are_uploaded_and_then_there_is_no_such_queue(folder: Path, store: S3, queue):
    async with engine_with(store, folder) as it:
        await run(it, today(**queue))
        await until(lambda: landed(store, "before") == ALL)
        while await parts_of(it) != {("parts", False): 0}:
            await it.clock.sleep(0.01)

    assert len(objects(store, "before")) == 3


@pytest.mark.long
@promise("delivery.parts.earlier")
async def test_those_in_a_part_that_nobody_has_yet_come_again_and_none_is_lost(
    folder: Path, store: S3
):
    config = today(rotate={"interval_secs": 3_600})
    async with engine_with(store, folder) as it:
        await run(it, config)
        await until(lambda: waits(it) > 0)
        during = await parts_of(it)
        store.kill()  # so the open part goes to the disk as the engine ends
    store.start()
    async with engine_with(store, folder) as it:
        await run(it, config)
        await until(lambda: landed(store, "before") == ALL)

    assert during == {("queue", False): 3, ("parts", False): 0}
    assert landed(store, "before") == ALL


@virtual
async def test_where_there_are_none_no_queue_is_made(tmp_path: Path) -> None:
    async with engine_with("http://127.0.0.1:1", tmp_path) as it:
        await it.compile(today(queue={}))
        await it.clock.sleep(10)
        assert await parts_of(it) == {("parts", False): 0}


def test_a_plan_knows_that_an_output_goes_on_with_them():
    assert [*kept_parts("p", today())] == [("p", TARGET, "queue"), ("p", TARGET, "parts")]
