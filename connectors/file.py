"""Files: the connection that names a directory, and the output that writes parts under it."""

from __future__ import annotations

import asyncio
import os
from asyncio import Future, TimerHandle
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Connection
from headrace.compiler.component.promises import OutputPromises
from headrace.compiler.datadir import STORE, DataDir
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink, Rest
from headrace.compiler.errors import (
    BuildRefused,
    FailureClass,
    NotWritable,
    OutsideRoot,
    class_of,
)
from headrace.compiler.schema.fields import ConnectionName
from headrace.compiler.schema.records import option
from headrace.compiler.schema.structures import RecordOf
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.disk.packing import (
    COMPRESSIONS,
    PACKINGS,
    Packing,
    Uncompressed,
    compress_file,
    exists,
    packed_name,
)
from headrace.connectors.disk.partformats import FORMATS, PartFormat
from headrace.connectors.disk.parts import Rotation, part_name
from headrace.connectors.disk.partsoutput import PartsOutput
from headrace.connectors.disk.paths import (
    NEW_FILE,
    FilePath,
    Folder,
    InnerPath,
    is_inside,
    write_whole,
)
from headrace.connectors.disk.systemfailures import FAILURES, failure_of

CLOSING = 4
"""Parts that may be synced to disk at a time; the next batch waits for one of them."""
FILES = Fixed(by_time="each part is named for the time it is opened; 'rotate' says when one is")


class FileConnection(Connection, kind="file", listed=5, elsewhere="directory folder"):
    """A directory that file outputs write under.

    It has to lie inside the directory that the server was started with as ``--data-dir``.
    """

    root: str = option(
        FilePath(fixed=FILES),
        "The directory; a relative one is taken from the server's working directory.",
        elsewhere="base dir directory folder path",
    )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Tell of a root outside of the directory that files are written in."""
        if context.data_dir is not None:
            yield from _outside(self.root, os.path.realpath(context.data_dir))

    async def reach(self, ctx: Context) -> None:
        """See that the directory may be written to, or made where it is not there."""
        data_dir = writable(ctx)
        with ctx.clock.outside():
            await asyncio.to_thread(_look_at, self.root, str(data_dir))


def _look_at(root: str, base: str) -> None:
    """Raise what is wrong with a directory that is to be written to."""
    for fault in _outside(root, base):
        raise OutsideRoot(fault)
    there = os.path.realpath(root)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise BuildRefused(Fault("turned-away", f"'{there}' is no directory"))
    if not os.access(there, os.W_OK | os.X_OK):
        raise BuildRefused(Fault("turned-away", f"'{there}' may not be written to"))


def writable(ctx: Context) -> DataDir:
    """Return the directory that files are written below.

    Raises:
        OutsideRoot: there is none.
    """
    if ctx.data_dir is None:
        raise OutsideRoot(
            Fault(
                "outside-root",
                "this server writes no files: it was started without --data-dir",
                expected="--data-dir DIRECTORY on the command line",
            )
        )
    return ctx.data_dir


def _outside(root: str, base: str) -> Iterator[Fault]:
    """Yield what is wrong with a root that is not below ``base``, and what would do instead."""
    top = os.path.realpath(root)
    if is_inside(top, base):
        return
    suggestion = None
    if not os.path.isabs(root):
        steps = [step for step in os.path.normpath(root).split(os.sep) if step not in ("..", ".")]
        meant, here = os.path.join(base, *steps), os.getcwd()
        if is_inside(meant, os.path.realpath(here)):
            meant = os.path.relpath(meant, os.path.realpath(here))
        suggestion = f"write '{meant}': a relative root starts at the working directory"
    yield Fault(
        "outside-root",
        f"the root '{root}' is '{top}', and leads out of --data-dir, which is '{base}'",
        found=root,
        expected=f"a directory inside '{base}'",
        suggestion=suggestion,
        path=("root",),
    )


OUTPUT = OutputPromises(
    row="output",
    written="the system has taken it; what a part holds is on the disk when the part is closed",
    away="without room batches are lost whole",
    twice="nothing",
)


class FileOutput(PartsOutput, kind="file", listed=2, elsewhere="local_file"):
    """Write messages to files in a directory, one part after the other.

    A part is named for the moment it was opened and numbered within the run:
    ``2026-03-01T08-00-00Z-000001.ndjson``. It is opened by the first batch, so a run without
    messages leaves no file, and it is closed as `rotate` says and when the pipeline ends. Every
    batch is with the operating system before the next one is taken; a part that is closed is on
    the disk. A ``json_array`` is whole after every batch.

    With `compression` a part is compressed when it is closed: until then it is a file as any other,
    without the last part of its name, that can be read and is there after a crash. The compressed
    one takes its place once it is on the disk itself. Where that cannot be written, or the pipeline
    has no time left when it ends, the part stays as it is, and that is reported.

    When a batch cannot be written (no space left, no permission), nothing of it stays in the
    part, the batch is lost and reported, and the next batch is tried again; with `retry` it waits.
    """

    promises: ClassVar = (OUTPUT,)
    failure_classes: ClassVar = FAILURES

    connection: str = option(ConnectionName("file"), "Connection that names the directory.")
    path: str = option(
        InnerPath(fixed=FILES),
        "Directory under the connection's root; made when it is not there.",
        elsewhere="dir directory file filename folder",
    )
    format: str = option(
        FORMATS,
        "How messages are written: as JSON, one a line or one array per part; as a text each; or as rows of"
        " CSV.",
        default="ndjson",
        elsewhere="codec encoding",
    )
    rotate: Rotation | None = option(
        RecordOf(Rotation),
        "When a part is closed; absent, at the end of the run.",
        default=None,
        elsewhere="batch roll rotation",
    )
    compression: str = option(
        COMPRESSIONS,
        "How parts are compressed when they are closed; their names end in `.gz` or `.zst` then.",
        default="none",
        additive=True,
    )

    def kept_as(self) -> str:
        """Return the connection and the directory."""
        return f"{self.kind} {self.connection} {self.path}"

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Tell of a directory that is in the store."""
        yield from super().examine(context)
        filed = context.connections.get(self.connection)
        if context.data_dir is not None and isinstance(filed, FileConnection):
            target = os.path.realpath(os.path.join(filed.root, self.path))
            base = os.path.realpath(context.data_dir)
            yield from self._in_store(target, base, is_named=context.has_store)

    def open(self, ctx: Context) -> AwaitingSink:
        """Make sure that the directory stays inside ``--data-dir``. Makes and opens nothing."""
        root = ctx.connection(FileConnection, self.connection).root
        return FileSink(self, ctx, self._folder(root, writable(ctx)))

    def _folder(self, root: str, data_dir: DataDir) -> Folder:
        base, top = str(data_dir), os.path.realpath(root)
        for fault in _outside(root, base):
            raise OutsideRoot(
                replace(
                    fault,
                    message=f"connection '{self.connection}': {fault.message}",
                    path=("connection",),
                )
            )
        target = os.path.realpath(os.path.join(top, self.path))
        for fault in self._in_store(target, base):
            raise OutsideRoot(fault)
        if not is_inside(target, top):
            raise OutsideRoot(
                Fault(
                    "outside-root",
                    f"a link leads '{self.path}' out of the root of connection '{self.connection}'",
                    found=self.path,
                    expected=f"a directory inside '{root}'",
                    path=("path",),
                )
            )
        return Folder(data_dir, tuple(Path(target).relative_to(base).parts))

    def _in_store(self, target: str, base: str, *, is_named: bool = False) -> Iterator[Fault]:
        """Yield what is wrong with writing where the store is, or is going to be as something names it."""
        store = os.path.join(base, STORE)
        if is_inside(target, store) and (is_named or os.path.exists(os.path.join(store, "0"))):
            yield Fault(
                "outside-root",
                f"'{target}' is where the server keeps what is durable",
                found=self.path,
                expected=f"a directory beside '{STORE}'",
                path=("path",),
            )


