"""How pipelines end: what is released, what is waited for, what is lost and counted."""

from __future__ import annotations

from reactivex import Observable

from headrace.compiler.clock import run_virtual
from headrace.compiler.component.envelopes import Merge
from headrace.compiler.component.inputbuffers import Static
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import (
    Ended,
)
from headrace.compiler.runtime import turns
from headrace.connectors.http import HttpInput
from headrace.operators.buffer import Buffer
from tests.stand_ins import (
    Awaiting,
    Doing,
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


def test_one_failing_input_is_survived_and_the_last_one_ends_the_pipeline():
    async def main():
        it = engine()
        first = Told(it.clock, [Ended("the device is gone")])
        second = Told(it.clock, [1.0, batches([1])], stays=False)
        kept = Kept()
        await run(it, pipeline("p", [reads(first), reads(second)], [], [takes(kept)]))
        assert running(it, "p").status == "running"

        await it.clock.sleep(2)

        assert running(it, "p").status == "failed"
        assert kept.batches == [[1]]
        assert kept.finished == 1
        assert {each.message for each in running(it, "p").failures.table.latest()} == {
            "the device is gone",
            "the last input ended",
        }
        await it.close()
        assert kept.finished == 1

    run_virtual(main)


def test_held_messages_are_released_through_the_rest_of_the_chain_before_the_outputs_finish():
    async def main():
        it = engine()
        source, kept = Told(it.clock, [batches([1], [2], [3])]), Kept()
        config = pipeline(
            "p",
            [reads(source, buffer=Static(size=2))],
            [Buffer(seconds=60, max_messages=100), does(lambda b: [[sum(b)]])],
            [takes(kept)],
        )
        await run(it, config)
        assert (kept.batches, running(it, "p").parts.held) == (
            [],
            3,
        )  # two in the transform, one before it

        await it.dispose("p")

        assert (kept.batches, kept.finished) == ([[6]], 1)
        assert source.is_closed

    run_virtual(main)


def test_stopping_ends_in_time_even_when_an_output_hangs():
    async def main():
        it = engine()
        source, stuck = Told(it.clock, [batches([1])]), Slow(it.clock, 1e9)
        await run(it, pipeline("p", [reads(source)], [], [takes(stuck)]))
        began = it.clock.monotonic()

        await it.dispose("p")

        assert it.clock.monotonic() - began <= 5
        assert stuck.finished == 1

    run_virtual(main)


def test_an_awaiting_step_keeps_the_order_and_is_waited_for_at_the_end():
    async def main():
        it = engine()
        waits = {1: 2.0, 2: 1.0, 3: 0.0}

        async def step(batch):
            await it.clock.sleep(waits[batch[0]])
            return [batch]

        source, kept = Told(it.clock, [batches([1], [2], [3])]), Kept()
        await run(it, pipeline("p", [reads(source)], [does(step, Awaiting)], [takes(kept)]))

        await it.dispose("p")

        assert kept.batches == [[1], [2], [3]]

    run_virtual(main)


def test_an_operator_that_raises_ends_its_pipeline_and_no_other():
    class Breaking(Doing, kind="breaking"):
        def operator(self, ctx):
            def operate(source):
                return Observable(lambda observer, scheduler=None: source.subscribe(breaks))

            def breaks(_):
                raise MemoryError("out of memory")

            return operate

    async def main():
        it = engine()
        source, kept, other = Told(it.clock, [batches([1], [2])]), Kept(), Kept()
        await run(it, pipeline("p", [reads(source)], [Breaking()], [takes(kept)]))
        await run(it, pipeline("q", [reads(Told(it.clock, [batches([3])]))], [], [takes(other)]))

        await it.clock.sleep(60)

        assert (running(it, "p").status, kept.finished, source.is_closed) == ("failed", 1, True)
        assert "MemoryError: out of memory" in {
            each.message for each in running(it, "p").failures.table.latest()
        }
        assert (running(it, "q").status, other.batches) == ("running", [[3]])
        await it.close()

    run_virtual(main)


def test_a_fault_at_the_end_of_a_transform_is_reported_and_holds_nothing_up():
    class Untidy(Doing, kind="untidy"):
        def step(self, ctx):
            async def close():
                raise OSError("already gone")

            ctx.on_finish(close)
            return lambda batch: [batch]

    async def main():
        it = engine()
        began, kept = it.clock.monotonic(), Kept()
        await run(it, pipeline("p", [reads(Told(it.clock, []))], [Untidy()], [takes(kept)]))

        await it.dispose("p")

        assert (kept.finished, it.clock.monotonic() - began < 1) == (1, True)

    run_virtual(main)


def test_a_thousand_ids_that_come_and_go_leave_nothing_behind():
    async def main():
        it = engine()
        for n in range(1000):
            await it.compile(pipeline(f"p{n}", [reads(Told(it.clock, []))]))
            await it.dispose(f"p{n}")

        assert ([*it.names()], len(it.graph.outlets)) == ([], 0)

    run_virtual(main)


def test_what_is_lost_when_the_grace_is_over_is_counted_and_not_acknowledged():
    async def main():
        it = engine()
        source, stuck = Told(it.clock, [batches(*([n] for n in range(20)))]), Slow(it.clock, 1e9)
        given = reads(source, acknowledges=True, ack="on_delivery")
        await run(it, pipeline("p", [given], [], [takes(stuck)]))
        failures = running(it, "p").failures

        await it.dispose("p")

        assert {each.message: each.count for each in failures.table.latest()} == {
            "stopped before everything was written": 16  # the other four were never sent
        }
        assert source.acknowledged == []

    run_virtual(main)


def test_posts_that_nobody_works_off_in_time_are_counted():
    async def main():
        it = engine()
        stuck = Slow(it.clock, 1e9)
        await run(it, pipeline("p", [HttpInput()], [], [takes(stuck)]))
        failures = running(it, "p").failures
        for n in range(50):
            assert it.way_in("p").ingress.offer([n], None)
        await it.clock.sleep(1)

        await it.dispose("p")

        assert sum(each.count for each in failures.table.latest()) == 50

    run_virtual(main)


def test_what_transforms_have_not_worked_through_in_time_is_counted_and_not_acknowledged():
    async def main():
        it = engine()

        async def hanging(batch):
            await it.clock.sleep(1e9)

        source = Told(it.clock, [batches([1, 2], [3])])
        given = reads(source, acknowledges=True, ack="on_delivery")
        waits = does(hanging, Awaiting)
        await run(it, pipeline("p", [given], [waits], [takes(Kept())]))
        ended = running(it, "p")
        await it.clock.sleep(1)

        await it.dispose("p")

        assert {each.message: each.count for each in ended.failures.table.latest()} == {
            "stopped before everything that was accepted went through": 2
        }
        assert (ended.lost, source.acknowledged) == (3, [])

    run_virtual(main)


def test_what_waits_in_the_middle_of_an_envelope_when_the_grace_is_over_is_counted(monkeypatch):
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)  # over before it began: each part waits

    async def main():
        it = engine()
        await it.clock.sleep(1)  # the turn of a pump that has not had one is over as well
        large, kept = [{"n": n} for n in range(LARGE_BATCH + 1)], Kept()
        source = Told(it.clock, [batches(large, [{"n": -1}])])
        given = reads(source, envelope=Merge())
        await it.compile(pipeline("p", [given], [], [takes(kept)]))
        ended = running(it, "p")
        await it.clock.sleep(0)  # one part has its envelope

        await ended.stop(0)

        assert kept.batches == []
        assert {each.message: each.count for each in ended.failures.table.latest()} == {
            "stopped before everything that was accepted went through": 2
        }
        await it.close()

    run_virtual(main)
