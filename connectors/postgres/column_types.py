"""The types of a table that is there: which of them keep the values of ours as they are.

PostgreSQL assigns more than fits. It rounds, cuts and leaves out without a word, and only for what is
too large it has an error. So a type either keeps all that ours can be, or its values have a `Bound`, or
the table is refused. What nobody can tell of, and `float` in a REAL, which is usual, is remarked on.

Source: https://www.postgresql.org/docs/current/typeconv-query.html and /datatype.html
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from headrace.compiler.errors import BuildRefused
from headrace.compiler.text.diagnostics import Fault, Path
from headrace.connectors.postgres.postgres_table import PostgresTable, Types
from headrace.connectors.tables.cells import Bound
from headrace.connectors.tables.output import PAYLOAD


@dataclass(frozen=True, slots=True)
class Loss:
    """What values of one of ours (``kinds``) would lose in types of the database, and the remedy."""

    kinds: str
    types: re.Pattern[str]
    text: str
    remedy: str


_TEXTS = r"text|bpchar|character( varying)?(\(\d+\))?"
KEEPING: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        kind: re.compile(rf"{types}|{_TEXTS}")
        for kind, types in {
            "text": r"(\w+\.)?citext",  # and with a length it is bounded
            "integer": r"smallint|integer|bigint|double precision|numeric(\(\d+,\d+\))?|money",
            "bigint": r"smallint|integer|bigint|numeric(\(\d+,\d+\))?|money",
            "float": "double precision",
            "decimal": "numeric",
            "boolean": "boolean",
            "timestamp": r"timestamp(\(6\))? with(out)? time zone",
            "date": r"date|timestamp(\(\d\))? with(out)? time zone",
            "uuid": "uuid",
            "json": "jsonb?",
        }.items()
    }
)
"""The types that keep values of one of ours as they are, or that PostgreSQL refuses them for."""

BOUNDED: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "text": re.compile(r"character(?: varying)?\((\d{1,9})\)"),
        "integer": re.compile(r"real|numeric\(\d+,(-\d{1,9})\)"),
        "bigint": re.compile(r"real|double precision|numeric\(\d+,(-\d{1,9})\)"),
        "decimal": re.compile(r"numeric\(\d+,(-?\d{1,9})\)"),
        "timestamp": re.compile(r"timestamp\(([0-5])\) with(?:out)? time zone"),
    }
)
"""The types that keep some values as they are, with what they are declared to keep."""

LOSSES = (
    Loss(
        "float",
        re.compile("smallint|integer|bigint"),
        "a float does not fit without rounding",
        "make it double precision, or map it as 'integer' or 'bigint'",
    ),
    Loss(
        "float",
        re.compile("numeric.*"),
        "PostgreSQL rounds a float to 15 digits there",
        "make it double precision, or map it as 'decimal'",
    ),
    Loss(
        "decimal",
        re.compile("smallint|integer|bigint"),
        "a decimal does not fit without rounding",
        "make it numeric, or map it as 'integer' or 'bigint'",
    ),
    Loss(
        "decimal",
        re.compile("real|double precision"),
        "a decimal does not keep its digits there",
        "make it numeric, or map it as 'float'",
    ),
    Loss(
        "decimal", re.compile("money"), "a decimal does not fit without rounding", "make it numeric"
    ),
    Loss(
        "timestamp",
        re.compile("date"),
        "a timestamp loses its time of day there",
        "make it timestamp with time zone, or map it as 'date'",
    ),
    Loss(
        "timestamp",
        re.compile(r"time(\(\d\))? with(out)? time zone"),
        "a timestamp loses its date there",
        "make it timestamp with time zone",
    ),
    Loss(
        "text integer bigint float decimal boolean timestamp date uuid json",
        re.compile('name|"char"'),
        "PostgreSQL cuts there what is too long",
        "make it text",
    ),
)


def unfit(table: PostgresTable, types: Types) -> BuildRefused | None:
    """Return why a table cannot take our rows as they are, for its first column that cannot."""
    for index, column in enumerate(table.columns):
        for loss in LOSSES:
            there = types[column.name]
            if column.type in loss.kinds.split() and loss.types.fullmatch(there.type):
                message = (
                    f"the column '{column.name}' of '{table.name}' is {there}: {loss.text};"
                    f" {loss.remedy}"
                )
                path: Path = ("table",) if column is PAYLOAD else ("columns", index, "type")
                return BuildRefused(Fault("turned-away", message, there.called, path=path))
    return None


def bounds(table: PostgresTable, types: Types) -> dict[str, Bound]:
    """Return what columns ask of their values, by their names."""
    made = {}
    for column in table.columns:
        there = types[column.name].type
        if (form := BOUNDED.get(column.type)) and (match := form.fullmatch(there)):
            made[column.name] = _bound(column.type, there, match[1])
    return made


def remarks(table: PostgresTable, types: Types) -> Iterator[str]:
    """Yield what to warn of: columns that may change a value."""
    for column in table.columns:
        there = types[column.name].type
        where = f"the column '{column.name}' of '{table.name}' is {types[column.name]}"
        if column.type == "text" and there.startswith(("character(", "bpchar")):
            yield f"{where}: blanks at the end of a text do not count there"
        elif column.type == "float" and there == "real":
            yield f"{where}: PostgreSQL rounds values of type 'float' to 6 digits or so there"
        elif not any(
            forms[column.type].fullmatch(there)
            for forms in (KEEPING, BOUNDED)
            if column.type in forms
        ):
            yield (
                f"{where}: values of type '{column.type}' that it cannot hold may be changed in"
                " silence"
            )


def _bound(kind: str, there: str, declared: str | None) -> Bound:
    """Return what a type asks of values of one of ours."""
    if declared is None:
        return Bound(
            _are_singles if there == "real" else _are_doubles,
            f"an integer that is exact as {there}, which the table has",
            "one that would be rounded",
        )
    most = int(declared)
    if kind == "text":
        return Bound(
            lambda values: max(map(len, values), default=0) <= most,
            f"a string of at most {most:,} characters, as the table takes",
            "a longer one",
        )
    what = "a number" if kind != "timestamp" else "a timestamp"
    fits = _without(_finer(most))
    if most < 0:
        return Bound(
            fits, f"{what} that is a multiple of 1e{-most}, as the table keeps", "another one"
        )
    expected = f"{what} of at most {most:,} digits after its point, as the table keeps"
    return Bound(fits, expected, "one of more")


def _are_singles(values: list[int]) -> bool:
    return array("f", values).tolist() == values


def _are_doubles(values: list[int]) -> bool:
    return [*map(float, values)] == values


def _finer(places: int) -> re.Pattern[str]:
    """Return what finds a digit that is too small, in numbers or moments of a line each."""
    if places >= 0:
        return re.compile(rf"\.[0-9]{{{places}}}[0-9]*[1-9]")
    return re.compile(rf"[1-9][0-9]{{0,{-places - 1}}}(?![0-9])|\.[0-9]*[1-9]")


def _without(form: re.Pattern[str]) -> Callable[[list[Any]], bool]:
    return lambda values: form.search("\n".join(map(str, values))) is None
