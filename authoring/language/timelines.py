"""Timelines: what happens when, as a map, a list, a line of marbles or a file of messages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from headrace.authoring.language.capturefile import NotACapture, capture_of, is_capture
from headrace.authoring.language.durations import (
    A_MOMENT,
    END,
    SECOND,
    NotADuration,
    microseconds,
    not_a_time,
)
from headrace.authoring.language.marbles import LOSS, MOST_MOMENTS, NotMarbles, marbles
from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import NotJson, decode
from headrace.compiler.schema.records import json_type, of_another_type, unknown_key
from headrace.compiler.text.composing import FAULTS
from headrace.compiler.text.diagnostics import Codes, Fault, Path, Spot, shown
from headrace.compiler.text.positions import LineIndex
from headrace.compiler.text.suggest import one_of

CODES: Codes = {
    "not-captured": "A capture that a test names has nothing for what is given there.",
}

FILE_KEYS = ("$file", "$every", "$from")
MOST_BYTES = 64 * 1024 * 1024
"""Size of a file of messages."""
MOST_SHOWN = 200
"""Characters of a line of a capture."""

A_TIMELINE = "a map of moments, a list of such maps, or a line of marbles"


@dataclass(frozen=True, slots=True)
class Moment:
    """What happens at one moment, and where that is written. Units: seconds, or `END`."""

    at: float
    what: JsonValue
    path: Path
    is_loss: bool = False
    """Whether a connection is lost: then there is nothing else."""
    offset: int = 0
    """Where it is in a line of marbles."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happens when, in the order of time."""

    moments: tuple[Moment, ...]
    path: Path
    line: str | None = None
    """The marbles, if it is drawn with them."""

    def fault_of(self, moment: Moment, fault: Fault) -> Fault:
        """Return a fault of when something happens: at its key, or where it is in the line."""
        if self.line is not None:
            spot = Spot(*LineIndex(self.line).at(moment.offset))
            return replace(fault, path=self.path, spot=spot)
        return replace(fault, path=moment.path, on_key=True)

    @property
    def last(self) -> float:
        """The last moment before the end."""
        return max((each.at for each in self.moments if each.at != END), default=0.0)


