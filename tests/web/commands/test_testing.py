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
