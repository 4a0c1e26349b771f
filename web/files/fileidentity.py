"""Where files are: when two names are those of one file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

LINKS = 40
"""How many links are followed one after the other, as the kernel has it."""

FileIdentity = tuple[str | int, ...]
"""A directory without links and the name of a file in it, or the device and the number of a file."""

Purposes = Iterable[tuple[Path, str]]
"""Files, each with what it is for."""


def place(file: Path) -> FileIdentity:
    """Return where a file stands, its directory without links; a link that it is itself stays one."""
    return os.path.realpath(file.parent), file.name


def written_places(file: Path) -> Iterator[FileIdentity]:
    """Yield where what is put in the place of a file is: a link is replaced, and not followed."""
    yield place(file)
    try:
        found = os.lstat(file)
    except (OSError, ValueError):  # the latter for what no file can be called
        return
    yield from _number(found)


def read_places(file: Path) -> Iterator[FileIdentity]:
    """Yield where what is read as a file comes from: every link that leads to it, and the file."""
    link = file
    for _ in range(LINKS):
        yield place(link)
        try:
            link = Path(os.path.realpath(link.parent)) / os.readlink(link)
        except (OSError, ValueError):
            break
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return
    yield from _number(found)


def taken(purposes: Purposes) -> dict[FileIdentity, list[str]]:
    """Return by place what the files there are for."""
    found: dict[FileIdentity, list[str]] = {}
    for file, purpose in purposes:
        for each in read_places(file):
            found.setdefault(each, []).append(purpose)
    return found


def clash(purposes: Purposes) -> tuple[Path, str, str] | None:
    """Return a file that is for two things, and which; None if each is for one."""
    found: dict[FileIdentity, str] = {}
    for file, purpose in purposes:
        for each in read_places(file):
            if found.setdefault(each, purpose) != purpose:
                return file, found[each], purpose
    return None


def _number(found: os.stat_result) -> Iterator[FileIdentity]:
    """Yield what tells a regular file from all others, whatever it is called."""
    if stat.S_ISREG(found.st_mode):
        yield found.st_dev, found.st_ino
