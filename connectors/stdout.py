"""Standard output: one line of JSON per batch."""

from __future__ import annotations

import asyncio
import math
import os
import select
import socket
import stat
import sys
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from contextlib import suppress
from errno import errorcode
from functools import cache, partial
from queue import SimpleQueue
from typing import ClassVar

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.failureclasses import FailureClasses, FailureRow
from headrace.compiler.component.families import Output
from headrace.compiler.component.promises import OutputPromises
from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import AwaitingSink, Rest
from headrace.compiler.errors import NotWritable
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import encode_large

_Push = Callable[[memoryview], int]
"""Writes as much as is taken at once and returns how much that was; 0: it would have to wait."""
_Job = tuple[memoryview, AbstractEventLoop, "Future[None]"]


OUTPUT = OutputPromises(
    row="output",
    written="the system has taken it",
    away="waits as long as somebody may read",
    twice="nothing",
)
FAILURES = FailureClasses(
    FailureRow("full", "unavailable", ("ENOSPC",), "it is a file, and the disk is full"),
    FailureRow(
        "device", "unavailable", ("EIO",), "it is a terminal that is gone, or a disk that fails"
    ),
    FailureRow(
        "no_reader",
        "misconfigured",
        ("EPIPE", "EBADF"),
        "whoever read it has gone, or it was never open",
    ),
)


class StdoutOutput(Output, kind="stdout", listed=1, elsewhere="console log print terminal"):
    """Print each batch on the server's standard output, as one line of JSON.

    The line holds the time, the pipeline, the number of messages and the messages:
    ``{"ts":"2026-03-01T08:00:00.000Z","pipeline":"p1","count":1,"batch":[{"n":1}]}``. It is written
    as soon as the batch arrives. While nobody reads the server's output, pipelines that print wait
    with their next batch, and nothing else does.
    """

    promises: ClassVar = (OUTPUT,)
    failure_classes: ClassVar = FAILURES
    lacks: ClassVar = {
        "queue": "whoever reads it, and has gone, does not read what is kept for them"
    }

    def outlasts_seconds(self) -> float:
        """Return that it waits as long as somebody may read."""
        return math.inf

    def open(self, ctx: Context) -> AwaitingSink:
        """Return a sink that shares standard output with those of other pipelines."""
        return StdoutSink(ctx.pipeline, ctx.clock, standard_output())


class StdoutSink(AwaitingSink):
    """Prints the batches of one pipeline."""

    def __init__(self, pipeline: str, clock: Clock, lines: LineWriter) -> None:
        self._pipeline, self._clock, self._lines = pipeline, clock, lines

    def begin(self, batch: Batch) -> Rest | None:
        """Print what is taken at once of the line; return the wait for the rest."""
        if not batch:
            return None
        if is_large(batch):
            return partial(self._print_large, batch)
        return self._print(self._line(len(batch), batch) + b"\n")

    async def write(self, batch: Batch) -> None:
        """Print one line."""
        if (rest := self.begin(batch)) is not None:
            await rest()

    async def _print_large(self, batch: Batch) -> None:
        head = self._line(len(batch), []).removesuffix(b"]}")
        line = await encode_large(batch, self._clock, begin=head, end=b"]}\n")
        if (rest := self._print(line)) is not None:
            await rest()

    def _line(self, count: int, batch: Batch) -> bytes:
        return encode(
            {
                "ts": self._clock.timestamp()[:23] + "Z",
                "pipeline": self._pipeline,
                "count": count,
                "batch": batch,
            }
        )

    def _print(self, line: bytes) -> Rest | None:
        try:
            written = self._lines.begin(line)
        except OSError as cause:
            raise _failed(cause) from cause
        return None if written is None else partial(self._wait_for, written)

    async def _wait_for(self, written: Future[None]) -> None:
        try:
            with self._clock.outside():
                await written
        except OSError as cause:
            raise _failed(cause) from cause


def _failed(cause: OSError) -> NotWritable:
    said, number = "writing to standard output", cause.errno or 0
    failure = FAILURES.of(errorcode.get(number))
    return NotWritable(f"{said}: {os.strerror(number).lower()}", failure)


@cache
def standard_output() -> LineWriter:
    """Return the one writer of this process's standard output."""
    if sys.__stdout__ is None:  # closed by whoever started us; the number may be another file's now
        return LineWriter(-1)
    sys.__stdout__.flush()  # what was printed before comes first
    return LineWriter(sys.__stdout__.fileno())


class LineWriter:
    """Writes lines whole and in order, for everybody who prints, and never holds up the loop.

    A write to a pipe, a socket or a terminal that nobody reads does not return. So what is taken
    at once is written at once, and the rest by a thread; whoever wrote it waits, and so does
    whoever comes after. Making the descriptor non-blocking is no way out: it would become so for
    every process that shares it, such as the shell.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._push = _pushing(descriptor)
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    def begin(self, line: bytes) -> Future[None] | None:
        """Write what is taken at once of one line; return the wait for the rest, if there is one."""
        rest = memoryview(line)
        if not self._waiting:
            while rest and (taken := self._push(rest)):
                rest = rest[taken:]
        return self._write_later(rest) if rest else None

    def _write_later(self, rest: memoryview) -> Future[None]:
        """Leave it to the thread; the queue is bounded by the outputs, one line each."""
        loop = asyncio.get_running_loop()
        written: Future[None] = loop.create_future()
        self._waiting += 1
        self._jobs.put((rest, loop, written))
        if self._thread is None:
            # A daemon, or a process whose output nobody reads could not end.
            self._thread = threading.Thread(target=self._work, name="stdout", daemon=True)
            self._thread.start()
        return written

    def _work(self) -> None:
        while True:
            rest, loop, written = self._jobs.get()
            cause: OSError | None = None
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as raised:
                cause = raised
            with suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(self._written, written, cause)

    def _written(self, written: Future[None], cause: OSError | None) -> None:
        self._waiting -= 1
        if written.done():  # its pipeline did not wait for it
            return
        if cause is None:
            written.set_result(None)
        else:
            written.set_exception(cause)


def _pushing(descriptor: int) -> _Push:
    """Return how to write to a descriptor without waiting for its reader."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        mode = stat.S_IFREG  # writing will tell what is wrong with it
    if stat.S_ISREG(mode) or os.path.samestat(os.fstat(descriptor), os.stat(os.devnull)):
        return lambda rest: os.write(descriptor, rest)
    if stat.S_ISFIFO(mode):
        room = select.poll()
        room.register(descriptor, select.POLLOUT)

        def into_pipe(rest: memoryview) -> int:
            # POSIX: a pipe that is writable takes PIPE_BUF bytes without waiting.
            return os.write(descriptor, rest[: select.PIPE_BUF]) if room.poll(0) else 0

        return into_pipe
    if stat.S_ISSOCK(mode):
        peer = socket.socket(fileno=os.dup(descriptor))

        def into_socket(rest: memoryview) -> int:
            try:
                return peer.send(rest, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return 0

        return into_socket
    return lambda rest: 0  # a terminal says that it is writable, and takes less than a line
