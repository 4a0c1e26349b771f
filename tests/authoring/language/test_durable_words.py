"""What a test says of kills, of failures by class, of dead letters and of what is lost."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace.authoring.language.testfile import TestFile, load_tests
from headrace.authoring.playing.scenario import ProcessKill, ServerOutage
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.compiler.text.documents import read
from headrace.compiler.text.render import render
from tests.authoring.playing.playing import program

CONFIG = """
state: {last: {}}
pipelines:
  - id: w
    dead_letters: true
    inputs: [{type: http, durable: true}]
    outputs: [{type: redis, connection: c, channel: t}]
  - id: plain
    inputs: [{type: mqtt, connection: c, topic: t}]
    outputs: [{type: redis, connection: c, channel: t}]
"""
AT = ("w", "output", 0)


def loaded(body: str) -> tuple[TestFile | None, list[Diagnostic]]:
    text = f"tests:\n  it works:\n    {body}\n"
    return load_tests(read(text.encode(), "c.tests.yaml", "yaml"), program(CONFIG), {"c": None})


def case(body: str) -> Any:
    """Return the one case of a file; nothing may be wrong with it."""
    file, said = loaded(body)
    assert file is not None, render(said, style="plain")
    return file.cases[0]


def kills(written: str) -> list[ProcessKill]:
    return [kill for kill, _ in case(f"faults: {{process: {written}}}\n    until: 10m").kills]


def outage(written: str) -> ServerOutage:
    [found] = case(f"faults: {{'w.outputs[0]': {{0s..5s: {written}}}}}").outages[AT]
    assert (found.begins, found.ends) == (0, 5)
    return found


def test_the_process_is_killed_at_a_moment_or_for_a_span():
    assert kills("{90s: killed, 2m..3m: killed, 5m..: killed}") == [
        ProcessKill(90, 90),
        ProcessKill(120, 180),
        ProcessKill(300, math.inf),
    ]


def test_the_process_is_killed_around_commits():
    assert kills("{90s: [killed after commit 12, killed before commit 1]}") == [
        ProcessKill(90, 90, 12, True),
        ProcessKill(90, 90, 1),
    ]


def test_the_disk_is_full_for_spans():
    assert case("faults: {store: {1s..2s: full, 5s..: full}}").full == ((1, 2), (5, math.inf))


def test_a_server_refuses_as_a_class():
    found = outage("refuses 1/3 as misconfigured")

    assert (found.kind, found.refused, found.of, found.failure) == (
        "refuses",
        1,
        3,
        "misconfigured",
    )


def test_a_server_takes_something_and_does_not_answer():
    found = outage("unanswered 1/2")

    assert (found.kind, found.refused, found.of) == ("unanswered", 1, 2)


def test_a_server_refuses_messages_that_match():
    found = outage("{refuses: {$has: {n: 1}}, says: no such product}")

    assert found.is_selective
    assert (found.like, found.failure, found.says) == (
        {"$has": {"n": 1}},
        "invalid",
        "no such product",
    )
    assert outage("{refuses: {$any: }, as: unclear}").failure == "unclear"


def test_what_only_outputs_meet_is_theirs_alone_on_a_connection_that_inputs_have_as_well():
    found = case("faults: {connections.c: {0s..1s: down, 2s..3s: refuses as unclear}}").outages

    kinds = {at: [each.kind for each in some] for at, some in found.items()}
    assert kinds == {
        AT: ["down", "refuses"],
        ("plain", "input", 0): ["down"],
        ("plain", "output", 0): ["down", "refuses"],
    }


def test_dead_letters_losses_and_posts_without_an_answer_are_expected():
    found = case(
        "expect: {dead_letters: [{at: 'w.outputs[0]', class: invalid, messages: [1]}],"
        " lost: {'w.outputs[0]': 1, 'w.inputs[0]': {dropped: 2}}, unanswered: {w: 3}}"
    )

    [expected] = found.letters
    assert (expected.letter.at, expected.letter.class_) == ("w.outputs[0]", "invalid")
    assert expected.messages == [1]
    assert found.lost == {"w.outputs[0]": 1, "w.inputs[0]": {"dropped": 2}}
    assert found.unanswered == {"w": 3}


WRONG = [
    ("faults: {process: killed}", "3:23", "wrong-type", "expected an object, found a string"),
    (
        "faults: {process: {soon: killed}}",
        "3:24",
        "not-a-time",
        "expected a moment such as 90s, or a span such as 2m..12m",
    ),
    (
        "faults: {process: {0s: down}}",
        "3:28",
        "not-a-fault",
        "expected killed, or killed before commit 1, or killed after commit 1, found",
    ),
    (
        "faults: {process: {0s: [killed, killed before commit 0]}}",
        "3:37",
        "not-a-fault",
        "expected killed, or killed before commit 1",
    ),
    (
        "faults: {process: {1s..5s: killed, 4s: killed}}\n    until: 9s",
        "3:40",
        "conflict",
        "the process is killed already, and does not run at this moment",
    ),
    (
        "faults: {process: {20s: killed}}\n    until: 9s",
        "3:24",
        "past-the-end",
        "this is after the end of the test",
    ),
    (
        "faults: {process: {1s..5s: killed}}\n    until: 9s\n    given: {state.last: {4s: {a: {n: 1}}}}",
        "5:26",
        "conflict",
        "the process is killed, and does not run at this moment: nobody has a bucket",
    ),
    (
        "faults: {process: {1s..: killed}}\n    until: 9s\n    expect: {state.last: {end: {}}}",
        "5:27",
        "conflict",
        "the process is killed, and does not run at this moment: nobody has a bucket",
    ),
    ("faults: {store: full}", "3:21", "wrong-type", "expected an object, found a string"),
    ("faults: {store: {0s: full}}", "3:22", "not-a-time", "expected a span such as 2m..12m"),
    ("faults: {store: {0s..: gone}}", "3:28", "not-a-fault", 'expected full, found "gone"'),
    (
        "faults: {'w.outputs[0]': {0s..: refuses as broken}}",
        "3:37",
        "not-a-fault",
        "there is no class 'broken'",
    ),
    (
        "faults: {'w.outputs[0]': {0s..: {refuses: {$has: 1}}}}",
        "3:54",
        "not-a-matcher",
        "'$has' takes an object of fields",
    ),
    ("faults: {'w.outputs[0]': {0s..: {says: no}}}", "3:37", "missing-key", "this key is required"),
    (
        "faults: {'w.outputs[0]': {0s..: {refuses: 1, of: 2}}}",
        "3:50",
        "unknown-key",
        "unknown key 'of'",
    ),
    (
        "faults: {'plain.inputs[0]': {0s..: refuses as invalid}}",
        "3:40",
        "not-a-fault",
        "expected down: an input is only told what arrives",
    ),
    (
        "expect: {dead_letters: {}}",
        "3:28",
        "wrong-type",
        "expected a list of objects with 'at', and more if wanted",
    ),
    (
        "expect: {dead_letters: [{at: 'w.outputs[1]'}]}",
        "3:34",
        "unknown-pipeline",
        "'w' has 1 output",
    ),
    ("expect: {dead_letters: [{at: w}]}", "3:34", "unknown-pipeline", "'w' is a whole pipeline"),
    (
        "expect: {dead_letters: [{at: 'plain.outputs[0]'}]}",
        "3:34",
        "unknown-pipeline",
        "'plain' has no 'dead_letters'",
    ),
    (
        "expect: {dead_letters: [{at: 'w.outputs[0]', class: bad}]}",
        "3:57",
        "not-a-choice",
        "expected one of unavailable",
    ),
    (
        "expect: {lost: {'w.outputs[0]': {gone: 1}}}",
        "3:38",
        "unknown-key",
        "unknown key 'gone'",
    ),
    (
        "expect: {lost: {'w.outputs[0]': many}}",
        "3:37",
        "wrong-type",
        "expected how many messages are lost, or an object of that by reason",
    ),
    ("expect: {lost: {w: 1}}", "3:21", "unknown-pipeline", "'w' is a whole pipeline"),
    (
        "expect: {unanswered: {w: -1}}",
        "3:30",
        "wrong-type",
        "expected how many posts are not answered",
    ),
]


@pytest.mark.parametrize(
    ("body", "place", "code", "message"), WRONG, ids=[each[0] for each in WRONG]
)
def test_what_is_wrong_is_told_where_it_is(body: str, place: str, code: str, message: str):
    file, said = loaded(body)

    [fault] = [each for each in said if each.code != "checks-nothing"]
    assert file is None
    assert (f"{fault.line}:{fault.column}", fault.code) == (place, code)
    assert fault.message.startswith(message)
    assert fault.found is not None or fault.expected is not None
