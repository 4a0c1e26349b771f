"""What goes into the array of a column: what is written there as it is in JSON.

So a moment or a decimal is text, which the server reads as it is meant: in ISO 8601, with all digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headrace.compiler.delivery import JsonValue
from headrace.connectors.tables import cells
from headrace.connectors.tables.fitting import Cell, shapes

_DIGITS_AS_ZERO = str.maketrans(dict.fromkeys("123456789", "0"))
_TOO_FINE = ".0000000"
"""The server would round to microseconds what we cut off."""
_TOO_FAR = re.compile(r"[+-](1[6-9]|2[0-9]):")
"""The server knows no offset of 16 hours and more."""


def postgres_cells() -> Mapping[str, Cell]:
    """Return the cells of every type. A NUL is no character to the server."""
    return {
        "text": cells.text(nul=False),
        "integer": cells.integer(32),
        "bigint": cells.integer(64),
        "float": cells.float_(),
        "decimal": cells.decimal_text(),
        "boolean": cells.boolean(),
        "timestamp": _moments(cells.timestamp()),
        "date": _dates(cells.date()),
        "uuid": cells.uuid(),
        "json": _decoded(cells.json(nul=False)),
    }


def _dates(cell: Cell) -> Cell:
    """Return the cell of dates: there is one form, and the server knows it."""
    usual = cell.usual
    assert usual is not None

    def one(value: JsonValue) -> JsonValue:
        cell.one(value)
        return value

    def many(values: list[Any], kinds: set[type]) -> list[Any]:
        usual(values, kinds)
        return values

    return Cell(cell.kinds, one, many)


def _moments(cell: Cell) -> Cell:
    """Return the cell of moments: strings of a usual form go over as they are."""
    usual = cell.usual
    assert usual is not None

    def one(value: JsonValue) -> str:
        return _in_utc(cell.one(value))

    def many(values: list[Any], kinds: set[type]) -> list[str]:
        read = usual(values, kinds)
        if kinds == {str} and _are_read_alike(values):
            return values
        return [*map(_in_utc, read)]

    return Cell(cell.kinds, one, many)


def _are_read_alike(values: list[str]) -> bool:
    """Return whether the server reads texts of a usual form as we do."""
    if any(_TOO_FINE in look for look in shapes(values, _DIGITS_AS_ZERO)):
        return False
    return not any(map(_TOO_FAR.match, {value[-6:] for value in values}))


def _in_utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _decoded(cell: Cell) -> Cell:
    """Return the cell of JSON as text."""
    usual = cell.usual
    assert usual is not None

    def one(value: JsonValue) -> str:
        return cell.one(value).decode()  # type: ignore[no-any-return]

    def many(values: list[Any], kinds: set[type]) -> list[str]:
        return b"\n".join(usual(values, kinds)).decode().split("\n")

    return Cell(cell.kinds, one, many)
