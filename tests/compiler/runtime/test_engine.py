"""Pipelines as a whole, over stand-in ends and in virtual time."""

from __future__ import annotations

from headrace.compiler.clock import run_virtual
from headrace.compiler.errors import (
    BatchFailed,
    Unreachable,
)
from headrace.operators.buffer import Buffer
from tests.promises import promise
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


def test_every_resulting_batch_goes_to_every_output():
    async def main():
        it = engine()
        source, one, two = Told(it.clock, [batches([1], [2])]), Kept(), Kept()

        await run(
            it, pipeline("p", [reads(source)], [does(lambda b: [b, b])], [takes(one), takes(two)])
        )

        assert one.batches == two.batches == [[1], [1], [2], [2]]
        assert (running(it, "p").counters.inbound, running(it, "p").counters.outbound) == (2, 4)
        await it.close()

    run_virtual(main)


def test_inputs_are_merged_and_a_busy_one_does_not_starve_a_timed_one():
    async def main():
        it = engine()
        busy = Told(it.clock, [batches(["busy"])] * 5000)
        timed = Told(it.clock, [0.01, batches(["timed"])])
        kept = Kept()
        await run(it, pipeline("p", [reads(busy), reads(timed)], [], [takes(kept)]))

        await it.clock.sleep(1)

        assert kept.batches.count(["timed"]) == 1
        assert len(kept.batches) == 5001
        await it.close()

    run_virtual(main)


def test_a_failing_batch_is_dropped_and_reported_and_the_next_goes_on():
    async def main():
        it = engine()

        def step(batch):
            if batch == [2]:
                raise BatchFailed("two is not allowed")
            return [batch]

        source, kept = Told(it.clock, [batches([1], [2], [3], [2])]), Kept()
        await run(it, pipeline("p", [reads(source)], [does(step)], [takes(kept)]))

        assert kept.batches == [[1], [3]]
        [failure] = running(it, "p").failures.table.latest()
        assert (failure.stage, failure.component, failure.message, failure.count) == (
            "transform",
            0,
            "two is not allowed",
            2,
        )
        assert running(it, "p").in_flight == 0
        await it.close()

    run_virtual(main)


@promise("delivery.failed.batch")
def test_a_failing_output_does_not_keep_the_others_from_writing():
    async def main():
        it = engine()
        bad, good = Kept(fails=True), Kept()
        source = Told(it.clock, [batches([1], [2])])
        await run(
            it,
            pipeline(
                "p",
                [reads(source, acknowledges=True, ack="on_delivery")],
                [],
                [takes(bad), takes(good)],
            ),
        )

        assert good.batches == [[1], [2]]
        assert source.acknowledged == [
            0,
            1,
        ]  # a failing output does not hold up the acknowledgement
        [failure] = running(it, "p").failures.table.latest()
        assert (failure.stage, failure.component, failure.count) == ("output", 0, 2)
        await it.close()

    run_virtual(main)


def test_a_lost_connection_is_opened_again_on_the_backoff():
    async def main():
        it = engine()
        source = Told(it.clock, [OSError("refused"), OSError("refused"), batches([1])])
        kept = Kept(it.clock)
        await run(it, pipeline("p", [reads(source)], [], [takes(kept)]))

        await it.clock.sleep(5)

        assert source.lives == 3
        assert kept.batches == [[1]]
        assert 0.75 * 0.8 <= kept.times[0] <= 0.75 * 1.2 + 0.01  # 250 ms, then 500 ms, each +-20 %
        [failure] = running(it, "p").failures.table.latest()
        assert (failure.stage, failure.component, failure.message, failure.count) == (
            "input",
            None,
            "refused",
            2,
        )
        await it.close()

    run_virtual(main)


@promise("delivery.blocked.window")
def test_a_full_window_stops_the_pump_and_nothing_is_lost():
    async def main():
        it = engine()
        source = Told(it.clock, [batches(*([n] for n in range(100)))])
        slow = Slow(it.clock, 1.0)
        await run(it, pipeline("p", [reads(source)], [], [takes(slow)]))

        await it.clock.sleep(10)
        assert running(it, "p").in_flight == 16
        await it.clock.sleep(200)

        assert slow.batches == [[n] for n in range(100)]
        assert running(it, "p").in_flight == 0
        await it.close()

    run_virtual(main)


def test_outputs_run_beside_each_other_each_in_its_own_order():
    async def main():
        it = engine()
        source = Told(it.clock, [batches(*([n] for n in range(10)))])
        slow, fast = Slow(it.clock, 5.0), Slow(it.clock, 0.0)
        await run(it, pipeline("p", [reads(source)], [], [takes(slow), takes(fast)]))

        assert fast.batches == [[n] for n in range(10)]
        await it.clock.sleep(60)
        assert slow.batches == fast.batches
        await it.close()

    run_virtual(main)


@promise("delivery.failed.at_once")
def test_while_a_backoff_is_open_batches_fail_at_once():
    async def main():
        it = engine()
        source = Told(it.clock, [batches([1], [2], [3]), 60.0, batches([4])])
        sink = Slow(it.clock, 0.0, [Unreachable("nobody answers")])
        await run(it, pipeline("p", [reads(source)], [], [takes(sink)]))
        assert sink.tried == 1

        await it.clock.sleep(61)

        assert sink.batches == [[4]]
        assert {each.message: each.count for each in running(it, "p").failures.table.latest()} == {
            "nobody answers": 3,  # one outage is one failure, counted for every batch it cost
        }
        await it.close()

    run_virtual(main)


def test_a_refused_batch_opens_no_backoff():
    async def main():
        it = engine()
        source = Told(it.clock, [batches([1], [2])])
        sink = Slow(it.clock, 0.0, [BatchFailed("status 400")])
        await run(it, pipeline("p", [reads(source)], [], [takes(sink)]))

        assert sink.batches == [[2]]
        await it.close()

    run_virtual(main)


@promise("delivery.blocked.window")
def test_an_output_blocked_for_ever_bounds_what_waits():
    async def main():
        it = engine()
        source = Told(it.clock, [x for n in range(20000) for x in (batches([n]), 0.001)])
        stuck = Slow(it.clock, 1e9)
        config = pipeline(
            "p", [reads(source)], [Buffer(seconds=1, max_messages=10000)], [takes(stuck)]
        )
        await run(it, config)

        await it.clock.sleep(600)

        view = running(it, "p")
        assert view.in_flight <= 17
        assert view.counters.inbound < 20000
        await it.close()

    run_virtual(main)
