"""Replacing several files, all of them or none, so that each is whole whenever the process ends.

All that can fail for want of space or of permission is done first, beside the files. Then each is put
in its place in one step. When one cannot be, those before it are put back. What a crash left beside them
is removed by the next replacing in the directory.

A link is replaced by the file: what it leads to, in this directory or elsewhere, is never written.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.compiler.errors import HeadraceError

log = logging.getLogger("headrace.web")

_MODE = 0o666
"""Of a new file, less what the process takes away (umask)."""
_PRIVATE = 0o600
_MADE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NAME = re.compile(r"\.headrace-[0-9a-f]{16}\.tmp")
"""What files are called that stand in a directory only while a save is under way."""


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
            with _writing(change.file):
                ready.append(_written(change, left_over))
            yield
        before: dict[Path, Path | None] = {}
        for change in changes[:-1]:  # nothing follows the last one that could fail
            if change.file not in before:
                with _writing(change.file):
                    before[change.file] = _kept(change.file, left_over)
                yield
        done = dict[Path, None]()
        try:
            for change, temporary in zip(changes, ready, strict=True):
                with _writing(change.file):
                    _put(change, temporary)
                done[change.file] = None
                yield
        except BaseException:
            for file in done:
                _put_back(file, before.get(file))
            raise


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    """Tell which file it is that cannot be written, and why."""
    try:
        yield
    except OSError as cause:
        raise NotWritten(f"'{file.name}' cannot be written: {_reason(cause)}") from cause


def _look_at(file: Path) -> None:
    """Refuse to replace what is no file, and tell of a link that will be gone."""
    with _writing(file), suppress(FileNotFoundError):
        mode = os.lstat(file).st_mode
        if stat.S_ISLNK(mode):
            log.warning("'%s' is a link: a file takes its place, what it leads to stays", file)
        elif not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
            raise NotWritten(f"'{file.name}' cannot be written: {what} stands in its place")


def _written(change: FileChange, left_over: ExitStack) -> Path:
    """Return a new file beside the one it is to replace, its text on disk, with the permissions of that."""
    like: os.stat_result | int = _PRIVATE if change.is_private else _MODE
    with suppress(OSError):  # there is none, or a link leads nowhere
        like = os.stat(change.file)
    return _filled(_beside(change.file), change.text.encode(), like, left_over)


def _beside(file: Path) -> Path:
    """Return a name for what is to be written beside a file.

    It is another one each time: whatever a crash left behind, or somebody has planted, is not ours.
    """
    return file.with_name(f".headrace-{secrets.token_hex(8)}.tmp")


def enter(directory: Path, leaving: ExitStack) -> None:
    """Keep others from sweeping a directory until ``leaving``, and sweep it if nobody else is there.

    A directory that is not to be had, or a file system that knows no locks, is not swept.
    """
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        leaving.callback(os.close, descriptor)
        try:
            # Two servers may save in one directory: what the other one is writing is no leaving.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for entry in [*os.scandir(directory)]:
                if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    os.unlink(entry.path)
                    log.info("'%s' is removed: a save that was cut short left it", entry.path)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _filled(file: Path, content: bytes, like: os.stat_result | int, left_over: ExitStack) -> Path:
    """Write a file with permissions like those of another one, or with such as are given."""
    # Private until it has the permissions of the other.
    descriptor = os.open(file, _MADE, like if isinstance(like, int) else _PRIVATE)
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


def _kept(file: Path, left_over: ExitStack) -> Path | None:
    """Return what a file can be put back from: another name of it, or a copy. None: it is not there."""
    kept = _beside(file)
    try:
        os.link(file, kept, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except (OSError, NotImplementedError):  # not every file system knows it, nor may everybody
        if not file.is_symlink():
            return _filled(kept, file.read_bytes(), os.stat(file), left_over)
        os.symlink(os.readlink(file), kept)
    left_over.callback(_remove, kept)
    return kept


def _put(change: FileChange, temporary: Path) -> None:
    """Put a file in its place, in one step, and have the directory know it for good."""
    put = _put_new if change.is_new else os.rename
    put(temporary, change.file)
    _sync(change.file.parent)


def _put_new(temporary: Path, file: Path) -> None:
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


def _reason(cause: OSError) -> str:
    if cause.errno == errno.EBUSY:
        return "it is mounted by itself; mount its directory instead"
    return os.strerror(cause.errno).lower() if cause.errno else str(cause)
