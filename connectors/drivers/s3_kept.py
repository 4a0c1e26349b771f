"""Parts that were not uploaded when their pipeline ended, on the disk until an output sends them.

What one end leaves is one file: for each part a line of JSON that tells about it, and its bytes. Who
sends the parts of a file has it locked, and removes it when all of them are sent.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from headrace.connectors.drivers.s3_parts import Content, Part
from headrace.connectors.folders import NEW_FILE, Folder, write_whole

FOLDER = "s3-unsent"
"""The directory below ``--data-dir``."""
UNFINISHED = ".tmp"
LONGEST_LINE = 8 * 1024
"""Bytes of what stands before a part: key and upload are the longest of it, and have limits."""


class Told(msgspec.Struct, forbid_unknown_fields=True):
    """What stands before the bytes of a part."""

    key: str
    media_type: str
    messages: int
    token: str
    packing: str
    size: int
    upload: tuple[str, str] | None = None


class Shelf:
    """Where one output keeps its parts: by store, bucket and prefix, whatever pipeline it is in."""

    def __init__(self, data_dir: Path, endpoint: str | None, bucket: str, prefix: str) -> None:
        said = msgspec.json.encode([endpoint, bucket, prefix])
        steps = (FOLDER, f"{bucket}-{hashlib.sha256(said).hexdigest()[:16]}")
        self._folder = Folder(os.path.realpath(data_dir), steps)

    def keep(self, parts: Sequence[Part], now: datetime) -> Kept:
        """Put parts on the disk, all of them or none; for a thread.

        Raises:
            OSError: they are not there.
        """
        name = f"{now:%Y-%m-%dT%H-%M-%SZ}-{parts[0].token}.parts"
        with _opened(self._folder) as folder:
            file = os.open(name + UNFINISHED, NEW_FILE, 0o600, dir_fd=folder)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)  # nobody sends it before this process has ended
                _write(file, parts)
                os.fsync(file)
                os.rename(name + UNFINISHED, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            except BaseException:
                os.close(file)
                with suppress(OSError):
                    os.unlink(name + UNFINISHED, dir_fd=folder)
                raise
        return Kept(self._folder, name, file)

    def parts(self) -> tuple[list[Part], list[str]]:
        """Return what lies there and nobody else is sending, the oldest first; for a thread.

        And why some of it cannot be sent, in words.
        """
        found: list[Part] = []
        wrong: list[str] = []
        try:
            with _opened(self._folder, is_made=False) as folder:
                for name in sorted(os.listdir(folder)):
                    try:
                        found += self._found(folder, name)
                    except (OSError, ValueError) as cause:
                        wrong.append(f"'{name}' in '{self.place}': {reason(cause)}")
        except FileNotFoundError:
            pass
        except OSError as cause:
            wrong.append(f"what may lie in '{self.place}': {reason(cause)}")
        return found, wrong

    @property
    def place(self) -> str:
        """Where it is, below ``--data-dir``."""
        return "/".join(self._folder.steps)

    def _found(self, folder: int, name: str) -> list[Part]:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        kept = Kept(self._folder, name, os.open(name, flags, dir_fd=folder))
        try:
            if not kept.lock():  # another output sends it
                kept.close()
            elif name.endswith(UNFINISHED):  # whoever wrote it was killed
                kept.remove()
            else:
                return kept.parts()
        except BaseException:
            kept.close()
            raise
        return []


class Kept:
    """A file of parts, locked."""

    def __init__(self, folder: Folder, name: str, file: int) -> None:
        self._folder, self._name, self._file = folder, name, file
        self._places: dict[str, tuple[int, Told]] = {}

    def lock(self) -> bool:
        """Have it for oneself, until it is closed; return whether nobody else has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def parts(self) -> list[Part]:
        """Return its parts; their bytes stay where they are until they are wanted.

        Raises:
            OSError, ValueError: it holds something else.
        """
        offset, end = 0, os.fstat(self._file).st_size
        while offset < end:
            told, start = _read_line(self._file, offset)
            self._places[told.token] = (start, told)
            offset = start + told.size
        if offset != end or not self._places:
            raise ValueError
        return [self._part(told) for _, told in self._places.values()]

    def _part(self, told: Told) -> Part:
        return Part(
            key=told.key,
            media_type=told.media_type,
            messages=told.messages,
            length=told.size,
            content=None,
            token=told.token,
            upload=told.upload,
            source=self,
        )

    def content(self, part: Part) -> Content:
        """Return the bytes of a part; for a thread."""
        start, told = self._places[part.token]
        return Content(_read(self._file, told.size, start), told.packing)

    def sent(self, part: Part) -> None:
        """Note that a part is in the store; with the last of them the file goes."""
        del self._places[part.token]
        if not self._places:
            self.remove()

    def remove(self) -> None:
        """Remove the file."""
        with suppress(OSError), _opened(self._folder, is_made=False) as folder:
            os.unlink(self._name, dir_fd=folder)
        self.close()

    def close(self) -> None:
        """Leave the file to whoever sends it next."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


@contextmanager
def _opened(folder: Folder, *, is_made: bool = True) -> Iterator[int]:
    descriptor = folder.open(is_made=is_made)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(file: int, parts: Sequence[Part]) -> None:
    offset = 0
    for part in parts:
        assert part.content is not None
        body, packing = part.content
        told = Told(
            part.key, part.media_type, part.messages, part.token, packing, len(body), part.upload
        )
        offset = write_whole(file, msgspec.json.encode(told) + b"\n", offset)
        offset = write_whole(file, body, offset)


def _read_line(file: int, offset: int) -> tuple[Told, int]:
    """Return what is told about the part that begins there, and where its bytes begin."""
    line, end, _ = os.pread(file, LONGEST_LINE, offset).partition(b"\n")
    told = msgspec.json.decode(line, type=Told)
    if not end or told.size < 0:
        raise ValueError
    return told, offset + len(line) + 1


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
    number = cause.errno if isinstance(cause, OSError) else None
    return os.strerror(number).lower() if number else "it holds no parts"
