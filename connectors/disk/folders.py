"""Directories that are written to: reached without a link on the way, whatever was put there since."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from headrace.compiler.datadir import DataDir

NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a file is made that nobody has made before, be it as a link."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class Folder:
    """A directory below the data directory, without links on the way."""

    base: DataDir
    steps: tuple[str, ...]

    def open(self, *, is_made: bool = True) -> int:
        """Return a descriptor of it; what is missing is made, unless it is only looked for.

        Every step refuses a link: the way was checked when the pipeline was built, and a link that
        was put there since could lead anywhere.

        Raises:
            FileNotFoundError: it is looked for and not there.
        """
        descriptor = self.base.open()
        for step in self.steps:
            outer = descriptor
            try:
                descriptor = _enter(step, outer, is_made=is_made)
            finally:
                os.close(outer)
        return descriptor


def _enter(step: str, outer: int, *, is_made: bool) -> int:
    flags = _DIRECTORY | os.O_NOFOLLOW
    try:
        return os.open(step, flags, dir_fd=outer)
    except FileNotFoundError:
        if not is_made:
            raise
        with suppress(FileExistsError):  # another output was faster
            os.mkdir(step, dir_fd=outer)
        return os.open(step, flags, dir_fd=outer)


def is_inside(path: str, folder: str) -> bool:
    """Return whether an absolute path without links is that folder, or below it."""
    return os.path.commonpath((path, folder)) == folder


def write_whole(file: int, text: bytes | memoryview, offset: int) -> int:
    """Write all of it at a place in a file; return where it ends.

    Raises:
        OSError: it is not, or not wholly, written.
    """
    rest = memoryview(text)
    while rest:
        written = os.pwrite(file, rest, offset)
        rest, offset = rest[written:], offset + written
    return offset
