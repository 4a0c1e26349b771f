"""`headrace explain` on the command line."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.web.commands import explaining
from headrace.web.commands.cli import commands
from tests.ledgers import CATALOGUE, SOURCE

CONFIG = """\
- id: hot
  inputs: [{type: mqtt, connection: plant, topic: t}]
  transforms:
    - {type: filter, Numeric: {field: temp, operator: greater_than, value: 80}}
  outputs:
    - {type: redis, connection: screen, channel: hot}
    - {type: http, url: "https://reader:spelled@store.example/in"}
    - {type: http, url: "https://store.example/in", auth: {type: bearer, token: "${WEB}"}}
"""
CONNECTIONS = """\
plant: {type: mqtt, host: 127.0.0.1, username: "${USER_NAME}", password: "begin-${MQTT}-end"}
screen: {type: redis, url: "redis://:written-out@127.0.0.1:1"}
"""
VALUES = {name: f"value-of-{name.lower()}" for name in ("USER_NAME", "MQTT", "WEB")}


def explain(
    folder: Path, *arguments: str, config: str = CONFIG, file: str = "config.yaml"
) -> Result:
    (folder / "config.yaml").write_text(config)
    (folder / "config.connections.yaml").write_text(CONNECTIONS)
    return CliRunner(env=VALUES).invoke(commands, ["explain", str(folder / file), *arguments])


@pytest.mark.parametrize("form", ["text", "json", "mermaid", "dot"])
def test_no_form_tells_a_secret_and_none_is_resolved(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(socket.socket, "connect", refuse)

    told = explain(tmp_path, "--format", form)

    assert told.exit_code == 0, told.output
    for value in (*VALUES.values(), "written-out", "spelled", "begin-", "-end", "${"):
        assert value not in told.output


def refuse(*_: object) -> None:
    raise AssertionError("something is connected to")


def test_the_names_of_secrets_are_told_with_who_holds_them(tmp_path: Path):
    told = explain(tmp_path)

    [secrets] = [line for line in told.stdout.splitlines() if line.startswith("  secrets")]
    assert "WEB (outputs[2].auth.token), USER_NAME (connection 'plant': username)" in secrets


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["cold"], 5, "there is no pipeline 'cold'"),
        (["hto"], 5, "did you mean 'hot'?"),
        (["\x1b[31m"], 5, "\\x1b[31m"),
        (["--what"], 2, "No such option"),
        (["--format", "svg"], 2, "svg"),
        (["--code", "--format", "dot"], 2, "--code goes with"),
    ],
)
def test_what_is_wrong_is_an_exit_code(tmp_path: Path, arguments: list[str], code: int, said: str):
    told = explain(tmp_path, *arguments)

    assert told.exit_code == code
    assert said in told.stderr
    assert told.stdout == ""


@pytest.mark.parametrize(
    ("config", "code", "said"),
    [
        ("- {id: a, inputs: [{type: htp}]}", 1, "unknown type"),
        ("- {id: a, inputs: [{type: mqtt, connection: gone, topic: t}]}", 1, "'gone'"),
        ("[]", 5, "no pipeline there"),
    ],
)
def test_a_config_that_is_refused_is_told_as_check_does(
    tmp_path: Path, config: str, code: int, said: str
):
    told = explain(tmp_path, config=config)

    assert (told.exit_code, told.stdout) == (code, "")
    assert said in told.stderr


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    told = explain(tmp_path, file="other.yaml")

    assert told.exit_code == 1
    assert "other.yaml" in told.stderr


def test_json_has_the_facts_of_the_text(tmp_path: Path):
    [told] = json.loads(explain(tmp_path, "hot", "--format", "json").stdout)

    assert told["id"] == "hot"
    assert told["inputs"][0]["place"] == {
        "file": str(tmp_path / "config.yaml"),
        "line": 2,
        "column": 12,
    }
    assert told["inputs"][0]["options"][1] == {"name": "max_batch", "value": 1, "is_default": True}
    assert told["inputs"][0]["promises"][0] == {
        "name": "mqtt.qos_0.away",
        "about": "away",
        "text": "what is published meanwhile",
        "said": "lost while the other side is away: what is published meanwhile",
    }
    assert told["loops"][0]["source"].startswith("def fused(batch):")
    assert told["in_memory"]["kill_loses"][1]["most"] == 256
    assert [each["name"] for each in told["secrets"]] == ["WEB", "USER_NAME", "MQTT"]


def test_json_has_what_a_part_fails_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explaining, "catalogue", lambda: CATALOGUE)
    config = "- {id: books, inputs: [{type: http}], outputs: [{type: ledger}]}"

    [told] = json.loads(explain(tmp_path, "--format", "json", config=config).stdout)

    assert told["inputs"][0]["failures"] == []
    assert [each["name"] for each in told["outputs"][0]["failures"]] == [
        f"ledger.output.fails.{row}" for row in ("busy", "full", "closed", "no_book", "torn")
    ]
    assert told["outputs"][0]["failures"][1] == {
        "name": "ledger.output.fails.full",
        "class": "unavailable",
        "codes": ["507"],
        "text": "its last page is full",
        "mark": "documented",
        "source": SOURCE,
    }


def test_code_is_printed_where_it_is_asked_for(tmp_path: Path):
    without, with_code = explain(tmp_path), explain(tmp_path, "--code")

    assert "def fused" not in without.stdout
    assert with_code.stdout.startswith(without.stdout.rstrip("\n"))
    assert "\n# hot transforms[0]\ndef fused(batch):\n" in with_code.stdout
