"""Signs put right in a text that is not quite YAML, so that the rest of it can be checked as well.

What is read of a mended text is checked and never run: its fault refuses the document. Places in it are
told as those of the text that somebody wrote.

A tab that indents, as YAML has none, may have been meant in several ways: editors show it as wide as they
are told to, and who wrote one saw its line stand under another.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from headrace.compiler.text.positions import LineIndex

_MOST_REFERENCES = 100
"""Of references on one line these are looked at: each looks for where its text begins."""

_FLOW_TEXT = re.compile(r"(?:\$\{[^{}\r\n]*+\}|[^\s,{}\[\]#\"'\\]|[ \t]++(?![,}\]#\r\n]|\Z))*+")
_BEFORE = re.compile(r"(?:[\[,]|(?<!\$)\{|:(?=[ \t]))[ \t]*+")
_REFERENCE = re.compile(r"\$\{\w+\}", re.ASCII)


_WIDTHS = (2, 4, 8)
"""How wide a tab may be meant: as far as the next column that is a multiple of it."""

_MOST_TABS = 10_000
"""In a text with more lines that tabs indent nothing is mended."""

_LINE = re.compile(r"(?:\A|(?<=[\r\n]))([ \t]*+)([^\r\n]*+)")
_ITEM = re.compile(r"-(?:[ \t]++|\Z)")
_OPENING = re.compile(r"(?:.*:)?[ \t]*+(?:#.*)?\Z")


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
        nearest = bisect_right(self._begins, offset) - 1
        if nearest >= 0:
            edit, into = self._edits[nearest], offset - self._begins[nearest]
            beyond = into - len(edit.instead)
            within = min(into, max(edit.length - 1, 0))
            offset = edit.at + (within if beyond < 0 else edit.length + beyond)
        return self._before.at(offset)


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


def with_blanks_for_tabs(text: str, at: int) -> Iterator[Edits]:
    """Yield what makes blanks of the tabs that indent, once for each way they may be meant.

    First comes the way in which each goes on with what is innermost above it, then one for each width.
    Nothing if the tab that is in the way, the one at ``at``, indents no line.
    """
    found = [(each.start(), each[1]) for each in _LINE.finditer(text) if "\t" in each[1]]
    if len(found) > _MOST_TABS or not any(0 <= at - start < len(tabs) for start, tabs in found):
        return
    yield [
        Edit(start, len(tabs), " " * column)
        for (start, tabs), column in zip(found, _innermost(text), strict=True)
    ]
    for width in _WIDTHS:
        yield [Edit(start, len(tabs), tabs.expandtabs(width)) for start, tabs in found]


def _innermost(text: str) -> Iterator[int]:
    """Yield for each line that tabs indent the column where it goes on with what is above it.

    Of lines with tabs that follow each other the first one decides; each further tab is two columns.
    """
    levels = _Levels()
    first: tuple[int, int] | None = None
    for each in _LINE.finditer(text):
        indent, rest = each[1], each[2]
        column = shown = len(indent.expandtabs(_WIDTHS[0]))
        is_said = rest != "" and not rest.startswith("#")
        if "\t" in indent:
            if first is None and is_said:
                first = shown, levels.next(rest)
            column = shown if first is None else max(first[1] + shown - first[0], 0)
            yield column
        elif is_said:
            first = None
        if is_said:
            levels.take(column, rest)


@dataclass(slots=True)
class _Levels:
    """The columns at which lists and objects stand that have not ended, outermost first."""

    items: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    is_opening: bool = False
    """Whether the last line ends with what has its value below it."""

    def next(self, line: str) -> int:
        """Return where a line stands that goes on with the innermost of what it can belong to."""
        if self.is_opening and self.keys:
            return self.keys[-1] + 2
        siblings: Sequence[int] = self.items if _ITEM.match(line) else self.keys
        return siblings[-1] if siblings else 0

    def take(self, column: int, line: str) -> None:
        """Take what a line begins."""
        self._end(column)
        at = 0
        while item := _ITEM.match(line, at):
            if self.items[-1:] != [column + at]:
                self.items.append(column + at)
            at = item.end()
            self._end(column + at)
        if self.keys[-1:] != [column + at]:
            self.keys.append(column + at)
        self.is_opening = _OPENING.match(line, at) is not None

    def _end(self, column: int) -> None:
        for levels in (self.items, self.keys):
            while levels and levels[-1] > column:
                levels.pop()
