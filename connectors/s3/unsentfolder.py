"""The folder in which parts were kept before there was a store: what lies there is sent, and then it goes.

A file is what one end left: for each part a line of JSON that tells about it, and its bytes. Who sends the
parts of a file has it locked, marks what is sent, and removes it when that is all. Nothing new comes there.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from headrace.compiler.datadir import DataDir
from headrace.connectors.disk.paths import Folder
from headrace.connectors.s3.objectpart import (
    LONGEST_LINE,
    Content,
    ObjectPart,
    PartHeader,
    PartSource,
)

FOLDER = "s3-unsent"
"""The directory below ``--data-dir``."""
UNFINISHED = ".tmp"
READ_AND_MARK = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a file is opened: what waits for somebody else, as a pipe does, would hold up a thread for ever."""
SENT = b"-"
"""Stands in the place of the first brace before a part that is in the store."""


class Unsendable(ValueError):
    """A file that cannot be sent, and why."""


class UnsentFolder:
    """Where one output kept its parts: by store, bucket and prefix, whatever pipeline it was in."""

    def __init__(
        self, data_dir: DataDir, endpoint: str | None, bucket: str, prefix: str, most: int
    ) -> None:
        """Take how many bytes a part may have that is read."""
        self._most = most
        told = hashlib.sha256(msgspec.json.encode([endpoint, bucket, prefix]))
        self._folder = Folder(data_dir, (FOLDER, f"{bucket}-{told.hexdigest()[:16]}"))

    def parts(self) -> tuple[list[ObjectPart], list[str]]:
        """Return what lies there and nobody else is sending, the oldest first; for a thread.

        And why some of it cannot be sent, in words.
        """
        found: list[ObjectPart] = []
        wrong: list[str] = []
        try:
            with _opened(self._folder) as folder:
                for name in sorted(os.listdir(folder)):
                    try:
                        found += self._found(folder, name)
                    except (OSError, ValueError) as cause:
                        wrong.append(f"'{name}' in '{self.place}': {reason(cause)}")
        except FileNotFoundError:
            pass
        except OSError as cause:
            wrong.append(f"what may lie in '{self.place}': {reason(cause)}")
        else:
            _remove_if_empty(self._folder)
        return found, wrong

    @property
    def place(self) -> str:
        """Where it is, below ``--data-dir``."""
        return "/".join(self._folder.steps)

    def _found(self, folder: int, name: str) -> list[ObjectPart]:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise Unsendable("it is no file")
        kept = UnsentFile(self._folder, name, os.open(name, READ_AND_MARK, dir_fd=folder))
        try:
            fcntl.flock(kept.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not name.endswith(UNFINISHED):
                return kept.parts(self._most)
            kept.remove()  # whoever wrote it was killed
        except BlockingIOError:  # another output sends it
            kept.close()
        except BaseException:
            kept.close()
            raise
        return []


class UnsentFile(PartSource):
    """A file of parts, locked."""

    is_old = True

    def __init__(self, folder: Folder, name: str, file: int) -> None:
        self._folder, self._name, self.file = folder, name, file
        self._places: dict[str, tuple[int, int, PartHeader]] = {}
        self.place = f"'{name}' in '{'/'.join(folder.steps)}'"

    def parts(self, most: int) -> list[ObjectPart]:
        """Return its parts; their bytes, no more than so many each, stay there until they are wanted.

        Raises:
            OSError, ValueError: it holds something else.
        """
        about = os.fstat(self.file)
        if not stat.S_ISREG(about.st_mode):  # it was another a moment ago
            raise Unsendable("it is no file")
        offset, end = 0, about.st_size
        while offset < end:
            told, start, is_sent = _read_line(self.file, offset)
            if told.size > most:
                raise Unsendable(
                    f"a part in it has {told.size:,} bytes, and {most:,} are the most to read"
                )
            if not is_sent:
                self._places[told.token] = (offset, start, told)
            offset = start + told.size
        if offset != end or not end:
            raise ValueError
        if not self._places:
            self.remove()
        return [
            ObjectPart(
                key=told.key,
                media_type=told.media_type,
                messages=told.messages,
                length=told.size,
                content=None,
                token=told.token,
                upload=told.upload,
                source=self,
            )
            for _, _, told in self._places.values()
        ]

    async def content(self, part: ObjectPart) -> Content:
        _, start, told = self._places[part.token]
        return Content(await asyncio.to_thread(_read, self.file, told.size, start), told.packing)

    def sent(self, part: ObjectPart) -> None:
        """Note that a part is in the store; with the last of them the file goes."""
        offset, _, _ = self._places.pop(part.token)
        with suppress(OSError):  # it is found in the store, then
            os.pwrite(self.file, SENT, offset)
        if not self._places:
            self.remove()

    def remove(self) -> None:
        """Remove the file."""
        with suppress(OSError), _opened(self._folder) as folder:
            os.unlink(self._name, dir_fd=folder)
        _remove_if_empty(self._folder)
        self.close()

    def close(self) -> None:
        """Leave the file to whoever sends it next."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def _remove_if_empty(folder: Folder) -> None:
    """Remove a directory in which nothing is, and the one above it."""
    for depth in range(len(folder.steps) - 1, -1, -1):
        with suppress(OSError), _opened(Folder(folder.base, folder.steps[:depth])) as above:
            os.rmdir(folder.steps[depth], dir_fd=above)


@contextmanager
def _opened(folder: Folder) -> Iterator[int]:
    descriptor = folder.open(is_made=False)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_line(file: int, offset: int) -> tuple[PartHeader, int, bool]:
    """Return what is told about the part that begins there, where its bytes do, and if it is sent."""
    line, end, _ = os.pread(file, LONGEST_LINE, offset).partition(b"\n")
    is_sent = line.startswith(SENT)
    told = msgspec.json.decode(b"{" + line[1:] if is_sent else line, type=PartHeader)
    if not end or not told.is_valid:
        raise ValueError
    return told, offset + len(line) + 1, is_sent


def _read(file: int, size: int, offset: int) -> bytes:
    body = bytearray(size)
    rest = memoryview(body)
    while rest:
        if not (count := os.preadv(file, [rest], offset)):
            raise ValueError
        rest, offset = rest[count:], offset + count
    return bytes(body)


def reason(cause: BaseException) -> str:
    """Return why parts cannot be read, or not be written, in words."""
    if isinstance(cause, Unsendable):
        return str(cause)
    number = cause.errno if isinstance(cause, OSError) else None
    return os.strerror(number).lower() if number else "it holds no parts"
