"""Dotted paths as a value: how a message is read, written and cleared by one.

A path is a literal key of the top level if the message has it; else its segments lead down through
objects only. There are no indices, no wildcards and no escapes. These methods are the plain truth
that generated code (`compiler/code.py`) is compared with: written to be read, not to be fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from headrace.compiler.delivery import JsonValue


class Missing(Enum):
    """The type of `MISSING`, so that a checker can tell it from a value."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING
"""What reading gives where nothing is: not null, which is a value."""


class ScalarInTheWay(ValueError):
    """A path cannot be written because something on the way to it is not an object."""

    def __init__(self, path: DottedPath, segment: str) -> None:
        super().__init__(f"cannot write '{path.text}': '{segment}' is not an object")
        self.path, self.segment = path, segment


@dataclass(frozen=True, slots=True)
class DottedPath:
    """Where a value is in a message, as a config writes it: ``temp``, ``_meta.subject``."""

    text: str
    segments: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.text.split(".")))

    @property
    def is_plain(self) -> bool:
        """Whether it is one key of the top level, without a dot."""
        return len(self.segments) == 1

    def read(self, message: JsonValue) -> JsonValue | Missing:
        """Return the value, or `MISSING`; every field of what is not an object is missing."""
        if isinstance(message, dict) and self.text in message:
            return message[self.text]
        value = message
        for segment in self.segments:
            if not isinstance(value, dict) or segment not in value:
                return MISSING
            value = value[segment]
        return value

    def write(self, message: dict[str, Any], value: JsonValue) -> dict[str, Any]:
        """Return the message with the value in place: copied along the path, shared elsewhere.

        Missing objects are created.

        Raises: ScalarInTheWay where something on the way is no object. Null is none: it is a value
        that somebody sent, and writing through it would lose it unseen.
        """
        return self._written(message, self._way(message), value)

    def remove(self, message: JsonValue) -> JsonValue:
        """Return the message without it, parents kept even if empty; itself if nothing is there."""
        return _removed(message, self._way(message))

    def changed(
        self, value: JsonValue, change: Callable[[JsonValue], JsonValue | Missing]
    ) -> JsonValue:
        """Return a value with all that the path may lead to changed; what becomes `MISSING` is removed.

        Other than where messages are read, no way is left out: it leads through lists as well, and each
        key may be several of its segments. What is not on the way is shared.
        """
        return _changed(value, self.segments, change)

    def _way(self, message: JsonValue) -> Sequence[str]:
        is_literal = isinstance(message, dict) and self.text in message
        return (self.text,) if is_literal else self.segments

    def _written(
        self, parent: dict[str, Any], segments: Sequence[str], value: JsonValue
    ) -> dict[str, Any]:
        head, rest = segments[0], segments[1:]
        if not rest:
            return {**parent, head: value}
        child = parent.get(head, {})
        if not isinstance(child, dict):
            raise ScalarInTheWay(self, head)
        return {**parent, head: self._written(child, rest, value)}


def _removed(parent: JsonValue, segments: Sequence[str]) -> JsonValue:
    head, rest = segments[0], segments[1:]
    if not isinstance(parent, dict) or head not in parent:
        return parent
    if not rest:
        left = (
            parent.copy()
        )  # as a block, where a comprehension hashes: 13 ms for a million, not 500
        del left[head]
        return left
    child = _removed(parent[head], rest)
    return parent if child is parent[head] else {**parent, head: child}


def _changed(
    value: JsonValue,
    segments: Sequence[str],
    change: Callable[[JsonValue], JsonValue | Missing],
) -> JsonValue:
    if isinstance(value, list):
        return [_changed(each, segments, change) for each in value]
    if not isinstance(value, dict):
        return value
    made = value
    for size in range(1, len(segments) + 1):
        key, rest = ".".join(segments[:size]), segments[size:]
        if key not in value:
            continue
        became = _changed(value[key], rest, change) if rest else change(value[key])
        if became is MISSING:
            made = {name: each for name, each in made.items() if name != key}
        else:
            made = {**made, key: became}
    return made
