"""Documents: a YAML or JSON text as values that know where they stand.

Both formats go through the same construction, so what a value is, where it stands and why it is
refused does not depend on the spelling. Nothing is repaired or guessed in what is taken; a text that
is refused for a tab or a comma is read as if that were right, so that the rest is checked as well.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.compiler.language.building import VALUES, Building, Malformed
from headrace.compiler.language.decoding import LARGEST, Format, check, check_size, decoded
from headrace.compiler.language.diagnostics import (
    Diagnostic,
    Fault,
    Path,
    diagnosed,
    in_file_order,
)
from headrace.compiler.language.jsonsource import read_json
from headrace.compiler.language.mending import Edits, MendedLines, mended
from headrace.compiler.language.places import Lines, Place
from headrace.compiler.language.spelling import spelt_at

_MOST_GOES = 30
"""How often a malformed text is mended and read again, so that the rest of it can be checked.

Each comma too many is one, and each width that a tab may have.
"""
_READ_AGAIN = 1024 * 1024
"""How many characters are read again in all; of a text that is large it is read three times anyway."""


class Unreadable(Exception):
    """A document is refused before anybody looks at what it means.

    ``text`` is what could be read of it, to show the line in question. ``document`` is there when
    it has no other fault than keys that are given twice: what it says can then be checked as well,
    and everything be told at once. ``mended`` is there when the text is malformed, and what was
    meant is certain all the same: good for checking, and for nothing else.
    """

    def __init__(
        self,
        diagnostics: list[Diagnostic],
        text: str = "",
        document: Document | None = None,
        mended: Document | None = None,
    ) -> None:
        super().__init__("; ".join(diagnostic.message for diagnostic in diagnostics))
        self.diagnostics, self.text = diagnostics, text
        self.document, self.mended = document, mended


@dataclass(frozen=True, slots=True)
class Document:
    """What a text says, and where it says it."""

    file: str | None
    text: str = field(repr=False)
    value: Any
    _place: Place = field(repr=False)
    _lines: Lines = field(repr=False)
    _read: str = field(repr=False)
    """The text that places count in: another one if it had to be mended."""

    def position(self, path: Path, on_key: bool = False) -> tuple[int, int] | None:
        """Return line and column of a value, or of the key it stands under.

        Of what does not exist, the nearest value around it.
        """
        place = self._place
        for step in path:
            member = place.member(step)
            if member is None:
                return self._lines.at(place.offset)
            place = member
        return self._lines.at(place.key if on_key and place.key is not None else place.offset)

    def place_of(self, fault: Fault, at: Path = ()) -> tuple[int, int] | None:
        """Return line and column of what a fault that was raised at ``at`` is about."""
        path, spot = (*at, *fault.path), fault.spot
        found = self._find(path)
        if spot is None or spot.file is not None or found is None:
            return self.position(path, fault.on_key)
        place, string = found
        start = place.offset if place.spelt is None else place.spelt
        index = Lines(string).offset(spot.line, spot.column)
        return self._lines.at(spelt_at(self._read, start, string, index))

    def _find(self, path: Path) -> tuple[Place, str] | None:
        """Return a string and its place; None if there is none at that path."""
        place, value = self._place, self.value
        for step in path:
            member = place.member(step)
            if member is None:
                return None
            place, value = member, value[step]
        return (place, value) if isinstance(value, str) else None

    def diagnose(self, fault: Fault, at: Path = ()) -> Diagnostic:
        """Return a fault that was raised at ``at``, with its place in this document."""
        return diagnosed(fault, self.file, self.place_of(fault, at), (*at, *fault.path))


@dataclass(frozen=True, slots=True)
class _Read:
    """What came of reading a text: all that is told of it, and the document if it is certain."""

    told: list[Diagnostic]
    document: Document | None = None
    is_malformed: bool = False


@dataclass(slots=True)
class _Reading:
    """One document being read, in as many goes as it takes."""

    format: Format
    file: str | None
    text: str
    most_values: int
    goes: int = 0
    """How often it was read again."""

    def of(self, text: str, lines: Lines) -> _Read:
        """Read the text, or one that was mended; what cannot be read is mended further."""
        building = Building(lines, most=self.most_values)
        try:
            _reader(self.format)(text, building)
        except Malformed as cause:
            said = [_diagnosed(cause, lines, self.file)]
            if further := self._mended(text, lines, cause):
                return _Read([*said, *further.told], further.document, is_malformed=True)
            return _Read([*said, *self._told(building)], is_malformed=True)
        is_whole = all(fault.code == "duplicate-key" for fault, _ in building.faults)
        document = Document(self.file, self.text, building.value, building.place, lines, text)
        return _Read(
            self._told(building),
            document if is_whole else None,
            is_malformed=bool(building.overlooked),
        )

    def _mended(self, text: str, lines: Lines, cause: Malformed) -> _Read | None:
        """Return what is read when a text is put right, if there is one way only or all mean the same."""
        found = []
        for edits in cause.mends:
            if (again := self._again(text, lines, edits)) is None:
                return None
            found.append(again)
        if len(found) > 1:
            found = [each for each in found if each.document is not None]
        values = [each.document.value for each in found if each.document is not None]
        return found[0] if found and all(value == values[0] for value in values) else None

    def _again(self, text: str, lines: Lines, edits: Edits) -> _Read | None:
        self.goes += 1
        if self.goes > max(3, min(_MOST_GOES, _READ_AGAIN // len(text))):
            return None
        other = mended(text, edits)
        return self.of(other, MendedLines(other, edits, lines))

    def _told(self, building: Building) -> list[Diagnostic]:
        return [
            diagnosed(fault, self.file, building.lines.at(offset), fault.path)
            for fault, offset in (*building.faults, *building.overlooked)
        ]


def read(
    text: bytes | str, file: str | None, format: Format, most_values: int = VALUES
) -> Document:
    """Read one document.

    Raises: `Unreadable` with everything that is wrong with it, as far as it could be read.
    """
    characters, lines = "", Lines("")
    try:
        check_size(text)
        characters = decoded(text)
        lines = Lines(characters)
        check(characters, format, text)
    except Malformed as cause:
        told = [_diagnosed(cause, lines, file)]
        raise Unreadable(told, characters) from cause
    reading = _Reading(format, file, characters, most_values).of(characters, lines)
    if not reading.told and reading.document is not None:
        return reading.document
    told = in_file_order(reading.told)
    if reading.is_malformed:
        raise Unreadable(told, characters, mended=reading.document)
    raise Unreadable(told, characters, reading.document)


def read_file(
    path: pathlib.Path, format: Format | None = None, called: str | None = None
) -> Document:
    """Read the document in a file: ``.yaml`` and ``.yml`` are YAML, all other names are JSON.

    ``format`` is for files that are in one format whatever they are called. ``called`` is the file
    in what is told of it; left out, its path.

    Raises: `Unreadable`, also for a file that is not there or cannot be read.
    """
    name = str(path) if called is None else called
    try:
        with open(path, "rb", opener=_opened) as file:
            text = file.read(LARGEST + 1)
    except FileNotFoundError as cause:
        raise _unread(name, Fault("missing-file", "no such file")) from cause
    except (OSError, ValueError) as cause:  # the latter for a NUL in the name
        reason = getattr(cause, "strerror", None) or str(cause)
        raise _unread(name, Fault("unreadable-file", f"cannot be read: {reason}")) from cause
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    return read(text, name, format or ("yaml" if is_yaml else "json"))


def _opened(path: str, flags: int) -> int:
    """Open a file, and wait for no writer of a pipe that has none: it then reads as empty."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _reader(format: Format) -> Callable[[str, Building], None]:
    if format == "json":
        return read_json
    # Loading libyaml takes its time, and not every process reads YAML.
    from headrace.compiler.language.yamlsource import read_yaml

    return read_yaml


def _diagnosed(cause: Malformed, lines: Lines, file: str | None) -> Diagnostic:
    return diagnosed(cause.fault, file, lines.at(cause.offset), cause.fault.path)


def _unread(name: str, fault: Fault) -> Unreadable:
    return Unreadable([diagnosed(fault, name, None, fault.path)])
