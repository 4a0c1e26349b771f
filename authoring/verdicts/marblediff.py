"""What is wrong with a timeline, drawn: two lines of marbles, and a remark for each thing that is wrong.

A column is a moment. A letter is a batch that was expected and the one that came for it; of more than three
at one moment, those that are right are a number in brackets. ``…`` stands for moments that are left out.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from headrace.authoring.language.durations import told
from headrace.authoring.verdicts.timelinediff import (
    DRAWN_BATCHES,
    BatchDifference,
    DifferenceKind,
    MarbleColumn,
    TimelineDifference,
)

WIDEST = 100
"""Columns of a terminal that a line takes at most."""

_SIGNS: Mapping[DifferenceKind, str] = {
    "differs": "!",
    "moved": "~",
    "missing": "-",
    "unexpected": "+",
}
_LETTERS = string.ascii_letters
_EACH = 5
"""Differences of one batch that are told."""
_LETTERED = 3
"""Batches of one moment that have a letter each, whether they are right or wrong."""
_INDENT = 12
"""Where the marbles begin, and the moments of the remarks."""
_LONGEST_PATH = 50


def drawn(difference: TimelineDifference, name: str, where: str) -> list[str]:
    """Return the lines that tell what is wrong with a timeline, under its name and where it is written."""
    batches = difference.batches[:DRAWN_BATCHES]
    letters = _letters(difference.columns, {each.number for each in batches})
    differing = {each.number for each in batches if each.kind == "differs"}
    lines = [
        f"{_padded(f'  {name}', _INDENT - 2)}  {where}",
        *_marbles(difference, {n: f"{x}!" if n in differing else x for n, x in letters.items()}),
        *_remarks(batches, letters),
    ]
    more = difference.more + len(difference.batches) - len(batches)
    return [*lines, f"{'':{_INDENT}}and {more:,} more"] if more else lines


def _letters(columns: Sequence[MarbleColumn], wrong: set[int]) -> dict[int, str]:
    """Return the letters of the pairs that have one."""
    numbers = set(wrong)
    for column in columns:
        there = {*column.expected, *column.came}
        if len(there) <= _LETTERED:
            numbers |= there
    return {number: _LETTERS[at % len(_LETTERS)] for at, number in enumerate(sorted(numbers))}


def _marbles(difference: TimelineDifference, marks: Mapping[int, str]) -> Iterator[str]:
    """Yield a line of moments and two of marbles, and again where the columns are too many for that."""
    lines = ["", "", ""]
    for column in difference.columns:
        cells = (
            told(column.at),
            _marked(column.expected, marks),
            _marked(column.came, marks),
        )
        width = max(map(len, cells))
        if len(lines[0]) + width + 1 >= WIDEST - _INDENT:
            yield from _labelled(lines)
            lines = ["", "", ""]
        gap = "…" if column.is_after_gap else "-"
        lines[0] += f" {cells[0]:<{width}}"
        lines[1] += f"{gap}{cells[1]:-<{width}}"
        lines[2] += f"{gap}{cells[2]:-<{width}}"
    if difference.goes_on:
        lines[1:] = [f"{line}…" for line in lines[1:]]
    yield from _labelled(lines)


def _marked(numbers: Sequence[int], marks: Mapping[int, str]) -> str:
    rest = sum(number not in marks for number in numbers)
    text = "".join(marks.get(number, "") for number in numbers)
    return f"{text}({rest})" if rest else text


def _labelled(lines: Sequence[str]) -> Iterator[str]:
    for label, line in zip(("", "  expected", "  came"), lines, strict=True):
        yield f"{label:<{_INDENT}}{line}".rstrip()


def _remarks(batches: Sequence[BatchDifference], letters: Mapping[int, str]) -> Iterator[str]:
    width = max(len(told(each.at)) for each in batches)
    start = _INDENT + width + 2
    for each in batches:
        sign = f"  {_SIGNS[each.kind]} {letters[each.number]}"
        for text in _said(each, WIDEST - start):
            first, *others = text
            yield f"{sign:<{_INDENT}}{told(each.at):<{width}}  {first}"
            yield from (f"{'':{start}}{other}" for other in others)


def _said(batch: BatchDifference, room: int) -> Iterator[list[str]]:
    """Yield what is told of a batch, each remark in as many lines as it takes."""
    match batch.kind:
        case "missing":
            yield [_fitted(f"never came: {batch.batch}", room)]
        case "unexpected":
            yield [_fitted(f"nobody expected: {batch.batch}", room)]
        case "moved":
            assert batch.came_at is not None
            yield [f"came at {told(batch.came_at)}"]
        case "differs":
            for each in batch.differences[:_EACH]:
                path = each.path
                if len(path) > _LONGEST_PATH:
                    path = f"…{path[1 - _LONGEST_PATH :]}"
                expected = (
                    f"{path}: expected {each.expected}," if path else f"expected {each.expected},"
                )
                whole = f"{expected} found {each.found}"
                is_short = cell_len(whole) <= room
                parts = [whole] if is_short else [expected, f"found {each.found}"]
                yield [_fitted(part, room) for part in parts]
            if more := batch.more + max(0, len(batch.differences) - _EACH):
                yield [f"and {more:,} more"]


def _fitted(text: str, room: int) -> str:
    return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
