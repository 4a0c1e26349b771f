"""Coverage of configs: what is told, how it is summed and rounded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headrace.authoring.testing.coverage import Share, coverage, json_of, text_of
from headrace.authoring.testing.runs import RunOptions, run, suites_of
from tests.authoring.testing.suite import written

CONFIG = """\
- id: press-7
  inputs: [{type: http}]
  transforms:
    - type: filter
      String: {field: press, operator: equal_to, value: press-7}
    - {type: buffer, size: 2, seconds: 60}
- id: minutes
  inputs:
    - {type: http, buffer: {type: static, size: 2}}
  outputs:
    - {type: redis, connection: bus, channel: rows}
- id: bare
  inputs: [{type: pipeline, upstream: minutes}]
"""
TESTS = """\
messages: { p: { press: press-7 } }
tests:
  two are enough: { given: { press-7: "p 1s p" }, expect: { press-7: { 1s: { $count: 2 } } } }
  one waits a minute: { given: { press-7: p }, until: 2m, expect: { press-7: { 1m: { $count: 1 } } } }
  nothing comes: { expect: { minutes: {} } }
"""
UNTAKEN = [
    "{}/config.yaml:5:15: press-7.transforms[0]: the condition on 'press' was never false",
    "{}/config.yaml:9:28: minutes.inputs[0]: 'size' of its buffer never let go",
    "{}/config.yaml:11:7: minutes.outputs[0]: nothing was ever written",
    "{}/config.yaml:11:7: minutes.outputs[0]: no write ever failed",
]


def covered(*files: Path, **options: object) -> list[str]:
    """Return the lines that tell the coverage of some files of tests."""
    suites = suites_of(files)
    outcomes = [*run(suites, RunOptions(counts=True, **options))]
    return [*text_of(coverage(suites, outcomes))]


def test_each_branch_that_no_test_takes_is_a_line(tmp_path: Path):
    file = written(tmp_path, TESTS, CONFIG)

    assert covered(file) == [
        "press-7  3 of 4",
        "minutes  0 of 3",
        *(line.format(tmp_path) for line in UNTAKEN),
        "3 of 7 branches, 42.8 %",
    ]


def test_it_is_of_the_tests_that_are_selected(tmp_path: Path):
    file = written(tmp_path, TESTS, CONFIG)

    assert covered(file, words=("two",))[-1] == "2 of 7 branches, 28.5 %"
    assert covered(file, words=("nowhere",)) == ["0 of 0 branches, 100.0 %"]


def test_what_fails_and_what_comes_before_it_counts(tmp_path: Path):
    tests = TESTS.replace("1s: { $count: 2 }", "1s: { $count: 9 }")

    assert covered(written(tmp_path, tests, CONFIG), stops=True)[-1] == "2 of 7 branches, 28.5 %"


def test_several_files_of_one_config_are_summed(tmp_path: Path):
    file = written(tmp_path, TESTS, CONFIG)
    (tmp_path / "more").mkdir()
    more = tmp_path / "more" / "more.tests.yaml"
    more.write_text(
        "config: ../config.yaml\n"
        "tests:\n"
        "  another press: {given: {press-7: {0s: {press: press-8}}}, expect: {press-7: {}}}\n"
    )

    assert covered(file, more)[0] == "press-7  4 of 4"
    assert covered(file, more)[-1] == "4 of 7 branches, 57.1 %"


def test_several_configs_are_told_by_their_names(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, TESTS, CONFIG)

    told = covered(*(tmp_path / name / "config.tests.yaml" for name in ("a", "b")))

    assert told[0] == f"{tmp_path}/a/config.yaml"
    assert told[7] == f"{tmp_path}/b/config.yaml"
    assert told[-1] == "6 of 14 branches, 42.8 %"


def test_a_pipeline_without_an_id_is_called_by_its_place(tmp_path: Path):
    nameless = CONFIG.replace("- id: bare\n  inputs", "- outputs: [{type: stdout}]\n  inputs")

    told = covered(written(tmp_path, TESTS, nameless))

    assert told[2] == "pipelines[2]  0 of 2"
    assert told[-2].endswith("/config.yaml:12:13: pipelines[2].outputs[0]: no write ever failed")


def test_a_config_that_is_refused_has_none(tmp_path: Path):
    file = written(tmp_path, TESTS, CONFIG)
    shutil.copytree(tmp_path, tmp_path / "b")
    refused = written(tmp_path / "b", TESTS, CONFIG.replace("type: filter", "type: filtre"))

    assert covered(file, refused)[-1] == "3 of 7 branches, 42.8 %"


def test_the_counts_of_several_processes_are_summed(tmp_path: Path):
    suites = suites_of([written(tmp_path, TESTS, CONFIG)])

    one, two = (
        json_of(coverage(suites, [*run(suites, RunOptions(counts=True, jobs=jobs))]))
        for jobs in (1, 2)
    )

    assert one == two
    assert [each["count"] for each in one["configs"][0]["branches"]] == [3, 0, 1, 1, 0, 0, 0]


def test_without_it_nothing_is_counted(tmp_path: Path):
    outcomes = [*run(suites_of([written(tmp_path, TESTS, CONFIG)]), RunOptions())]

    assert [each.taken for each in outcomes] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("taken", "total", "percent"),
    [(199, 200, 99.5), (1999, 2000, 99.9), (2000, 2000, 100.0), (2, 3, 66.6), (0, 0, 100.0)],
)
def test_percentages_are_rounded_down(taken: int, total: int, percent: float):
    assert Share(taken, total).percent == percent


def test_what_is_shown_suffices_and_a_tenth_more_does_not():
    shares = [Share(taken, total) for total in (*range(1, 200), 1001) for taken in range(total)]

    assert not any(share.is_below(share.percent) for share in shares)
    assert all(share.is_below(round(share.percent + 0.1, 1)) for share in shares)


def test_json_has_each_branch_with_its_count(tmp_path: Path):
    suites = suites_of([written(tmp_path, TESTS, CONFIG)])

    told = json_of(coverage(suites, [*run(suites, RunOptions(counts=True))]))

    [config] = told["configs"]
    assert {key: told[key] for key in ("taken", "total", "percent")} == {
        "taken": 3,
        "total": 7,
        "percent": 42.8,
    }
    assert config["pipelines"] == {
        "press-7": {"taken": 3, "total": 4, "percent": 75.0},
        "minutes": {"taken": 0, "total": 3, "percent": 0.0},
    }
    assert config["branches"][:2] == [
        {"at": "press-7.transforms[0]", "branch": "true", "line": 5, "column": 15, "count": 3},
        {
            "at": "press-7.transforms[0]",
            "branch": "false",
            "line": 5,
            "column": 15,
            "count": 0,
            "message": "the condition on 'press' was never false",
        },
    ]
