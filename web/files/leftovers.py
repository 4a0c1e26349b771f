"""Files that stand in a directory only while a save is under way, and what a crash left of them."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
from contextlib import ExitStack, suppress
from pathlib import Path

log = logging.getLogger("headrace.web")

_NAME = re.compile(r"\.headrace-[0-9a-f]{16}\.tmp")


def beside(file: Path) -> Path:
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
            _sweep(directory)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _sweep(directory: Path) -> None:
    with os.scandir(directory) as entries:
        left = [
            entry.path
            for entry in entries
            if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    for file in left:
        os.unlink(file)
        log.info("'%s' is removed: a save that was cut short left it", file)
