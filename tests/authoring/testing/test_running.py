"""Tests that pass, fail, are skipped and cannot be read, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.authoring.testing.runs import RunOptions, run, suites_of
from headrace.authoring.testing.suites import NothingThere, found
from tests.authoring.testing.suite import only, outcomes, written


def test_what_comes_as_expected_passes(tmp_path: Path):
    outcome = only(
        tmp_path,
        "    given: {line: {1s: {temp: 90}, 2s: {temp: 20}}}\n"
        "    expect:\n"
        "      line: {1s: {high: 90}}\n"
        "      held: {1m1s: {high: 90}}\n"
        "      held.outputs[0]: {1m1s: {high: 90}}",
    )

    assert (outcome.outcome, outcome.line, outcome.lasts, outcome.lines) == (
        "passed",
        2,
        "1m1s",
        (),
    )


def test_what_does_not_come_is_drawn_with_why(tmp_path: Path):
    outcome = only(
        tmp_path, "    given: {line: {1s: {temp: 20}}}\n    expect: {line: {1s: {high: 20}}}"
    )

    assert outcome.outcome == "failed"
    assert [*outcome.lines] == [
        "  line      config.tests.yaml:4",
        "             1s",
        "  expected  -a-",
        "  came      ---",
        '  - a       1s  never came: {"high": 20}',
        "    why  1s  line.transforms[0] (filter, config.yaml:4:7):"
        " 'temp' is 20, and the condition is greater_than 80",
    ]
    assert outcome.differences == (
        {"of": "line", "line": 4, "kind": "missing", "at": "1s", "expected": '{"high": 20}'},
    )


def test_why_is_told_of_every_kind_of_transform(tmp_path: Path):
    config = """\
- id: line
  inputs: [{type: http}]
  transforms:
    - {type: script, source: {type: inline, code: "if msg.n > 1 { emit(msg); }"}}
    - {type: splitter, out_size: 2}
"""
    file = written(
        tmp_path,
        "tests: {it: {given: {line: {1s: [{n: 1}, {n: 2}]}}, expect: {line: {1s: [{n: 1}, {n: 2}]}}}}",
        config,
    )

    [outcome] = outcomes(file)

    assert [line.strip() for line in outcome.lines if "why" in line] == [
        "why  1s  line.transforms[1] (splitter, config.yaml:5:7):"
        " left over behind the last whole batch of 2 ('out_size')",
        "why  1s  line.transforms[0] (script, config.yaml:4:7): the script did not call 'emit' for it",
    ]


SELECTING = """\
- id: up
  inputs: [{type: http}]
  transforms: [{type: filter, when: [{type: exists, field: temp}]}]
  outputs:
    - {type: stdout, when: [{type: numeric, field: temp, operator: at_least, value: 80}]}
    - {type: stdout, when: [{type: numeric, field: temp, operator: at_most, value: 1}]}
- id: down
  inputs:
    - {type: pipeline, upstream: up, when: [{type: boolean, field: on}]}
  transforms: [{type: map, mappings: [{type: copy, from: temp, as: t}]}]
