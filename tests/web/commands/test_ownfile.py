"""Files for their owner alone: whole, or as they were."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import click
import pytest

from headrace.web.commands.ownfile import own_file


def written(file: Path, content: bytes = b"new") -> None:
    with own_file(file) as out:
        out.write(content)


def fail(file: Path, failure: type[BaseException]) -> None:
    with own_file(file) as out:
        out.write(b"new")
        raise failure


def test_another_file_takes_the_place_of_one_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    file.chmod(0o644)

    with own_file(file) as out:
        out.write(b"new")
        out.flush()
        assert file.read_bytes() == b"old"
        assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir() if each != file} == {
            0o600
        }

    assert [(each, each.read_bytes()) for each in tmp_path.iterdir()] == [(file, b"new")]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, BrokenPipeError])
def test_where_something_fails_all_is_as_it_was(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")

    for each in (file, tmp_path / "b"):
        with pytest.raises(failure):
            fail(each, failure)

    assert [(each, each.read_bytes()) for each in tmp_path.iterdir()] == [(file, b"old")]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    meant, link = tmp_path / "folder" / "a", tmp_path / "link"
    link.symlink_to(meant)

    for content in (b"1", b"2"):
        written(link, content)

        assert link.is_symlink()
        assert [(each, each.read_bytes()) for each in meant.parent.iterdir()] == [(meant, content)]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    written(pipe)
    reader.join(10)

    assert read == [b"new"]
    assert [each.is_fifo() for each in tmp_path.iterdir()] == [True]


@pytest.mark.parametrize(
    ("name", "why"), [("folder", "Is a directory"), ("no/\x1b", "No such file or directory")]
)
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(click.ClickException) as caught:
        written(tmp_path / name)

    said = str(tmp_path / name).replace("\x1b", "\\x1b")
    assert caught.value.message == f"{said} cannot be written: {why}"
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_file_that_may_not_be_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    opened = os.open

    def refused(path: Path, flags: int, mode: int = 0o777) -> int:
        if path == file and flags & os.O_WRONLY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", refused)  # the superuser may write everything
    with pytest.raises(click.ClickException, match="cannot be written: Permission denied"):
        written(file)

    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_that_is_full_is_told() -> None:
    with pytest.raises(click.ClickException, match=r"^/dev/full cannot be written: No space left"):
        written(Path("/dev/full"))
