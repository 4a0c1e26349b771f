"""A column of a batch as one text: the literal of an array, which the server takes apart.

An array in the server's own form is asked cell by cell what it is, which takes four times as long. The
literal is nearly JSON: numbers, booleans, null and quoted strings are the same in both. So a moment or a
decimal is handed over as text as well, which the server reads as it is meant: in ISO 8601, with all digits.

Source: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import in_slices
from headrace.connectors.tables import cells, moments
from headrace.connectors.tables.cells import Cell, shapes

ArrayLiteral = Callable[[list[object]], str]

_DIGITS_AS_ZERO = str.maketrans(dict.fromkeys("123456789", "0"))
_TOO_FINE = ".0000000"
"""The server would round to microseconds what we cut off."""
_TOO_FAR = re.compile(r"[+-](1[6-9]|2[0-9]):")
"""The server knows no offset of 16 hours and more."""


def plain(values: list[object]) -> str:
    """Return the array of values whose JSON has no escapes, or no others than of ``"`` and ``\\``.

    JSON as text has its control characters escaped, so it is one of those.
    """
    return f"{{{encode(values)[1:-1].decode()}}}"


def strings(values: list[object]) -> str:
    """Return the array of any strings. In it a backslash stands for nothing but the next character."""
    written = encode(values)
    if b"\\" not in written:
        return f"{{{written[1:-1].decode()}}}"
    return f"{{{','.join('null' if value is None else _quoted(str(value)) for value in values)}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


async def of_large(write: ArrayLiteral, values: list[object], clock: Clock) -> str:
    """Return what ``write`` does of a long column. Others have their turns meanwhile."""
    pieces = await in_slices(values, lambda some: write(some)[1:-1], clock)
    return f"{{{','.join(pieces)}}}"


def postgres_cells() -> Mapping[str, Cell]:
    """Return the cells of every type: what is written as it is in JSON. A NUL is no character here."""
    return {
        "text": cells.text(nul=False),
        "integer": cells.integer(32),
        "bigint": cells.integer(64),
        "float": cells.float_(),
        "decimal": cells.decimal_text(),
        "boolean": cells.boolean(),
        "timestamp": _moments(moments.timestamp()),
        "date": _dates(moments.date()),
        "uuid": cells.uuid(),
        "json": _decoded(cells.json(nul=False)),
    }


def _dates(cell: Cell) -> Cell:
    """Return the cell of dates: there is one form, and the server knows it."""

    def read(value: str) -> str:
        cell.read(value)
        return value

    def many(values: list[Any], kinds: set[type]) -> list[Any]:
        cell.usual(values, kinds)
        return values

    return replace(cell, read=read, usual=many)


def _moments(cell: Cell) -> Cell:
    """Return the cell of moments: strings of a usual form go over as they are."""

    def read(value: str | float) -> str:
        return _in_utc(cell.read(value))

    def many(values: list[Any], kinds: set[type]) -> list[str]:
        read = cell.usual(values, kinds)
        is_alike = kinds == {str} and _are_read_alike(values)
        return values if is_alike else [*map(_in_utc, read)]

    return replace(cell, read=read, usual=many)


def _are_read_alike(values: list[str]) -> bool:
    """Return whether the server reads texts of a usual form as we do."""
    if any(_TOO_FINE in look for look in shapes(values, _DIGITS_AS_ZERO)):
        return False
    return not any(map(_TOO_FAR.match, {value[-6:] for value in values}))


def _in_utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _decoded(cell: Cell) -> Cell:
    """Return the cell of JSON as text."""

    def read(value: JsonValue) -> str:
        return cell.read(value).decode()  # type: ignore[no-any-return]

    def many(values: list[Any], kinds: set[type]) -> list[str]:
        return b"\n".join(cell.usual(values, kinds)).decode().split("\n")

    return replace(cell, read=read, usual=many)
