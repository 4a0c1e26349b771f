"""The pages of the specs: what they have somebody run works from the root, as it is written."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from specs.weather.readings import source
from tests.clients import HOST, PATIENCE
from tests.server import environment

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(REPOSITORY.glob("specs/*/README.md"))
INSTALLED = ".venv/bin/"
PROGRAMS = {"make", "curl", "sed", "export", "redis-cli"}
"""What a reader has, or is told to install."""
VERBS = set(re.findall(r"^([a-z]+):.* ## ", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
FOLDERS = tuple(f"{each.name}/" for each in REPOSITORY.iterdir() if each.is_dir())
FILES = (".yaml", ".yml", ".json", ".py", ".rhai", ".md")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)


def fenced(page: Path) -> list[tuple[str, str]]:
    """Return the blocks of a page, each with its language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [(language, text) for language, text in found]


def transcripts(page: Path) -> list[tuple[str, str]]:
    """Return the commands of a page, each with what it prints, if that is shown."""
    found: list[tuple[str, str]] = []
    for language, text in fenced(page):
        if language == "sh":
            found += [(command, "") for command in text.splitlines()]
        elif language == "console":
            each = [one.partition("\n") for one in f"\n{text}".split("\n$ ")[1:]]
            found += [(command, said) for command, _, said in each]
    return found


def run(commands: Sequence[str], folder: Path) -> str:
    """Run commands of a page, and return what they print."""
    ended = subprocess.run(
        ["bash", "-c", re.sub(r"^curl ", "curl -s ", "\n".join(commands), flags=re.MULTILINE)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder that looks like the root of the repository, to run what changes files in."""
    shutil.copytree(
        REPOSITORY / "specs", tmp_path / "specs", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


@each_page
def test_every_command_names_what_is_there(page: Path) -> None:
    commands = [command for command, _ in transcripts(page)]

    assert commands
    for program, *words in map(shlex.split, commands):
        if program == "make":
            assert words[0] in VERBS
        elif program.startswith(INSTALLED):
            assert Path(sys.executable).with_name(program.removeprefix(INSTALLED)).exists()
        else:
            assert program in PROGRAMS
        for word in words:
            if word.startswith(FOLDERS) or word.endswith(FILES):
                assert (REPOSITORY / word).exists(), word


@each_page
def test_a_command_is_told_from_what_is_printed_by_its_prompt(page: Path) -> None:
    """So that the tests here find all of them."""
    text = page.read_text()
    others = [text for language, text in fenced(page) if language not in ("console", "sh")]
    program = "|".join(map(re.escape, (*sorted(PROGRAMS), "headrace", INSTALLED)))

    assert not re.search(rf"^ {{4,}}(?:\$ )?(?:{program})\b", text, re.MULTILINE)
    assert not [one for one in others if re.match(rf"(?:\$ )?(?:{program})\b", one)]


@pytest.mark.long
@each_page
def test_what_is_checked_without_a_server_is_told_as_it_is_shown(
    page: Path, checkout: Path
) -> None:
    """After what the page has done before: an address in a file, names in the environment."""
    before, said = ["set -e", "exec 2>&1"], {}
    for command, shown in transcripts(page):
        config = re.search(r"--config (\S+)", command)
        if command.startswith(("sed ", "export ")):
            before.append(command)
        elif command.startswith(f"{INSTALLED}headrace check "):
            said[command] = (run([*before, command], checkout), shown)
        elif config is not None:
            check = f"{INSTALLED}headrace check {config[1]}"
            last = run([*before, check], checkout).splitlines()[-1]
            said[command] = (last, "1 file checked: 0 errors, 0 warnings")

    assert said
    assert {command: printed.strip() for command, (printed, _) in said.items()} == {
        command: shown.strip() for command, (_, shown) in said.items()
    }


def test_who_posts_the_year_to_nobody_is_told_what_to_start() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "specs.weather.post", f"http://{HOST}:1"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert ended.returncode == 1
    if source() is None:
        assert "make year" in ended.stderr
    else:
        assert ".venv/bin/headrace serve --config specs/weather/config.yaml" in ended.stderr
