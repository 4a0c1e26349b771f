"""Of rows with one key in one batch the last one: a statement cannot update a row twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from headrace.connectors.drivers.postgres_table import Table

_EQUALS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"decimal": Decimal, "timestamp": datetime.fromisoformat, "uuid": str.lower}
)
"""What of a value, as it is sent, is equal where the server finds it equal; of others, itself."""


class Latest:
    """Leaves of each key the last row, as if the rows were written one after the other."""

    def __init__(self, table: Table) -> None:
        places = {each.name: place for place, each in enumerate(table.columns)}
        kinds = {each.name: each.type for each in table.columns}
        self._key = [(places[name], _EQUALS.get(kinds[name])) for name in table.primary_key]

    def __call__(self, columns: list[list[Any]]) -> list[list[Any]]:
        """Return the columns without the rows that a later one replaces; the order stays."""
        keys = zip(*(self._comparable(columns, *each) for each in self._key), strict=True)
        last = {key: row for row, key in enumerate(keys)}
        if len(last) == len(columns[0]):
            return columns
        kept = sorted(last.values())
        return [[column[row] for row in kept] for column in columns]

    def _comparable(
        self, columns: Sequence[list[Any]], place: int, equal: Callable[[Any], Any] | None
    ) -> Sequence[Any]:
        column = columns[place]
        return column if equal is None else [equal(value) for value in column]
