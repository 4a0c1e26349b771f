"""An output with a queue: nobody waits for it, and what it has not written outlasts a restart."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.edges import Sink
from headrace.compiler.errors import BatchFailed, BuildRefused, Refused, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.http import HttpInput
from tests.compiler.runtime.durable import Gated, engine_on, post
from tests.compiler.runtime.lettered import lettered, lost, put_down
from tests.promises import promise
from tests.stand_ins import pipeline, run, running, takes, with_attribute
from tests.virtual import virtual


class Spooling(QueuedOutput, kind="spooling"):
    """An output with a queue that writes to the sink it is given."""

    def kept_as(self) -> str:
        return self.kind

    def open(self, ctx: Context) -> Sink:
        made: Sink = self.made  # type: ignore[attr-defined]
        return made


def spooling(sink: Sink, *others: Sink, queue: Any = True) -> PipelineConfig:
    """Return a pipeline that is posted to, with an output that has a queue, and others that have none."""
    output = with_attribute(Spooling.load({"queue": queue}), "made", sink)
    return pipeline("p", [HttpInput.load({})], [], [output, *map(takes, others)])


async def entries(it: Engine) -> int:
    """Return how many batches are on the disk."""
    figures = await it.stored()
    assert figures is not None
    return sum(each.entries for each in figures.parts if each.part == "queue")


@promise("delivery.queue.kept_up")
@virtual
async def test_while_the_output_keeps_up_nothing_is_stored(tmp_path: Path) -> None:
    out = Gated()
    async with engine_on(tmp_path, spooling(out)) as it:
        for n in range(100):
            await post(it, n)
        await it.clock.sleep(1)
        figures = await it.stored()

    assert figures is not None
    assert (figures.commits, [each.entries for each in figures.parts]) == (0, [0])
    assert out.messages == [*range(100)]


@promise("delivery.queue.waits")
@virtual
async def test_nobody_waits_for_an_output_that_is_stuck(tmp_path: Path) -> None:
    stuck, other = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, spooling(stuck, other)) as it:
        for n in range(1_500):
            await post(it, n)
            if n % 100 == 0:
                await it.clock.sleep(0.1)
        await it.clock.sleep(1)
        before, written = await entries(it), [*other.messages]
        stuck.gate.set()
        await it.clock.sleep(1)
        after = await entries(it)

    assert (before, after) == (1_500, 0)
    assert written == stuck.messages == [*range(1_500)]


@promise("delivery.queue.waits")
@virtual
async def test_what_was_not_written_is_written_after_a_restart_before_what_comes_then(
    tmp_path: Path,
) -> None:
    stuck, out = Gated(is_open=False), Gated()
    async with engine_on(tmp_path, spooling(stuck)) as it:
        for n in range(300):
            await post(it, n)
        await it.clock.sleep(0.01)
        lost = running(it, "p")
    async with engine_on(tmp_path, spooling(out)) as it:
        await post(it, 300)
        await it.clock.sleep(5)
        left = await entries(it)

    assert stuck.messages == []
    assert out.messages == [*range(301)]
    assert left == 0
    assert sum(each.count for each in lost.failures.losses) == 0


@pytest.mark.parametrize("letters", [False, True], ids=["lost", "a dead letter"])
@virtual
async def test_what_ended_the_process_three_times_is_set_aside_and_the_rest_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, letters: bool
) -> None:
    def config(sink: Sink) -> PipelineConfig:
        made = spooling(sink)
        return lettered(made.outputs) if letters else made

    async with engine_on(tmp_path, config(Gated(is_open=False))) as it:
        await post(it, ["poison", "beside it"])
        await it.clock.sleep(1)  # they are not stored together
        await post(it, "fine")
        await it.clock.sleep(1)
    with closing(sqlite3.connect(tmp_path / "store" / "0" / "store.db")) as database, database:
        database.execute("UPDATE entries SET deaths = 3 WHERE first = 0")
    out = Gated()
    async with engine_on(tmp_path, config(out)) as it:
        await it.clock.sleep(5)
        left, gone = await entries(it), lost(it)
        found = await put_down(it) if letters else []

    said = "set aside: the process ended 3 times while it was under way"
    assert out.messages == ["fine"]
    assert [
        (each.levelname, each.message)
        for each in caplog.records
        if said in each.message and each.levelname == "ERROR"
    ] == [("ERROR", f"pipeline 'p' outputs[0]: {said}")]
    assert [(x.place, x.content) for x in found] == (
        [("process[0]", ["poison", "beside it"])] if letters else []
    )
    assert gone == ({} if letters else {("output[0]", "error"): 2})
    assert left == 0


@promise("delivery.queue.waits")
@pytest.mark.parametrize("starts", [True, False], ids=["it starts", "it does not start"])
@virtual
async def test_what_waits_for_who_is_away_is_not_suspected_however_often_the_process_is_killed(
    tmp_path: Path, starts: bool
) -> None:
    class Away(Gated):
        async def start(self) -> None:
            if not starts:
                raise Unreachable("it does not answer")

        async def write(self, batch: Any) -> None:
            raise Unreachable("it does not answer")

    out = Gated()
    (tmp_path / "0").mkdir()
    for kill in range(5):
        async with engine_on(tmp_path / f"{kill}", spooling(Away())) as it:
            for n in range(30):
                await post(it, 30 * kill + n)
            await it.clock.sleep(4)
            shutil.copytree(tmp_path / f"{kill}", tmp_path / f"{kill + 1}")  # what a kill leaves
    async with engine_on(tmp_path / "5", spooling(out)) as it:
        await it.clock.sleep(5)
        left, it_is = await entries(it), running(it, "p")

    assert out.messages == [*range(150)]
    assert left == 0
    assert sum(each.count for each in it_is.failures.losses) == 0


@promise("delivery.queue.stop")
@virtual
async def test_a_stop_in_order_brings_nothing_twice(tmp_path: Path) -> None:
    class Slow(Gated):
        async def write(self, batch: Any) -> None:
            await clock.sleep(0.3)
            await super().write(batch)

    clock = Clock(asyncio.get_running_loop())
    slow, out = Slow(), Gated()
    async with engine_on(tmp_path, spooling(slow)) as it:
        for n in range(20):
            await post(it, n)
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)

    assert slow.messages + out.messages == [*range(20)]


@promise("delivery.queue.full")
@virtual
async def test_what_is_full_waits_and_the_inputs_with_it(tmp_path: Path) -> None:
    stuck, other = Gated(is_open=False), Gated()
    config = spooling(stuck, other, queue={"max_bytes": 2_000})
    async with engine_on(tmp_path, config) as it:
        for n in range(200):
            await post(it, f"{n:0100}")
        await it.clock.sleep(5)
        waiting = len(other.messages)
        stuck.gate.set()
        await it.clock.sleep(30)

    assert 20 < waiting < 100
    assert [int(each) for each in stuck.messages] == [*range(200)]
    assert other.messages == stuck.messages


@promise("delivery.queue.full")
@virtual
async def test_the_oldest_is_dropped_where_that_is_wanted_and_counted(tmp_path: Path) -> None:
    stuck, other = Gated(is_open=False), Gated()
    config = spooling(stuck, other, queue={"max_bytes": 10_000, "when_full": "drop_oldest"})
    async with engine_on(tmp_path, config) as it:
        for n in range(400):
            await post(it, f"{n:0100}")
            await it.clock.sleep(0.2)
        written, it_is = len(other.messages), running(it, "p")
        stuck.gate.set()
        await it.clock.sleep(30)

    numbers = [int(each) for each in stuck.messages]
    lost = {each.reason: each.count for each in it_is.failures.losses if each.count}
    assert written == 400
    assert numbers == sorted(numbers)
    assert numbers[:16] == [*range(16)]  # the output had them
    assert numbers[-1] == 399
    assert lost == {"dropped": 400 - len(numbers)}
    assert 50 < len(numbers) < 120


@promise("delivery.queue.full")
@virtual
async def test_what_would_not_fit_into_an_empty_queue_is_dropped_and_nothing_for_it(
    tmp_path: Path,
) -> None:
    stuck, other = Gated(is_open=False), Gated()
    config = spooling(stuck, other, queue={"max_bytes": 10_000, "when_full": "drop_oldest"})
    async with engine_on(tmp_path, config) as it:
        for n in range(10):
            await post(it, n)
        await post(it, "x" * 20_000)  # the output has it
        for n in range(11, 50):
            await post(it, n)
            await it.clock.sleep(0.2)
        await post(it, "y" * 20_000)
        await post(it, 51)
        await it.clock.sleep(1)
        written, it_is = len(other.messages), running(it, "p")
        stuck.gate.set()
        await it.clock.sleep(5)

    lost = {each.reason: each.count for each in it_is.failures.losses if each.count}
    assert written == 52
    assert lost == {"dropped": 1}
    assert stuck.messages == [*range(10), "x" * 20_000, *range(11, 50), 51]


@promise("delivery.queue.invalid")
@virtual
async def test_what_does_not_fit_is_lost_and_holds_up_nobody(tmp_path: Path) -> None:
    class Picky(Gated):
        async def write(self, batch: Any) -> None:
            await super().write([] if batch == [7] else batch)
            if batch == [7]:
                raise BatchFailed("a seven does not fit", "invalid")

    picky = Picky(is_open=False)
    async with engine_on(tmp_path, spooling(picky)) as it:
        for n in range(40):
            await post(it, n)
        await it.clock.sleep(1)
        picky.gate.set()
        await it.clock.sleep(1)
        left, it_is = await entries(it), running(it, "p")

    assert picky.messages == [n for n in range(40) if n != 7]
    assert sum(each.count for each in it_is.failures.losses) == 1
    assert left == 0


@promise("delivery.queue.starts")
@virtual
async def test_an_output_that_is_not_up_yet_holds_up_nobody(tmp_path: Path) -> None:
    class Late(Gated):
        starts = 0

        async def start(self) -> None:
            self.starts += 1
            if self.starts < 4:
                raise Unreachable("it does not answer")

    late, other = Late(), Gated()
    async with engine_on(tmp_path, spooling(late, other)) as it:
        for n in range(100):
            await post(it, n)
        await it.clock.sleep(0.01)
        before = other.messages, late.messages
        await it.clock.sleep(10)

    assert before == ([*range(100)], [])
    assert late.messages == [*range(100)]


@promise("delivery.queue.starts")
@virtual
async def test_an_output_that_is_turned_down_refuses_its_pipeline(tmp_path: Path) -> None:
    class Refusing(Gated):
        async def start(self) -> None:
            raise BuildRefused(Fault("turned-away", "wrong password"))

    async with engine_on(tmp_path) as it:
        with pytest.raises(Refused, match="wrong password"):
            await run(it, spooling(Refusing()))
        out = Gated()
        await run(it, spooling(out))
        await post(it, 1)
        await it.clock.sleep(1)

    assert out.messages == [1]


@promise("delivery.queue.deleted")
@virtual
async def test_a_deleted_pipeline_writes_what_it_can_and_leaves_the_rest_over(
    tmp_path: Path,
) -> None:
    stuck = Gated(is_open=False)
    async with engine_on(tmp_path, spooling(stuck)) as it:
        for n in range(100):
            await post(it, n)
        await it.clock.sleep(1)
        it.clock.call_later(1, stuck.gate.set)
        await it.dispose("p")
        assert await entries(it) == 0
        stuck.gate.clear()
        await run(it, spooling(stuck))
        for n in range(100, 150):
            await post(it, n)
        await it.clock.sleep(1)
        await it.dispose("p")
        figures = await it.stored()
        assert figures is not None
        left = [(each.part, each.entries, each.left_over) for each in figures.parts]

    assert stuck.messages == [*range(100)]
    assert left == [("queue", 50, True)]


@virtual
async def test_large_batches_are_stored_and_read_again(tmp_path: Path) -> None:
    stuck, out = Gated(is_open=False), Gated()
    large = [{"n": n, "text": "x" * 20} for n in range(20_000)]
    async with engine_on(tmp_path, spooling(stuck)) as it:
        for n in range(3):
            await post(it, n)
            await post(it, large)
        await it.clock.sleep(1)
    async with engine_on(tmp_path, spooling(out)) as it:
        await it.clock.sleep(5)

    assert [*map(len, out.batches)] == [1, 20_000] * 3
    assert out.batches[5] == large