class OpenFile:
    """One file being written: a batch is in it whole, or not at all.

    What ends the format is written with each batch and overwritten by the next, so the file is
    whole whenever nobody is writing, and closing it needs no room on the disk.
    """

    def __init__(
        self, folder: int, name: str, form: PartFormat, packing: Packing | None = None
    ) -> None:
        """Create the file; the descriptor of its folder is the part's from then on.

        Raises:
            FileExistsError: the name is taken, be it by a link; or that which it will have is.
        """
        self._file = os.open(name, NEW_FILE, 0o666, dir_fd=folder)
        if packing is not None and exists(packed_name(name, packing), folder):
            os.close(self._file)
            os.unlink(name, dir_fd=folder)
            raise FileExistsError
        self._folder, self._name, self._form, self._packing = folder, name, form, packing
        self._length = 0
        self._is_torn = False
        self.rows = 0

    @property
    def is_removed(self) -> bool:
        """Whether somebody has deleted the file: what is written to it now, nobody ever finds."""
        return os.fstat(self._file).st_nlink == 0

    def append(self, rows: bytes, messages: int) -> None:
        """Write one batch, which is encoded already, behind the others."""
        form = self._form
        body = (form.between if self.rows else form.begin) + rows
        try:
            write_whole(self._file, body + form.end, self._length)
        except OSError:
            self._is_torn = True
            with suppress(OSError):  # tried again before it is closed
                self._mend()
            raise
        self._length += len(body)
        self.rows += messages

    def _mend(self) -> None:
        """Cut off what is left of a batch that was not written."""
        os.ftruncate(self._file, self._length)
        if self.rows:
            write_whole(self._file, self._form.end, self._length)
        self._is_torn = False

    def close(self, goes_on: Callable[[], bool]) -> None:
        """Put the file on the disk and close it; one without messages is removed. Takes its time.

        It is compressed last, as long as ``goes_on`` says so.

        Raises:
            OSError: it is not on the disk.
            Uncompressed: it is, as it was written.
        """
        try:
            if self.is_removed:
                raise FileNotFoundError("it was removed while it was written")
            if self._is_torn:
                self._mend()
            if self.rows:
                os.fsync(self._file)
            else:
                os.unlink(self._name, dir_fd=self._folder)
            os.fsync(self._folder)  # the name is on the disk only now
            if self.rows and self._packing is not None:
                compress_file(self._folder, self._name, self._file, self._packing, goes_on)
        finally:
            os.close(self._file)
            os.close(self._folder)


