"""Rows that become objects: many at once, which have the same names and types.

Up to so many columns that is a display of its own, in half the time. What Python's own readers take and a
cast does not is seen in the columns afterwards (`csvcells.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from headrace.compiler.delivery import Batch, JsonValue

MOST_WRITTEN_OUT = 64
"""Columns up to which a display is written."""

ObjectsOf = Callable[[Sequence[Sequence[str]]], Batch]
"""Returns an object for each row; raises `ValueError` where one has another number of cells."""
CellSource = str
"""What stands for a cell `{0}` that is not empty; `{1}` is the call of what converts it."""

AS_IT_IS: CellSource = "{0} or None"


class NamedCell(NamedTuple):
    """A cell that becomes a field."""

    name: str
    source: CellSource
    cast: Callable[[str], JsonValue]
    """What converts it, where the source calls that."""


def objects_of(cells: Sequence[NamedCell | None]) -> ObjectsOf:
    """Return what makes objects of rows that have these cells, in order; None leaves one out."""
    sources = tuple(None if cell is None else cell.source for cell in cells)
    values = [part for cell in cells if cell is not None for part in (cell.name, cell.cast)]
    return _display(sources)(*values)


@lru_cache(maxsize=256)
def _display(sources: Sequence[CellSource | None]) -> Callable[..., ObjectsOf]:
    """Return what takes names and casts: values to the source, which has nothing of what is posted."""
    kept = [place for place, source in enumerate(sources) if source is not None]
    given = ", ".join(f"n{place}, f{place}" for place in kept)
    pairs = ", ".join(
        f"n{place}: {str(sources[place]).format(f'c{place}', f'f{place}(c{place})')}"
        for place in kept
    )
    cells = ", ".join(f"c{place}" for place in range(len(sources)))
    made: Callable[..., ObjectsOf] = eval(
        f"lambda {given}: lambda rows: [{{{pairs}}} for {cells}, in rows]", {}
    )
    return made
