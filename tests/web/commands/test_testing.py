"""`headrace test` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest
from click.testing import CliRunner, Result

from headrace.web.commands.cli import commands
from tests.authoring.testing.suite import written

TESTS = """\
tests:
  a hot line: {given: {line: {1s: {temp: 90}}}, expect: {line: {1s: {high: 90}}}}
  a cold line: {given: {line: {1s: {temp: 20}}}, expect: {line: {1s: {high: 20}}}}
"""


def test(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["test", *map(str, arguments)])


test.__test__ = False  # type: ignore[attr-defined]


def test_what_fails_is_the_exit_code(tmp_path: Path):
    file = written(tmp_path, TESTS)

    told = test(file)

    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert lines[0].startswith("ok    a hot line")
    assert lines[1].startswith("FAIL  a cold line")
    assert lines[-1].startswith("1 failed, 1 passed")
    assert test(file, "-k", "hot").exit_code == 0


def test_nothing_selected_is_an_exit_code_of_its_own(tmp_path: Path):
    file = written(tmp_path, TESTS)

    assert test(file, "-k", "nowhere").exit_code == 5
    assert test(tmp_path / "config.connections.yaml").exit_code == 5
    assert test(file, "--what").exit_code == 2


def test_a_directory_is_told_file_by_file(tmp_path: Path):
    written(tmp_path, TESTS)
    (tmp_path / "more.tests.yaml").write_text(
        "config: config.yaml\ntests: {it: {expect: {line: {}}}}"
    )

    lines = test(tmp_path).stdout.splitlines()

    assert lines[0] == f"{tmp_path}/config.tests.yaml"
    assert f"{tmp_path}/more.tests.yaml" in lines


def test_json_has_what_came_of_each(tmp_path: Path):
    told = json.loads(test(written(tmp_path, TESTS), "--format", "json").stdout)

    assert [(each["name"], each["outcome"], each["line"]) for each in told] == [
        ("a hot line", "passed", 2),
        ("a cold line", "failed", 3),
    ]
    assert told[1]["differences"] == [
        {"of": "line", "line": 3, "kind": "missing", "at": "1s", "expected": '{"high": 20}'}
    ]


def test_junit_is_written(tmp_path: Path):
    file = tmp_path / "results.xml"

    test(written(tmp_path, TESTS), "--junit", file)

    assert parse(file).getroot().get("failures") == "1"


def test_what_is_odd_is_told_beside_it(tmp_path: Path):
    told = test(written(tmp_path, "messages: {a: 1}\n" + TESTS), "-k", "hot")

    assert told.exit_code == 0
    assert "no line of marbles names 'a'" in told.stderr


@pytest.mark.parametrize("file", ["tests", "config"])
def test_the_schema_is_printed(file: str):
    told = CliRunner().invoke(commands, ["schema", file])

    assert json.loads(told.stdout)["title"] == f"headrace {file}"


COLD = """\
tests:
  a hot line: {given: {line: {1s: {temp: 90}}}, expect: {line: {1s: {high: 90}}}}
"""


def test_coverage_is_told_behind_the_tests(tmp_path: Path):
    file = written(tmp_path, COLD)

    told = test(file, "--coverage")

    assert told.exit_code == 0
    config = tmp_path / "config.yaml"
    assert told.stdout.splitlines()[2:] == [
        "line  2 of 3",
        "held  1 of 4",
        f"{config}:4:31: line.transforms[0]: the condition on 'temp' was never false",
        f"{config}:8:40: held.transforms[0]: 'seconds' never let go",
        f"{config}:8:58: held.transforms[0]: 'max_messages' never let go",
        f"{config}:9:13: held.outputs[0]: no write ever failed",
        "3 of 7 branches, 42.8 %",
    ]


@pytest.mark.parametrize(("percent", "code"), [("0", 0), ("42.8", 0), ("42.9", 1), ("100", 1)])
def test_too_little_coverage_fails_a_run_that_asks_for_more(
    tmp_path: Path, percent: str, code: int
):
    file = written(tmp_path, COLD)

    told = test(file, "--coverage", "--fail-under", percent)

    assert told.exit_code == code
    assert told.stderr == (f"covered less than {percent} %\n" if code else "")


def test_what_fails_is_not_saved_by_coverage(tmp_path: Path):
    file = written(tmp_path, TESTS)

    assert test(file, "--coverage", "--fail-under", 1).exit_code == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--fail-under", "50"],
        ["--coverage", "--fail-under", "101"],
        ["--coverage", "--fail-under", "half"],
        ["--coverage", "--fail-under", "nan"],
        ["--coverage", "--watch"],
    ],
)
def test_coverage_that_makes_no_sense_is_a_mistake_of_usage(tmp_path: Path, options: list[str]):
    assert test(written(tmp_path, COLD), *options).exit_code == 2


def test_an_update_is_counted_as_it_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CI", raising=False)
    file = written(tmp_path, TESTS)

    told = test(file, "--update", "--coverage")

    assert told.exit_code == 0
    assert "line  3 of 3" in told.stdout.splitlines()


def test_json_with_coverage_is_an_object(tmp_path: Path):
    file = written(tmp_path, COLD)

    told = json.loads(test(file, "--coverage", "--format", "json").stdout)
    nothing = test(file, "--coverage", "--format", "json", "-k", "nowhere")

    assert [each["name"] for each in told["tests"]] == ["a hot line"]
    assert (told["coverage"]["taken"], told["coverage"]["total"]) == (3, 7)
    assert nothing.exit_code == 5
    assert json.loads(nothing.stdout) == {
        "tests": [],
        "coverage": {"taken": 0, "total": 0, "percent": 100.0, "configs": []},
    }


def test_names_and_reasons_are_told_without_control_characters(tmp_path: Path):
    file = written(
        tmp_path,
        'tests:\n  "a \\e[31m\\n \\u202e": {expect: {}}\n  b: {expect: {}, skip: "\\e[31m\\n"}\n',
    )

    told = test(file).stdout.splitlines()

    assert told[0].startswith(r"ok    a \x1b[31m\n \u202e ")
    assert told[1] == r"skip  b: \x1b[31m"


def test_a_file_whose_name_is_no_text_is_told(tmp_path: Path):
    file = written(tmp_path, TESTS)
    other = file.rename(file.with_name("\udcff.tests.yaml"))
    other.write_text("config: config.yaml\n" + TESTS)

    assert test(tmp_path).exit_code == 1
    assert json.loads(test(other, "--format", "json").stdout)[0]["file"] == str(other)


def test_a_junit_file_that_cannot_be_written_is_named(tmp_path: Path):
    told = test(written(tmp_path, TESTS), "-k", "hot", "--junit", tmp_path / "no" / "j.xml")

    assert told.exit_code == 1
    assert told.stderr == f"{tmp_path}/no/j.xml cannot be written: No such file or directory\n"
