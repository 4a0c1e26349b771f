"""Which files are opened while something is done, whoever opens them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FileState = tuple[int, int, int] | None
"""When a file was changed, in nanoseconds, how many bytes it has, and which one it is; None: it is gone."""

_CODE = (".py", ".pyc", ".so", ".pyd")
_SYSTEM = ("/dev/", "/proc/", "/sys/")


class _Listener:
    """What the interpreter tells of each file that is opened; a hook cannot be taken away again."""

    def __init__(self) -> None:
        self.opened: dict[Path, FileState] | None = None
        self._is_there = False

    def begin(self) -> dict[Path, FileState]:
        if not self._is_there:
            self._is_there = True
            sys.addaudithook(self._told)
        self.opened = {}
        return self.opened

    def _told(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self.opened is None:
            return
        name = arguments[0]
        if not isinstance(name, str | bytes):
            return
        path = Path(os.fsdecode(name)).absolute()
        is_read = path.suffix not in _CODE and not str(path).startswith(_SYSTEM)
        if is_read and path not in self.opened:
            self.opened[path] = file_state(path)


def file_state(path: Path) -> FileState:
    """Return how a file is, which changes when it is written."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


_LISTENER = _Listener()


@contextmanager
def opened_files() -> Iterator[dict[Path, FileState]]:
    """Give a map that the files are put into which are opened meanwhile, each as it was just before.

    Those that are not there are in it as well; what is imported, and what the system makes up, is left
    out. Not to be nested.
    """
    try:
        yield _LISTENER.begin()
    finally:
        _LISTENER.opened = None
