"""Replacing files: all of them or none, whatever fails, and nothing that is not theirs."""

from __future__ import annotations

import logging
import os
import resource
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.web.files import replacing
from headrace.web.files.replacing import FileChange, NotWritten, TakenMeanwhile, replace

NAMES = ("plant.connections.json", "plant.layout.json", "plant.json")


def changes(folder: Path, text: str = "new", *, is_new: bool = False) -> list[FileChange]:
    return [FileChange(folder / name, f"{text} {name}", is_new) for name in NAMES]


def held(folder: Path) -> dict[str, str]:
    """Return every file of a directory with its text, hidden ones included."""
    return {file.name: file.read_text() for file in folder.iterdir() if not file.is_dir()}


def old(folder: Path) -> dict[str, str]:
    for name in NAMES:
        (folder / name).write_text(f"old {name}")
    return held(folder)


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Mount a file system of its own."""
    command = ["mount", "-t", "tmpfs", "-o", ",".join(["size=64k", *options]), "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs privileges")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def cramped() -> Iterator[None]:
    """Let no file grow beyond so many bytes: what is written ends in the middle, as on a full disk."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, usual[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def refusal(folder: Path, *changed: FileChange) -> str:
    """Return why files cannot be replaced, having seen that they are as they were."""
    before = held(folder)
    with pytest.raises(NotWritten) as refused:
        replace(changed or changes(folder))
    assert held(folder) == before
    return str(refused.value)


def test_files_that_are_there_are_replaced(tmp_path):
    old(tmp_path)

    replace(changes(tmp_path))

    assert held(tmp_path) == {name: f"new {name}" for name in NAMES}


def test_files_that_are_not_there_are_made(tmp_path):
    replace(changes(tmp_path))

    assert held(tmp_path) == {name: f"new {name}" for name in NAMES}


def test_of_several_texts_for_one_file_the_last_stays(tmp_path):
    file = tmp_path / "plant.json"

    replace([FileChange(file, "1"), FileChange(tmp_path / "other", "2"), FileChange(file, "3")])

    assert held(tmp_path) == {"plant.json": "3", "other": "2"}


def test_what_has_to_be_new_and_is_there_is_left_alone_and_so_is_the_rest(tmp_path):
    (tmp_path / "plant.json").write_text("mine")

    with pytest.raises(TakenMeanwhile, match=r"^'plant\.json' exists$"):
        replace(changes(tmp_path, is_new=True))

    assert held(tmp_path) == {"plant.json": "mine"}


def test_on_a_full_disk_everything_is_as_it_was(tmp_path):
    with mounted(tmp_path):
        before = old(tmp_path)
        (tmp_path / "filler").write_bytes(bytes(32 * 1024))
        large = [*changes(tmp_path)[:2], FileChange(tmp_path / "plant.json", "x" * 60_000)]

        said = refusal(tmp_path, *large)
        (tmp_path / "filler").unlink()
        replace(changes(tmp_path))

        assert said == "'plant.json' cannot be written: no space left on device"
        assert held(tmp_path) == {name: f"new {name}" for name in before}


def test_a_file_that_may_not_grow_leaves_everything_as_it_was(tmp_path, cramped):
    old(tmp_path)

    said = refusal(tmp_path, *changes(tmp_path), FileChange(tmp_path / "last", "x" * 101))

    assert said == "'last' cannot be written: file too large"


def test_in_a_read_only_directory_everything_is_as_it_was(tmp_path):
    with mounted(tmp_path):
        old(tmp_path)
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)

        said = refusal(tmp_path)

    assert said == "'plant.connections.json' cannot be written: read-only file system"


def test_a_directory_that_is_gone_is_told(tmp_path):
    with pytest.raises(NotWritten, match=r"cannot be written: no such file or directory$"):
        replace(changes(tmp_path / "gone"))


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_in_the_way_leaves_everything_as_it_was(tmp_path, name):
    old(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()

    assert refusal(tmp_path) == f"'{name}' cannot be written: a directory stands in its place"


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "plant.json")

    with pytest.raises(NotWritten, match=r"no regular file stands in its place$"):
        replace(changes(tmp_path))

    assert [each.name for each in tmp_path.iterdir()] == ["plant.json"]


