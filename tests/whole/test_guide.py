"""The guide's transcripts of a gate, a script and dry runs are what the installed command does."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import serving

REPOSITORY = Path(__file__).parents[2]
GUIDE = (REPOSITORY / "docs" / "getting-started.md").read_text()
STEPS = GUIDE[GUIDE.index("## Wait for a machine") : GUIDE.index("## From here")]
ADDRESS = "127.0.0.1:6767"


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language in the steps."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", STEPS, re.DOTALL | re.MULTILINE)
    return [text for said, text in fenced if said == language]


def files() -> dict[str, str]:
    """Return the files that the steps want, by name."""
    return dict(zip(re.findall(r"`(\w+\.json)`", STEPS), blocks("json"), strict=True))


def transcripts() -> list[tuple[str, str]]:
    """Return each command, and what it prints."""
    each = "".join(blocks("console")).split("$ ")[1:]
    return [(command, said) for command, _, said in (one.partition("\n") for one in each)]


def timeless(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+", "...", text).strip()


def curl(command: str, folder: Path) -> str:
    """Run a command of the page, and return what it prints."""
    ended = subprocess.run(
        ["bash", "-c", command.replace("curl ", "curl -s ", 1)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return ended.stdout


@pytest.mark.long
def test_the_steps_with_a_gate_a_script_and_dry_runs_go_as_they_are_shown(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    (_, announced), *commands = transcripts()
    [config] = set(re.findall(r"--config (\S+)", STEPS))
    with serving(tmp_path, REPOSITORY / config, "--data-dir", "data") as server:
        here = f"{HOST}:{server.port}"

        said = [curl(command.replace(ADDRESS, here), tmp_path) for command, _ in commands]

        assert [timeless(each) for each in said] == [timeless(each) for _, each in commands]
        assert [timeless(line) for line in server.out.wait(1)] == [timeless(blocks("")[0])]
        assert "\n".join(server.err.wait(3)[:3]).replace(here, ADDRESS) == announced.strip()
