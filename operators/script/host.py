"""What a script may call besides its own language, and where what it says goes.

A script sees no file, no network and no other pipeline: these functions are all it has of the world.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from headrace.compiler.buckets import Bucket, Values
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.states import no_state
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.failures import cut
from headrace.operators.script.refusing import CallRefused, kind
from headrace.operators.script.scripttimes import format_time, parse_time
from headrace.operators.script.sources import EXTENSION

MOST_WARNINGS = 16
"""Different texts that one script warns of; further ones are not heard."""
MOST_BYTES = 262_144
"""What a script may keep under one key of a bucket, as JSON: as much as in a string of its own. What
came in does not fail for its own size: it may be kept besides, and added to what a key has already."""
A_LITTLE = 1024
"""What may be added to a key that is beyond that: a count, the time."""
LARGEST_BYTES = 16 * 2**20
"""What a key may have for all that."""
MESSAGES = 256
"""Messages of a batch that are encoded at once to count their bytes."""
MOST_NOTES = 200
"""Lines of one script within `NOTES_SECONDS`. More than a run or the loading of modules may print by
itself (the engine's bound), so that nothing is left out while there is no loop yet."""
NOTES_SECONDS = 60
CACHED = 200
"""Characters of a path that is kept for the next message: those of configs are shorter."""

BEGINNING = "1970-01-01T00:00:00.000000+00:00"
"""The time that a script is told which is only compiled."""
STATEFUL = ("recall", "remember")
"""The functions that need a bucket."""

log = logging.getLogger("headrace.script")

HostFunction = Callable[..., Any]


class ScriptLog:
    """What one script writes to the log: so many lines a minute, and the others are counted.

    Who posts messages decides how often a script runs, and so how often it prints.
    """

    def __init__(self, ctx: Context, name: str) -> None:
        self._ctx, self._name = ctx, name
        self._began = -float("inf")
        self._written = self._left_out = 0
        self._telling: asyncio.TimerHandle | None = None

    def write(self, level: int, where: str, text: str) -> None:
        """Write a line of some place in the script, if it is not one too many."""
        if log.isEnabledFor(level) and (level != logging.INFO or self._admits()):
            self._write(level, where, cut(text))

    def _write(self, level: int, where: str, text: str) -> None:
        log.log(level, "pipeline '%s' %s: %s: %s", self._ctx.pipeline, self._ctx.place, where, text)

    def _admits(self) -> bool:
        """Whether one more line is written."""
        now = self._ctx.clock.monotonic()
        if now >= self._began + NOTES_SECONDS:
            self._began, self._written = now, 0
        if self._written < MOST_NOTES:
            self._written += 1
            return True
        self._left_out += 1
        if self._telling is None:
            left = self._began + NOTES_SECONDS - now
            self._telling = self._ctx.clock.call_later(left, self._tell_left_out)
        return False

    def _tell_left_out(self) -> None:
        left_out, self._left_out, self._telling = self._left_out, 0, None
        lines = "one more line was" if left_out == 1 else f"{left_out:,} more lines were"
        said = f"{lines} printed within {NOTES_SECONDS} seconds, and left out"
        self._write(logging.INFO, self._name, said)


class ScriptHost:
    """The functions of one script, which is called ``name`` and speaks through the log of its transform.

    Without a ``ctx`` it is only compiled: nobody hears what it says, and time has not begun. While a
    script is compiled its modules run, and nothing is remembered or recalled.
    """

    def __init__(self, name: str, ctx: Context | None = None) -> None:
        self._name, self._ctx = name, ctx
        self._clock = None if ctx is None else ctx.clock
        self._log = None if ctx is None else ScriptLog(ctx, name)
        self._warned: set[str] = set()
        self._bucket: Bucket | None = None
        self._is_compiled = False
        self.given: Batch = []
        """The batch that the script runs on."""

    def lend(self, bucket: Bucket | None) -> None:
        """Let the script, which is compiled, use a bucket from now on; None: it has no state."""
        self._bucket = bucket
        self._is_compiled = True

    def functions(self) -> Mapping[str, tuple[int, HostFunction]]:
        """Return name, number of arguments, function."""
        return {
            "field": (2, field),
            "recall": (1, self.recall),
            "remember": (2, self.remember),
            "warn": (1, self.warn),
            "now": (0, self.now),
            "now_millis": (0, self.now_millis),
            "parse_time": (3, parse_time),
            "format_time": (3, format_time),
        }

    def recall(self, key: JsonValue) -> JsonValue:
        """Return the names that are remembered under a key, or None."""
        names = self._state("recall", key).get(key)
        return None if names is None else {**names}  # the bucket goes on to write into its own

    def remember(self, key: JsonValue, names: JsonValue) -> None:
        """Merge names into those of a key.

        Raises:
            CallRefused: there is no state, or more would be remembered than a key may hold.
        """
        bucket = self._state("remember", key)
        if not isinstance(names, dict):
            raise CallRefused(f"'remember' takes a map, not {kind(names)}")
        known = bucket.get(key) or {}
        size = len(encode({**known, **names}))
        if size > MOST_BYTES and not self._may_grow(known, size):
            raise CallRefused(f"'remember' keeps at most {MOST_BYTES} bytes of JSON under one key")
        bucket.merge({key: names})

    def _may_grow(self, known: Values, size: int) -> bool:
        """Return whether so much may be under a key that has so much, with what came in."""
        there = max(MOST_BYTES, len(encode(known)) + A_LITTLE)
        return size <= LARGEST_BYTES and (size <= there or has_bytes(self.given, size - there))

    def _state(self, function: str, key: JsonValue) -> Bucket:
        if not self._is_compiled:
            raise CallRefused(f"'{function}' works in a run, and a module is loaded before any")
        if self._bucket is None:
            fault = no_state(f"'{function}'")
            raise CallRefused(f"{fault.message} (expected {fault.expected})")
        if not isinstance(key, str):
            hint = ": use to_string()" if isinstance(key, int | float) else ""
            raise CallRefused(f"'{function}' takes a string as its key, not {kind(key)}{hint}")
        return self._bucket

    def warn(self, text: JsonValue) -> None:
        """Pass a text on, once, if there were not too many different ones.

        Raises:
            CallRefused: it is no text.
        """
        if not isinstance(text, str):
            raise CallRefused(f"'warn' takes a string, not {kind(text)}")
        if text not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(text)
            if self._ctx is not None:
                self._ctx.warn(f"{self._name}: {cut(text)}")

    def now(self) -> str:
        """Return the time as RFC 3339 in UTC."""
        return BEGINNING if self._clock is None else self._clock.timestamp()

    def now_millis(self) -> int:
        """Return the time as whole milliseconds since 1970."""
        return 0 if self._clock is None else self._clock.millis()

    def note(
        self, _kind: str, text: str, line: int | None, _column: int | None, module: str | None
    ) -> None:
        """Take what a script prints, with the place where it does."""
        self._say(logging.INFO, text, line, module)

    def trace(self, text: str, line: int | None, module: str | None) -> None:
        """Take what the engine says of a run that failed, with the values that failed it."""
        self._say(logging.DEBUG, text, line, module)

    def name(self, module: str | None) -> str:
        """Return what the script, or a module of it, is called."""
        return self._name if module is None else module + EXTENSION

    def _say(self, level: int, text: str, line: int | None, module: str | None) -> None:
        if self._log is not None:
            where = self.name(module) + ("" if line is None else f" line {line}")
            self._log.write(level, where, text)


def has_bytes(batch: Batch, size: int) -> bool:
    """Return whether a batch has so many bytes as JSON; no more of it is encoded than it takes to know."""
    count = 1 if batch else 2  # of each part a bracket is left out, which stands for a comma
    for first in range(0, len(batch), MESSAGES):
        if count >= size:
            break
        count += len(encode(batch[first : first + MESSAGES])) - 1
    return count >= size


def field(value: JsonValue, path: JsonValue) -> JsonValue:
    """Return what a dotted path leads to, None where that is nothing.

    Raises:
        CallRefused: the path is no text.
    """
    if not isinstance(path, str):
        raise CallRefused(f"'field' takes a string as its path, not {kind(path)}")
    found = (_path(path) if len(path) <= CACHED else DottedPath(path)).read(value)
    return None if found is MISSING else found


_path = lru_cache(maxsize=1000)(DottedPath)
