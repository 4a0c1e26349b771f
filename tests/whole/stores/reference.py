"""What columns are to make of a message, told as plainly as it can be, for tests to compare with.

Nothing here knows how headrace does it: a message is read by the standard library, each column by a
few lines, one value at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

Json = dict[str, Any]

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = {"integer": 2**31, "bigint": 2**63}


class No(Exception):
    """A column does not take a value."""


@dataclass(frozen=True)
class Database:
    """How databases differ in what their columns hold."""

    takes_nul: bool = False
    moments: tuple[date, date] = (date(1, 1, 2), date(9999, 12, 30))
    """The first day and the last one that a moment may be on, in UTC."""
    dates: tuple[date, date] = (date.min, date.max)
    exactness: timedelta = timedelta(microseconds=1)
    """How exactly a moment is kept."""
    digits: tuple[int, int] | None = None
    """Of a decimal, before and after the point; None where there are as many as were written."""

    def taken(self, kind: str, value: Any) -> Any:
        """Return what a column of a type holds for a value. Raises `No`."""
        number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        match kind:
            case "text" if isinstance(value, str):
                return self._without_nul(value)
            case "boolean" if isinstance(value, bool):
                return value
            case "integer" | "bigint" if number and isinstance(value, int):
                return _within(value, _LARGEST[kind])
            case "float" if number:
                return _double(value)
            case "decimal" if number:
                return self._decimal(Decimal(value))
            case "timestamp" if number:
                return self._moment(lambda: _EPOCH + timedelta(microseconds=round(value * 10**6)))
            case "timestamp" if isinstance(value, str) and _MOMENT.fullmatch(value):
                return self._moment(lambda: datetime.fromisoformat(value.upper()).astimezone(UTC))
            case "date" if isinstance(value, str) and _DATE.fullmatch(value):
                return self._date(value)
            case "uuid" if isinstance(value, str) and _UUID.fullmatch(value):
                return UUID(value)
            case "json":
                self._without_nul(
                    json.dumps(_plain(value), ensure_ascii=False).replace("\\u0000", "\0")
                )
                return value
        raise No

    def _without_nul(self, text: str) -> str:
        if "\0" in text and not self.takes_nul:
            raise No
        return text

    def _moment(self, made: Any) -> datetime:
        try:
            moment = made()
        except (ValueError, OverflowError) as cause:
            raise No from cause
        _between(*self.moments, moment.date())
        return moment

    def _date(self, text: str) -> date:
        try:
            found = date.fromisoformat(text)
        except ValueError as cause:
            raise No from cause
        return _between(*self.dates, found)

    def _decimal(self, number: Decimal) -> Decimal:
        if self.digits is None:
            return number
        before, after = self.digits
        if abs(number) >= 10**before or Fraction(number) * 10**after % 1:
            raise No
        return number


POSTGRES = Database()
CLICKHOUSE = Database(
    takes_nul=True,
    moments=(date(1900, 1, 1), date(2299, 12, 31)),
    dates=(date(1900, 1, 1), date(2299, 12, 31)),
    exactness=timedelta(milliseconds=1),
    digits=(29, 9),
)


@dataclass(frozen=True)
class Fate:
    """What becomes of a message: a row, or the name of the column that refuses it; or nothing at all."""

    row: Mapping[str, Any] | None = None
    refused_by: str | None = None


def fate(database: Database, columns: Sequence[Json], text: str) -> Fate:
    """Return what is to become of a message. One that a column leaves out is refused by no other."""
    message = json.loads(text, parse_float=Decimal)
    found = {column["name"]: _found(column, message) for column in columns}
    if any(
        each.get("on_missing") == "skip_row" and found[each["name"]] is None for each in columns
    ):
        return Fate()
    row: dict[str, Any] = {}
    for column in columns:
        name = column["name"]
        try:
            row[name] = _taken(database, column, found[name])
        except No:
            return Fate(refused_by=name)
    return Fate(row)


def _taken(database: Database, column: Json, value: Any) -> Any:
    if value is not None:
        return database.taken(column["type"], value)
    if not column.get("nullable", True) or column.get("on_missing") == "error":
        raise No
    return None


def differences(
    database: Database,
    columns: Sequence[Json],
    wanted: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Iterator[str]:
    """Yield in words where a row that is stored is not the one that is wanted."""
    for column in columns:
        name = column["name"]
        if not _is_same(database, column["type"], wanted[name], stored[name]):
            yield f"{name}: {stored[name]!r} is not {wanted[name]!r}"


def _found(column: Json, message: Any) -> Any:
    if column.get("message"):
        return message
    return message.get(column["name"]) if isinstance(message, dict) else None


def _is_same(database: Database, kind: str, wanted: Any, stored: Any) -> bool:
    if wanted is None or stored is None:
        return wanted is stored
    match kind:
        case "decimal" if database.digits is None:
            return _digits(wanted) == _digits(stored)
        case "timestamp":
            return bool(abs(wanted - stored) <= database.exactness)
        case "json":
            return _is_same_json(wanted, json.loads(stored))
        case "boolean":
            return wanted is stored
    return bool(wanted == stored)


def _is_same_json(wanted: Any, stored: Any) -> bool:
    if isinstance(
        wanted, Decimal
    ):  # what has a point or an exponent counts as the double next to it
        return not isinstance(stored, bool | str) and float(wanted) == float(stored)
    if isinstance(wanted, list):
        return len(wanted) == len(stored) and all(map(_is_same_json, wanted, stored))
    if isinstance(wanted, dict):
        return wanted.keys() == stored.keys() and all(
            _is_same_json(value, stored[key]) for key, value in wanted.items()
        )
    return type(wanted) is type(stored) and bool(wanted == stored)


def _digits(number: Decimal) -> str:
    """Return all digits, those of an exponent as well; no database keeps the sign of a zero."""
    return format(number if number else abs(number), "f")


def _double(number: int | Decimal) -> float:
    try:
        double = float(number)
    except OverflowError as cause:
        raise No from cause
    return double


def _within(number: int, largest: int) -> int:
    if not -largest <= number < largest:
        raise No
    return number


def _between(first: date, last: date, found: date) -> date:
    if not first <= found <= last:
        raise No
    return found


def _plain(value: Any) -> Any:
    """Return a value with its numbers as the standard library writes them."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value
