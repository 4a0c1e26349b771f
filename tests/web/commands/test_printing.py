"""What is printed on standard output, in encodings that have not every letter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.web.commands.cli import commands
from tests.authoring.language.test_capturefile import written

ID = "wärme-温度-🌡"
CONFIG = f"""\
- id: {ID}
  inputs: [{{type: http}}]
  transforms: [{{type: filter, String: {{field: t, operator: equal_to, value: "é中"}}}}]
"""
TESTS = f"""\
tests:
  "heiß 热 🌡": {{given: {{"{ID}": {{1s: {{t: "é中"}}}}}}, expect: {{"{ID}": {{1s: {{t: "ß"}}}}}}}}
"""
ENCODINGS = ("utf-8", "ascii", "latin-1", "cp1252", "koi8-r", "gbk")
JSON_COMMANDS: Sequence[Sequence[str]] = (
    ("check", "wrong.yaml", "--format", "json"),
    ("test", "config.tests.yaml", "--format", "json"),
    ("test", "config.tests.yaml", "--coverage", "--format", "json"),
    ("explain", "config.yaml", "--format", "json"),
    ("diff", "config.yaml", "new.yaml", "--capture", "c.ndjson", "--format", "json"),
    ("schema", "tests"),
)
TEXT_COMMANDS: Sequence[Sequence[str]] = (
    ("check", "wrong.yaml"),
    ("test", "config.tests.yaml", "--coverage"),
    ("explain", "config.yaml", "--code"),
    ("explain", "config.yaml", "--format", "dot"),
    ("explain", "config.yaml", "--format", "mermaid"),
    ("diff", "config.yaml", "new.yaml", "--capture", "c.ndjson"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configs, tests and a capture with letters of many scripts, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "new.yaml").write_text(CONFIG.replace("é中", "ß"))
    (tmp_path / "wrong.yaml").write_text(CONFIG.replace("http", "httpé中"))
    (tmp_path / "config.tests.yaml").write_text(TESTS)
    line = {"at": 1, "to": f"{ID}.inputs[0]", "batch": [{"t": "é中"}]}
    end = {"at": 2, "end": "seconds", "records": 1, "dropped": 0}
    (tmp_path / "c.ndjson").write_bytes(written(line, end))
    return tmp_path


def printed(arguments: Sequence[str], encoding: str) -> bytes:
    """Return what a command prints on a standard output of an encoding; it has to end as ever."""
    result = CliRunner(charset=encoding).invoke(commands, arguments)
    assert isinstance(result.exception, SystemExit | None), result.exc_info
    return result.stdout_bytes


def timeless(told: Any) -> Any:
    """Return a JSON value without how long tests took."""
    if isinstance(told, dict):
        return {key: timeless(each) for key, each in told.items() if key != "seconds"}
    return [*map(timeless, told)] if isinstance(told, list) else told


@pytest.mark.parametrize("arguments", JSON_COMMANDS, ids=" ".join)
def test_json_is_the_same_value_in_every_encoding(folder: Path, arguments: Sequence[str]):
    values = [json.loads(printed(arguments, encoding).decode("utf-8")) for encoding in ENCODINGS]

    assert values[0]
    assert all(timeless(each) == timeless(values[0]) for each in values)


@pytest.mark.parametrize("arguments", TEXT_COMMANDS, ids=" ".join)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_is_printed_in_every_encoding(folder: Path, arguments: Sequence[str], encoding: str):
    assert printed(arguments, encoding).decode(encoding)


def test_a_letter_that_an_encoding_has_stays_and_others_are_escaped(folder: Path):
    told = printed(("explain", "config.yaml"), "latin-1")

    assert told.startswith(b"pipeline 'w\xe4rme-\\u6e29\\u5ea6-\\U0001f321' ")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_name_that_is_no_text_is_escaped_as_json_has_it(folder: Path, encoding: str):
    file = "\udcff.yaml"
    Path(file).write_text(CONFIG)

    explained = json.loads(printed(("explain", file, "--format", "json"), encoding))
    [missing] = json.loads(printed(("check", "\udcfe.yaml", "--format", "json"), encoding))

    assert r"\udcff.yaml" in json.dumps(explained)
    assert missing["file"] == "\udcfe.yaml"


def test_a_capture_whose_name_is_no_text_is_played(folder: Path):
    capture = str(Path("c.ndjson").rename("\udcff.ndjson"))

    told = printed(("diff", "config.yaml", "new.yaml", "--capture", capture), "utf-8")

    assert rb"\udcff.ndjson is played with both" in told


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_has_nothing_that_a_terminal_obeys(folder: Path, encoding: str):
    id = "wärme\x1b[2J\x7f\x9b2J\u202e"
    Path("config.yaml").write_text(json.dumps([{"id": id, "inputs": [{"type": "http"}]}]))

    told = printed(("explain", "config.yaml", "--format", "json"), encoding).decode()

    assert [each["id"] for each in json.loads(told)] == [id]
    assert all(map(str.isprintable, told.splitlines()))
