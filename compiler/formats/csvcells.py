"""The cells of columns with a type, converted a column at a time where all of them are usual.

What Python's own readers take and a cast does not (underscores, digits of other scripts, `nan`) is seen in
the column as a whole. Whatever is unusual raises `ValueError`, and is cast cell by cell then: that is the
truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from headrace.compiler.casts import CASTS, COMMA, float_with_comma, written_float
from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import Decoding

CellCast = Callable[[str], JsonValue]
"""Returns what a cell that is not empty stands for, or raises a `CastError`."""
ColumnCast = Callable[[Sequence[str]], Sequence[JsonValue]]
"""Returns what the cells of a column stand for, empty ones for null; else raises `ValueError`."""


def as_strings(cells: Sequence[str]) -> Sequence[JsonValue]:
    """Return the cells of a column without a type."""
    return [cell or None for cell in cells] if "" in cells else cells


def cast_of(word: str, decimal: str, decoding: Decoding) -> CellCast:
    """Return the cast of a cell to a type."""
    if word == "json":
        return partial(CASTS["json"], decoding=decoding)
    if word == "float":
        usual: CellCast = float_with_comma if decimal == COMMA else CASTS["float"]
        return (
            partial(written_float, cast=usual, decimal=decimal) if decoding.keeps_digits else usual
        )
    return CASTS[word]


def converting(word: str, decimal: str, decoding: Decoding) -> ColumnCast:
    """Return what converts a column to a type."""
    if word == "float" and not decoding.keeps_digits:
        return _floats_with_comma if decimal == COMMA else _floats
    if word == "integer":
        return _integers
    if word == "text":
        return as_strings
    cast = cast_of(word, decimal, decoding)
    return lambda cells: [cast(cell) if cell else None for cell in cells]


def _floats(cells: Sequence[str]) -> Sequence[JsonValue]:
    _check(cells, "_nN")
    if "" not in cells:
        numbers = [*map(float, cells)]
        total = sum(numbers)
    else:
        numbers = [float(cell) if cell else None for cell in cells]  # type: ignore[misc]
        total = sum(filter(None, numbers))
    if not math.isfinite(total):
        raise ValueError
    return numbers


def _floats_with_comma(cells: Sequence[str]) -> Sequence[JsonValue]:
    _check(cells, ".")
    return _floats([cell.replace(COMMA, ".") for cell in cells])


def _integers(cells: Sequence[str]) -> Sequence[JsonValue]:
    _check(cells, "_")
    if "" not in cells:
        return [*map(int, cells)]
    return [int(cell) if cell else None for cell in cells]


def _check(cells: Sequence[str], unusual: str) -> None:
    joined = "".join(cells)
    if not joined.isascii() or any(character in joined for character in unusual):
        raise ValueError
