"""Files that are made to be expensive: each is refused, with little memory, soon, and in words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE
from tests.server import COMMAND, end_with_parent, environment
from tests.whole.attacks.bombs import CONFIGS, JSON, MIB, YAML, Bombs
from tests.whole.figures import Figure

pytestmark = pytest.mark.long

MOST_BYTES = 768 * MIB
MOST_CPU_SECONDS = 60
MOST_SAID = 64 * MIB


LIMITED = f"""
import json, resource, subprocess, sys

resource.setrlimit(resource.RLIMIT_AS, ({2048 * MIB}, {2048 * MIB}))
resource.setrlimit(resource.RLIMIT_CPU, ({MOST_CPU_SECONDS}, {MOST_CPU_SECONDS}))
resource.setrlimit(resource.RLIMIT_FSIZE, ({MOST_SAID}, {MOST_SAID}))
code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as out:
    json.dump([code, used.ru_maxrss * 1024, used.ru_utime + used.ru_stime], out)
"""
"""A small program that runs another one within bounds and writes down what it used: a process counts
the memory of what it is forked from as its own, and the tests have a lot."""


def refused(folder: Path, *arguments: str) -> tuple[str, int, float]:
    """Run the command on something that it refuses; return what it says, and bytes and seconds used.

    The system ends it where it takes more than is allowed.
    """
    said, used = folder / "said", folder / "used"
    with said.open("wb") as out:
        subprocess.run(
            [sys.executable, "-c", LIMITED, str(used), str(COMMAND), *arguments],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=end_with_parent,
            check=True,
        )
    code, most, seconds = json.loads(used.read_text())
    text = said.read_text()
    assert code == 1, text[-2000:]
    assert "Traceback" not in text
    return text, most, seconds


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
