"""A document being put together, value by value, in the order in which its text has them.

What reads JSON and what reads YAML tell the same `Building` what they come across, so both give
the same values, places and refusals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headrace.compiler.text.diagnostics import Codes, Fault, printable, shown
from headrace.compiler.text.mending import Edits
from headrace.compiler.text.positions import LineIndex, Position, Span, bounds, span

CODES: Codes = {
    "alias": "A YAML alias names nothing that stands above it, or the value it is part of.",
    "duplicate-key": "An object gives the same key twice.",
    "too-many-aliases": "YAML aliases blow the document up to a size beyond reason.",
}

DEPTH = 128
"""How deeply lists and objects may be nested, as in messages."""

VALUES = 1_000_000
"""How many values a document may contain, aliases aside: each costs half a kilobyte once it is read.

A hundred thousand pipelines are half of that, and 16 MiB of ``[],[],[]`` eight times as many.
"""

ALIASED = 100_000
"""How many values all aliases of a document may bring in together.

Nine lists of nine aliases each are ten lines of text and a billion values.
"""

FAULTS = 100
"""How many faults of its values a document is told at once."""


class MalformedDocument(Exception):
    """The text cannot be read on: the fault, and the offset where it shows.

    ``mends`` are ways to put the text right, where whoever wrote it can only have meant one of them:
    of several the first one, where nothing else decides.
    """

    def __init__(self, fault: Fault, offset: int, mends: Iterable[Edits] = ()) -> None:
        super().__init__(fault.message)
        self.fault, self.offset, self.mends = fault, offset, mends


@dataclass(slots=True)
class _Node:
    """A value, where it stands, how many values it is made of and how deeply they are nested."""

    value: Any
    place: Position
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class _Open(_Node):
    """A list or an object that has begun and not ended; in an object, the key that is next."""

    height: int = 1
    anchor: str | None = None
    key: str | None = None
    key_span: Span = 0


@dataclass(slots=True)
class Building:
    """The document so far.

    What is wrong with one value or key is noted in ``faults`` with its place, and reading goes on
    with null in its place, so that a document tells all of its faults at once. What is wrong
    with the text around values is ``overlooked``, with an offset: they all stand there as they are
    meant. What leaves the rest without meaning raises `MalformedDocument`.
    """

    lines: LineIndex
    value: Any = None
    place: Position = field(default_factory=lambda: Position(0))
    faults: list[tuple[Fault, Span]] = field(default_factory=list)
    overlooked: list[tuple[Fault, int]] = field(default_factory=list)
    most: int = VALUES
    """How many values it may contain, aliases aside."""
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, _Node] = field(default_factory=dict)
    _aliased: int = 0
    _values: int = 0

    @property
    def is_open(self) -> bool:
        """Whether a list or an object has begun and not ended."""
        return bool(self._open)

    @property
    def innermost(self) -> Position:
        """Where the list or object starts that is open now."""
        return self._open[-1].place

    @property
    def in_object(self) -> bool:
        """Whether what is open now is an object."""
        return self.is_open and isinstance(self._open[-1].value, dict)

    @property
    def is_empty(self) -> bool:
        """Whether what is open now contains nothing yet."""
        return not self._open[-1].value

    @property
    def wants_key(self) -> bool:
        """Whether the next scalar is a key."""
        return self.in_object and self._open[-1].key is None

    def refuse(self, fault: Fault, at: Span) -> None:
        """Note what is wrong with the value or the key that is next.

        Only the first ones are kept: a text made to be wrong must not cost more than that.
        """
        if len(self.faults) < FAULTS:
            steps = (o.key if isinstance(o.value, dict) else len(o.value) for o in self._open)
            path = tuple(step for step in steps if step is not None)
            self.faults.append((dataclasses.replace(fault, path=path), at))

    def overlook(self, fault: Fault, offset: int) -> None:
        """Note what is wrong with the text between values; the first ones of it."""
        if len(self.overlooked) < FAULTS:
            self.overlooked.append((fault, offset))

    def key(self, name: str, at: Span, anchor: str | None = None) -> None:
        """Take the key of the next value. Of two values under one key the first one stays."""
        inner = self._open[-1]
        if anchor is not None:
            self._anchors[anchor] = _Node(name, Position(at))
        inner.key, inner.key_span = name, at
        if name in inner.value and len(self.faults) < FAULTS:
            first = inner.place.member(name) or inner.place
            line, column = self.lines.at(bounds(first.key or first.span)[0])
            fault = Fault(
                "duplicate-key",
                f"duplicate key '{printable(name)}': first given on line {line}, column {column}",
                found=shown(name),
                expected="each key once",
                on_key=True,
            )
            self.refuse(fault, at)

    def scalar(self, value: Any, at: Span, anchor: str | None = None) -> None:
        """Take a value that contains no others, or the fault it has."""
        if isinstance(value, Fault):
            self.refuse(value, at)
            value = None
        place = Position(at)
        self._add(value, place, 1, 0)
        if anchor is not None:
            self._anchors[anchor] = _Node(value, place)

    def begin(
        self, value: dict[str, Any] | list[Any], offset: int, anchor: str | None = None
    ) -> None:
        """Take the beginning of an object or a list."""
        if len(self._open) == DEPTH:
            raise MalformedDocument(_TOO_DEEP, offset)
        if anchor is not None:
            # From here to its end the name means the value that contains the alias.
            self._anchors.pop(anchor, None)
        inside: Any = {} if isinstance(value, dict) else []
        place = Position(span(offset, offset), inside=inside)
        self._open.append(_Open(value, place, anchor=anchor))

    def end(self, offset: int | None = None) -> None:
        """Take the end of what was begun last; without an offset it ends with the last value in it."""
        ended = self._open.pop()
        place = ended.place
        place.span = span(place.offset, place.last().end if offset is None else offset)
        self._add(ended.value, ended.place, ended.size, ended.height)
        if ended.anchor is not None:
            self._anchors[ended.anchor] = ended

    def alias(self, name: str, at: Span) -> None:
        """Take a value that stands above, under a name."""
        node = self._anchors.get(name)
        if node is None:
            is_inside = any(inner.anchor == name for inner in self._open)
            return self.scalar(_ENDLESS if is_inside else _UNNAMED, at)
        offset, _ = bounds(at)
        self._aliased += node.size
        if self._aliased > ALIASED:
            message = f"the aliases up to here stand for more than {ALIASED:,} values"
            raise MalformedDocument(Fault("too-many-aliases", message), offset)
        if len(self._open) + node.height > DEPTH:
            raise MalformedDocument(_TOO_DEEP, offset)
        place = Position(at, inside=node.place.inside, spelt=node.place.offset)
        self._add(node.value, place, node.size, node.height)

    def _add(self, value: Any, place: Position, size: int, height: int) -> None:
        self._values += 1
        if self._values > self.most:
            fault = Fault("too-large", f"a document has at most {self.most:,} values")
            raise MalformedDocument(fault, place.offset)
        if not self._open:
            self.value, self.place = value, place
            return
        inner = self._open[-1]
        inner.size += size
        if height >= inner.height:
            inner.height = height + 1
        inside: Any = inner.place.inside
        if inner.key is None:
            inner.value.append(value)
            inside.append(place)
            return
        place.key = inner.key_span
        inner.value.setdefault(inner.key, value)
        inside.setdefault(inner.key, place)
        inner.key = None


_ENDLESS = Fault("alias", "this alias stands for a value that contains it")
_UNNAMED = Fault(
    "alias",
    "this alias names nothing that stands above",
    suggestion="put a text that starts with '*' in quotes",
)
_TOO_DEEP = Fault("too-deep", f"lists and objects are nested more than {DEPTH} deep")
