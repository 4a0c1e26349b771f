"""Paths as options hold them, and directories that are written to.

They are reached without a link on the way, whatever was put there since.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headrace.compiler.datadir import DataDir
from headrace.compiler.schema.fields import Name, refused
from headrace.compiler.text.diagnostics import shown

NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a file is made that nobody has made before, be it as a link."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FilePath(Name):
    """A path as a file system takes it."""

    expects = "a path"

    def read(self, value: Any) -> str:
        """Take a path without the one character that ends it for the system."""
        path: str = super().read(value)
        if "\0" in path:
            raise refused(
                "control-character", "a path holds no NUL character", expected=self.expects
            )
        return path


class InnerPath(FilePath):
    """A path that stays under the directory it is relative to, links aside."""

    expects = "a relative path without '.' and '..'"

    def read(self, value: Any) -> str:
        """Take a relative path that only descends."""
        path = super().read(value)
        if path.startswith("/") or {".", ".."} & set(path.split("/")):
            raise refused(
                "outside-root",
                f"expected {self.expects}, found {shown(path)}",
                found=path,
                expected=self.expects,
            )
        return path


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
                descriptor = _entered(step, outer, is_made=is_made)
            finally:
                os.close(outer)
        return descriptor


def _entered(step: str, outer: int, *, is_made: bool) -> int:
    try:
        return os.open(step, _DIRECTORY, dir_fd=outer)
    except FileNotFoundError:
        if not is_made:
            raise
        with suppress(FileExistsError):  # another output was faster
            os.mkdir(step, dir_fd=outer)
        return os.open(step, _DIRECTORY, dir_fd=outer)


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
