"""What cannot be run is refused whole: every reason, its place, an exit code, and nothing started."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.clients import HOST
from tests.forked import run
from tests.server import COMMAND, environment

MISTAKES = """\
- id: line
  inputs:
    - type: dummmy
      duration: 1
    - type: dummy
      duration: "1"
  transforms:
    - type: filter
      Numeric: { field: value, operator: greater, value: 5 }
    - type: map
      mappings:
        - { type: cast, from: value, to: int }
    - type: map
      mappings:
        - { type: copy, from: value, as: a }
        - { type: constant, as: a, value: { type: text, value: x } }
    - type: buffer
    - type: buffer
      seconds: 5
    - type: reducer
      aggregations: []
    - type: splitter
      out_size: 0
  outputs:
    - type: stdout
      flush: true
    - type: http
      url: ftp://example.org
- id: line
  inputs:
    - { type: pipeline, upstream: nobody }
- id: loop
  inputs:
    - { type: pipeline, upstream: loop }
  outputs:
    - { type: file, connection: disc, path: ../out }
"""
PLACES = [
    (3, 13, "unknown-kind"),
    (6, 17, "wrong-type"),
    (9, 42, "not-a-choice"),
    (12, 42, "not-a-choice"),
    (16, 33, "duplicate"),
    (17, 7, "no-trigger"),
    (18, 7, "no-bound"),
    (21, 21, "out-of-range"),
    (23, 17, "out-of-range"),
    (26, 7, "unknown-key"),
    (28, 12, "not-a-url"),
    (29, 7, "duplicate"),
    (31, 35, "missing-upstream"),
    (34, 35, "cycle"),
    (36, 33, "unknown-connection"),
    (36, 45, "outside-root"),
]

GOOD = (
    '[{"id": "p", "inputs": [{"type": "dummy", "duration": 1}], "outputs": [{"type": "stdout"}]}]'
)


@pytest.fixture
def mistakes(tmp_path: Path) -> Path:
    file = tmp_path / "mistakes.yaml"
    file.write_text(MISTAKES)
    return file


def places(lines: list[str]) -> list[tuple[int, int]]:
    """Return line and column of diagnostics in their piped form."""
    return [(int(line.split(":")[1]), int(line.split(":")[2])) for line in lines]


def test_a_server_is_not_started_and_every_mistake_is_on_standard_error(
    tmp_path: Path, mistakes: Path
) -> None:
    ended = run(tmp_path, "serve", "--config", "mistakes.yaml", "--listen", f"{HOST}:0")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert places(ended.stderr.splitlines()) == [place[:2] for place in PLACES]
    assert "headrace runs" not in ended.stderr


def test_nothing_of_a_refused_config_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "config.connections.json").write_text('{"disk": {"type": "file", "root": "data"}}')
    writing = {"type": "file", "connection": "disk", "path": "out"}
    elsewhere = {"type": "file", "connection": "disc", "path": "out"}
    tick = {"type": "dummy", "duration": 1}
    good = {"id": "good", "inputs": [tick], "outputs": [{"type": "stdout"}, writing]}
    bad = {"id": "bad", "inputs": [tick], "outputs": [elsewhere]}
    (tmp_path / "config.json").write_text(json.dumps([good, bad]))

    ended = run(tmp_path, "serve", "--config", "config.json", "--data-dir", "data")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "disc" in ended.stderr
    assert not (tmp_path / "data" / "out").exists()


def test_a_check_tells_the_same_on_standard_output(tmp_path: Path, mistakes: Path) -> None:
    checked = run(tmp_path, "check", "mistakes.yaml")
    refused = run(tmp_path, "serve", "--config", "mistakes.yaml", "--listen", f"{HOST}:0")

    assert checked.returncode == 1
    assert checked.stdout == refused.stderr
    assert checked.stderr == f"1 file checked: {len(PLACES)} errors, 0 warnings\n"


def test_a_check_as_json_is_one_array_with_the_same_keys_throughout(
    tmp_path: Path, mistakes: Path
) -> None:
    ended = run(tmp_path, "check", "--format", "json", "mistakes.yaml")

    told = json.loads(ended.stdout)
    assert ended.returncode == 1
    assert [(one["line"], one["column"], one["code"]) for one in told] == PLACES
    keys = (
        "file line column end_line end_column path severity code message found expected suggestion"
    )
    keys += " replacement"
    assert {" ".join(one) for one in told} == {keys}
    assert {one["file"] for one in told} == {"mistakes.yaml"}
    assert {one["severity"] for one in told} == {"error"}


def test_a_file_without_a_mistake_passes(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(GOOD)

    text = run(tmp_path, "check", "good.json")
    array = run(tmp_path, "check", "--format", "json", "good.json")

    assert (text.returncode, text.stdout) == (0, "")
    assert text.stderr == "1 file checked: 0 errors, 0 warnings\n"
    assert (array.returncode, json.loads(array.stdout)) == (0, [])


def test_a_warning_is_told_and_refuses_nothing(tmp_path: Path) -> None:
    tick = {"type": "dummy", "duration": 3600}
    reducer = {"type": "reducer", "aggregations": [{"function": "count", "as": "n"}]}
    config = [{"id": "p", "inputs": [tick], "transforms": [reducer]}]
    (tmp_path / "odd.json").write_text(json.dumps(config))

    ended = run(tmp_path, "check", "odd.json")

    [line] = ended.stdout.splitlines()
    assert ended.returncode == 0
    assert "warning: " in line
    assert ended.stderr == "1 file checked: 0 errors, 1 warning\n"


def test_several_files_are_checked_at_once(tmp_path: Path, mistakes: Path) -> None:
    (tmp_path / "good.json").write_text(GOOD)

    ended = run(tmp_path, "check", "good.json", "mistakes.yaml")

    assert ended.returncode == 1
    assert places(ended.stdout.splitlines()) == [place[:2] for place in PLACES]
    assert ended.stderr == f"2 files checked: {len(PLACES)} errors, 0 warnings\n"


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """Return what the command shows on a terminal."""
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as shown:
        process = subprocess.Popen(
            [str(COMMAND), *arguments],
            cwd=folder,
            env={**environment(), "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        text = b""
        try:
            while piece := shown.read(65536):
                text += piece
        except OSError:  # how Linux says that the other end of a terminal is closed
            pass
        process.wait()
    return text.decode()


def test_a_terminal_shows_the_line_and_a_caret_and_a_pipe_plain_text(
    tmp_path: Path, mistakes: Path
) -> None:
    shown = on_a_terminal(tmp_path, "check", "mistakes.yaml")
    piped = run(tmp_path, "check", "mistakes.yaml")

    assert "\x1b[" in shown
    assert "    - type: dummmy" in shown
    assert "^" in shown
    assert "\x1b" not in piped.stdout + piped.stderr
    assert "^" not in piped.stdout


BROKEN = {
    "truncated.yaml": b"- id: a\n  inputs: [",
    "tab.yaml": b"- id: a\n\tinputs: []\n",
    "twice.yaml": b"- id: a\n  id: b\n  inputs: [{type: dummy, duration: 1}]\n",
    "empty.yaml": b"",
    "binary.yaml": bytes(range(256)),
    "truncated.json": b'[{"id": "a", "inputs": [',
    "twice.json": b'[{"id": "a", "id": "b", "inputs": [{"type": "dummy", "duration": 1}]}]',
    "empty.json": b"",
    "binary.json": bytes(range(256)),
}


def test_a_file_that_is_no_document_is_told_with_its_place(tmp_path: Path) -> None:
    for name, content in BROKEN.items():
        (tmp_path / name).write_bytes(content)

    ended = run(tmp_path, "check", *BROKEN)

    lines = ended.stdout.splitlines()
    assert ended.returncode == 1
    assert {line.split(":")[0] for line in lines} == {*BROKEN}
    assert all(line > 0 and column > 0 for line, column in places(lines))
    assert "Traceback" not in ended.stderr


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    names = ["missing.yaml", "circle", "long" * 1000]

    checked = run(tmp_path, "check", *names)
    refused = run(tmp_path, "serve", "--config", "circle", "--listen", f"{HOST}:0")

    assert (checked.returncode, refused.returncode, refused.stdout) == (1, 1, "")
    told = checked.stdout.splitlines()
    assert sorted(line.partition(": ")[0] for line in told) == sorted(names)
    assert refused.stderr.splitlines() == [line for line in told if line.startswith("circle: ")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "--format", "xml", "config.json"],
        ["chekc", "config.json"],
        ["serve", "--listen", "nonsense"],
        ["serve", "--listen", "127.0.0.1:99999"],
        ["serve", "--nonsense"],
        ["serve", "config.json"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_refused_as_such(tmp_path: Path, arguments: list[str]) -> None:
    ended = run(tmp_path, *arguments)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("Usage: ")
