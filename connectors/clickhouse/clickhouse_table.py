"""A table of ClickHouse: how one is declared, and whether one that is there takes our rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from headrace.compiler import jsontext
from headrace.compiler.errors import BuildRefused
from headrace.compiler.text.diagnostics import Fault, Path
from headrace.compiler.text.suggest import nearest, one_of
from headrace.connectors.clickhouse.native import PACKERS, native_type
from headrace.connectors.tables.output import PAYLOAD
from headrace.connectors.tables.rows import StoredColumn

RECEIVED_AT = "received_at"
"""The column of a table without a sorting key of its own."""

COMPUTED = ("ALIAS", "MATERIALIZED")
"""What a column is that the server fills by itself."""

KINDRED: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        kind: re.compile(types)
        for kind, types in {
            "text": r"String|Enum(8|16)\(.*|IPv[46]|UUID",
            "integer": r"Int(32|64|128|256)|Float64|String",
            "bigint": r"Int(64|128|256)|String",
            "float": r"Float64|String",
            "decimal": r"Decimal\((3[89]|[4-7]\d), 9\)|Decimal\(76, (9|[1-3]\d)\)|String",
            "boolean": r"Bool|U?Int\d+|String",
            "timestamp": r"DateTime64\([3-6](, '[^']+')?\)|String",
            "date": r"Date32|String",
            "uuid": r"UUID|String",
            "json": r"String|JSON.*|Object.*",
        }.items()
    }
)
"""The types of ClickHouse that values of one of ours go into as they are, or not at all."""

_WRAPPED = re.compile(r"(?:LowCardinality|Nullable)\((.*)\)")
_FINER = re.compile(r"DateTime64\([4-9]\b.*")


@dataclass(frozen=True, slots=True)
class ClickHouseTable:
    """The table of an output. ``order_by`` is its sorting key; empty: by the time of arrival.

    Its database is empty where that of the connection is meant.
    """

    database: str
    name: str
    columns: Sequence[StoredColumn]
    order_by: tuple[str, ...]

    @property
    def quoted(self) -> str:
        """Its name in a statement."""
        return f'"{self.name}"'

    @property
    def creation(self) -> str:
        """The statement that creates it."""
        declared = [f'"{each.name}" {native_type(each)}' for each in self.columns]
        if not self.order_by and RECEIVED_AT not in self.names:
            declared.insert(0, f"\"{RECEIVED_AT}\" DateTime64(3, 'UTC') DEFAULT now64(3)")
        return (
            f"CREATE TABLE IF NOT EXISTS {self.quoted} ({', '.join(declared)})"
            f" ENGINE = MergeTree ORDER BY ({_listed(self.order_by or (RECEIVED_AT,))})"
        )

    @property
    def insertion(self) -> str:
        """The statement that takes rows."""
        return f"INSERT INTO {self.quoted} ({_listed(self.names)}) FORMAT Native"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(each.name for each in self.columns)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def described(answer: bytes) -> dict[str, tuple[str, str]]:
    """Return type and kind of default of each column, from lines ``["name", "type", "kind", ...]``.

    Raises: ValueError for anything else.
    """
    rows: list[Any] = [jsontext.decode(line) for line in answer.splitlines()]
    if not all(isinstance(row, list) and len(row) >= 3 for row in rows):
        raise ValueError("no description of a table")
    return {row[0]: (row[1], row[2]) for row in rows}


def unfit(table: ClickHouseTable, found: Mapping[str, tuple[str, str]]) -> BuildRefused | None:
    """Return why a table that is there cannot take our rows, for its first column that cannot."""
    for index, column in enumerate(table.columns):
        path: Path = ("table",) if column is PAYLOAD else ("columns", index, "name")
        if column.name not in found:
            return BuildRefused(
                Fault(
                    "turned-away",
                    f"the table '{table.name}' has no column '{column.name}'",
                    expected=one_of([*found]),
                    path=path,
                ).meaning(nearest(column.name, found))
            )
        if (kind := found[column.name][1]) in COMPUTED:
            return BuildRefused(
                Fault(
                    "turned-away",
                    f"the column '{column.name}' of '{table.name}' is computed ({kind})",
                    expected="a column that rows are given",
                    path=path,
                )
            )
    return None


def bare(type_name: str) -> str:
    """Return a type without what wraps it: ``LowCardinality(Nullable(String))`` is a String."""
    while wrapped := _WRAPPED.fullmatch(type_name):
        type_name = wrapped[1]
    return type_name


def has_other_types(table: ClickHouseTable, found: Mapping[str, tuple[str, str]]) -> bool:
    """Return whether the server has something to convert, beside what may be NULL."""
    return any(bare(found[each.name][0]) != PACKERS[each.type][0] for each in table.columns)


def narrow(table: ClickHouseTable, found: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield what to warn of: columns that may change a value."""
    for column in table.columns:
        there = bare(found[column.name][0])
        if not KINDRED[column.type].fullmatch(there):
            yield (
                f"the column '{column.name}' of '{table.name}' is {there}: values of type"
                f" '{column.type}' that it cannot hold may be changed in silence"
            )


def finer(table: ClickHouseTable, found: Mapping[str, tuple[str, str]]) -> frozenset[str]:
    """Return the timestamps of which the table keeps more than milliseconds."""
    return frozenset(
        each.name
        for each in table.columns
        if each.type == "timestamp" and _FINER.fullmatch(bare(found[each.name][0]))
    )
