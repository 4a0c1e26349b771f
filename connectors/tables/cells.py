"""Cells: what a value has to be to go into a column of a type, and what a driver is handed for it.

`CELLS` has one for every type. Those of numbers are in `numbers.py`, of moments and dates in `moments.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headrace.compiler import jsontext
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.records import json_type
from headrace.connectors.tables.fitting import Cell, Misfit, Unusual, shapes
from headrace.connectors.tables.moments import date, timestamp
from headrace.connectors.tables.numbers import decimal, decimal_text, float_, integer

__all__ = [
    "CELLS",
    "boolean",
    "date",
    "decimal",
    "decimal_text",
    "float_",
    "integer",
    "json",
    "text",
    "timestamp",
    "uuid",
]

_HEX_AS_ZERO = str.maketrans(dict.fromkeys("123456789abcdefABCDEF", "0"))
_UUID = "00000000-0000-0000-0000-000000000000"
_JSON_NUL = b"\\u0000"


def text(*, nul: bool = True) -> Cell:
    """Return the cell of strings; ``nul`` tells whether they may hold a NUL character."""

    def one(value: JsonValue) -> str:
        if type(value) is not str:
            raise Misfit("a string", json_type(value))
        _check_characters(value, "a string", nul=nul)
        return value

    def usual(values: list[str], _kinds: set[type]) -> list[str]:
        _check_characters("".join(values), "a string", nul=nul)
        return values

    return Cell(frozenset({str}), one, usual)


def boolean() -> Cell:
    """Return the cell of booleans."""

    def one(value: JsonValue) -> bool:
        if type(value) is not bool:
            raise Misfit("a boolean", json_type(value))
        return value

    return Cell(frozenset({bool}), one, None)


def uuid() -> Cell:
    """Return the cell of UUIDs: strings of 8-4-4-4-12 hexadecimal digits, of either case."""

    def one(value: JsonValue) -> str:
        if type(value) is not str:
            raise Misfit("a UUID in a string", json_type(value))
        if value.translate(_HEX_AS_ZERO) != _UUID:
            raise Misfit("8-4-4-4-12 hexadecimal digits", "another string")
        return value

    def usual(values: list[str], _kinds: set[type]) -> list[str]:
        if shapes(values, _HEX_AS_ZERO) != {_UUID}:
            raise Unusual
        return values

    return Cell(frozenset({str}), one, usual)


def json(*, nul: bool = True) -> Cell:
    """Return the cell of any JSON; ``nul`` tells whether its strings and keys may hold a NUL."""

    def one(value: JsonValue) -> bytes:
        try:
            written = jsontext.encode(value)
        except UnicodeEncodeError:
            raise Misfit("JSON", "a string with half a character (a lone surrogate)") from None
        except ValueError:
            raise Misfit("JSON", "an integer of more than 4,300 digits") from None
        except RecursionError:
            raise Misfit("JSON", "a value that is nested too deeply") from None
        if not nul and _JSON_NUL in written and _holds_nul(value):
            raise Misfit("JSON", "a string with a NUL character")
        return written

    def usual(values: list[Any], _kinds: set[type]) -> list[bytes]:
        lines = jsontext.encode_lines(values)
        if not nul and _JSON_NUL in lines:  # or a backslash before these letters
            raise Unusual
        return lines.split(b"\n")[:-1]

    return Cell(None, one, usual)


def _check_characters(text: str, expected: str, *, nul: bool) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Misfit(expected, "one with half a character (a lone surrogate)") from None
    if not nul and "\0" in text:
        raise Misfit(expected, "one with a NUL character")


def _holds_nul(value: JsonValue) -> bool:
    """Return whether a string or a key of a value has a NUL."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any("\0" in key or _holds_nul(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_holds_nul, value))


CELLS: Mapping[str, Cell] = MappingProxyType(
    {
        "text": text(),
        "integer": integer(32),
        "bigint": integer(64),
        "float": float_(),
        "decimal": decimal(),
        "boolean": boolean(),
        "timestamp": timestamp(),
        "date": date(),
        "uuid": uuid(),
        "json": json(),
    }
)
"""The cell of every type, by its word in a config, for a database that takes whatever Python can hold.

What a driver is handed:

- text: str, without lone surrogates
- integer, bigint: int, of 32 and 64 bits
- float: float, finite
- decimal: Decimal, finite, with the digits as written
- boolean: bool
- timestamp: datetime, always aware, of whatever offset
- date: date
- uuid: str, 8-4-4-4-12 hexadecimal digits of either case
- json: bytes, compact JSON text in UTF-8

A database overrides what it takes otherwise: ``{**CELLS, "text": text(nul=False)}``.
"""
