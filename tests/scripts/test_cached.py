"""What the scripts that build something once share."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture
def cached() -> SimpleNamespace:
    """Give the names of the module."""
    return SimpleNamespace(**runpy.run_path(str(REPOSITORY / "scripts" / "cached.py")))


def test_the_folders_used_last_are_kept(cached: SimpleNamespace, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(5)]
    for used, folder in enumerate(folders):
        folder.mkdir()
        os.utime(folder, (used, used))

    cached.forget_the_oldest(tmp_path, 3)

    assert set(tmp_path.iterdir()) == set(folders[2:])


def test_the_same_files_made_with_another_tool_are_something_else(cached: SimpleNamespace) -> None:
    files = {"a": b"1"}

    assert cached.key(files, "tool==1") != cached.key(files, "tool==2")
    assert cached.key(files, "tool==1") != cached.key({"a": b"2"}, "tool==1")
    assert cached.key(files, "tool==1") == cached.key({"a": b"1"}, "tool==1")