"""


def test_what_an_output_or_a_reader_wants_comes_there_alone(tmp_path: Path):
    case = (
        "tests:\n  it:\n"
        "    given: {up: {1s: [{temp: 90}, {temp: 1, on: true}], 2s: {temp: 5}}}\n"
        "    expect:\n"
        "      up: {1s: [{temp: 90}, {temp: 1, on: true}], 2s: {temp: 5}}\n"
        "      up.outputs[0]: {1s: {temp: 90}}\n"
        "      up.outputs[1]: {1s: {temp: 1, on: true}}\n"
        "      down: {1s: {temp: 1, on: true, t: 1}}\n"
    )

    [outcome] = outcomes(written(tmp_path, case, SELECTING))

    assert (outcome.outcome, outcome.lines) == ("passed", ())


def test_why_is_told_of_the_conditions_of_the_output_and_of_the_reader(tmp_path: Path):
    case = (
        "tests:\n  it:\n"
        "    given: {up: {1s: {temp: 5}, 2s: {}}}\n"
        "    expect:\n"
        "      up.outputs[0]: {1s: {temp: 5}}\n"
        "      down: {1s: {temp: 5}}\n"
        "      up: {2s: {}, 1s: {temp: 5}}\n"
    )

    [outcome] = outcomes(written(tmp_path, case, SELECTING))

    assert [line.strip() for line in outcome.lines if "why" in line] == [
        "why  1s  up.outputs[0] (stdout, config.yaml:5:7):"
        " 'temp' is 5, and the condition is at_least 80",
        "why  1s  down.inputs[0] (pipeline, config.yaml:9:7):"
        " 'on' is missing, and the condition is true",
        "why  2s  up.transforms[0] (filter, config.yaml:3:16):"
        " 'temp' is missing, and the condition is exists",
    ]


def test_why_can_be_left_out(tmp_path: Path):
    outcome = only(
        tmp_path,
        "    given: {line: {1s: {temp: 20}}}\n    expect: {line: {1s: {}}}",
        tells_why=False,
    )

    assert not any("why" in line for line in outcome.lines)


def test_what_leaves_one_transform_is_compared(tmp_path: Path):
    outcome = only(
        tmp_path,
        "    given: {line: {1s: {temp: 90, x: 1}}}\n"
        "    expect: {'line.transforms[0]': {1s: {temp: 90, x: 2}}}",
    )

    assert outcome.lines[-1] == "  ! a       1s  [0].x: expected 2, found 1"


def test_a_failure_that_nobody_expected_fails_a_test(tmp_path: Path):
    outcome = only(
        tmp_path,
        "    given: {line: {1s: {temp: 90}}}\n"
        "    faults: {connections.bus: {0s..: down}}\n"
        "    expect: {line: {1s: {high: 90}}}\n"
        "    until: 2m",
    )

    assert outcome.lines == (
        "  failed  held.outputs[0] at 1m1s, and nobody expected it: does not answer, as the test says",
    )


@pytest.mark.parametrize(
    ("times", "line"),
    [
        (1, None),
        (2, "  failed  held.outputs[0] at 1m1s, expected 2: not answer   config.tests.yaml:7"),
    ],
)
def test_a_failure_that_is_expected_comes_as_often(tmp_path: Path, times: int, line: str | None):
    outcome = only(
        tmp_path,
        "    given: {line: {1s: {temp: 90}}}\n"
        "    faults: {connections.bus: {0s..: down}}\n"
        "    until: 2m\n"
        "    expect:\n"
        f"      failures: [{{at: 'held.outputs[0]', says: not answer, times: {times}}}]",
    )

    assert [*outcome.lines] == ([] if line is None else [line])


def test_a_failure_that_does_not_come_is_told(tmp_path: Path):
    outcome = only(tmp_path, "    expect: {failures: [{at: 'held.outputs[0]', says: gone}]}")

    assert outcome.lines == ("  did not fail  held.outputs[0]: gone   config.tests.yaml:3",)


def test_warnings_are_compared_where_they_are_named(tmp_path: Path):
    config = "- {id: a, inputs: [{type: mqtt, connection: bus, topic: t}]}\n"
    tests = "tests: {it: {given: {a: {1s: {$raw: no}}}, expect: {a: {}, warnings: WARNINGS}}}"
    file = written(
        tmp_path, tests.replace("WARNINGS", "[{at: 'a.inputs[0]', says: not JSON}]"), config
    )
    (tmp_path / "config.connections.yaml").write_text("bus: {type: mqtt, host: 127.0.0.1}\n")

    [passed] = outcomes(file)
    file.write_text(tests.replace("WARNINGS", "[]"))
    [failed] = outcomes(file)

    assert passed.outcome == "passed"
    assert failed.lines[0].startswith(
        "  warned  a.inputs[0] at 1s, and nobody expected it: skipped a payload"
    )


def test_posts_that_are_refused_are_counted(tmp_path: Path):
    config = "- {id: a, inputs: [{type: http, max_queued_bytes: 1}]}\n"
    posted = "given: {a: {1s: 1}}, expect: {a: {1s: 1}, refused: {a: 2}}"
    file = written(tmp_path, f"tests: {{it: {{{posted}}}}}", config)

    [outcome] = outcomes(file)

    assert outcome.lines == ("  refused  a: 0 posts with 503, expected 2",)


def test_a_bucket_is_compared_at_its_moment(tmp_path: Path):
    config = """\
state: {last: {}}
pipelines:
  - id: a
    inputs: [{type: http}]
    state: {bucket: last, key: id}
    transforms: [{type: remember, remember: [{field: n, as: n}]}]
