"""`headrace capture`: what arrives at a server's inputs, written on standard output line by line.

The server is asked with Python's own client: it is one request, whose answer goes on for long.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from signal import SIGINT, signal
from typing import BinaryIO, TextIO
from urllib.parse import quote, urlencode

import msgspec

from headrace.authoring.language.capturefile import is_capture
from headrace.compiler.clock import stopwatch
from headrace.compiler.text.diagnostics import printable
from headrace.web.commands.askingserver import (
    DEFAULT_URL,
    MOST_ERROR_BYTES,
    ServerRefuses,
    ask,
    refusal,
)
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED

PROGRESS_SECONDS = 1.0


class _Told(msgspec.Struct):
    """A line that tells of the capture itself: a gap, or its end."""

    gap: int = 0
    end: str | None = None
    dropped: int = 0


_TOLD = msgspec.json.Decoder(_Told)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. Units: ``seconds``, and ``bytes`` of the whole capture."""

    url: str = DEFAULT_URL
    pipelines: Sequence[str] = ()
    seconds: int = 600
    bytes: int = 64 * 2**20
    redact: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


def capture(wanted: Wanted, out: BinaryIO, err: TextIO) -> int:
    """Write a capture, tell on ``err`` how it goes on, and return the exit code.

    Ctrl-C ends it: whole lines are written, and a last one says that it was ended here.
    """
    progress = Progress(err)
    try:
        with _asked(wanted) as response:
            # No line is larger than all of them, but for the first, which counts for nothing.
            return _copied(response, wanted.bytes + MOST_ERROR_BYTES, out, progress)
    except ServerRefuses as cause:
        progress.end()
        print(printable(str(cause)), file=err)
        return REFUSED


class Progress:
    """Tells people how far it is, once a second at most; a program that reads this is told at the end."""

    def __init__(self, err: TextIO) -> None:
        self.err = err
        self._is_told = err.isatty()
        self._began = self._last = stopwatch()
        self.records = self.bytes = self.dropped = 0

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return stopwatch() - self._began

    def show(self) -> None:
        """Show how far it is, if it is time to."""
        if self._is_told and stopwatch() - self._last >= PROGRESS_SECONDS:
            self._last = stopwatch()
            print(f"\r{self}", end="", file=self.err, flush=True)

    def end(self) -> None:
        """Leave the line."""
        if self._is_told and self._last != self._began:
            print(file=self.err)

    def __str__(self) -> str:
        said = f"{self.seconds:.0f} s: {self.records:,} records, {self.bytes:,} bytes"
        return f"{said}, {self.dropped:,} dropped" if self.dropped else said


class Interrupts:
    """Ctrl-C ends the wait for a line, and never the writing of one."""

    def __init__(self) -> None:
        self.has_come = self.is_waiting = False

    def come(self, *_: object) -> None:
        """Take a signal."""
        self.has_come = True
        if self.is_waiting:
            raise KeyboardInterrupt

    def awaited(self, response: HTTPResponse, most: int) -> bytes:
        """Return the next line, with its end if it is whole and has no more than ``most`` bytes.

        Raises:
            KeyboardInterrupt: it is not waited for any more.
        """
        self.is_waiting = True
        try:
            if self.has_come:
                raise KeyboardInterrupt
            return response.readline(most)
        finally:
            self.is_waiting = False


def _copied(response: HTTPResponse, most: int, out: BinaryIO, progress: Progress) -> int:
    ended: str | None = None
    interrupts = Interrupts()
    before = signal(SIGINT, interrupts.come)
    try:
        for line in _lines(response, most, interrupts):
            out.write(line)
            out.flush()
            progress.bytes += len(line)
            ended = _counted(line, progress) or ended
            progress.show()
    except KeyboardInterrupt:
        ended = "interrupted"
        at = round(progress.seconds, 6)
        told = {"at": at, "end": ended, "records": progress.records, "dropped": progress.dropped}
        out.write(json.dumps(told, separators=(",", ":")).encode() + b"\n")
        out.flush()
    finally:
        signal(SIGINT, before)
    progress.end()
    if ended is None:
        raise ServerRefuses(
            f"the server broke off after {progress}; what is written is whole lines"
        )
    print(f"ended ({ended}) after {progress}", file=progress.err)
    return FINE if progress.records else NOTHING


def _counted(line: bytes, progress: Progress) -> str | None:
    """Count a line; return why it ends here, if it is the last."""
    if line.startswith(b'{"at":'):
        _, _, rest = line[:80].partition(b",")
        if rest.startswith((b'"to":', b'"reply":')):
            progress.records += 1
        else:
            try:
                told = _TOLD.decode(line)
            except (ValueError, RecursionError):
                return None  # whoever reads the capture is told what is wrong with it
            progress.dropped = progress.dropped + told.gap if told.end is None else told.dropped
            return None if told.end is None else printable(told.end)
    return None


def _lines(response: HTTPResponse, most: int, interrupts: Interrupts) -> Iterator[bytes]:
    """Yield whole lines, but for blank ones."""
    try:
        first = interrupts.awaited(response, most)
    except (OSError, HTTPException):
        first = b""
    if not is_capture(first):
        raise ServerRefuses("this is no headrace server: its answer is no capture")
    yield first
    while True:
        try:
            line = interrupts.awaited(response, most)
        except (OSError, HTTPException):
            return  # it broke off: who asks sees that no last line has come
        if not line.endswith(b"\n"):
            if len(line) == most:
                raise ServerRefuses(
                    "the server sends a line that is larger than all of the capture"
                )
            return
        if line != b"\n":
            yield line


def _asked(wanted: Wanted) -> HTTPResponse:
    """Ask, and return an answer that is a capture.

    Raises:
        ServerRefuses: there is none; the text says why.
    """
    query = [
        *(("pipeline", each) for each in wanted.pipelines),
        ("seconds", str(wanted.seconds)),
        ("bytes", str(wanted.bytes)),
        *(("redact", each) for each in wanted.redact),
    ]
    path = f"/api/capture?{urlencode(query, quote_via=quote)}"
    response = ask(wanted.url, wanted.environment, "GET", path)
    if response.status != 200:
        raise ServerRefuses(refusal(response, wanted.url, "captures"))
    return response