class TimelineReader:
    """Reads the timelines of one file, and collects what is wrong with them."""

    def __init__(self, names: Mapping[str, JsonValue], folder: FilePath | None) -> None:
        """Take what marbles are called, and the directory that files are named from."""
        self.faults: dict[Fault, None] = {}
        self.is_legible = True
        """Whether every line of marbles could be read, so that all names in them are known."""
        self.used: set[str] = set()
        """The names that some line of marbles has."""
        self._names, self._folder = names, folder
        self._room = MOST_MOMENTS

    def read(self, value: JsonValue, path: Path, frame: float, to: str | None = None) -> Timeline:
        """Read one; of what is wrong with it, the rest is read. ``to`` is the input that is given it."""
        found = sorted(self._moments(value, path, frame, to), key=lambda each: each.at)
        self._room -= len(found)
        return Timeline(tuple(found), path, value if isinstance(value, str) else None)

    def _moments(
        self, value: JsonValue, path: Path, frame: float, to: str | None
    ) -> Iterator[Moment]:
        if isinstance(value, str):
            yield from self._marbles(value, path, frame)
        elif isinstance(value, dict) and any(key[:1] == "$" for key in value):
            yield from self._filed(value, path, to)
        elif isinstance(value, dict):
            yield from self._timed(((key, what, (*path, key)) for key, what in value.items()))
        elif isinstance(value, list):
            yield from self._timed(self._listed(value, path))
        else:
            self._refuse(of_another_type(value, A_TIMELINE), path)

    def _listed(self, value: list[JsonValue], path: Path) -> Iterator[tuple[str, JsonValue, Path]]:
        for index, one in enumerate(value):
            if isinstance(one, dict) and len(one) == 1:
                ((key, what),) = one.items()
                yield key, what, (*path, index, key)
            else:
                expected = "an object with one moment, such as { 5s: ... }"
                self._refuse(of_another_type(one, expected), (*path, index))

    def _timed(self, entries: Iterator[tuple[str, JsonValue, Path]]) -> Iterator[Moment]:
        before = 0
        for key, what, path in entries:
            try:
                micros = microseconds(key.removeprefix("+")) if key != "end" else 0
            except NotADuration:
                self._refuse(replace(not_a_time(key, A_MOMENT), on_key=True), path)
                continue
            if key == "end":
                yield Moment(END, what, path)
            else:
                before = before + micros if key.startswith("+") else micros
                yield Moment(before / SECOND, what, path)

    def _marbles(self, line: str, path: Path, frame: float) -> Iterator[Moment]:
        try:
            drawn = marbles(line, self._names, frame, self._room)
        except NotMarbles as cause:
            self.is_legible = False
            for fault in cause.faults:
                self._refuse(fault, path)
            return
        for each in drawn:
            if each.name == LOSS:
                yield Moment(each.at, None, path, is_loss=True, offset=each.offset)
            else:
                self.used.add(each.name)
                what = self._names[each.name]
                yield Moment(each.at, what, ("messages", each.name), offset=each.offset)

    def _filed(self, value: dict[str, JsonValue], path: Path, to: str | None) -> Iterator[Moment]:
        """Yield the messages of a file, one a line, at equal distances; of a capture, at their moments."""
        for key in value:
            if key not in FILE_KEYS:
                self._refuse(unknown_key(key, FILE_KEYS, value), (*path, key))
        if "$file" not in value:
            expected = "'$file', which names a file of messages"
            if all(key in FILE_KEYS for key in value):
                missing = f"expected {expected}"
                self._refuse(Fault("missing-key", missing, expected=expected), (*path, "$file"))
            return
        text = self._text(value["$file"], (*path, "$file"))
        at = self._micros(value, "$from", path, 0)
        if is_capture(text):
            yield from self._captured(text, value, path, to, at)
            return
        every = self._micros(value, "$every", path, 0)
        room = self._room
        for number, line in enumerate(text.splitlines()):
            if not line.strip():
                continue
            if not room:
                said = f"the timelines of a file have at most {MOST_MOMENTS:,} moments"
                self._refuse(Fault("too-large", said), (*path, "$file"))
                return
            room -= 1
            try:
                yield Moment(at / SECOND, decode(line), path)
            except NotJson as cause:
                spot = Spot(number + 1, 1, str(value["$file"]), line.decode("utf-8", "replace"))
                self._refuse(Fault("wrong-type", f"{cause}", spot=spot), (*path, "$file"))
                return
            at += every

    def _captured(
        self, text: bytes, value: dict[str, JsonValue], path: Path, to: str | None, since: int
    ) -> Iterator[Moment]:
        """Yield what arrived at an input in a capture."""
        name = str(value["$file"])
        at_file = (*path, "$file")
        if "$every" in value:
            said = "a capture tells itself when each message came"
            fault = Fault("conflict", said, "$every", "'$from' alone", on_key=True)
            self._refuse(fault, (*path, "$every"))
        lines = text.splitlines(keepends=True)
        try:
            capture = capture_of(lines, name)
        except NotACapture as cause:
            line = lines[cause.line - 1][:MOST_SHOWN].decode("utf-8", "replace").rstrip()
            spot = Spot(cause.line, 1, name, line)
            self._refuse(Fault("wrong-type", cause.why, spot=spot), at_file)
            return
        found = [each for each in capture.arrivals if each.to == to]
        if to is None:
            said = "a capture tells what arrives at inputs, and nothing else"
            self._refuse(Fault("not-captured", said, shown(name), "a timeline"), at_file)
        elif not found:
            there = one_of(capture.inputs()) if capture.arrivals else "another one: it is empty"
            said = f"{shown(name)} has nothing for '{to}'"
            self._refuse(Fault("not-captured", said, to, there), at_file)
        elif len(found) > self._room:
            said = f"the timelines of a file have at most {MOST_MOMENTS:,} moments"
            self._refuse(Fault("too-large", said), at_file)
        else:
            for each in found:
                micros = since + round(each.at * SECOND)
                yield Moment(micros / SECOND, each.arriving, path)

    def _micros(self, value: Mapping[str, JsonValue], key: str, path: Path, default: int) -> int:
        if key not in value:
            return default
        try:
            return microseconds(value[key])
        except (NotADuration, TypeError):
            self._refuse(not_a_time(value[key]), (*path, key))
            return default

    def _text(self, name: JsonValue, path: Path) -> bytes:
        """Return what is in a file; of one that cannot be read, nothing."""
        if not isinstance(name, str) or not name:
            self._refuse(of_another_type(name, "the name of a file"), path)
            return b""
        try:
            with open((self._folder or FilePath()) / name, "rb", opener=_opened) as file:
                text = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            self._refuse(
                Fault("missing-file", f"there is no file {shown(name)}", shown(name)), path
            )
            return b""
        except (OSError, ValueError) as cause:
            reason = getattr(cause, "strerror", None) or str(cause)
            self._refuse(Fault("unreadable-file", f"{shown(name)} cannot be read: {reason}"), path)
            return b""
        if len(text) > MOST_BYTES:
            told = f"{shown(name)} has more than {MOST_BYTES >> 20} MiB"
            self._refuse(Fault("too-large", told), path)
            return b""
        return text

    def _refuse(self, fault: Fault, path: Path) -> None:
        if len(self.faults) < FAULTS:
            self.faults[replace(fault, path=(*path, *fault.path))] = None


def _opened(path: str, flags: int) -> int:
    """Open a file; whoever waits for the writer of a pipe may wait for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def type_fault(value: Any, expected: str, path: Path) -> Fault:
    """Return the fault of a value of another type, with the value where it is short."""
    fault = of_another_type(value, expected)
    found = json_type(value) if isinstance(value, dict | list) else shown(value)
    said = f"expected {expected}, found {found}"
    return replace(fault, message=said, found=found, path=path)
