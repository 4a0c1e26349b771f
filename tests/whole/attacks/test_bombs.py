"""Files that are made to be expensive: each is refused, with little memory, soon, and in words."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE
from tests.server import COMMAND, end_with_parent, environment
from tests.whole.attacks.bombs import CONFIGS, JSON, MIB, YAML, Bombs
from tests.whole.figures import Figure

MOST_BYTES = 768 * MIB
MOST_CPU_SECONDS = 60
MOST_SAID = 64 * MIB


def refused(folder: Path, *arguments: str) -> tuple[str, int, float]:
    """Run the command on something that it refuses; return what it says, and bytes and seconds used.

    The system ends it where it takes more than is allowed.
    """

    def bounded() -> None:
        end_with_parent()
        resource.setrlimit(resource.RLIMIT_AS, (2048 * MIB, 2048 * MIB))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_SAID, MOST_SAID))

    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            # By a shell, which is small: what it is forked from counts as its own memory at first.
            ["/bin/sh", "-c", 'exec "$@"', "sh", str(COMMAND), *arguments],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=bounded,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = said.read_text()
    assert process.returncode == 1, text[-2000:]
    assert "Traceback" not in text
    return text, used.ru_maxrss * 1024, used.ru_utime + used.ru_stime


def costs_little(figure: Figure, most: int, seconds: float) -> bool:
    """Report what it took; whether that is little."""
    figure("MiB", most // MIB)
    figure("CPU seconds", round(seconds, 1))
    return most < MOST_BYTES


@pytest.mark.parametrize(("bombs", "suffix"), [(YAML, "yaml"), (JSON, "json"), (CONFIGS, "json")])
def test_what_is_no_config_is_refused(
    tmp_path: Path, bombs: Bombs, suffix: str, figure: Figure
) -> None:
    files = {f"{name.replace(' ', '-')}.{suffix}": bomb for name, bomb in bombs.items()}
    for file, bomb in files.items():
        (tmp_path / file).write_text(bomb())

    said, most, seconds = refused(tmp_path, "check", *files)

    assert costs_little(figure, most, seconds)
    lines = said.splitlines()
    assert {line.split(":")[0] for line in lines[:-1]} == files.keys()
    assert max(map(len, lines)) < 3000


SERVING = ("--listen", f"{HOST}:0", "--config", "c.json")
PLACES = {
    "config.yaml": ("--listen", f"{HOST}:0", "--config", "config.yaml"),
    "c.connections.json": SERVING,
    "other.yaml": (*SERVING, "--connections", "other.yaml"),
    "secrets.json": (*SERVING, "--secrets", "secrets.json"),
    "settings.yaml": (*SERVING, "--server-config", "settings.yaml"),
    "settings.json": (*SERVING, "--server-config", "settings.json"),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("bomb", ["a text without an end", "deep in brackets"])
def test_no_file_that_a_server_reads_is_a_way_to_break_it(
    tmp_path: Path, name: str, bomb: str, figure: Figure
) -> None:
    (tmp_path / "c.json").write_text("[]")
    bombs = YAML if name.endswith(".yaml") else JSON
    (tmp_path / name).write_text(bombs[bomb]())

    said, most, seconds = refused(tmp_path, *PLACES[name])

    assert costs_little(figure, most, seconds)
    assert name in said


def test_ten_thousand_pipelines_are_loaded(tmp_path: Path) -> None:
    pipelines = [{"id": f"p{n}", "inputs": [{"type": "http"}]} for n in range(10_000)]
    (tmp_path / "c.json").write_text(json.dumps(pipelines))

    checked = subprocess.run(
        [str(COMMAND), "check", "c.json"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (checked.returncode, checked.stdout) == (0, "")