@pytest.mark.parametrize("exists", [True, False], ids=["replaced", "new"])
def test_when_the_last_cannot_be_put_in_place_those_before_are_put_back(tmp_path, exists):
    if exists:
        old(tmp_path)
    else:
        (tmp_path / "plant.json").touch()
    mounted_alone = tmp_path / "plant.json"
    bind = ["mount", "--bind", str(mounted_alone), str(mounted_alone)]
    if subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file needs privileges")
    try:
        said = refusal(tmp_path)
    finally:
        subprocess.run(["umount", str(mounted_alone)], check=True)

    why = "it is mounted by itself; mount its directory instead"
    assert said == f"'plant.json' cannot be written: {why}"


def test_a_file_keeps_its_permissions_and_its_owner(tmp_path):
    old(tmp_path)
    (tmp_path / "plant.json").chmod(0o640)
    if os.geteuid() == 0:
        os.chown(tmp_path / "plant.json", 12345, 54321)
    before = (tmp_path / "plant.json").stat()

    replace(changes(tmp_path))

    after = (tmp_path / "plant.json").stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def test_a_new_file_has_the_permissions_that_the_process_gives(tmp_path):
    usual = os.umask(0o027)
    try:
        replace(changes(tmp_path))
    finally:
        os.umask(usual)

    assert stat.S_IMODE((tmp_path / "plant.json").stat().st_mode) == 0o640


def test_a_private_file_that_is_new_is_for_its_owner_alone_and_one_that_is_there_stays_as_it_is(
    tmp_path,
):
    (tmp_path / "old").touch()
    (tmp_path / "old").chmod(0o664)

    replace([FileChange(tmp_path / name, "x", is_private=True) for name in ("old", "new", "new")])

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"old": 0o664, "new": 0o600}


def test_a_link_is_replaced_and_what_it_leads_to_is_not_written(tmp_path, caplog):
    outside, folder = tmp_path / "outside.json", tmp_path / "saves"
    folder.mkdir()
    outside.write_text("mine")
    (folder / "plant.json").symlink_to(outside)

    with caplog.at_level(logging.WARNING):
        replace(changes(folder))

    assert outside.read_text() == "mine"
    assert held(folder) == {name: f"new {name}" for name in NAMES}
    assert not (folder / "plant.json").is_symlink()
    file = folder / "plant.json"
    assert caplog.messages == [
        f"'{file}' is a link: a file takes its place, what it leads to stays"
    ]


def test_a_link_that_was_replaced_is_put_back_as_a_link(tmp_path):
    folder = tmp_path / "saves"
    folder.mkdir()
    (folder / "plant.connections.json").symlink_to("elsewhere.json")
    last = FileChange(folder / "plant.json", "x", is_new=True)
    (folder / "plant.json").touch()

    with pytest.raises(TakenMeanwhile):
        replace([*changes(folder)[:2], last])

    assert os.readlink(folder / "plant.connections.json") == "elsewhere.json"
    assert sorted(each.name for each in folder.iterdir()) == [
        "plant.connections.json",
        "plant.json",
    ]


def test_what_somebody_planted_where_the_new_text_goes_is_not_followed(tmp_path, monkeypatch):
    outside, folder = tmp_path / "outside", tmp_path / "saves"
    folder.mkdir()
    outside.write_text("mine")
    (folder / ".headrace-0000.tmp").symlink_to(outside)
    monkeypatch.setattr(replacing.secrets, "token_hex", lambda size: "0000")

    with pytest.raises(NotWritten, match=r"^'plant\.json' cannot be written: file exists$"):
        replace([FileChange(folder / "plant.json", "new")])

    assert outside.read_text() == "mine"
    assert [each.name for each in folder.iterdir()] == [".headrace-0000.tmp"]


def test_without_hard_links_files_are_put_back_from_copies(tmp_path, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(replacing.os, "link", refused)
    old(tmp_path)
    (tmp_path / "plant.layout.json").unlink()
    (tmp_path / "plant.layout.json").symlink_to("elsewhere")
    fresh = FileChange(tmp_path / "plant.json", "x", is_new=True)

    with pytest.raises(TakenMeanwhile):
        replace([*changes(tmp_path)[:2], fresh])
    replace([FileChange(tmp_path / "fresh", "made", is_new=True)])

    assert (tmp_path / "plant.connections.json").read_text() == "old plant.connections.json"
    assert os.readlink(tmp_path / "plant.layout.json") == "elsewhere"
    assert (tmp_path / "fresh").read_text() == "made"
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*NAMES, "fresh"])
