"""Replacing several files, all of them or none, so that each is whole whenever the process ends.

All that can fail for want of space or of permission is done first, beside the files. Then each is put
in its place in one step. When one cannot be, those before it are put back.

A link is replaced by the file: what it leads to, in this directory or elsewhere, is never written.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.compiler.errors import HeadraceError
from headrace.web.files.leftovers import beside, enter

log = logging.getLogger("headrace.web")

_MODE = 0o666
"""Of a new file, less what the process takes away (umask)."""
_PRIVATE = 0o600


class NotWritten(HeadraceError):
    """A file could not be written; all of them are as they were."""


class TakenMeanwhile(HeadraceError):
    """A file that should have been new is there by now; all of them are as they were."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"'{file.name}' exists")
        self.file = file


@dataclass(frozen=True)
class FileChange:
    """What a file is to hold.

    ``is_new``: it must not be there before. ``is_private``: if it was not, its owner alone may read it.
    """

    file: Path
    text: str
    is_new: bool = False
    is_private: bool = False


def replace(changes: Sequence[FileChange]) -> None:
    """Carry out changes in their order; of several of one file each is there for a moment.

    Raises:
        NotWritten: one of them failed.
        TakenMeanwhile: one that should be new is there.
    """
    for _ in steps(changes):
        pass


def steps(changes: Sequence[FileChange]) -> Iterator[None]:
    """Carry out changes step by step: yields after each thing that a file system does at once."""
    for file in dict.fromkeys(change.file for change in changes):
        _look_at(file)
    with ExitStack() as left_over:
        for directory in dict.fromkeys(change.file.parent for change in changes):
            enter(directory, left_over)
        ready = []
        for change in changes:
            ready.append(_written(change, left_over))
            yield
        before = {}
        for change in changes[:-1]:  # nothing follows the last one that could fail
            if change.file not in before:
                before[change.file] = _kept(change, left_over)
                yield
        yield from _put_all(changes, ready, before)


def _put_all(
    changes: Sequence[FileChange], ready: Sequence[Path], before: dict[Path, Path | None]
) -> Iterator[None]:
    """Put every file in its place; when that ends early, put back what was there before."""
    done: list[Path] = []
    try:
        for change, temporary in zip(changes, ready, strict=True):
            _put(change, temporary)
            done.append(change.file)
            yield
    except BaseException:
        for file in dict.fromkeys(done):
            _put_back(file, before.get(file))
        raise


def _look_at(file: Path) -> None:
    """Refuse to replace what is no file, and tell of a link that will be gone."""
    try:
        found = os.lstat(file)
    except FileNotFoundError:
        return
    except OSError as cause:
        raise _not_written(file, cause) from cause
    if stat.S_ISLNK(found.st_mode):
        log.warning("'%s' is a link: a file takes its place, what it leads to stays", file)
    elif not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise NotWritten(f"'{file.name}' cannot be written: {what} stands in its place")


def _written(change: FileChange, left_over: ExitStack) -> Path:
    """Return a new file beside the one it is to replace, its text on disk, with the permissions of that."""
    like = None
    with suppress(OSError):  # there is none, or a link leads nowhere
        like = os.stat(change.file)
    mode = _PRIVATE if change.is_private else _MODE
    try:
        return _filled(beside(change.file), change.text.encode(), like or mode, left_over)
    except OSError as cause:
        raise _not_written(change.file, cause) from cause


def _filled(file: Path, content: bytes, like: os.stat_result | int, left_over: ExitStack) -> Path:
    """Write a file with permissions like those of another one, or with such as are given."""
    mode = like if isinstance(like, int) else _PRIVATE  # until it has those of the other
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    left_over.callback(_remove, file)
    with open(descriptor, "wb") as made:
        if not isinstance(like, int):
            with suppress(PermissionError):  # only root gives files away
                os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        made.write(content)
        made.flush()
        os.fsync(descriptor)
    return file


def _kept(change: FileChange, left_over: ExitStack) -> Path | None:
    """Return what a file can be put back from: another name of it, or a copy. None: it is not there."""
    kept = beside(change.file)
    try:
        os.link(change.file, kept, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except (OSError, NotImplementedError):  # not every file system knows it, nor may everybody
        return _copied(change.file, kept, left_over)
    left_over.callback(_remove, kept)
    return kept


def _copied(file: Path, kept: Path, left_over: ExitStack) -> Path:
    try:
        if file.is_symlink():
            os.symlink(os.readlink(file), kept)
            left_over.callback(_remove, kept)
            return kept
        return _filled(kept, file.read_bytes(), os.stat(file), left_over)
    except OSError as cause:
        raise _not_written(file, cause) from cause


def _put(change: FileChange, temporary: Path) -> None:
    """Put a file in its place, in one step, and have the directory know it for good."""
    try:
        if change.is_new:
            _put_new(change.file, temporary)
        else:
            os.rename(temporary, change.file)
    except OSError as cause:
        raise _not_written(change.file, cause) from cause
    _sync(change.file.parent)


def _put_new(file: Path, temporary: Path) -> None:
    try:
        os.link(temporary, file)  # unlike renaming, it replaces nothing
    except FileExistsError:
        raise TakenMeanwhile(file) from None
    except OSError:  # a file system without links: somebody may come between the two
        if os.path.lexists(file):
            raise TakenMeanwhile(file) from None
        os.rename(temporary, file)


def _put_back(file: Path, kept: Path | None) -> None:
    try:
        if kept is None:
            os.unlink(file)
        else:
            os.rename(kept, file)
    except OSError as cause:
        log.error("'%s' could not be put back as it was: %s", file, _reason(cause))
    _sync(file.parent)


def _remove(file: Path) -> None:
    with suppress(OSError):  # it is where it belongs
        os.unlink(file)


def _sync(directory: Path) -> None:
    """Have a directory on disk, where the file system does that; what was renamed is so in any case."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _not_written(file: Path, cause: OSError) -> NotWritten:
    return NotWritten(f"'{file.name}' cannot be written: {_reason(cause)}")


def _reason(cause: OSError) -> str:
    if cause.errno == errno.EBUSY:
        return "it is mounted by itself; mount its directory instead"
    return os.strerror(cause.errno).lower() if cause.errno else str(cause)
