"""`headrace capture`: what arrives at a server's inputs, written on standard output line by line.

The server is asked with Python's own client: it is one request, whose answer goes on for long.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, InvalidURL
from signal import SIGINT, signal
from typing import BinaryIO, TextIO
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from headrace.authoring.language.capturefile import is_capture
from headrace.compiler.clock import stopwatch
from headrace.compiler.text.diagnostics import printable
from headrace.web.commands.arguments import ADDRESS
from headrace.web.commands.exitcodes import FINE, NOTHING, REFUSED

DEFAULT_URL = f"http://{ADDRESS}"
TOKEN, USER, PASSWORD = "HEADRACE_TOKEN", "HEADRACE_USER", "HEADRACE_PASSWORD"
"""Where the credential is: a token, or a name and its password. None is ever on a command line."""
PATIENCE_SECONDS = 60.0
"""How long nothing comes, not even a blank line, from a server that is gone."""
PROGRESS_SECONDS = 1.0
MOST_ERROR_BYTES = 64 * 1024
MOST_ERROR_CHARACTERS = 1000


class _Told(msgspec.Struct):
    """A line that tells of the capture itself: a gap, or its end."""

    gap: int = 0
    end: str | None = None
    dropped: int = 0


class _Refusal(msgspec.Struct):
    """What headrace answers where it refuses."""

    error: str


_TOLD = msgspec.json.Decoder(_Told)
_REFUSAL = msgspec.json.Decoder(_Refusal)


class NoCapture(Exception):
    """There is none to be had; the text says why."""


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
    except NoCapture as cause:
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
        raise NoCapture(f"the server broke off after {progress}; what is written is whole lines")
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
        raise NoCapture("this is no headrace server: its answer is no capture")
    yield first
    while True:
        try:
            line = interrupts.awaited(response, most)
        except (OSError, HTTPException):
            return  # it broke off: who asks sees that no last line has come
        if not line.endswith(b"\n"):
            if len(line) == most:
                raise NoCapture("the server sends a line that is larger than all of the capture")
            return
        if line != b"\n":
            yield line


def _asked(wanted: Wanted) -> HTTPResponse:
    """Ask, and return an answer that is a capture.

    Raises:
        NoCapture: there is none.
    """
    query = [
        *(("pipeline", each) for each in wanted.pipelines),
        ("seconds", str(wanted.seconds)),
        ("bytes", str(wanted.bytes)),
        *(("redact", each) for each in wanted.redact),
    ]
    try:
        connection, prefix = _connection(wanted.url)
        path = f"{prefix}/api/capture?{urlencode(query, quote_via=quote)}"
        connection.request("GET", path, headers=_credential(wanted.environment))
        response = connection.getresponse()
    except TimeoutError:
        raise NoCapture(f"{wanted.url} does not answer") from None
    except ssl.SSLError as cause:
        raise NoCapture(f"{wanted.url}: TLS: {cause.reason or cause}") from None
    except OSError as cause:
        why = (cause.strerror or str(cause)).lower()
        raise NoCapture(f"no server answers at {wanted.url}: {why}") from None
    except InvalidURL as cause:
        raise NoCapture(f"--url is no url: {cause}") from None
    except UnicodeError:
        raise NoCapture(f"--url is '{wanted.url}', which no server can be called") from None
    except HTTPException:
        raise NoCapture(f"what answers at {wanted.url} does not speak HTTP") from None
    if response.status != 200:
        raise NoCapture(_refusal(response, wanted))
    return response


def _connection(url: str) -> tuple[HTTPConnection, str]:
    """Return a connection to a server, and what its paths begin with."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as cause:
        raise NoCapture(f"--url is no url: {cause}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoCapture(f"--url is '{url}': expected an http or https url such as {DEFAULT_URL}")
    if parts.username is not None:
        said = f"name and password go into {USER} and {PASSWORD} of the environment"
        raise NoCapture(f"--url has a credential, which everybody on this machine can see: {said}")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname, port, timeout=PATIENCE_SECONDS), parts.path.rstrip("/")


def _credential(environment: Mapping[str, str]) -> dict[str, str]:
    if token := environment.get(TOKEN):
        return {"Authorization": f"Bearer {_header(token, TOKEN)}"}
    if user := environment.get(USER):
        told = f"{user}:{environment.get(PASSWORD, '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(told).decode()}"}
    return {}


def _header(value: str, name: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise NoCapture(f"{name} has characters that no token has")
    return value


def _refusal(response: HTTPResponse, wanted: Wanted) -> str:
    """Return why there is no capture, in the server's words where it is one of headrace."""
    try:
        told = _REFUSAL.decode(response.read(MOST_ERROR_BYTES)).error
    except (OSError, HTTPException, ValueError, RecursionError):
        return (
            f"what answers at {wanted.url} is no headrace server, or one without captures: it answers"
            f" {response.status} {response.reason}"
        )
    if response.status == 401:
        return f"{told}: put a token into {TOKEN}, or name and password into {USER} and {PASSWORD}"
    return told[:MOST_ERROR_CHARACTERS]
