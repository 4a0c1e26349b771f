"""The log: one line an entry on standard error, because standard output is the pipelines'.

2026-03-01T08:00:00.000+00:00 WARNING pipeline 'line-1' transforms[0]: dropped a message ...

Or, for who collects logs, one JSON object a line, and then nothing else is written there.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Literal, TextIO

from headrace.compiler.schema.redaction import Redaction
from headrace.compiler.text.diagnostics import Diagnostic, printable

MOST_WAITING = 1000
"""Entries that wait for a reader; further ones are lost, and counted."""
LAST_SECONDS = 1.0
"""How long the end of the process waits for them."""
_OURS = "headrace"
_LOST = "headrace.web.log"
"""The logger that tells of what was lost."""
_ABOUT = re.compile(r"pipeline '%s'(?P<place> %s)?")
"""How our own sentences begin that are about a pipeline, or about a place in one."""

_HUNG_UP = "returning true from eof_received() has no effect when using ssl"
"""What the event loop says when a server hangs up on a driver that went over to TLS later."""
_CUT_OFF = "coro=<ClientRequest.write_bytes() done"
"""What it names when a server goes away as aiohttp begins to send; that the request fails is told too."""

Form = Literal["text", "json"]


class OneLine(logging.Formatter):
    """Time, level, message. Only a traceback takes further lines, and those are indented.

    What a payload, a peer or an id brings in can forge no entry and tell a terminal nothing:
    characters that do not print are written as escapes. Our own sentences are without secrets when
    they get here. What a library says and what is in a traceback goes through ``redact``.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self.redact: Callable[[str], str] = Redaction()

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry with its traceback."""
        return self._redacted(super().format(record), record)

    def _redacted(self, text: str, record: logging.LogRecord) -> str:
        is_ours = record.name.split(".")[0] == _OURS and not record.exc_info
        return text if is_ours else self.redact(text)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return when the entry was made, in UTC."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the entry on one line."""
        record.message = _folded(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        """Return a traceback, indented."""
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"    {printable(line)}" for line in text.splitlines())


class JsonLine(OneLine):
    """The same entries as objects, each on one line: `time`, `level`, `logger`, `message`.

    Where an entry is about a pipeline it has `pipeline`, and `place`; of failures, `count`: how many it
    tells of, which adds up to all of them. Where it is about a config, `diagnostic`, with the keys that
    `headrace check --format json` has; after an exception, `traceback`, whose lines a line feed parts.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry with its traceback."""
        entry = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            # Before it is JSON: what is hidden may be the name of a key.
            "message": self._redacted(_folded(record.getMessage()), record),
            **_about(record),
        }
        if record.exc_info:
            lines = logging.Formatter.formatException(self, record.exc_info).splitlines()
            entry["traceback"] = self.redact("\n".join(map(printable, lines)))
        text = json.dumps(entry, ensure_ascii=False)
        if text.isprintable():
            return text
        # What does not print stands in strings only.
        return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


FORMS: dict[Form, type[OneLine]] = {"text": OneLine, "json": JsonLine}


def _folded(message: str) -> str:
    return printable(" ".join(message.splitlines()))


def _about(record: logging.LogRecord) -> dict[str, Any]:
    """Return what an entry is about, as far as it says so."""
    diagnostic = getattr(record, "diagnostic", None)
    if isinstance(diagnostic, Diagnostic):
        return {"diagnostic": diagnostic.as_json()}
    if (found := _ABOUT.match(record.msg)) is None or not isinstance(record.args, tuple):
        return {}
    names = ("pipeline", "place") if found["place"] else ("pipeline",)
    about = dict(zip(names, record.args, strict=False))
    count = getattr(record, "count", None)
    return about if count is None else {**about, "count": count}


class StandardError:
    """Standard error as a stream that never waits, for a server that must not wait for its reader.

    A write to a pipe that nobody reads does not return. So a thread writes, and of what is not
    read `MOST_WAITING` texts wait; how many were lost then is told as soon as somebody reads.
    """

    def __init__(self, descriptor: int, form: Form = "text") -> None:
        self._descriptor, self._form = descriptor, form
        self._waiting: Queue[str | Event] = Queue(MOST_WAITING)
        self._lost = self._told = 0
        # A daemon, or a process whose log nobody reads could not end.
        Thread(target=self._work, name="stderr", daemon=True).start()

    def write(self, text: str) -> int:
        """Have a text written as soon as there is room."""
        try:
            self._waiting.put_nowait(text)
        except Full:
            self._lost += 1
        return len(text)

    def flush(self) -> None:
        """Do nothing: the thread keeps nothing back."""

    def drain(self, seconds: float = LAST_SECONDS) -> None:
        """Wait until what was written is out, but no longer than so long."""
        is_out = Event()
        with suppress(Full):
            self._waiting.put(is_out, timeout=seconds)
            is_out.wait(seconds)

    def _work(self) -> None:
        while True:
            text = self._waiting.get()
            if isinstance(text, Event):
                text.set()
                continue
            if (lost := self._lost - self._told) and self._waiting.empty():
                self._told += lost
                said = f"{lost:,} entries of the log were lost here: nobody read them"
                if self._form == "json":
                    entry = {"name": _LOST, "levelno": logging.WARNING, "levelname": "WARNING"}
                    said = JsonLine().format(logging.makeLogRecord({**entry, "msg": said}))
                text += f"{said}\n"
            octets = text.encode("utf-8", "backslashreplace")
            with suppress(OSError):  # nobody will ever read it
                while octets:
                    octets = octets[os.write(self._descriptor, octets) :]


def configure(stream: TextIO | StandardError, *, is_debug: bool, form: Form = "text") -> OneLine:
    """Send our own entries from level INFO on, or DEBUG, to a stream; return what writes them.

    Drivers are silent: one tells of a broker's outage in hundreds of lines, another with the password
    in them, and what they know a pipeline tells as its failures. Debugging shows their warnings.
    """
    lines = FORMS[form]()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(lines)
    others = logging.WARNING if is_debug else logging.CRITICAL
    # Here and not only by levels: a driver may set that of its own logger when it is imported.
    handler.addFilter(lambda entry: entry.levelno >= others or _is_heard(entry))
    logging.basicConfig(level=others, handlers=[handler], force=True)
    logging.getLogger(_OURS).setLevel(logging.DEBUG if is_debug else logging.INFO)
    # Its notices are about itself, and some can be had by anybody who sends nonsense.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    return lines


def _is_heard(entry: logging.LogRecord) -> bool:
    if entry.name.partition(".")[0] not in (_OURS, "uvicorn", "asyncio") or entry.msg == _HUNG_UP:
        return False
    cause = entry.exc_info[1] if entry.exc_info else None
    return not (isinstance(cause, ConnectionResetError) and _CUT_OFF in entry.getMessage())
