"""Counts of failures are exact; the log and the events are throttled."""

from __future__ import annotations

import asyncio

from headrace.compiler.clock import Clock, run_virtual
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.failures import Failures
from headrace.compiler.runtime.signatures import Signatures


def test_counts_are_exact_and_tellings_are_throttled(caplog):
    async def main():
        clock, told = Clock(asyncio.get_running_loop()), []
        failures = Failures("p", clock, lambda *what: told.append(what), Signatures(clock, 60))
        for _ in range(10):
            failures.report("output", 0, "full")
            await clock.sleep(0.1)
        failures.report("output", 1, "full")

        first, second = failures.signatures()
        assert (first.component, first.count, second.count) == (1, 1, 10)
        assert (second.first_seen, second.last_seen) == (1767225600000, 1767225600900)
        assert len(told) == 5  # at 0, 0.3, 0.6 and 0.9 s, and the other component
        assert failures.by_stage == {"input": 0, "transform": 0, "output": 11}

    run_virtual(main)
    assert caplog.text.count("pipeline 'p' outputs[0]: full") == 4


def test_a_message_is_one_line_of_at_most_2048_bytes():
    async def main():
        clock = Clock(asyncio.get_running_loop())
        failures = Failures("p", clock, lambda *_: None, Signatures(clock, 60))
        failures.report("input", None, "a\n  b" + "ä" * 3000)

        [failure] = failures.signatures()
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
