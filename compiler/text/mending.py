"""Signs put right in a text that is not quite YAML, so that the rest of it can be checked as well.

What is read of a mended text is checked and never run: its fault refuses the document. Places in it are
told as those of the text that somebody wrote.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from headrace.compiler.text.positions import LineIndex

_MOST_REFERENCES = 100
"""Of references on one line these are looked at: each looks for where its text begins."""

_FLOW_TEXT = re.compile(r"(?:\$\{[^{}\r\n]*+\}|[^\s,{}\[\]#\"'\\]|[ \t]++(?![,}\]#\r\n]|\Z))*+")
_BEFORE = re.compile(r"(?:[\[,]|(?<!\$)\{|:(?=[ \t]))[ \t]*+")
_REFERENCE = re.compile(r"\$\{\w+\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Edit:
    """So many characters from an offset on, and what is read in their place."""

    at: int
    length: int
    instead: str


Edits = Sequence[Edit]
"""Edits of one text, from its beginning to its end; none touches another."""


def mended(text: str, edits: Edits) -> str:
    """Return the text with all of them made."""
    pieces, done = [], 0
    for edit in edits:
        pieces += [text[done : edit.at], edit.instead]
        done = edit.at + edit.length
    return "".join([*pieces, text[done:]])


class MendedLines(LineIndex):
    """Lines of a mended text: an offset in it has the place of the same character in the one before."""

    def __init__(self, text: str, edits: Edits, before: LineIndex) -> None:
        super().__init__(text)
        self._edits, self._before = edits, before
        self._begins: list[int] = []
        grown = 0
        for edit in edits:
            self._begins.append(edit.at + grown)
            grown += len(edit.instead) - edit.length

    def at(self, offset: int) -> tuple[int, int]:
        """Return line and column in the text as it was written."""
        return self._before.at(self._origin(offset))

    def _origin(self, offset: int) -> int:
        nearest = bisect_right(self._begins, offset) - 1
        if nearest < 0:
            return offset
        edit, into = self._edits[nearest], offset - self._begins[nearest]
        if into < len(edit.instead):
            return edit.at + min(into, max(edit.length - 1, 0))
        return edit.at + edit.length + into - len(edit.instead)


def without_comma(text: str, at: int) -> Edits | None:
    """Return what takes out a comma behind which nothing stands on its line, if one stands there."""
    return [Edit(at, 1, " ")] if re.compile(r",[ \t]*+(?:#|[\r\n]|\Z)").match(text, at) else None


def in_quotes(text: str, start: int) -> Edits | None:
    """Return what puts a text in quotes that starts inside ``{ }`` or ``[ ]``, if it can be told."""
    whole = _FLOW_TEXT.match(text, start)
    if whole is None or whole.end() == start:
        return None
    return [Edit(start, 0, '"'), Edit(whole.end(), 0, '"')]


def is_in_brackets(text: str, at: int) -> bool:
    """Return whether a bracket is open on the line, up to there."""
    line = text[_line(text, at) : at]
    return sum(map(line.count, "[{")) > sum(map(line.count, "]}"))


def reference_at(text: str, at: int) -> tuple[str, Edits] | None:
    """Return a ``${NAME}`` whose brace YAML takes for the beginning of an object, if one is there.

    It begins on the line of ``at``, and the text that it is a part of goes on beyond. With it goes
    what puts that text in quotes.
    """
    line = _line(text, at)
    for reference in islice(_REFERENCE.finditer(text, line), _MOST_REFERENCES):
        if reference.start() >= at:
            return None
        before = _BEFORE.finditer(text, line, reference.start())
        edits = in_quotes(text, max((each.end() for each in before), default=line))
        if edits and edits[-1].at > at:
            return reference[0], edits
    return None


def _line(text: str, at: int) -> int:
    """Return where the line of an offset begins."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
