"""What a save that was cut short has left beside the files is gone after the next one, and nothing else."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.web.files.replacing import FileChange, enter, replace, steps

LEFT = ".headrace-0123456789abcdef.tmp"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_what_a_save_left_that_was_cut_short_is_gone_after_the_next_one(tmp_path, caplog):
    cut_short = steps([FileChange(tmp_path / name, "old") for name in ("a", "b")])
    next(cut_short)
    [left] = names(tmp_path)
    os.link(tmp_path / left, tmp_path / LEFT)  # as if it had been ended here
    cut_short.close()

    with caplog.at_level(logging.INFO):
        replace([FileChange(tmp_path / "a", "new")])

    assert names(tmp_path) == ["a"]
    assert caplog.messages == [f"'{tmp_path / LEFT}' is removed: a save that was cut short left it"]


@pytest.mark.parametrize(
    "name",
    [
        ".headrace-0123456789abcde.tmp",
        ".headrace-0123456789abcdef0.tmp",
        ".headrace-0123456789ABCDEF.tmp",
        ".headrace-0123456789abcdef.tmp~",
        "x.headrace-0123456789abcdef.tmp",
        ".headrace-0123456789abcdef.tmp\n",
        "plant.tmp",
    ],
)
def test_what_is_called_otherwise_stays(tmp_path, name):
    (tmp_path / name).touch()

    replace([FileChange(tmp_path / "a", "new")])

    assert names(tmp_path) == sorted([name, "a"])


def test_what_is_no_file_stays_and_so_does_what_is_in_another_directory(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "saves"
    (folder / LEFT).mkdir(parents=True)
    (folder / LEFT / LEFT).touch()
    (outside / LEFT).touch()
    (folder / LEFT.replace("0", "1")).symlink_to(outside / LEFT)

    replace([FileChange(folder / "a", "new")])

    assert names(folder) == sorted([LEFT, LEFT.replace("0", "1"), "a"])
    assert names(folder / LEFT) == names(outside) == [LEFT]


def test_what_another_server_is_just_saving_in_the_directory_stays(tmp_path):
    other = steps([FileChange(tmp_path / name, "theirs") for name in ("a", "b")])
    next(other)
    [theirs] = names(tmp_path)

    replace([FileChange(tmp_path / "c", "ours")])

    assert names(tmp_path) == [theirs, "c"]
    for _ in other:
        pass
    assert names(tmp_path) == ["a", "b", "c"]


def test_where_somebody_holds_the_directory_nothing_is_removed_and_nobody_waits(tmp_path):
    (tmp_path / LEFT).touch()
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    replace([FileChange(tmp_path / "a", "new")])
    os.close(descriptor)

    assert names(tmp_path) == [LEFT, "a"]


def test_a_directory_that_is_not_there_is_none_to_sweep(tmp_path):
    with ExitStack() as leaving:
        enter(tmp_path / "nowhere", leaving)

    assert names(tmp_path) == []
