"""Tests that kill the process, and expect dead letters and losses: what is told when something differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.authoring.testing.outcomes import CaseOutcome
from headrace.authoring.testing.runs import RunOptions, run, suites_of
from tests.authoring.testing.suite import outcomes, written

CONFIG = """\
- id: orders
  dead_letters: true
  inputs: [{type: http, durable: true}]
  transforms: [{type: buffer, seconds: 10, max_messages: 1000}]
  outputs: [{type: redis, connection: bus, channel: orders, retry: {}}]
- id: plain
  inputs: [{type: http}]
  outputs: [{type: redis, connection: bus, channel: plain}]
"""
GIVEN = "    given: {orders: {1s: [{n: 1}, {n: 2}], 2s: {n: 3}}}\n"
NO_TWO = "    faults: {connections.bus: {0s..: {refuses: {n: 2}, says: no two}}"
FAILS = "      failures: [{at: 'orders.outputs[0]', says: no two}]\n"


def outcome(folder: Path, case: str, **options: object) -> CaseOutcome:
    """Run one test, which is called `it`."""
    [found] = outcomes(written(folder, f"tests:\n  it:\n{case}\n", CONFIG), **options)
    return found


def test_a_kill_and_a_bad_message_come_as_expected(tmp_path: Path):
    case = (
        GIVEN
        + NO_TWO
        + ", process: {5s..6s: killed}}\n    until: 1m\n    expect:\n"
        + FAILS
        + "      dead_letters: [{at: 'orders.outputs[0]', says: two, class: invalid, messages: {n: 2}}]\n"
        "      lost: {}\n"
        "      orders.outputs[0]: {16s: [{n: 1}, {n: 3}]}"
    )

    found = outcome(tmp_path, case, counts=True)

    assert found.lines == ()
    assert found.outcome == "passed"
    assert found.taken["orders", "outputs[0]", (), "failed"] == 1


WRONG = {
    "      dead_letters: []": [
        '  dead letter  orders.outputs[0], and nobody expected it: invalid: no two: [{"n": 2}]'
    ],
    "      dead_letters: [{at: 'orders.outputs[0]', times: 2}]": [
        "  dead letter  orders.outputs[0] (1 times), expected 2   config.tests.yaml:8"
    ],
    "      dead_letters: [{at: 'orders.outputs[0]', messages: {n: 4}}]": [
        '  no dead letter  orders.outputs[0]: {"n": 4}   config.tests.yaml:8',
        '  dead letter  orders.outputs[0], and nobody expected it: invalid: no two: [{"n": 2}]',
    ],
    "      dead_letters: [{at: 'orders.outputs[0]', stage: process}]": [
        "  no dead letter  orders.outputs[0]   config.tests.yaml:8",
        '  dead letter  orders.outputs[0], and nobody expected it: invalid: no two: [{"n": 2}]',
    ],
    "      lost: {'plain.outputs[0]': {error: 2}, 'orders.inputs[0]': 1}": [
        "  lost  plain.outputs[0] (error): 0 messages, expected 2",
        "  lost  plain.outputs[0] (batch): 1 messages, expected 0",
        "  lost  orders.inputs[0]: 0 messages, expected 1",
    ],
    "      unanswered: {orders: 1}": [
        "  unanswered  orders: 0 posts without an answer, expected 1"
    ],
}


@pytest.mark.parametrize("expected", WRONG)
def test_what_differs_is_told(expected: str, tmp_path: Path):
    case = (
        GIVEN.replace("2s: {n: 3}}", "2s: {n: 3}}, plain: {0s: {n: 2}}")
        + NO_TWO
        + "}\n    until: 1m\n    expect:\n"
        + FAILS.replace("two}", "two}, {at: 'plain.outputs[0]', says: no two}")
        + expected
    )

    found = outcome(tmp_path, case)

    assert [*found.lines] == WRONG[expected]
    assert found.outcome == "failed"
    assert len(found.differences) == len(found.lines)


def test_a_post_that_nobody_answers_fails_a_test_that_does_not_say_so(tmp_path: Path):
    case = (
        "    given: {plain: {2s: 1}}\n    faults: {process: {1s..3s: killed}}\n"
        "    until: 5s\n    expect: {plain: {}}"
    )

    found = outcome(tmp_path, case)

    assert [*found.lines] == ["  unanswered  plain: 1 posts without an answer, expected 0"]
    assert [*found.differences] == [
        {"kind": "unanswered", "of": "plain", "expected": 0, "found": 1}
    ]


def test_a_kill_that_does_not_come_about_fails_the_test(tmp_path: Path):
    case = GIVEN + "    faults: {process: {2s: killed before commit 99}}\n    expect: {plain: {}}"

    found = outcome(tmp_path, case)

    assert [*found.lines] == [
        "  not killed  process at 2s: there was no commit 99 from there on   config.tests.yaml:4"
    ]
    assert [*found.differences] == [{"kind": "not killed", "at": "2s", "commit": 99}]


def test_several_processes_tell_the_same(tmp_path: Path):
    case = GIVEN + "    faults: {process: {2s: killed, 1s: killed before commit 1}}\n    expect: {}"
    file = written(tmp_path, f"tests:\n  one:\n{case}\n  two:\n{case}\n", CONFIG)

    alone, together = outcomes(file), [*run(suites_of([file]), RunOptions(jobs=2))]

    assert [each.lines for each in alone] == [each.lines for each in together]
    assert [each.outcome for each in alone] == ["failed", "failed"]
