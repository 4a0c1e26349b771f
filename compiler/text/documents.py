"""Documents: a YAML or JSON text as values that know where they stand.

Both formats go through the same construction, so what a value is, where it stands and why it is
refused does not depend on the spelling. Nothing is repaired or guessed in what is taken; a text that
is refused for a tab or a comma is read as if that were right, so that the rest is checked as well: in
each way that may have been meant.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.compiler.text.composing import VALUES, Building, MalformedDocument
from headrace.compiler.text.decoding import LARGEST, Format, check, check_size, decoded
from headrace.compiler.text.diagnostics import (
    Diagnostic,
    Fault,
    Path,
    Range,
    Severity,
    diagnosed,
    in_file_order,
)
from headrace.compiler.text.jsonsource import read_json
from headrace.compiler.text.mending import MendedLines, mended
from headrace.compiler.text.positions import (
    LineIndex,
    Position,
    Span,
    bounds,
    span,
    spelling_of,
    spelt_at,
)
from headrace.compiler.text.writing import instead_of

_MOST_GOES = 30
"""How often a malformed text is mended and read again, so that the rest of it can be checked.

Each comma too many is one, and each width that a tab may have.
"""
_FEWEST_GOES = 4
"""How often a text is read again however large it is: as many ways as a tab may be meant."""
_READ_AGAIN = 1024 * 1024
"""How many characters are read again in all, beyond that."""


class Unreadable(Exception):
    """A document is refused before anybody looks at what it means.

    ``text`` is what could be read of it, to show the line in question. ``document`` is there when
    it has no other fault than keys that are given twice: what it says can then be checked as well,
    and everything be told at once. ``mended`` is there when the text is malformed, and what was
    meant is certain all the same: good for checking, and for nothing else. Where it may have been
    one of several things there are ``meanings``, and ``diagnostics`` are what they have in common.
    """

    def __init__(
        self,
        diagnostics: list[Diagnostic],
        text: str = "",
        document: Document | None = None,
        mended: Document | None = None,
        meanings: Sequence[Meaning] = (),
    ) -> None:
        super().__init__("; ".join(diagnostic.message for diagnostic in diagnostics))
        self.diagnostics, self.text = diagnostics, text
        self.document, self.mended, self.meanings = document, mended, meanings


@dataclass(frozen=True, slots=True)
class Document:
    """What a text says, and where it says it."""

    file: str | None
    format: Format
    text: str = field(repr=False)
    value: Any
    _place: Position = field(repr=False)
    _lines: LineIndex = field(repr=False)
    _read: str = field(repr=False)
    """The text that places count in: another one if it had to be mended."""

    def position(self, path: Path, on_key: bool = False) -> tuple[int, int] | None:
        """Return line and column of a value, or of the key it stands under.

        Of what does not exist, the nearest value around it.
        """
        place, _, is_there = self._nearest(path)
        key = place.key if on_key and is_there else None
        return self._lines.at(bounds(key or place.span)[0])

    def ranges(self) -> Iterator[tuple[Path, Range]]:
        """Yield each value with where it stands, from its key on if it has one, in the order of the text.

        What is in an alias stands where the alias means, and is told there.
        """
        ahead: list[tuple[Path, Position]] = [((), self._place)]
        while ahead:
            path, place = ahead.pop()
            start, _ = bounds(place.key or place.span)
            yield path, _range(self._read, self._lines, span(start, place.end))
            inside = () if place.spelt is not None or place.inside is None else place.inside
            named = inside.items() if isinstance(inside, dict) else enumerate(inside)
            ahead += [((*path, step), member) for step, member in reversed([*named])]

    def place_of(self, fault: Fault, at: Path = ()) -> tuple[Range, str | None]:
        """Return where that is what a fault that was raised at ``at`` is about, and what would do there.

        What is missing, or a place inside a string, has no end.
        """
        path, spot = (*at, *fault.path), fault.spot
        place, value, is_there = self._nearest(path)
        if spot is not None and spot.file is None and is_there and isinstance(value, str):
            start = place.offset if place.spelt is None else place.spelt
            index = LineIndex(value).offset(spot.line, spot.column)
            return Range(*self._lines.at(spelt_at(self._read, start, value, index))), None
        if not is_there or spot is not None:
            return Range(*self._lines.at(place.offset)), None
        key = place.key if fault.on_key else None
        is_word = key is not None or not isinstance(value, dict | list)
        replacement = None
        if fault.replacement is not None and is_word:
            start, end = bounds(key or place.span)
            replacement = instead_of(self._read[start:end], fault.replacement, self.format)
        return _range(self._read, self._lines, key or place.span), replacement

    def extent(self, path: Path) -> tuple[int, int]:
        """Return where in the text a value begins and has ended: of a block, where something follows."""
        place, _, _ = self._nearest(path)
        return bounds(place.span)

    def written(self, path: Path) -> tuple[int, int]:
        """Return where in the text a string begins and ends that is there, its quotes included."""
        place, value, _ = self._nearest(path)
        start = place.offset if place.spelt is None else place.spelt
        return spelling_of(self._read, start, value)

    def _nearest(self, path: Path) -> tuple[Position, Any, bool]:
        """Return the place of a value, the value, and whether it is there: else what is around it."""
        place, value = self._place, self.value
        for step in path:
            member = place.member(step)
            if member is None:
                return place, value, False
            place, value = member, value[step]
        return place, value, True

    def unseen(self, errors: Iterable[Diagnostic]) -> int:
        """Return how many values nobody looked at, because of errors in it.

        Those are what stands under an unknown key, in a component of an unknown kind, and in an object
        or a list where something else has to be.
        """
        found = {(one.line, one.column, one.code) for one in errors}
        unseen = 0
        for around, place in self._place.members():
            key = None if place.key is None else self._lines.at(bounds(place.key)[0])
            if key is not None and (*key, "unknown-key") in found:
                unseen += max(place.scalars(), 1)
            at = self._lines.at(place.offset)
            if (*at, "unknown-kind") in found:
                unseen += around.scalars() - 1
            elif (*at, "wrong-type") in found:
                unseen += place.scalars()
        return unseen


@dataclass(frozen=True)
class Site:
    """Where something stands in a document, and how that place is called.

    The two differ in a file that is a bare list, where ``pipelines[2]`` stands at ``[2]``.
    """

    document: Document | None = None
    at: Path = ()
    called: Path = ()

    def inside(self, *steps: str | int) -> Site:
        """Return a place within this one."""
        return Site(self.document, (*self.at, *steps), (*self.called, *steps))

    def position(self) -> tuple[int, int] | None:
        """Return the line and the column on which it starts."""
        return None if self.document is None else self.document.position(self.at)

    def line(self) -> int | None:
        """Return the line on which it starts."""
        place = self.position()
        return place and place[0]

    def diagnose(self, fault: Fault) -> Diagnostic:
        """Return a fault that was raised here."""
        path = (*self.called, *fault.path)
        if self.document is None:
            return diagnosed(fault, None, None, path)
        place, replacement = self.document.place_of(fault, self.at)
        return diagnosed(fault, self.document.file, place, path, replacement)


@dataclass(frozen=True, slots=True)
class Meaning:
    """One of the things that a malformed text may mean, and what is wrong with it in that case."""

    document: Document
    diagnostics: list[Diagnostic]
    is_nearest: bool
    """Whether it is the one to take where nothing else decides."""


Judge = Callable[[Document], tuple[object, Iterable[Diagnostic]]]
"""What loads a document: it returns what that describes, and what is wrong with it."""


def likeliest(meanings: Sequence[Meaning], judge: Judge) -> Meaning | None:
    """Return the meaning that was most likely meant; None if that cannot be told.

    It is the one whose keys are best known where they stand, then the one with the fewest errors. Of
    those that are equal in this it is the nearest one, and if that is none of them, nobody can tell.
    """
    measured = [(_faults(each, judge), each) for each in meanings]
    fewest = min((faults for faults, _ in measured), default=None)
    best = [each for faults, each in measured if faults == fewest]
    return best[0] if len(best) == 1 else next((each for each in best if each.is_nearest), None)


def understood(cause: Unreadable, judge: Judge) -> tuple[list[Diagnostic], Document | None]:
    """Return what is told of a text that is refused, and the document that was likely meant."""
    if meaning := likeliest(cause.meanings, judge):
        return [*cause.diagnostics, *meaning.diagnostics], meaning.document
    return cause.diagnostics, cause.document or cause.mended


def _faults(meaning: Meaning, judge: Judge) -> tuple[int, int]:
    """Return how much of it is out of place, and how many errors it has.

    A meaning is no better for having its faults where nobody looks, so each value that nobody looked
    at counts as if it were wrong.
    """
    errors = [
        one
        for one in (*meaning.diagnostics, *judge(meaning.document)[1])
        if one.severity is Severity.ERROR and one.file == meaning.document.file
    ]
    missing = sum(one.code in ("missing-key", "duplicate-key") for one in errors)
    return meaning.document.unseen(errors) + missing, len(errors)


@dataclass(frozen=True, slots=True)
class _Read:
    """What came of reading a text: all that is told of it, and the document if it has one."""

    told: list[Diagnostic]
    document: Document | None = None
    is_malformed: bool = False
    is_nearest: bool = True


@dataclass(slots=True)
class _Reading:
    """One document being read, in as many goes as it takes."""

    format: Format
    file: str | None
    text: str
    most_values: int
    goes: int = 0
    """How often it was read again."""

    def of(self, text: str, lines: LineIndex) -> list[_Read]:
        """Read the text, or one that was mended; what cannot be read is mended further.

        It is read in several ways where each of them may be meant.
        """
        building = Building(lines, most=self.most_values)
        try:
            if self.format == "json":
                read_json(text, building)
            else:
                # Loading libyaml takes its time, and not every process reads YAML.
                from headrace.compiler.text.yamlsource import read_yaml

                read_yaml(text, building)
        except MalformedDocument as cause:
            said = [_diagnosed(cause, lines, self.file)]
            further = self._mended(text, lines, cause) or [_Read(self._told(building, text))]
            return [replace(each, told=[*said, *each.told], is_malformed=True) for each in further]
        document = None
        if all(fault.code == "duplicate-key" for fault, _ in building.faults):
            document = Document(
                self.file, self.format, self.text, building.value, building.place, lines, text
            )
        return [_Read(self._told(building, text), document, bool(building.overlooked))]

    def _mended(self, text: str, lines: LineIndex, cause: MalformedDocument) -> list[_Read]:
        """Return what is read when a text is put right, once for each thing that it then says."""
        found = list[_Read]()
        for way, edits in enumerate(cause.mends):
            self.goes += 1
            if self.goes > max(_FEWEST_GOES, min(_MOST_GOES, _READ_AGAIN // len(text))):
                return []
            other = mended(text, edits)
            again = self.of(other, MendedLines(other, edits, lines))
            nearest = [replace(each, is_nearest=each.is_nearest and way == 0) for each in again]
            # What says the same is dropped at once: a large text has much to say.
            found += [each for each in nearest if not any(_is_same(each, one) for one in found)]
        return found if len(found) == 1 else [each for each in found if each.document is not None]

    def _told(self, building: Building, text: str) -> list[Diagnostic]:
        lines = building.lines
        places = [
            *((fault, _range(text, lines, place)) for fault, place in building.faults),
            *((fault, Range(*lines.at(offset))) for fault, offset in building.overlooked),
        ]
        return [diagnosed(fault, self.file, place, fault.path) for fault, place in places]


def read(
    text: bytes | str, file: str | None, format: Format, most_values: int = VALUES
) -> Document:
    """Read one document.

    Raises: `Unreadable` with everything that is wrong with it, as far as it could be read.
    """
    characters, lines = "", LineIndex("")
    try:
        check_size(text)
        characters = decoded(text)
        lines = LineIndex(characters)
        check(characters, format, text)
    except MalformedDocument as cause:
        told = [_diagnosed(cause, lines, file)]
        raise Unreadable(told, characters) from cause
    readings = _Reading(format, file, characters, most_values).of(characters, lines)
    reading = readings[0]
    if not reading.told and reading.document is not None:
        return reading.document
    common = [one for one in reading.told if all(one in each.told for each in readings)]
    told = in_file_order(common)
    if len(readings) > 1:
        meanings = [
            Meaning(each.document, [one for one in each.told if one not in common], each.is_nearest)
            for each in readings
            if each.document is not None
        ]
        raise Unreadable(told, characters, meanings=meanings)
    if reading.is_malformed:
        raise Unreadable(told, characters, mended=reading.document)
    raise Unreadable(told, characters, reading.document)


def _is_same(one: _Read, other: _Read) -> bool:
    return (
        one.document is not None
        and other.document is not None
        and one.document.value == other.document.value
        and one.told == other.told
    )


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


def _diagnosed(cause: MalformedDocument, lines: LineIndex, file: str | None) -> Diagnostic:
    return diagnosed(cause.fault, file, Range(*lines.at(cause.offset)), cause.fault.path)


def _range(text: str, lines: LineIndex, span: Span) -> Range:
    """Return where something stands, without the line breaks at its end that a YAML block is told with."""
    start, end = bounds(span)
    written = text[start:end].rstrip(" \t\r\n")
    return Range(*lines.at(start), *lines.at(start + len(written)))


def _unread(name: str, fault: Fault) -> Unreadable:
    return Unreadable([diagnosed(fault, name, None, fault.path)])
