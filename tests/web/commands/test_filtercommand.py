"""`headrace run` on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.authoring.playing.playlength import DEFAULT_MAX_MOMENTS, MOMENTS_EACH
from headrace.web.commands import filtercommand
from headrace.web.commands.cli import commands

CONFIG = """\
- id: hot
  inputs: [{type: mqtt, connection: plant, topic: t}]
  transforms:
    - {type: filter, Numeric: {field: temp, operator: greater_than, value: 80}}
  outputs: [{type: redis, connection: plant2, channel: hot}]
"""
ASKING = """\
- id: asking
  inputs: [{type: http}]
  transforms: [{type: http, url: "http://127.0.0.1:9/x", verb: POST}]
"""


def run(folder: Path, lines: str, *arguments: str, config: str = CONFIG) -> Result:
    (folder / "config.yaml").write_text(config)
    (folder / "config.connections.yaml").write_text(
        "plant: {type: mqtt, host: '${NOBODY_HAS_IT}'}\nplant2: {type: redis, url: 'redis://127.0.0.1:1'}\n"
    )
    command = ["run", str(folder / "config.yaml"), *arguments]
    return CliRunner().invoke(commands, command, input=lines)


def test_lines_go_in_and_come_out(tmp_path: Path):
    told = run(tmp_path, '{"temp": 90}\n{"temp": 10}\n[{"temp": 91}, {"temp": 92}]\n')

    assert told.stdout == '{"temp":90}\n{"temp":91}\n{"temp":92}\n'
    assert (told.stderr, told.exit_code) == ("", 0)


def test_what_failed_is_told_once_with_its_count(tmp_path: Path):
    reducer = "{type: reducer, group_by: [site], aggregations: [{function: count, as: n}]}"
    config = f"- {{id: a, inputs: [{{type: http}}], transforms: [{reducer}]}}\n"

    told = run(tmp_path, "{}\n{}\n", config=config)

    assert told.exit_code == 1
    assert told.stderr.startswith("failed  a.transforms[0] at 0s (2 times): group_by 'site'")


@pytest.mark.parametrize(
    ("lines", "arguments", "code", "said"),
    [
        ("nope\n", [], 1, "line 1 is no message"),
        ("", ["cold"], 5, "there is no pipeline 'cold'"),
        ("", ["--what"], 2, "No such option"),
    ],
)
def test_what_is_wrong_is_an_exit_code(
    tmp_path: Path, lines: str, arguments: list[str], code: int, said: str
):
    told = run(tmp_path, lines, *arguments)

    assert told.exit_code == code
    assert said in told.stderr


def test_a_config_that_is_refused_is_told_as_check_does(tmp_path: Path):
    told = run(tmp_path, "", config="- {id: a, inputs: [{type: htp}]}")

    assert told.exit_code == 1
    assert "unknown type" in told.stderr


def test_a_transform_that_asks_a_server_has_to_be_let_or_answered(tmp_path: Path):
    replies = tmp_path / "replies.yaml"
    replies.write_text("asking.transforms[0]: {$echo: {site: north}}")

    refused = run(tmp_path, '{"n": 1}\n', config=ASKING)
    answered = run(tmp_path, '{"n": 1}\n', "--replies", str(replies), config=ASKING)
    allowed = run(tmp_path, '{"n": 1}\n', "--allow-http", config=ASKING)

    assert refused.exit_code == 1
    assert "asking.transforms[0] asks a server: --allow-http lets it" in refused.stderr
    assert answered.stdout == '{"n":1,"site":"north"}\n'
    assert "connection refused" in allowed.stderr


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{}", "there is no reply for 'asking.transforms[0]'"),
        ("asking.transforms[0]: up", "expected a status"),
        ("{", "replies.yaml:1:"),
    ],
)
def test_a_reply_that_is_missing_or_wrong_is_told(tmp_path: Path, written: str, said: str):
    replies = tmp_path / "replies.yaml"
    replies.write_text(written)

    told = run(tmp_path, "", "--replies", str(replies), config=ASKING)

    assert told.exit_code == 1
    assert said in told.stderr


@pytest.mark.long
def test_whoever_has_read_enough_ends_it(tmp_path: Path):
    (tmp_path / "config.yaml").write_text("- {id: a, inputs: [{type: http}]}\n")
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("headrace")), "run", str(tmp_path / "config.yaml")],
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    os.close(reading)

    _, said = process.communicate(b"1\n" * 10_000, timeout=60)

    assert process.returncode == 1
    assert said == b""


@pytest.mark.long
@pytest.mark.parametrize("command", ["run", "diff"])
def test_what_cannot_be_written_is_told_and_blamed_on_no_transform(tmp_path: Path, command: str):
    config = tmp_path / "config.yaml"
    config.write_text("- {id: a, inputs: [{type: http}]}\n")
    (other := tmp_path / "other.yaml").write_text("- {id: b, inputs: [{type: http}]}\n")
    arguments = {"run": [config], "diff": [config, other]}[command]

    with Path("/dev/full").open("wb") as full:
        told = subprocess.run(
            [Path(sys.executable).with_name("headrace"), command, *arguments],
            input=b"1\n",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

    assert told.returncode == 1
    how = {"run": b"written", "diff": b"printed"}[command]
    assert told.stderr == b"Error: cannot be " + how + b": No space left on device\n"


def test_a_line_without_an_end_fills_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(filtercommand, "MOST_LINE_BYTES", 2**20)

    told = run(tmp_path, '{"temp": 90}\n' + " " * (2**20 + 1))

    assert told.stdout == '{"temp":90}\n'
    assert (told.stderr, told.exit_code) == ("line 2 has more than 1 MiB\n", 1)


def test_what_is_told_has_no_control_characters(tmp_path: Path):
    told = run(tmp_path, "1\n", "a\x1b[31m\n")

    assert told.stderr == "there is no pipeline 'a\\x1b[31m\\n' (there is one of hot)\n"
    assert told.exit_code == 5


def test_a_run_of_too_many_moments_is_refused(tmp_path: Path):
    config = "- {id: p, inputs: [{type: http}, {type: dummy, duration: 1}]}\n"
    lines = '{"at": 0}\n{"at": 1000}\n'

    told = run(tmp_path, lines, "--time", "at", "--max-moments", "50", config=config)

    assert (told.exit_code, len(told.stdout.splitlines())) == (1, 251)
    assert told.stderr.startswith("timers were due at 250 moments, and no more may pass")


def test_options_say_how_many_moments_may_pass():
    for name in ("run", "diff"):
        [option] = [each for each in commands.commands[name].params if each.name == "max_moments"]
        assert option.default == DEFAULT_MAX_MOMENTS
        assert f"beside {MOMENTS_EACH} for each" in option.help
