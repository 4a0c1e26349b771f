"""Everything that fails in a pipeline is in its history, as often as it did."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.config.program import Program
from headrace.compiler.edges import InlineSink
from headrace.compiler.errors import BatchFailed, BuildRefused, Ended, Refused, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.text.diagnostics import Fault
from tests.compiler.runtime.counting import rows
from tests.compiler.runtime.reverts import flow, staged
from tests.stand_ins import (
    Kept,
    Slow,
    Told,
    batches,
    does,
    engine,
    pipeline,
    reads,
    run,
    running,
    takes,
)
from tests.virtual import virtual

BEGAN = 1767225600


def told(it: Engine, id: str = "p") -> list[tuple[str, int | None, str, int]]:
    """Return what history tells of failures, in the order of their texts."""
    failures = it.history.past(id, "coarse").failures
    told = [(each.stage, each.component, each.message, each.count) for each in failures]
    return sorted(told, key=lambda each: each[2])


def errors(it: Engine, id: str = "p") -> int:
    """Return the sum of the errors in all buckets."""
    return sum(row[3] for row in rows(it.history, id))


class Hanging(Kept):
    """A sink that never finishes."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self._time = clock

    async def finish(self) -> None:
        await self._time.sleep(1e9)


class Unfinished(Kept):
    """A sink that cannot finish."""

    async def finish(self) -> None:
        raise OSError("the upload was refused")


@virtual
async def test_every_failed_batch_of_a_transform_and_of_an_output_counts():
    def step(batch):
        if batch == [2]:
            raise BatchFailed("two is not allowed")
        return [batch]

    it = engine()
    source = Told(it.clock, [batches([1], [2], [3], [2])])
    config = pipeline("p", [reads(source)], [does(step)], [takes(Kept(fails=True)), takes(Kept())])
    await run(it, config)
    await it.clock.sleep(5)

    assert told(it) == [
        ("output", 0, "the disk is full", 2),
        ("transform", 0, "two is not allowed", 2),
    ]
    assert rows(it.history) == [(BEGAN, 4, 2, 4)]
    await it.close()


@virtual
async def test_every_attempt_to_come_up_counts_also_those_before_the_create_is_answered():
    class Late(InlineSink):
        tried = 0

        async def start(self) -> None:
            Late.tried += 1
            if Late.tried <= 9:
                raise Unreachable("127.0.0.1:1 does not answer")

        def write(self, batch: Any) -> None:
            pass

    it = engine()
    created = await it.compile(pipeline("p", [reads(Told(it.clock, []))], [], [takes(Late())]))
    assert (created.status, Late.tried) == ("starting", sum(created.failures.values()))

    await it.clock.sleep(60)

    assert running(it, "p").status == "running"
    assert told(it) == [("output", 0, "127.0.0.1:1 does not answer", 9)]
    assert errors(it) == 9
    await it.close()


@virtual
async def test_a_sink_that_says_no_after_it_came_up_late_counts():
    class Locked(InlineSink):
        tried = 0

        async def start(self) -> None:
            Locked.tried += 1
            if Locked.tried > 9:  # not before the create is answered, whatever the waits are
                raise BuildRefused(Fault("credential", "wrong password"))
            raise Unreachable("127.0.0.1:1 does not answer")

        def write(self, batch: Any) -> None:
            pass

    it = engine()
    await it.compile(pipeline("p", [reads(Told(it.clock, []))], [], [takes(Locked())]))
    await it.clock.sleep(60)

    assert running(it, "p").status == "failed"
    assert [message for _, _, message, _ in told(it)] == [
        "127.0.0.1:1 does not answer",
        "wrong password",
    ]
    assert errors(it) == 10
    await it.close()


@virtual
async def test_a_finish_that_fails_counts_though_the_pipeline_is_gone():
    it = engine()
    await run(it, pipeline("p", [reads(Told(it.clock, []))], [], [takes(Unfinished())]))

    await it.dispose("p")

    assert told(it) == [("output", 0, "the upload was refused", 1)]
    assert errors(it) == 1


@virtual
async def test_a_finish_that_does_not_end_counts_when_it_is_given_up():
    it = engine()
    await run(it, pipeline("p", [reads(Told(it.clock, []))], [], [takes(Hanging(it.clock))]))

    await it.dispose("p")

    assert told(it) == [("output", 0, "stopped before it was finished", 1)]
    assert errors(it) == 1


@virtual
async def test_batches_that_are_given_up_and_the_finish_after_them_count():
    class Stuck(Slow):
        async def finish(self) -> None:
            await self._clock.sleep(1e9)

    it = engine()
    source = Told(it.clock, [batches([1], [2])])
    await run(it, pipeline("p", [reads(source)], [], [takes(Stuck(it.clock, 1e9))]))

    await it.dispose("p")

    assert told(it) == [
        ("output", 0, "stopped before everything was written", 2),
        ("output", 0, "stopped before it was finished", 1),
    ]
    assert errors(it) == 3


