"""`headrace diff` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.web.commands.cli import commands
from tests.authoring.language.test_capturefile import written

OLD = """\
- id: p
  inputs: [{type: http}]
  transforms: [{type: filter, Numeric: {field: temp, operator: greater_than, value: 10}}]
"""
NEW = OLD.replace("10", "15")
LINES = (
    {"at": 1, "to": "p.inputs[0]", "batch": [{"temp": 12}]},
    {"at": 2, "to": "p.inputs[0]", "batch": [{"temp": 20}]},
    {"at": 9, "end": "seconds", "records": 2, "dropped": 0},
)


def diff(folder: Path, *arguments: str, old: str = OLD, new: str = NEW) -> Result:
    (folder / "old.yaml").write_text(old)
    (folder / "new.yaml").write_text(new)
    files = [str(folder / "old.yaml"), str(folder / "new.yaml")]
    return CliRunner().invoke(commands, ["diff", *files, *arguments])


@pytest.fixture
def capture(tmp_path: Path) -> str:
    (tmp_path / "c.ndjson").write_bytes(written(*LINES))
    return str(tmp_path / "c.ndjson")


def test_the_same_is_0_and_a_difference_1(tmp_path: Path) -> None:
    same, different = diff(tmp_path, new=OLD), diff(tmp_path)

    assert (same.exit_code, same.stdout, same.stderr) == (0, "kept       p\n", "")
    assert different.exit_code == 1
    assert different.stdout.splitlines()[0] == "changed    p: it is restarted"
    assert "transforms[0].Numeric.value: 10 -> 15" in different.stdout


def test_with_a_capture_what_comes_of_it_counts(tmp_path: Path, capture: str) -> None:
    different = diff(tmp_path, "--capture", capture)
    same = diff(tmp_path, "--capture", capture, new=OLD.replace("10", "11"))

    assert (different.exit_code, same.exit_code) == (1, 0)
    assert 'never came: {"temp": 12}' in different.stdout
    assert "the same came of 2 records" in same.stdout
    assert "changed    p" in same.stdout


def test_a_pipeline_that_is_not_there_any_more_is_a_difference(
    tmp_path: Path, capture: str
) -> None:
    more = OLD + "- {id: q, inputs: [{type: http}]}\n"

    assert diff(tmp_path, "--capture", capture, old=more, new=OLD).exit_code == 1


def test_programs_get_an_object(tmp_path: Path, capture: str) -> None:
    told = json.loads(diff(tmp_path, "--capture", capture, "--format", "json").stdout)

    assert told["same"] is False
    assert told["configs"]["changed"][0]["settings"][0]["path"] == "transforms[0].Numeric.value"
    [line] = told["replay"]["timelines"]
    assert (line["of"], line["differences"][0]["kind"]) == ("p", "missing")


@pytest.mark.parametrize(
    ("lines", "arguments", "code", "said"),
    [
        (LINES, ["--what"], 2, "No such option"),
        ((), [], 5, "has nothing for an input of either config: it has nothing"),
        (
            ({"at": 1, "to": "other.inputs[0]", "batch": [1]},),
            [],
            5,
            "has nothing for an input of either config: it has other.inputs[0]",
        ),
        ((b'{"at":1',), [], 1, "c.ndjson:2: this is no line of a capture"),
        (({"at": 1, "gap": 7}, *LINES), [], 1, "7 records were dropped as it was taken"),
        (LINES[:2], [], 1, "has no last line"),
    ],
)
def test_what_is_wrong_is_an_exit_code_and_told(
    tmp_path: Path, lines: tuple[object, ...], arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "c.ndjson").write_bytes(written(*lines))

    told = diff(tmp_path, "--capture", str(tmp_path / "c.ndjson"), *arguments)

    assert told.exit_code == code
    assert said in told.stderr


def test_a_capture_that_is_not_there_is_told(tmp_path: Path) -> None:
    told = diff(tmp_path, "--capture", str(tmp_path / "none.ndjson"))

    assert (told.exit_code, told.stdout) == (1, "")
    assert "none.ndjson cannot be read: No such file" in told.stderr


def test_configs_without_a_pipeline_in_common_cannot_be_compared(
    tmp_path: Path, capture: str
) -> None:
    told = diff(tmp_path, "--capture", capture, new=NEW.replace("id: p", "id: q"))

    assert told.exit_code == 5
    assert "no pipeline of the same id" in told.stderr


def test_what_is_wrong_with_either_config_is_told_at_once(tmp_path: Path) -> None:
    broken = OLD.replace("http", "htp")

    told = diff(tmp_path, old=broken, new=broken)

    assert (told.exit_code, told.stdout) == (1, "")
    assert "old.yaml:2" in told.stderr
    assert "new.yaml:2" in told.stderr


@pytest.mark.parametrize("option", [("--ignore", "temp"), ("--max-moments", "1000000")])
def test_what_is_about_messages_goes_with_a_capture(
    tmp_path: Path, option: tuple[str, str]
) -> None:
    told = diff(tmp_path, *option)

    assert told.exit_code == 2
    assert f"{option[0]} goes with --capture" in told.stderr


def test_a_redacted_capture_tells_why_it_has_no_replies(tmp_path: Path) -> None:
    header = {
        "headrace": "capture",
        "version": 1,
        "started_at": "2026-03-02T06:00:00Z",
        "redacted": ["x"],
    }
    (tmp_path / "c.ndjson").write_bytes(written(*LINES, header=header))
    asking = OLD + "    - {type: http, url: 'http://127.0.0.1:9/', verb: POST}\n"
    asking = asking.replace("transforms: [", "transforms:\n    - ").replace("}}]", "}}")

    told = diff(tmp_path, "--capture", str(tmp_path / "c.ndjson"), old=asking, new=asking)

    assert told.exit_code == 1
    assert "is redacted, and so has no replies of servers" in told.stderr
    assert "no reply   p.transforms[1]: the capture has none to 2 requests" in told.stdout


def test_a_play_of_too_many_moments_is_refused(tmp_path: Path) -> None:
    ticking = "- {id: p, inputs: [{type: http}, {type: dummy, duration: 1}]}\n"
    end = {"at": 1000, "end": "seconds", "records": 2, "dropped": 0}
    (tmp_path / "c.ndjson").write_bytes(written(*LINES[:2], end))
    arguments = ("--capture", str(tmp_path / "c.ndjson"), "--max-moments")

    refused = diff(tmp_path, *arguments, "5", new=ticking)
    played = diff(tmp_path, *arguments, "1000", new=ticking)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"{tmp_path / 'new.yaml'}: timers were due at 205 moments")
    assert "nobody expected" in played.stdout


def test_a_path_that_nothing_has_is_told_to_people_and_to_programs(
    tmp_path: Path, capture: str
) -> None:
    arguments = ("--capture", capture, "--ignore", "temp", "--ignore", "tmep\x1b")

    told = diff(tmp_path, *arguments, new=OLD)
    as_json = diff(tmp_path, *arguments, "--format", "json", new=OLD)

    assert (told.exit_code, as_json.exit_code) == (0, 0)
    assert told.stderr == "--ignore tmep\\x1b: no message that was compared has it\n"
    assert "the same came of 2 records" in told.stdout
    assert json.loads(as_json.stdout)["replay"]["unfound"] == ["tmep\x1b"]
