"""Parts on their way to an object store: closed, compressed, and then whole objects; or on the disk.

Those that were not uploaded when their pipeline ended are kept there until an output sends them. What one
end leaves is one file: for each part a line of JSON that tells about it, and its bytes. Who sends the parts
of a file has it locked, marks what is sent, and removes it when that is all.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import uuid4

import msgspec

from headrace.compiler.datadir import DataDir
from headrace.compiler.errors import FailureClass, HeadraceError
from headrace.connectors.disk.packing import PACKINGS
from headrace.connectors.disk.paths import NEW_FILE, Folder, write_whole
from headrace.connectors.s3.objectkeys import LONGEST_KEY, holds_control

OVERHEAD = 1024
"""Bytes that a part is counted with for itself: parts of one message each are more than the message."""
FOLDER = "s3-unsent"
"""The directory below ``--data-dir``."""
UNFINISHED = ".tmp"
READ_AND_MARK = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a file is opened: what waits for somebody else, as a pipe does, would hold up a thread for ever."""
SENT = b"-"
"""Stands in the place of the first brace before a part that is in the store."""
LONGEST_LINE = 8 * 1024
"""Bytes of what stands before a part: key and upload are the longest of it, and have limits."""


class Content(NamedTuple):
    """The bytes of a part, and what is still to be done with them: ``none``, or a way to compress."""

    body: bytes
    packing: str


@dataclass(eq=False, slots=True)
class ObjectPart:
    """An object to be."""

    key: str
    media_type: str
    messages: int
    length: int
    """Bytes of its content, before it is compressed here."""
    content: Content | None
    """None while it is where `source` says."""
    token: str = field(default_factory=lambda: uuid4().hex)
    """Stands in the object, and nowhere else: whoever finds that under the key has found this part."""
    upload: tuple[str, str] | None = None
    """Key and id of an upload in pieces that was begun and neither completed nor given up."""
    source: UnsentFile | None = None
    """Where its content is that is not in memory."""
    compressing: asyncio.Future[None] | None = None
    """That it is being compressed, until that is waited for."""

    @property
    def size(self) -> int:
        """What it takes in memory."""
        return OVERHEAD + (0 if self.content is None else len(self.content.body))

    @property
    def is_ready(self) -> bool:
        """Whether its content is in memory as it is uploaded."""
        return self.content is not None and self.content.packing == "none"

    def prepare(self) -> None:
        """Have the content in memory as it is uploaded. Takes its time."""
        content = self.content
        if content is None:
            assert self.source is not None
            content = self.source.content(self)
        body, packing = content
        if packing != "none":
            body = PACKINGS[packing].pack(body)
        self.content = Content(body, "none")


class Declined(HeadraceError):
    """The store does not take this part, whatever it does with others."""

    def __init__(self, message: str, failure: FailureClass = "invalid") -> None:
        super().__init__(message)
        self.failure = failure


class Taken(HeadraceError):
    """There is another object under the key of a part."""


class PartHeader(msgspec.Struct, forbid_unknown_fields=True):
    """What stands before the bytes of a part."""

    key: str
    media_type: str
    messages: int
    token: str
    packing: str
    size: int
    upload: tuple[str, str] | None = None

    @property
    def is_valid(self) -> bool:
        """Whether an output may have said this."""
        texts = (self.key, self.media_type, self.token, *(self.upload or ()))
        return (
            self.size >= 0
            and self.messages >= 0
            and self.packing in ("none", *PACKINGS)
            and 0 < len(self.key.encode()) <= LONGEST_KEY
            and not any(map(holds_control, texts))
        )


class Unsendable(ValueError):
    """A file that cannot be sent, and why."""


class UnsentFolder:
    """Where one output keeps its parts: by store, bucket and prefix, whatever pipeline it is in."""

    def __init__(
        self, data_dir: DataDir, endpoint: str | None, bucket: str, prefix: str, most: int
    ) -> None:
        """Take how many bytes a part may have that is read."""
        self._most = most
        told = hashlib.sha256(msgspec.json.encode([endpoint, bucket, prefix]))
        self._folder = Folder(data_dir, (FOLDER, f"{bucket}-{told.hexdigest()[:16]}"))

    def keep(self, parts: Sequence[ObjectPart], now: datetime) -> UnsentFile:
        """Put parts on the disk, all of them or none; for a thread.

        Raises:
            OSError: they are not there.
        """
        name = f"{now:%Y-%m-%dT%H-%M-%SZ}-{parts[0].token}.parts"
        with _opened(self._folder) as folder:
            file = os.open(name + UNFINISHED, NEW_FILE, 0o600, dir_fd=folder)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)  # nobody sends it before this process has ended
                offset = 0
                for part in parts:
                    assert part.content is not None
                    body, packing = part.content
                    told = PartHeader(
                        part.key,
                        part.media_type,
                        part.messages,
                        part.token,
                        packing,
                        len(body),
                        part.upload,
                    )
                    offset = write_whole(file, msgspec.json.encode(told) + b"\n", offset)
                    offset = write_whole(file, body, offset)
                os.fsync(file)
                os.rename(name + UNFINISHED, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            except BaseException:
                os.close(file)
                with suppress(OSError):
                    os.unlink(name + UNFINISHED, dir_fd=folder)
                raise
        return UnsentFile(self._folder, name, file)

    def parts(self) -> tuple[list[ObjectPart], list[str]]:
        """Return what lies there and nobody else is sending, the oldest first; for a thread.

        And why some of it cannot be sent, in words.
        """
        found: list[ObjectPart] = []
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


class UnsentFile:
    """A file of parts, locked."""

    def __init__(self, folder: Folder, name: str, file: int) -> None:
        self._folder, self._name, self.file = folder, name, file
        self._places: dict[str, tuple[int, int, PartHeader]] = {}

    @property
    def place(self) -> str:
        """What it is called, in words for the log."""
        return f"'{self._name}' in '{'/'.join(self._folder.steps)}'"

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

    def content(self, part: ObjectPart) -> Content:
        """Return the bytes of a part; for a thread.

        Raises:
            OSError, ValueError: they are not there any more.
        """
        _, start, told = self._places[part.token]
        return Content(_read(self.file, told.size, start), told.packing)

    def sent(self, part: ObjectPart) -> None:
        """Note that a part is in the store; with the last of them the file goes."""
        offset, _, _ = self._places.pop(part.token)
        with suppress(OSError):  # it is found in the store, then
            os.pwrite(self.file, SENT, offset)
        if not self._places:
            self.remove()

    def remove(self) -> None:
        """Remove the file."""
        with suppress(OSError), _opened(self._folder, is_made=False) as folder:
            os.unlink(self._name, dir_fd=folder)
        self.close()

    def close(self) -> None:
        """Leave the file to whoever sends it next."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


@contextmanager
def _opened(folder: Folder, *, is_made: bool = True) -> Iterator[int]:
    descriptor = folder.open(is_made=is_made)
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
