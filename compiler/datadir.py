"""The directory that files are written under: opened once, so that it stays the one that was named."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

STORE = "store"
"""The directory below it in which the store is, and nothing else is written."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class DataDir:
    """A directory that is held open.

    Whatever takes its place under its name, another directory or a link to one, is not followed: what
    is opened below it is opened from here. A directory that is moved is written to where it is.
    """

    def __init__(self, path: Path) -> None:
        """Open it, once what links there are on the way to it have been followed.

        Raises:
            OSError: it is not there, or no directory.
        """
        self.path = Path(os.path.realpath(path))
        self._descriptor = os.open(self.path, _DIRECTORY)
        # Closed with the last who may write there: sinks may end after those who made them.
        weakref.finalize(self, os.close, self._descriptor)

    def __str__(self) -> str:
        """Return what it was called when it was opened."""
        return str(self.path)

    def open(self) -> int:
        """Return a new descriptor of it, for whoever calls this to close.

        Raises:
            OSError: it was removed.
        """
        return os.open(".", _DIRECTORY, dir_fd=self._descriptor)
