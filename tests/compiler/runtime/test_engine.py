"""Pipelines as a whole, over stand-in ends and in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from reactivex import Observable

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.edges import InlineSink
from headrace.compiler.errors import (
    BatchFailed,
    BuildRefused,
    Ended,
    PipelineExists,
    Refused,
    UnknownPipeline,
    Unreachable,
)
from headrace.compiler.language.catalogue import scan
from headrace.compiler.language.config import Program, load_pipeline
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.documents import read
from headrace.compiler.language.inputbuffers import Static
from headrace.compiler.language.secrets import Secrets
from headrace.compiler.runtime.engine import Engine
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
    pipeline,
    reads,
    run,
    takes,
)


def engine() -> Engine:
    return Engine(Clock(asyncio.get_running_loop()))


def running(it: Engine, id: str):
    return next(view for view in it.pipelines() if view.id == id)


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
        [failure] = running(it, "p").failures.signatures()
        assert (failure.stage, failure.component, failure.message, failure.count) == (
            "transform",
            0,
            "two is not allowed",
            2,
        )
        assert running(it, "p").in_flight == 0
        await it.close()

    run_virtual(main)


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
        [failure] = running(it, "p").failures.signatures()
        assert (failure.stage, failure.component, failure.count) == ("output", 0, 2)
        await it.close()

    run_virtual(main)


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
        assert {each.message for each in running(it, "p").failures.signatures()} == {
            "the device is gone",
            "the last input ended",
        }
        await it.close()
        assert kept.finished == 1

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
        [failure] = running(it, "p").failures.signatures()
        assert (failure.stage, failure.component, failure.message, failure.count) == (
            "input",
            None,
            "refused",
            2,
        )
        await it.close()

    run_virtual(main)


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


def test_while_a_backoff_is_open_batches_fail_at_once():
    async def main():
        it = engine()
        source = Told(it.clock, [batches([1], [2], [3]), 60.0, batches([4])])
        sink = Slow(it.clock, 0.0, [Unreachable("nobody answers")])
        await run(it, pipeline("p", [reads(source)], [], [takes(sink)]))
        assert sink.tried == 1

        await it.clock.sleep(61)

        assert sink.batches == [[4]]
        assert {each.message: each.count for each in running(it, "p").failures.signatures()} == {
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
        assert (kept.batches, running(it, "p").held) == (
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

        assert it.clock.monotonic() - began <= 6.1
        assert stuck.finished == 1

    run_virtual(main)


def test_an_awaiting_step_keeps_the_order_and_is_waited_for_at_the_end():
    async def main():
        it = engine()
        waits = {1: 3.0, 2: 1.0, 3: 0.0}

        async def step(batch):
            await it.clock.sleep(waits[batch[0]])
            return [batch]

        source, kept = Told(it.clock, [batches([1], [2], [3])]), Kept()
        await run(it, pipeline("p", [reads(source)], [does(step, Awaiting)], [takes(kept)]))

        await it.dispose("p")

        assert kept.batches == [[1], [2], [3]]

    run_virtual(main)


class TestCustody:
    """Acknowledged when the last part of a delivery has left the outputs, and never before."""

    def acknowledged(self, transforms, outputs, script, seconds=0.0, buffer=None):
        async def main():
            it = engine()
            source = Told(it.clock, script)
            given = reads(source, acknowledges=True, ack="on_delivery", buffer=buffer)
            made = [make(it.clock) for make in outputs]
            await run(it, pipeline("p", [given], transforms, [takes(each) for each in made]))
            await it.clock.sleep(seconds)
            seen = list(source.acknowledged)
            await it.close()
            return seen, source.acknowledged

        return run_virtual(main)

    def test_what_is_filtered_to_nothing_is_acknowledged(self):
        seen, _ = self.acknowledged([does(lambda b: [])], [lambda _: Kept()], [batches([1], [2])])

        assert seen == [0, 1]

    def test_a_failed_batch_is_acknowledged(self):
        def fails(_):
            raise BatchFailed("no")

        seen, _ = self.acknowledged([does(fails)], [lambda _: Kept()], [batches([1])])

        assert seen == [0]

    def test_a_split_delivery_waits_for_its_last_part(self):
        split = does(lambda b: [[m] for m in b])
        script = [batches([1, 2, 3])]

        early, _ = self.acknowledged([split], [lambda c: Slow(c, 1.0)], script, 2.5)
        late, _ = self.acknowledged([split], [lambda c: Slow(c, 1.0)], script, 3.5)

        assert (early, late) == ([], [0])

    def test_the_slowest_output_decides(self):
        outputs = [lambda c: Slow(c, 1.0), lambda c: Slow(c, 5.0)]

        early, _ = self.acknowledged([], outputs, [batches([1])], 2.0)
        late, _ = self.acknowledged([], outputs, [batches([1])], 6.0)

        assert (early, late) == ([], [0])

    def test_what_a_buffer_holds_is_not_acknowledged(self):
        held = [Buffer(seconds=10, max_messages=100)]

        early, end = self.acknowledged(held, [lambda _: Kept()], [batches([1], [2])], 9.0)
        late, _ = self.acknowledged(held, [lambda _: Kept()], [batches([1], [2])], 11.0)

        assert (early, late, end) == ([], [0, 1], [0, 1])

    def test_a_cut_acknowledges_each_delivery_with_its_own_last_message(self):
        seen, _ = self.acknowledged(
            [Buffer(size=3)], [lambda _: Kept()], [batches([1, 2], [3, 4], [5])]
        )

        assert seen == [0]

    def test_what_an_input_buffer_holds_is_not_acknowledged(self):
        seen, end = self.acknowledged(
            [], [lambda _: Kept()], [batches([1], [2], [3])], buffer=Static(size=2)
        )

        assert (seen, end) == ([0, 1], [0, 1, 2])

    def test_a_buffer_larger_than_the_window_does_not_deadlock(self):
        seen, _ = self.acknowledged(
            [Buffer(size=1000)],
            [lambda c: Slow(c, 0.0)],
            [batches(*([n] for n in range(3000)))],
            10.0,
        )

        assert sorted(seen) == list(range(3000))

    def test_on_receipt_acknowledges_before_anything_is_written(self):
        async def main():
            it = engine()
            source = Told(it.clock, [batches([1])])
            slow = Slow(it.clock, 100.0)
            await run(it, pipeline("p", [reads(source, acknowledges=True)], [], [takes(slow)]))
            seen = list(source.acknowledged)
            await it.close()
            return seen

        assert run_virtual(main) == [0]


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


def test_a_sink_that_refuses_refuses_the_pipeline_and_starts_nothing():
    class Refusing(Kept):
        async def start(self):
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        it = engine()
        source, other = Told(it.clock, [batches([1])]), Kept()

        with pytest.raises(Refused, match=r"pipeline 'p' could not be started: .*wrong password"):
            await it.compile(pipeline("p", [reads(source)], [], [takes(Refusing()), takes(other)]))

        assert it.pipelines() == []
        assert (source.lives, other.finished) == (0, 1)
        assert source.is_closed

    run_virtual(main)


def test_a_sink_that_does_not_answer_leaves_the_pipeline_starting_until_it_does():
    class Late(Kept):
        async def start(self):
            if clock.monotonic() < 20:
                raise OSError("connection refused")

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        source, late = Told(it.clock, [batches([1])]), Late()

        view = await it.compile(pipeline("p", [reads(source)], [], [takes(late)]))
        assert (view.status, source.lives) == ("starting", 0)
        await it.clock.sleep(60)

        assert running(it, "p").status == "running"
        assert late.batches == [[1]]
        [outage] = running(it, "p").failures.signatures()
        assert (outage.stage, outage.component, outage.message) == (
            "output",
            0,
            "connection refused",
        )
        assert outage.count > 3  # once for each attempt
        await it.close()
        assert late.finished == 1

    clock: Clock
    run_virtual(main)


def test_a_sink_that_hangs_is_answered_as_starting_after_five_seconds():
    class Hanging(Kept):
        async def start(self):
            await asyncio.get_running_loop().create_future()

    async def main():
        it = engine()
        view = await it.compile(pipeline("p", [reads(Told(it.clock, []))], [], [takes(Hanging())]))

        assert (view.status, it.clock.monotonic()) == ("starting", 5.0)
        await it.close()

    run_virtual(main)


def test_an_id_that_runs_is_refused_and_a_missing_one_generated():
    async def main():
        it = engine()
        await it.compile(pipeline("p", [reads(Told(it.clock, []))]))

        with pytest.raises(PipelineExists, match="a pipeline named 'p' is already running"):
            await it.compile(pipeline("p", [reads(Told(it.clock, []))]))
        generated = await it.compile(pipeline(None, [reads(Told(it.clock, []))]))

        assert len(generated.id.split("-")) == 3
        await it.close()

    run_virtual(main)


def test_deleting_nobody_is_an_error():
    async def main():
        with pytest.raises(UnknownPipeline, match="no pipeline named 'x'"):
            await engine().dispose("x")

    run_virtual(main)


def test_a_file_with_one_refusal_starts_nothing():
    class Refusing(InlineSink):
        def write(self, batch): ...

        async def start(self):
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        it = engine()
        source = Told(it.clock, [batches([1])])
        good = pipeline("good", [reads(source)])
        bad = pipeline("bad", [reads(Told(it.clock, []))], [], [takes(Refusing())])

        with pytest.raises(Refused, match="wrong password"):
            await it.load(Program((good, bad)))

        assert (it.pipelines(), source.lives) == ([], 0)

    run_virtual(main)


def test_a_refusal_is_told_although_another_sink_hangs():
    class Hanging(Kept):
        async def start(self):
            await asyncio.get_running_loop().create_future()

    class Refusing(Kept):
        async def start(self):
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        it = engine()
        with pytest.raises(Refused, match="wrong password"):
            await it.compile(
                pipeline(
                    "p", [reads(Told(it.clock, []))], [], [takes(Hanging()), takes(Refusing())]
                )
            )

    run_virtual(main)


def test_a_sink_that_refuses_late_fails_the_pipeline_and_frees_its_source():
    class Late(Kept):
        async def start(self):
            if clock.monotonic() < 20:
                raise OSError("connection refused")
            raise BuildRefused(Fault("credential", "wrong password"))

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        source = Told(it.clock, [batches([1])])
        await it.compile(pipeline("p", [reads(source)], [], [takes(Late())]))

        await it.clock.sleep(60)

        view = running(it, "p")
        assert (view.status, source.lives, source.is_closed) == ("failed", 0, True)
        assert ("output", 0, "wrong password") in {
            (each.stage, each.component, each.message) for each in view.failures.signatures()
        }
        await it.dispose("p")

    clock: Clock
    run_virtual(main)


def test_a_pipeline_that_is_deleted_while_it_starts_never_runs():
    class Slowly(Kept):
        async def start(self):
            await clock.sleep(3)

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        source = Told(it.clock, [batches([1])])
        creating = asyncio.ensure_future(
            it.compile(pipeline("p", [reads(source)], [], [takes(Slowly())]))
        )
        await it.clock.sleep(1)

        await it.dispose("p")
        view = await creating
        await it.clock.sleep(10)

        assert (view.status, source.lives, it.pipelines()) == ("stopped", 0, [])

    clock: Clock
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
            each.message for each in running(it, "p").failures.signatures()
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


def test_every_unresolved_secret_and_unknown_connection_is_refused_with_its_option():
    document = read(
        '{"id": "p", "inputs": [{"type": "http", "auth": {"type": "bearer", "token": "${NOBODY}"}}],'
        ' "outputs": [{"type": "file", "connection": "disk", "path": "a"},'
        ' {"type": "http", "url": "http://h/", "auth": {"type": "header", "name": "x",'
        ' "value": "${NOR_ME}"}}]}',
        None,
        "json",
    )

    async def main():
        config, said = load_pipeline(document, scan("headrace.operators", "headrace.connectors"))
        assert said == []
        with pytest.raises(Refused) as refused:
            await Engine(Clock(asyncio.get_running_loop()), secrets=Secrets({}, {})).compile(config)
        return [(each.path, each.code) for each in refused.value.diagnostics]

    assert run_virtual(main) == [
        ("inputs[0].auth.token", "unresolved-secret"),
        ("outputs[0].connection", "unknown-connection"),
        ("outputs[1].auth.value", "unresolved-secret"),
    ]


def test_a_sink_that_comes_up_within_five_seconds_is_answered_as_running():
    class Late(Kept):
        async def start(self):
            if clock.monotonic() < 2:
                raise OSError("connection refused")

    async def main():
        nonlocal clock
        it = engine()
        clock = it.clock
        view = await it.compile(pipeline("p", [reads(Told(it.clock, []))], [], [takes(Late())]))

        assert (view.status, it.clock.monotonic() < 5) == ("running", True)
        await it.close()

    clock: Clock
    run_virtual(main)


def test_a_thousand_ids_that_come_and_go_leave_nothing_behind():
    async def main():
        it = engine()
        for n in range(1000):
            await it.compile(pipeline(f"p{n}", [reads(Told(it.clock, []))]))
            await it.dispose(f"p{n}")

        assert (it.pipelines(), len(it._readers)) == ([], 0)

    run_virtual(main)


def test_what_is_lost_when_the_grace_is_over_is_counted_and_not_acknowledged():
    async def main():
        it = engine()
        source, stuck = Told(it.clock, [batches(*([n] for n in range(20)))]), Slow(it.clock, 1e9)
        given = reads(source, acknowledges=True, ack="on_delivery")
        await run(it, pipeline("p", [given], [], [takes(stuck)]))
        failures = running(it, "p").failures

        await it.dispose("p")

        assert {each.message: each.count for each in failures.signatures()} == {
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
            assert it.ingress("p").offer([n], None)
        await it.clock.sleep(1)

        await it.dispose("p")

        assert sum(each.count for each in failures.signatures()) == 50

    run_virtual(main)