@virtual
async def test_the_death_of_one_of_several_inputs_counts_and_so_does_that_of_the_last():
    it = engine()
    first = Told(it.clock, [Ended("the device is gone")])
    second = Told(it.clock, [60.0], stays=False)
    await run(it, pipeline("p", [reads(first), reads(second)]))
    await it.clock.sleep(5)
    assert told(it) == [("input", None, "the device is gone", 1)]

    await it.clock.sleep(60)

    assert running(it, "p").status == "failed"
    assert told(it) == [
        ("input", None, "the device is gone", 1),
        ("input", None, "the last input ended", 1),
    ]
    assert [row[3] for row in rows(it.history)] == [1, 1]
    await it.close()


@virtual
async def test_every_attempt_of_an_outage_counts_under_one_signature_without_a_component():
    it = engine()
    source = Told(it.clock, [*[OSError("refused")] * 5, batches([1])])
    await run(it, pipeline("p", [reads(Told(it.clock, [])), reads(source)]))
    await it.clock.sleep(30)

    assert source.lives == 6
    assert told(it) == [("input", None, "refused", 5)]
    assert errors(it) == 5
    await it.close()


@virtual
async def test_a_transform_that_does_not_end_well_counts():
    class Untidy(type(does(list))):  # type: ignore[misc]
        def step(self, ctx):
            async def close():
                raise OSError("already gone")

            ctx.on_finish(close)
            return lambda batch: [batch]

    it = engine()
    await run(it, pipeline("p", [reads(Told(it.clock, []))], [Untidy()]))

    await it.dispose("p")

    assert told(it) == [("transform", None, "OSError: already gone", 1)]
    assert errors(it) == 1


@virtual
async def test_a_create_that_is_refused_leaves_no_trace_also_not_in_an_older_past():
    class Refusing(InlineSink):
        def __init__(self) -> None:
            self.tried = 0

        async def start(self) -> None:
            self.tried += 1
            if self.tried > 2:
                raise BuildRefused(Fault("credential", "wrong password"))
            raise Unreachable("127.0.0.1:1 does not answer")

        def write(self, batch: Any) -> None:
            pass

    it = engine()
    await run(it, pipeline("old", [reads(Told(it.clock, [batches([1])]))]))
    await it.dispose("old")
    for id in ("old", "new"):
        with pytest.raises(Refused):
            await it.compile(pipeline(id, [reads(Told(it.clock, []))], [], [takes(Refusing())]))
    await it.clock.sleep(60)

    assert rows(it.history, "old") == [(BEGAN, 1, 1, 0)]
    assert rows(it.history, "new") == told(it, "old") == told(it, "new") == []


@virtual
async def test_a_pipeline_that_is_deleted_and_created_again_goes_on_in_its_past():
    it = engine()
    for messages in ([1], [1, 2, 3]):
        await run(it, pipeline("p", [reads(Told(it.clock, [batches(messages)]))]))
        await it.dispose("p")
        await it.clock.sleep(60)

    assert rows(it.history) == [(BEGAN, 1, 1, 0), (BEGAN + 60, 3, 3, 0)]
    await it.close()


@virtual
async def test_a_pipeline_that_is_created_or_reverted_to_has_a_past_at_once():
    stage = staged()
    await stage.it.compile(flow("made"))
    await stage.revert(flow("made"), flow("filed"))

    assert rows(stage.it.history, "made") == rows(stage.it.history, "filed") == [(BEGAN, 0, 0, 0)]
    await stage.it.close()


@virtual
async def test_the_pipelines_of_a_file_have_a_past_at_once():
    it = engine()
    given = [pipeline("p", [reads(Told(it.clock, []))]), pipeline("q", [reads(Told(it.clock, []))])]

    await it.load(Program(tuple(given)))

    assert rows(it.history, "p") == rows(it.history, "q") == [(BEGAN, 0, 0, 0)]
    await it.close()
    assert it.history._timer.cancelled()


@virtual
async def test_an_engine_that_keeps_no_history_runs_and_counts_all_the_same():
    it = Engine(engine().clock, retention_seconds=0)
    config = pipeline("p", [reads(Told(it.clock, [batches([1])]))], [], [takes(Kept(fails=True))])
    await run(it, config)
    await it.clock.sleep(60)

    view = running(it, "p")
    assert (view.counters.inbound, view.failures.total) == (1, 1)
    assert (rows(it.history), told(it)) == ([], [])
    await it.close()


@virtual
async def test_a_failure_of_an_input_is_told_with_its_place_among_the_inputs() -> None:
    it = engine()
    sources = Told(it.clock, []), Told(it.clock, [Unreachable("gone")])

    await run(it, pipeline("p", [reads(each) for each in sources]))

    [failure] = it.history.past("p", "coarse").failures
    assert (failure.stage, failure.component, failure.input_index) == ("input", None, 1)
