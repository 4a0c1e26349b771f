"""Ended in order while an output waits: all that was answered 202 is written, and nothing of it twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.stopwatch import Stopwatch
from tests.whole.durable.customers import PIPELINE, Customers
from tests.whole.durable.lives import Lives, are_in_order, pipeline
from tests.whole.figures import Figure
from tests.whole.gate import Gate

CLIENTS = 4
POSTS = 500
"""Far more than may be on their way: the others wait on the disk."""
EARLY = range(20)
"""What is written before the output is blocked, each as a post."""
SIZE = 5
HOLD = {"type": "buffer", "size": SIZE, "seconds": 1}
MOST_SECONDS = 8.0
"""Of an end in order: what is taken has 3.5 to get through."""


@pytest.mark.parametrize(
    ("hold", "most_twice"),
    [
        pytest.param([], 1, id="plain"),
        pytest.param([HOLD], SIZE, id="with a buffer", marks=pytest.mark.long),
    ],
)
def test_nothing_is_lost_and_what_was_written_does_not_come_again(
    tmp_path: Path, gate: Gate, figure: Figure, hold: list[Any], most_twice: int
) -> None:
    """Twice comes what was on the wire: nobody can tell whether it was taken."""
    output = {**gate.output(PIPELINE), "retry": {}}
    lives = Lives(tmp_path, [pipeline(*hold, outputs=[output])])
    customers, taken = Customers(CLIENTS), gate.taken[PIPELINE]

    with lives.life() as server:
        gate.is_open.set()
        assert {server.post(PIPELINE, {"n": number}).status for number in EARLY} == {202}
        taken.wait_for(EARLY)
        gate.is_open.clear()
        gate.asked[PIPELINE].clear()
        with customers.posting(server):
            customers.wait_for(POSTS)
            gate.wait_until_asked(PIPELINE)
            watch = Stopwatch()
            assert server.stop() == 0
            figure("ended within", f"{watch.seconds:.2f} s")
            assert watch.seconds < MOST_SECONDS
        assert "ERROR" not in str(server.err)
    assert {*customers.refused} <= {(503, "1")}
    assert {*taken.counts} == {*EARLY}

    gate.is_open.set()
    taken.wait_until_more(len(EARLY))  # what was on the wire has been taken after all
    with lives.life() as server:
        taken.wait_for(customers.confirmed)
        assert server.stop() == 0

    counts = taken.counts
    figure("confirmed", customers.count)
    figure("twice", taken.duplicates)
    assert all(counts[number] == 1 for number in EARLY)
    assert taken.duplicates <= most_twice
    for each in customers.each:
        assert are_in_order(taken.first, each.confirmed)

    total = counts.total()
    with lives.life() as server:
        assert server.post(PIPELINE, {"n": len(EARLY)}).status == 202
        taken.wait_for([len(EARLY)])
        assert server.stop() == 0
    assert counts.total() == total + 1
