"""Of rows with one key in one batch the last one: a statement cannot update a row twice."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain
from types import MappingProxyType
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import parts
from headrace.compiler.largejson import SLICE_MESSAGES, Turn, in_slices
from headrace.connectors.postgres.postgres_table import Table, Types

Equal = Callable[[Any], Any]
"""Returns of a value, as it is sent, what is equal where the server finds the two equal."""


class Latest:
    """Leaves of each key the last row, as if the rows were written one after the other."""

    def __init__(self, table: Table, types: Types) -> None:
        places = {each.name: place for place, each in enumerate(table.columns)}
        kinds = {each.name: each.type for each in table.columns}
        self._key = [
            (places[name], _equal(kinds[name], types[name].type)) for name in table.primary_key
        ]

    def __call__(self, columns: list[list[Any]]) -> list[list[Any]]:
        """Return the columns without the rows that a later one replaces; the order stays."""
        keys = zip(*(self._comparable(columns, *each) for each in self._key), strict=True)
        last = {key: row for row, key in enumerate(keys)}
        if len(last) == len(columns[0]):
            return columns
        kept = sorted(last.values())
        return [[column[row] for row in kept] for column in columns]

    async def of_large(self, columns: list[list[Any]], clock: Clock) -> list[list[Any]]:
        """The same for many rows. Others have their turns meanwhile."""
        last: dict[Any, int] = {}
        turn = Turn(clock)
        for rows in parts(range(len(columns[0])), SLICE_MESSAGES):
            some = [column[rows[0] : rows[-1] + 1] for column in columns]
            keys = zip(*(self._comparable(some, *each) for each in self._key), strict=True)
            last.update(zip(keys, rows, strict=True))
            await turn.end()
        if len(last) == len(columns[0]):
            return columns
        kept = sorted(last.values())
        return [await _picked(column, kept, clock) for column in columns]

    def _comparable(
        self, columns: Sequence[list[Any]], place: int, equal: Equal | None
    ) -> Sequence[Any]:
        column = columns[place]
        return column if equal is None else [equal(value) for value in column]


async def _picked(column: list[Any], kept: list[int], clock: Clock) -> list[Any]:
    """Return some rows of a column."""
    pieces = await in_slices(kept, lambda rows: [column[row] for row in rows], clock)
    return [*chain.from_iterable(pieces)]


def _equal(kind: str, there: str) -> Equal | None:
    """Return how values of one of our types are compared in a type of the table; None: as they are."""
    if kind == "json":
        return _document if there == "jsonb" else None
    if kind == "float" and there == "real":
        return _single
    if kind == "text" and (there == "citext" or there.endswith(".citext")):
        return str.lower
    if there.startswith("character("):
        return _without_blanks
    return _EQUALS.get(kind)


def _document(text: str) -> Any:
    return _frozen(json.loads(text, parse_float=Decimal, parse_int=Decimal))


def _frozen(value: Any) -> Any:
    """Return a document as what compares as JSONB does: numbers by value, keys in any order."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return (bool, value) if isinstance(value, bool) else value


def _single(value: float) -> float:
    return array("f", [value])[0]


def _without_blanks(value: Any) -> str:
    return str(value).rstrip(" ")


_EQUALS: Mapping[str, Equal] = MappingProxyType(
    {"decimal": Decimal, "timestamp": datetime.fromisoformat, "uuid": str.lower}
)
