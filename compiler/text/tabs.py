"""What is meant by tabs that indent YAML, which has none: the ways in which they may have been meant.

Editors show a tab as wide as they are told to, and who wrote one saw its line stand under another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headrace.compiler.text.mending import Edit, Edits

_WIDTHS = (2, 4, 8)
"""How wide a tab may be meant: as far as the next column that is a multiple of it."""

_MOST_TABS = 10_000
"""In a text with more lines that tabs indent nothing is mended."""

_LINE = re.compile(r"(?:\A|(?<=[\r\n]))([ \t]*+)([^\r\n]*+)")
_ITEM = re.compile(r"-(?:[ \t]++|\Z)")
_OPENING = re.compile(r"(?:.*:)?[ \t]*+(?:#.*)?\Z")


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
