"""A capture on file: lines that tell what arrived when, and what servers answered."""

from __future__ import annotations

import json
import os
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import UNSET, UnsetType

from headrace.authoring.language.durations import LONGEST_DAYS, as_start
from headrace.authoring.playing.scenario import Arriving, ScriptedReply
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import decode_exact
from headrace.compiler.runtime.capturing.capturerecords import VERSION
from headrace.compiler.text.diagnostics import shown
from headrace.compiler.timestamps import rfc3339

MOST_BYTES = 1024 * 1024 * 1024
"""Size of a capture on file."""
_MOST_HEADER_BYTES = 1024 * 1024
_LONGEST_SECONDS = LONGEST_DAYS * 86_400
_MARK = b'{"headrace":"capture"'


class NotACapture(HeadraceError):
    """A file is no capture, or a line of it is not one of a capture's. ``line`` counts from 1."""

    def __init__(self, file: str, line: int, why: str) -> None:
        super().__init__(f"{file}:{line}: {why}")
        self.line, self.why = line, why


@dataclass(frozen=True, slots=True)
class CapturedArrival:
    """Something that arrived at an input. Units: seconds since the capture began."""

    at: float
    to: str
    arriving: Arriving
    line: int


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """What was answered to a request of a transform."""

    of: str
    request: str
    """Its content, as `content_of` writes it."""
    reply: ScriptedReply


@dataclass
class CaptureFile:
    """What a capture holds."""

    name: str
    started_at: datetime
    is_redacted: bool
    arrivals: list[CapturedArrival] = field(default_factory=list)
    replies: list[RecordedReply] = field(default_factory=list)
    dropped: int = 0
    """How much is missing, as it says itself."""
    ends: float = 0.0
    """The last moment that it tells. Units: seconds since it began."""
    is_whole: bool = False
    """Whether it has its last line."""

    def inputs(self) -> dict[str, int]:
        """Return the inputs that something arrived at, with how often."""
        counts: dict[str, int] = {}
        for each in self.arrivals:
            counts[each.to] = counts.get(each.to, 0) + 1
        return counts


class _Header(msgspec.Struct):
    headrace: str
    version: int
    started_at: str
    redacted: Sequence[str] = ()


class _Reply(msgspec.Struct):
    of: str
    request: list[msgspec.Raw]
    status: int | None
    seconds: float
    body: msgspec.Raw | UnsetType = UNSET
    raw: str | UnsetType = UNSET


class _Line(msgspec.Struct):
    at: float
    to: str | UnsetType = UNSET
    batch: list[msgspec.Raw] | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET
    reply: _Reply | UnsetType = UNSET
    gap: int | UnsetType = UNSET
    end: str | UnsetType = UNSET


_HEADER = msgspec.json.Decoder(_Header)
_LINE = msgspec.json.Decoder(_Line)


def is_capture(text: bytes) -> bool:
    """Return whether a file begins as captures do."""
    return text.startswith(_MARK)


def read_capture(file: Path) -> CaptureFile:
    """Read a capture.

    Raises:
        NotACapture: it is none, or broken.
        OSError: it cannot be read.
    """
    with open(file, "rb", opener=_opened) as stream:
        return capture_of(_lines(stream, str(file)), str(file))


def capture_of(lines: Iterable[bytes], name: str) -> CaptureFile:
    """Return what the lines of a capture say, each with the end of its line.

    Raises:
        NotACapture: they are none, or broken.
    """
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (1, b""))
    capture = _begun(first, name)
    for number, line in numbered:
        if line.strip():
            _take(line, number, capture)
    capture.arrivals.sort(key=lambda each: each.at)
    return capture


def content_of(request: JsonValue) -> str:
    """Return what two requests with the same content have in common, whatever the order of their keys."""
    return json.dumps(request, sort_keys=True, separators=(",", ":"))


def _begun(line: bytes, name: str) -> CaptureFile:
    if not is_capture(line):
        raise NotACapture(name, 1, "this is no capture: it does not begin with the header of one")
    try:
        header = _HEADER.decode(line)
        started_at = as_start(datetime.fromisoformat(rfc3339(header.started_at)))
    except (ValueError, RecursionError) as cause:
        raise NotACapture(name, 1, _broken(line, cause)) from cause
    if header.version != VERSION:
        said = f"a capture of version {header.version}: version {VERSION} is read"
        raise NotACapture(name, 1, said)
    return CaptureFile(name, started_at, bool(header.redacted))


def _take(line: bytes, number: int, capture: CaptureFile) -> None:
    if is_capture(line):
        said = "another capture begins here: each has a file of its own"
        raise NotACapture(capture.name, number, said)
    try:
        told = _LINE.decode(line)
        if not 0 <= told.at <= _LONGEST_SECONDS:
            raise ValueError(f"'at' is {told.at}: expected seconds since the capture began")
        if told.to is not UNSET:
            arriving = _arriving(told)
            capture.arrivals.append(CapturedArrival(told.at, told.to, arriving, number))
        elif told.reply is not UNSET:
            capture.replies.append(_replied(told.reply))
        elif told.end is not UNSET:
            capture.is_whole = True
        elif told.gap is not UNSET:
            capture.dropped += told.gap
        else:
            raise ValueError("it tells nothing: expected 'to', 'reply', 'gap' or 'end'")
    except (ValueError, RecursionError) as cause:
        raise NotACapture(capture.name, number, _broken(line, cause)) from cause
    capture.ends = max(capture.ends, told.at)


def _arriving(told: _Line) -> Arriving:
    meta = {} if told.meta is UNSET else told.meta
    if told.raw is not UNSET:
        return Arriving(told.raw.encode(), meta)
    if told.base64 is not UNSET:
        try:
            return Arriving(b64decode(told.base64, validate=True), meta)
        except NotBase64 as cause:
            raise ValueError(f"'base64': {cause}") from cause
    if told.batch is UNSET:
        raise ValueError("expected 'batch', 'raw' or 'base64'")
    return Arriving([decode_exact(bytes(each)) for each in told.batch], meta)


def _replied(told: _Reply) -> RecordedReply:
    request = content_of([decode_exact(bytes(each)) for each in told.request])
    if told.status is None:
        reply = ScriptedReply(is_down=True, after=max(0.0, told.seconds))
    elif not 100 <= told.status <= 599:
        raise ValueError(f"'status' is {told.status}: expected one from 100 to 599")
    else:
        raw = None if told.raw is UNSET else told.raw.encode()
        body = None if told.body is UNSET else decode_exact(bytes(told.body))
        reply = ScriptedReply(told.status, body, after=max(0.0, told.seconds), raw=raw)
    return RecordedReply(told.of, request, reply)


def _broken(line: bytes, cause: Exception) -> str:
    if not line.endswith(b"\n"):
        return "the capture is cut off in the middle of this line: remove the line to use what is before it"
    why = str(cause) if isinstance(cause, ValueError) else "it is nested too deep"
    return (
        f"this is no line of a capture: {why} (found {shown(line[:60].decode('utf-8', 'replace'))})"
    )


def _lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    # What is no capture may have no end of a line at all.
    line = stream.readline(_MOST_HEADER_BYTES)
    read = len(line)
    number = 1
    while line:
        yield line
        number += 1
        line = stream.readline(MOST_BYTES - read + 1)
        read += len(line)
        if read > MOST_BYTES:
            raise NotACapture(name, number, f"a capture has at most {MOST_BYTES >> 20} MiB")


def _opened(path: str, flags: int) -> int:
    """Open a file; whoever waits for the writer of a pipe may wait for ever."""
    return os.open(path, flags | os.O_NONBLOCK)
