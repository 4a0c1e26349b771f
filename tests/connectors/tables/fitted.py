"""What a cell makes of a value, in either way, and values of other types."""

from __future__ import annotations

import pytest

from headrace.compiler import jsontext
from headrace.connectors.tables.cells import Cell, Misfit
from headrace.connectors.tables.columns import CELLS

NAN, INFINITY = float("nan"), float("inf")
ENDLESS = pytest.param(10**5000, id="endless")  # which has no text of its own to be called by
HALF = "a\ud800b"
DEEPLY: list = []
for _ in range(100_000):
    DEEPLY = [DEEPLY]


def exact(text):
    """Return a number as a pipeline with a decimal column decodes it."""
    return jsontext.decode_exact(text.encode())


def told(cell, value):
    """Return why a cell refuses a value."""
    with pytest.raises(Misfit) as refusal:
        cell.one(value)
    assert surprised(cell, value), "the usual way takes what the plain one refuses"
    return str(refusal.value)


def surprised(cell, value):
    try:
        cell.many([value], {type(value)})
    except Exception:
        return True
    return False


def taken(cell: Cell, value, expected):
    """Assert what a cell makes of a value, to the type and the last digit, in either way."""
    assert repr(cell.one(value)) == repr(expected)
    if not surprised(cell, value):
        assert repr(cell.many([value], {type(value)})) == repr([expected])


def usually(type_, values):
    """Return what the usual way makes of a column: a usual one is not left to the plain way."""
    cell = CELLS[type_]
    return cell.many(values, set(map(type, values)))


NO_NUMBERS = [
    (True, "a boolean"),
    ("1", "a string"),
    ([1], "a list"),
    ({"a": 1}, "an object"),
]
NO_STRINGS = [
    (True, "a boolean"),
    (7, "a number"),
    (7.5, "a number"),
    (exact("7.50"), "a number"),
    (["a"], "a list"),
    ({"a": "b"}, "an object"),
]
