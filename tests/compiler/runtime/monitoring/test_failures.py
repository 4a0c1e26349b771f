"""Counts of failures are exact; the log tells the first of each, and how many more there were."""

from __future__ import annotations

import asyncio

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.failures import Failures
from headrace.compiler.runtime.monitoring.signatures import Signatures
from tests.stand_ins import Kept, Told, batches, pipeline, reads, run, takes


def test_counts_are_exact_and_every_failure_is_told_on(caplog):
    async def main():
        clock, told = Clock(asyncio.get_running_loop()), []
        failures = Failures("p", clock, lambda *what: told.append(what), Signatures(clock, 60))
        for _ in range(10):
            failures.report("output", 0, "full")
            await clock.sleep(0.1)
        failures.report("output", 1, "full")

        first, second = failures.table.latest()
        assert (first.component, first.count, second.count) == (1, 1, 10)
        assert (second.first_seen, second.last_seen) == (1767225600000, 1767225600900)
        assert told == [("output", 0, "full", None)] * 10 + [("output", 1, "full", None)]
        assert failures.by_stage == {"input": 0, "transform": 0, "output": 11}

    run_virtual(main)


def test_each_distinct_failure_is_logged_at_once_and_then_how_many_more_there_were(caplog):
    async def main():
        clock = Clock(asyncio.get_running_loop())
        failures = Failures("p", clock, lambda *_: None, Signatures(clock, 60))
        for number in range(20):
            failures.report("transform", 0, ("no number", "no text", "no key")[number % 3])
        at_once = len(caplog.records)
        await clock.sleep(1.001)
        assert (at_once, len(caplog.records)) == (3, 6)

    run_virtual(main)
    place = "pipeline 'p' transforms[0]"
    assert [(each.getMessage(), each.count) for each in caplog.records] == [
        (f"{place}: no number", 1),
        (f"{place}: no text", 1),
        (f"{place}: no key", 1),
        (f"{place}: 6 more: no number", 6),
        (f"{place}: 6 more: no text", 6),
        (f"{place}: 5 more: no key", 5),
    ]


def test_what_was_not_logged_is_logged_when_the_pipeline_ends(caplog):
    async def main():
        it = Engine(Clock(asyncio.get_running_loop()))
        source = Told(it.clock, [batches([1], [2], [3])])
        await run(it, pipeline("p", [reads(source)], [], [takes(Kept(fails=True))]))
        await it.dispose("p")

    run_virtual(main)
    assert [each.count for each in caplog.records] == [1, 2]
    assert caplog.messages[-1] == "pipeline 'p' outputs[0]: 2 more: the disk is full"


def test_a_message_is_one_line_of_at_most_2048_bytes():
    async def main():
        clock = Clock(asyncio.get_running_loop())
        failures = Failures("p", clock, lambda *_: None, Signatures(clock, 60))
        failures.report("input", None, "a\n  b" + "ä" * 3000)

        [failure] = failures.table.latest()
        assert failures.by_stage == {"input": 1, "transform": 0, "output": 0}
        assert failure.message.startswith("a b")
        assert failure.message.endswith("ä…")
        assert 2046 <= len(failure.message.removesuffix("…").encode()) <= 2048

    run_virtual(main)


def test_the_backoff_grows_to_its_cap_and_starts_over_after_a_success():
    backoff = Backoff()
    plain = [0.25, 0.5, 1, *[2] * 8, 4, 8, 16, 30, 30, 30]
    delays = [backoff.next() for _ in plain]
    backoff.reset()

    for delay, middle in zip(delays, plain, strict=True):
        assert middle * 0.8 <= delay <= middle * 1.2
    assert backoff.next() <= 0.3
