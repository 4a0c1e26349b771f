"""The class of what fails: what it was raised as decides, and the table of failures tells."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.failureclasses import FailureClasses, FailureRow
from headrace.compiler.errors import (
    BatchFailed,
    BuildRefused,
    Ended,
    NotWritable,
    Unreachable,
    class_of,
)
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.losses import lost_with
from headrace.compiler.text.diagnostics import Fault
from tests.promises import promise
from tests.stand_ins import Slow, Told, batches, pipeline, reads, run, running, takes
from tests.virtual import virtual


@promise("delivery.class.unavailable", "delivery.class.misconfigured", "delivery.class.invalid")
@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (Unreachable("away"), "unavailable"),
        (NotWritable("full"), "unavailable"),
        (OSError("full"), "unavailable"),
        (TimeoutError(), "unavailable"),
        (Unreachable("may not sign in", "misconfigured"), "misconfigured"),
        (BuildRefused(Fault("turned-away", "may not sign in")), "misconfigured"),
        (Ended("gone"), "misconfigured"),
        (BatchFailed("too large"), "invalid"),
        (BatchFailed("cut off", "unclear"), "unclear"),
        (ValueError("what nobody knows"), "invalid"),
    ],
)
@virtual
async def test_what_an_output_raises_has_a_class(cause: Exception, expected: str) -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    source = Told(it.clock, [0.5, batches([1])])
    await run(it, pipeline("p", [reads(source)], [], [takes(Slow(it.clock, 0, [cause]))]))
    await it.clock.sleep(1)

    [failure] = running(it, "p").failures.table.latest()
    assert (failure.failure, failure.stage) == (expected, "output")
    assert class_of(cause) == expected
    await it.close()


@promise("delivery.class.unclear")
@virtual
async def test_what_is_being_written_when_the_time_to_stop_is_over_is_unclear() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    source = Told(it.clock, [0.5, batches([1, 2])])
    await run(it, pipeline("p", [reads(source)], [], [takes(Slow(it.clock, 1e6))]))
    await it.clock.sleep(1)
    ending = running(it, "p")
    await it.close()

    [failure] = ending.failures.table.latest()
    assert (failure.failure, failure.count) == ("unclear", 1)
    assert [(each.reason, each.count) for each in ending.failures.losses if each.count] == [
        ("stopped", 2)
    ]


@virtual
async def test_posts_that_nobody_reads_any_more_are_counted_message_by_message() -> None:
    it = Engine(Clock(asyncio.get_running_loop()))
    source = Told(it.clock, [0.5, batches([1], [2, 3])])
    source.close = lambda: [2, 5]  # type: ignore[method-assign]
    await run(it, pipeline("p", [reads(source)], [], [takes(Slow(it.clock, 0))]))
    await it.clock.sleep(1)
    ending = running(it, "p")
    await it.close()

    [failure] = ending.failures.table.latest()
    assert (failure.stage, failure.failure, failure.count) == ("input", "unavailable", 2)
    assert [
        (each.stage, each.reason, each.count) for each in ending.failures.losses if each.count
    ] == [("input", "stopped", 7)]


def test_what_is_written_is_not_lost_and_what_is_at_fault_is_told_apart() -> None:
    cause = BatchFailed("2 of 5", done=(0, 3), refused={1: "s3cret", 4: "too old"})

    lost = lost_with(cause, ["a", "b", "c", "d", "e"], lambda text: text.replace("s3cret", "***"))

    assert lost.size == 3
    assert [*lost.told()] == [("b", True, "***"), ("c", False, None), ("e", True, "too old")]


def test_the_most_exact_code_decides_and_what_no_row_names_is_about_the_content() -> None:
    classes = FailureClasses(
        FailureRow("full", "unavailable", ("53",), "its disk is full"),
        FailureRow("configured", "misconfigured", ("53400",), "a limit is set too low"),
    )

    assert classes.of("53100", "53") == "unavailable"
    assert classes.of("53400", "53") == "misconfigured"
    assert classes.of(None, "42") == "invalid"