def _class_of(cause: BaseException) -> FailureClass:
    if isinstance(cause, Uncompressed):
        return cause.failure
    return failure_of(cause) if isinstance(cause, OSError) else class_of(cause)


class FileSink(AwaitingSink):
    """Writes one part after the other.

    Writing is inline: it fills the page cache. Syncing and compressing a part that is closed is not, a
    thread does it; only when four are being synced does a batch wait, because a disk that does not keep
    up has to hold up its own pipeline and no other.
    """

    def __init__(self, config: FileOutput, ctx: Context, folder: Folder) -> None:
        self._path = config.path
        self._form = config.form(ctx)
        self._packing = PACKINGS.get(config.compression)
        self._has_time = True
        self._rotation = config.rotate or Rotation()
        self._folder = folder
        self._ctx = ctx
        self._sequence = 0
        self._part: OpenFile | None = None
        self._timer: TimerHandle | None = None
        self._closing: set[Future[None]] = set()

    def begin(self, batch: Batch) -> Rest | None:
        """Append the batch at once, unless the disk does not keep up, or the batch is large."""
        if len(self._closing) >= CLOSING or is_large(batch):
            return partial(self.write, batch)
        if batch:
            self._append(self._form.rows(batch), len(batch))
        return None

    async def write(self, batch: Batch) -> None:
        """Append the batch as soon as the disk keeps up."""
        while len(self._closing) >= CLOSING:
            await asyncio.wait(self._closing, return_when=asyncio.FIRST_COMPLETED)
        if is_large(batch):
            self._append(await self._form.large_rows(batch, self._ctx.clock), len(batch))
        elif batch:
            self._append(self._form.rows(batch), len(batch))

    def _append(self, rows: bytes, messages: int) -> None:
        """Append a batch to the part, and close that when it is full."""
        try:
            if self._part is not None and self._part.is_removed:
                self._close()
            part = self._part or self._open()
            part.append(rows, messages)
        except OSError as cause:
            raise NotWritable(self._say("writing to", cause), failure_of(cause)) from cause
        if self._rotation.is_full(part.rows):
            self._close()

    async def finish(self) -> None:
        """Close the part, and wait until everything is on the disk, and compressed if there is time."""
        self._close()
        try:
            if self._closing:
                await asyncio.wait(self._closing)
        finally:
            self._has_time = False

    def _open(self) -> OpenFile:
        """Open the next part, under the next number that is free; its time runs from now."""
        opened, folder = self._ctx.clock.now(), self._folder.open()
        try:
            for sequence in count(self._sequence + 1):
                name = part_name(opened, sequence, self._form.extension)
                with suppress(FileExistsError):
                    part = OpenFile(folder, name, self._form, self._packing)
                    break
        except OSError:
            os.close(folder)
            raise
        self._part, self._sequence = part, sequence
        self._timer = self._rotation.timer(self._ctx.clock, self._close)
        return part

    def _close(self) -> None:
        """Let go of the part, if one is open; a thread closes it."""
        part, self._part = self._part, None
        if self._timer is not None:
            self._timer.cancel()
        if part is not None:
            closing = asyncio.get_running_loop().run_in_executor(
                None, part.close, lambda: self._has_time
            )
            self._closing.add(closing)
            closing.add_done_callback(partial(self._closed, part.rows))

    def _closed(self, messages: int, closing: Future[None]) -> None:
        self._closing.discard(closing)
        if (cause := closing.exception()) is not None:
            said, failure = self._say("closing a part of", cause), _class_of(cause)
            if isinstance(cause, Uncompressed):  # it is there, as it was written
                self._ctx.fail(said, failure)
            else:
                self._ctx.lose_count(said, messages, failure, "batch")

    def _say(self, what: str, cause: BaseException) -> str:
        number = cause.errno if isinstance(cause, OSError) else None
        return f"{what} '{self._path}': {os.strerror(number).lower() if number else cause}"
