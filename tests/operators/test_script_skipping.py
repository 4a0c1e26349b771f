"""`on_error: skip` of a script: a message whose run fails is left out, and nothing runs twice."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.component.failingmessages import MOST_TEXTS, OTHERS
from headrace.operators.script import Script
from headrace.operators.script.compiling import MOST_STOPPED, OPERATIONS
from tests.doubles import refusals
from tests.operators.scripted import outcome, script

HALVES = "emit(10 / msg)"
ZERO = "script line 1, column 9: Division by zero"
SPINS = "if msg == 0 { loop { } } emit(msg)"
STOPPED = (
    f"script line 1: stopped after {OPERATIONS} operations: raise 'max_operations' if it needs more"
)


def skipping(code: str, **options: Any) -> Script:
    return script(code, on_error="skip", **options)


def test_the_others_go_on_in_their_order_as_one_batch() -> None:
    found = outcome(skipping(HALVES), [1, 0, 2, 0, 5], [0], [10])

    assert found.batches == [[10, 5, 2], [1]]
    assert found.failures == [ZERO, ZERO]
    assert found.lost == {ZERO: 3}


def test_each_text_of_a_batch_is_one_failure_with_the_number_of_its_messages() -> None:
    found = outcome(skipping("throw msg"), ["a", "b", "a", "a"])

    assert found.batches == []
    assert found.lost == {"script line 1, column 1: a": 3, "script line 1, column 1: b": 1}


def test_texts_without_end_are_told_as_others() -> None:
    found = outcome(skipping("throw `no ${msg}`"), [*range(1000)])

    assert len(found.failures) == MOST_TEXTS + 1
    assert found.lost[OTHERS] == 1000 - MOST_TEXTS


def test_the_text_is_that_of_a_batch_that_fails() -> None:
    assert outcome(script(HALVES), [0]).failures == outcome(skipping(HALVES), [0]).failures


def test_what_it_had_emitted_is_discarded_and_what_it_had_remembered_stays() -> None:
    code = "emit(msg); remember(msg.k, #{ seen: msg.n }); emit(10 / msg.n)"

    found = outcome(skipping(code), [{"k": "a", "n": 0}, {"k": "b", "n": 2}])

    assert found.batches == [[{"k": "b", "n": 2}, 5]]
    assert found.state == {"a": {"seen": 0}, "b": {"seen": 2}}


def test_nothing_runs_twice() -> None:
    code = """
        let seen = recall("count");
        let n = if seen == () { 0 } else { seen.n };
        remember("count", #{ n: n + 1 });
        if msg % 3 == 0 { throw "a third" }
    """

    found = outcome(skipping(code), [*range(100)])

    assert found.state == {"count": {"n": 100}}


def test_a_run_that_a_limit_stops_is_left_out_but_the_third_of_a_batch_costs_the_batch() -> None:
    zeros = [0] * (MOST_STOPPED - 1)

    found = outcome(skipping(SPINS), [*zeros, 1], [*zeros, 2, 0, 3], [4])

    assert found.batches == [[1], [4]]
    # Of the batch that failed no message is told of as left out alone.
    assert found.lost == {STOPPED: MOST_STOPPED - 1}
    assert found.failures == [STOPPED, STOPPED]


def test_what_is_paused_goes_on_the_same_way() -> None:
    code = "let n = 0; while n < 5_000 { n += 1 } emit(10 / msg)"

    found = outcome(skipping(code), [1, 0, 2] * 20)

    assert found.batches == [[10, 5] * 20]
    assert list(found.lost.values()) == [20]


@pytest.mark.parametrize("word", ["skip", "fail"])
def test_a_script_about_a_batch_has_no_smaller_unit(word: str) -> None:
    document = {"source": {"type": "inline", "code": "emit(batch)"}, "scope": "batch"}

    assert refusals(Script, {**document, "on_error": word}) == [
        "on_error: unknown key 'on_error': a run of scope batch is about all of a batch, and what"
        " fails is the batch"
    ]