"""
    expected = "{state.last: {0s: {}, 1s: {x: {n: 2}}}}"
    tests = f"tests: {{it: {{given: {{a: {{1s: {{id: x, n: 1}}}}}}, expect: {expected}}}}}"

    [outcome] = outcomes(written(tmp_path, tests, config))

    assert outcome.lines[-1] == "  ! b       1s  x.n: expected 2, found 1"


def test_a_test_may_be_skipped_with_its_reason(tmp_path: Path):
    outcome = only(
        tmp_path, "    given: {line: {1s: {temp: 20}}}\n    expect: {line: {}}\n    skip: not yet"
    )

    assert (outcome.outcome, outcome.lines) == ("skipped", ("not yet",))
    assert outcome.text() == ["skip  it: not yet"]


def test_a_config_that_is_refused_is_told_in_the_place_of_its_tests(tmp_path: Path):
    [outcome] = outcomes(
        written(tmp_path, "tests: {it: {expect: {a: {}}}}", "- {id: a, inputs: [{type: htp}]}\n")
    )

    assert outcome.outcome == "error"
    assert "unknown type \"htp\" (did you mean 'http'?)" in outcome.lines[0]


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    [outcome] = outcomes(tmp_path / "no.tests.yaml")

    assert (outcome.outcome, outcome.lines) == (
        "error",
        (f"{tmp_path}/no.tests.yaml: no such file",),
    )


def test_tests_may_name_their_config(tmp_path: Path):
    written(tmp_path, "tests: {}")
    (tmp_path / "more").mkdir()
    file = tmp_path / "more" / "alarms.tests.yaml"
    file.write_text(
        "config: ../config.yaml\n"
        "tests: {it: {given: {line: {0s: {temp: 90}}}, expect: {line: {0s: {high: 90}}}}}"
    )

    [outcome] = outcomes(file)

    assert outcome.outcome == "passed"


def test_words_select_by_file_name_and_tag(tmp_path: Path):
    file = written(
        tmp_path,
        "tests:\n"
        "  a hot line: {expect: {line: {}}, tags: [slow]}\n"
        "  a cold line: {expect: {line: {}}}\n"
        "  nothing: {expect: {line: {}}}\n",
    )

    def names(*words: str) -> list[str]:
        return [each.name for each in outcomes(file, words=words)]

    assert names("LINE hot") == ["a hot line"]
    assert names("cold", "nothing") == ["a cold line", "nothing"]
    assert names("slow") == ["a hot line"]
    assert names("config.tests") == ["a hot line", "a cold line", "nothing"]
    assert names("elsewhere") == []


def test_a_run_may_stop_at_the_first_that_fails(tmp_path: Path):
    file = written(
        tmp_path,
        "tests:\n  a: {expect: {line: {}}}\n  b: {expect: {line: {0s: 1}}}\n  c: {expect: {line: {}}}\n",
    )

    assert [each.outcome for each in outcomes(file, stops=True)] == ["passed", "failed"]


@pytest.mark.long
def test_several_processes_tell_the_same(tmp_path: Path):
    tests = "".join(
        f"  t{n}: {{given: {{line: {{1s: {{temp: {n}}}}}}}, expect: {{line: {{}}}}}}\n"
        for n in range(78, 84)
    )
    suites = suites_of([written(tmp_path, f"tests:\n{tests}")])

    one, two = ([*run(suites, RunOptions(jobs=jobs))] for jobs in (1, 2))

    assert [(each.name, each.outcome, each.lines) for each in one] == [
        (each.name, each.outcome, each.lines) for each in two
    ]
    assert [each.outcome for each in one] == ["passed"] * 3 + ["failed"] * 3


def test_a_directory_is_all_tests_in_it_but_hidden_ones(tmp_path: Path):
    file = written(tmp_path, "tests: {}")
    for folder in (".hidden", "inside"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "b.tests.yaml").write_text("tests: {}")

    assert found([tmp_path]) == [file, tmp_path / "inside" / "b.tests.yaml"]
    assert found([tmp_path / "config.yaml", file]) == [file]


def test_a_config_without_tests_is_told(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("[]")

    with pytest.raises(NothingThere, match=r"has no tests: there is no a\.tests\.yaml beside it"):
        found([tmp_path / "a.yaml"])


TICKING = "- {id: line, inputs: [{type: dummy, duration: 1}]}\n"


def test_a_test_that_takes_too_many_moments_fails_and_may_be_allowed_more(tmp_path: Path):
    tests = """\
tests:
  short: {until: 10m, max_moments: 60, expect: {line: {}}}
  long enough: {until: 10m, max_moments: 600, expect: {failures: []}}
"""

    stopped, whole = outcomes(written(tmp_path, tests, TICKING), counts=True)

    assert (stopped.outcome, whole.outcome) == ("failed", "passed")
    [line] = stopped.lines
    assert line.startswith("  too long: timers were due at 60 moments")
    assert stopped.differences == (
        {
            "kind": "too long",
            "at": "1m",
            "moments": 60,
            "busiest": {"pipeline": "line", "inbound": 60, "outbound": 60, "failures": 0},
        },
    )
