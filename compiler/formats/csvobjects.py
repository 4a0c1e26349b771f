"""Rows that become objects: many at once, which have the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import repeat
from typing import Any

from headrace.compiler.delivery import Batch

MOST_WRITTEN_OUT = 64
"""Names up to which an object is made by a display of its own, in half the time."""

MadeOf = Callable[[Iterable[Sequence[Any]]], Batch]
"""Returns an object for each row."""


def made_of(names: Sequence[str]) -> MadeOf:
    """Return what makes objects that have these names, in order."""
    if len(names) <= MOST_WRITTEN_OUT:
        return _display(len(names))(*names)
    return lambda rows: [*map(dict, map(zip, repeat(names), rows))]


@cache
def _display(width: int) -> Callable[..., MadeOf]:
    """Return what takes so many names: values to the source, which has nothing of what is posted."""
    names = [f"n{place}" for place in range(width)]
    cells = [f"c{place}" for place in range(width)]
    pairs = ", ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
    made: Callable[..., MadeOf] = eval(
        f"lambda {', '.join(names)}: lambda rows: [{{{pairs}}} for {', '.join(cells)}, in rows]", {}
    )
    return made
