"""Which tests are run again alone: a few, by the names that they have alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rooms import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "fewfailed.py"


def told(folder: Path, *failed: str) -> tuple[int, str, list[str]]:
    """Return what it ends with where these have failed, what it says, and what pytest runs then."""
    kept = folder / ".pytest_cache" / "v" / "cache" / "lastfailed"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps(dict.fromkeys(failed, True)))
    command = [sys.executable, str(SCRIPT)]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return made.returncode, made.stdout, [*json.loads(kept.read_text())]


def test_few_are_named_and_run_again_without_the_name_of_their_group(tmp_path: Path) -> None:
    code, said, again = told(
        tmp_path, "tests/test_a.py::test_b[x@y]@kafka", "tests/test_c.py::test_d"
    )

    assert code == 0
    assert again == ["tests/test_a.py::test_b[x@y]", "tests/test_c.py::test_d"]
    assert said.splitlines()[1:] == [f"  {each}" for each in again]


@pytest.mark.parametrize("count", [0, 4])
def test_none_and_many_are_not(count: int, tmp_path: Path) -> None:
    assert told(tmp_path, *(f"tests/test_a.py::test_{n}" for n in range(count)))[0] == 1


def test_without_a_word_of_pytest_there_is_nothing_to_run_again(tmp_path: Path) -> None:
    made = subprocess.run([sys.executable, str(SCRIPT)], cwd=tmp_path, check=False)

    assert made.returncode == 1
