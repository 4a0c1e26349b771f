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
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.formats.csvobjects import AS_IT_IS
from headrace.compiler.jsontext import Decoding

CellCast = Callable[[str], JsonValue]
"""Returns what a cell that is not empty stands for, or raises a `CastError`."""
ColumnCast = Callable[[Sequence[str]], Sequence[JsonValue]]
"""Returns what the cells of a column stand for, empty ones for null; else raises `ValueError`."""


ColumnCheck = Callable[[Sequence[str], Batch, str], None]
"""Raises `ValueError` unless the cells of a column are usual, which are in messages under a name."""


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


UNUSUAL_FLOATS, UNUSUAL_INTEGERS = "_nN", "_"
LONGEST_FINITE = 300
"""Characters of a number without an exponent that is within the range of doubles, whatever they are."""


def source_of(word: str, decimal: str, decoding: Decoding) -> str:
    """Return how a cell of a type is written in a display of objects (`csvobjects.py`)."""
    if word == "float" and not decoding.keeps_digits:
        comma = f".replace({COMMA!r}, '.')" if decimal == COMMA else ""
        return f"float({{0}}{comma}) if {{0}} else None"
    if word == "integer":
        return "int({0}) if {0} else None"
    return AS_IT_IS if word == "text" else "{1} if {0} else None"


def checking(word: str, decimal: str, decoding: Decoding) -> ColumnCheck | None:
    """Return what looks whether a column that was converted by its source is as its cast would be."""
    if word == "float" and not decoding.keeps_digits:
        return _check_floats_with_comma if decimal == COMMA else _check_floats
    return _check_integers if word == "integer" else None


def _check_integers(cells: Sequence[str], messages: Batch, name: str) -> None:
    _check(cells, UNUSUAL_INTEGERS)


def _check_floats(cells: Sequence[str], messages: Batch, name: str) -> None:
    joined = _check(cells, UNUSUAL_FLOATS)
    if "e" in joined or "E" in joined or max(map(len, cells)) > LONGEST_FINITE:
        total = sum(filter(None, [message[name] for message in messages]))
        if not math.isfinite(total):
            raise ValueError


def _check_floats_with_comma(cells: Sequence[str], messages: Batch, name: str) -> None:
    _check(cells, ".")
    _check_floats(cells, messages, name)


def _floats(cells: Sequence[str]) -> Sequence[JsonValue]:
    _check(cells, UNUSUAL_FLOATS)
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
    _check(cells, UNUSUAL_INTEGERS)
    if "" not in cells:
        return [*map(int, cells)]
    return [int(cell) if cell else None for cell in cells]


def _check(cells: Sequence[str], unusual: str) -> str:
    joined = "".join(cells)
    if not joined.isascii():
        raise ValueError
    for character in unusual:
        if character in joined:
            raise ValueError
    return joined
