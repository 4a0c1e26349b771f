"""`headrace check`: what it prints where, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.web.cli import commands

FINE = """\
- id: p
  inputs: [{type: dummy, duration: 1}]
"""
WRONG = """\
- id: p
  inputs: [{type: dummy, durtion: 1}]
  outputs: [{type: file, connection: disk, path: out}]
"""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def check(*arguments: str) -> tuple[int, list[str], str]:
    result = CliRunner().invoke(commands, ["check", *arguments])
    return result.exit_code, result.stdout.splitlines(), result.stderr


def test_a_config_with_nothing_wrong_prints_nothing_and_is_fine() -> None:
    code, lines, told = check(written("a.yaml", FINE))

    assert (code, lines) == (0, [])
    assert told == "1 file checked: 0 errors, 0 warnings\n"


def test_what_is_wrong_is_a_line_each_in_file_order_and_refuses() -> None:
    code, lines, told = check(written("a.yaml", WRONG))

    assert code == 1
    assert lines == [
        "a.yaml:2:26: pipelines[0].inputs[0].durtion: unknown key 'durtion'"
        " (did you mean 'duration'?)",
        "a.yaml:3:38: pipelines[0].outputs[0].connection: there is no file connection 'disk'",
    ]
    assert told == "1 file checked: 2 errors, 0 warnings\n"


def test_json_is_one_array_of_objects_with_every_key() -> None:
    code, lines, told = check(written("a.yaml", WRONG), "--format", "json")

    assert (code, told) == (1, "")
    diagnostics = json.loads("\n".join(lines))
    assert len(diagnostics) == 2
    assert list(diagnostics[0]) == (
        [
            "file",
            "line",
            "column",
            "path",
            "severity",
            "code",
            "message",
            "found",
            "expected",
            "suggestion",
        ]
    )


def test_json_of_nothing_wrong_is_an_empty_array() -> None:
    assert check(written("a.yaml", FINE), "--format", "json") == (0, ["[]"], "")


def test_all_problems_of_all_files_are_told_at_once() -> None:
    code, lines, _ = check(
        written("a.yaml", WRONG), "missing.json", written("b.json", "[{]"), written("c.yaml", FINE)
    )

    assert code == 1
    assert [line.partition(":")[0] for line in lines] == ["a.yaml"] * 2 + ["missing.json", "b.json"]
    assert lines[2] == "missing.json: no such file"


def test_the_companion_connections_file_is_read() -> None:
    config = WRONG.replace("durtion", "duration")
    written("a.connections.yaml", "disk: {type: file, root: out}\n")

    assert check(written("a.yaml", config))[0] == 0


def test_a_named_connections_file_takes_the_companions_place() -> None:
    config = written("a.yaml", WRONG.replace("durtion", "duration"))
    written("a.connections.yaml", "disk: {type: file, root: out}\n")
    other = written("other.json", '{"disc": {"type": "file", "root": "out"}}')

    code, lines, _ = check(config, "--connections", other)

    assert code == 1
    assert "there is no file connection 'disk'" in lines[0]


def test_a_named_connections_file_has_to_exist() -> None:
    code, lines, _ = check(written("a.yaml", FINE), "--connections", "none.json")

    assert (code, lines) == (1, ["none.json: no such file"])


def test_what_is_wrong_with_a_shared_connections_file_is_told_once() -> None:
    shared = written("shared.json", '{"disk": {"type": "fiel"}}')

    _, lines, _ = check(written("a.yaml", FINE), written("b.yaml", FINE), "--connections", shared)

    assert [line.partition(" ")[0] for line in lines] == ["shared.json:1:19:"]


LOCKED = """\
- id: p
  inputs: [{type: http, auth: {type: bearer, token: "${POST_TOKEN}"}}]
"""


def test_a_reference_that_nothing_answers_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POST_TOKEN", raising=False)

    code, lines, told = check(written("a.yaml", LOCKED))

    assert code == 0
    [line] = lines
    assert line.startswith("a.yaml:2:53: pipelines[0].inputs[0].auth.token: warning: ")
    assert "${POST_TOKEN}" in line
    assert told == "1 file checked: 0 errors, 1 warning\n"


def test_environment_and_secrets_file_answer_references(monkeypatch: pytest.MonkeyPatch) -> None:
    config = written("a.yaml", LOCKED)
    secrets = written("secrets.json", '{"POST_TOKEN": "s3cret"}')

    assert check(config, "--secrets", secrets)[1] == []
    monkeypatch.setenv("POST_TOKEN", "s3cret")
    assert check(config)[1] == []


def test_a_secrets_file_that_is_none_is_refused_and_its_values_are_not_told() -> None:
    secrets = written("secrets.json", '{"POST_TOKEN": ["s3cret"]}')

    code, lines, _ = check(written("a.yaml", LOCKED), "--secrets", secrets)

    assert code == 1
    assert lines == ["secrets.json:1:16: POST_TOKEN: expected a string, found a list"]


@pytest.mark.parametrize(
    "arguments", [[], ["a.yaml", "--format", "xml"], ["a.yaml", "--nope"]], ids=" ".join
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert check(*arguments)[0] == 2
