"""The types a text or a number can be cast to. A value that is there and will not convert is an error.

So is a text of more than `LONGEST` characters, but as a text, which it is already.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeGuard

from headrace.compiler import jsontext
from headrace.compiler.decimals import FLOATS, NUMBERS, exact
from headrace.compiler.delivery import JsonValue
from headrace.compiler.jsontext import Decoding
from headrace.compiler.schema.records import json_type
from headrace.compiler.timestamps import rfc3339, rfc3339_of_seconds

LONGEST = 131_072
"""Characters of a text that is converted: those of the longest cell of a table. JSON of as many takes 10 to
20 ms, if it is nothing but brackets or slow numbers; half as long again where their digits are kept."""
_LONGEST_BOOLEAN = len("false")
# Python's own readers take more than these: underscores, digits of other scripts, `nan`.
_INTEGER = re.compile(r"[+-]?[0-9]+")
# The point comes before its digits: `[0-9]+\.?[0-9]*` tries every way to share a run of digits out.
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}
_USUAL = Decoding()


class CastError(ValueError):
    """A value will not convert. The text names types only: values would make each error another."""

    def __init__(self, value: JsonValue, wanted: str, expected: str) -> None:
        super().__init__(f"cannot read {json_type(value)} as {wanted}: expected {expected}")


def _is_text(value: JsonValue, wanted: str) -> TypeGuard[str]:
    """Return whether a value is a text; raise `CastError` for a long one, before it is looked at."""
    if type(value) is not str:
        return False
    if len(value) > LONGEST:
        raise CastError(value, wanted, f"at most {LONGEST:,} characters")
    return True


def text(value: JsonValue) -> str:
    """Return a string as it is, a number or boolean as JSON writes it."""
    if type(value) is str:
        return value
    if isinstance(value, bool | int | float):
        try:
            return jsontext.text(value)
        except ValueError as cause:
            raise CastError(value, "text", "at most 4,300 digits") from cause
    raise CastError(value, "text", "a string, number or boolean")


def are_texts(*values: JsonValue) -> bool:
    """Return whether every value that is there can be a text."""
    try:
        for value in values:
            if value is not None:
                text(value)
    except CastError:
        return False
    return True


def integer(value: JsonValue) -> int:
    """Return a whole number, or the one a string holds: sign and digits and nothing else."""
    if type(value) is int:
        return value
    if type(value) in FLOATS and value.is_integer():
        return int(value)
    if _is_text(value, "an integer") and _INTEGER.fullmatch(digits := value.strip()):
        try:
            return int(digits)
        except ValueError as cause:
            raise CastError(value, "an integer", "at most 4,300 digits") from cause
    raise CastError(value, "an integer", "a whole number, or its digits in a string")


def float_(value: JsonValue) -> JsonValue:
    """Return a number as it is, or the one a string holds: that as a double, in every pipeline."""
    if type(value) in NUMBERS:
        return value
    if _is_text(value, "a float") and _DECIMAL.fullmatch(decimal := value.strip()):
        number = float(decimal)
        if math.isfinite(number):
            return number
    raise CastError(value, "a float", "a number within the range of doubles, or one in a string")


COMMA = ","
DECIMAL_MARKS = (".", COMMA)
"""What may stand before the decimals of a number in a text."""


def float_with_comma(value: JsonValue) -> JsonValue:
    """Return what `float_` does, of a string whose decimals stand behind a comma: ``12,5``.

    A point in it is refused: where a comma is the mark of decimals, it would be that of thousands.
    """
    if _is_text(value, "a float"):
        if "." not in value:
            try:
                return float_(value.replace(COMMA, "."))
            except CastError:
                pass
        raise CastError(value, "a float", "a number with a comma before its decimals")
    return float_(value)


def written_float(value: str, *, cast: Callable[[JsonValue], JsonValue], decimal: str) -> JsonValue:
    """Return what ``cast`` does of a text, with its digits remembered where JSON could have them."""
    number = cast(value)
    digits = value.strip().replace(decimal, ".")
    return exact(digits) if len(digits) > 1 and _JSON_NUMBER.fullmatch(digits) else number


def boolean(value: JsonValue) -> bool:
    """Return a boolean, or what 1, 0 and the words true and false in any case stand for."""
    if type(value) is bool:
        return value
    if type(value) is int and value in (0, 1):
        return value == 1
    if _is_text(value, "a boolean"):
        word = value.strip()
        # Longer ones are not made small.
        if len(word) <= _LONGEST_BOOLEAN and (word := word.lower()) in _BOOLEANS:
            return _BOOLEANS[word]
    raise CastError(value, "a boolean", "true, false, 1 or 0")


def timestamp(value: JsonValue) -> str:
    """Return RFC 3339, in the offset of the value."""
    return _moment(value, "a timestamp")


def date(value: JsonValue) -> str:
    """Return the calendar date, in the offset of the value."""
    return _moment(value, "a date")[:10]


def uuid(value: JsonValue) -> str:
    """Return the canonical hyphenated form in lower case; no other is taken."""
    if _is_text(value, "a uuid") and _UUID.fullmatch(canonical := value.strip()):
        return canonical.lower()
    raise CastError(value, "a uuid", "8-4-4-4-12 hexadecimal digits")


def json(value: JsonValue, decoding: Decoding = _USUAL) -> JsonValue:
    """Return what the JSON in a string stands for, decoded as usual or as a pipeline does."""
    if _is_text(value, "JSON"):
        try:
            body = value.encode()
            # Looked at however short it is, since a batch has many.
            if not decoding.has_slow_numbers(body):
                try:
                    return decoding.decode_usual(body)
                except ValueError:
                    pass
            return decoding.decode_unusual(body)
        except ValueError as cause:
            raise CastError(value, "JSON", "well-formed JSON") from cause
    raise CastError(value, "JSON", "a string that holds JSON")


def _moment(value: JsonValue, wanted: str) -> str:
    is_text = _is_text(value, wanted)
    try:
        if is_text:
            return rfc3339(value)
        if type(value) in NUMBERS:
            return rfc3339_of_seconds(value)
    except ValueError as cause:
        usual = "RFC 3339 with an offset, YYYY-MM-DD, or seconds since 1970 up to 9e9"
        expected = f"{usual} (the mapping 'time' reads others)"
        raise CastError(value, wanted, expected) from cause
    raise CastError(value, wanted, "a string or a number of seconds")


CASTS: Mapping[str, Callable[..., JsonValue]] = {
    "text": text,
    "integer": integer,
    "float": float_,
    "boolean": boolean,
    "timestamp": timestamp,
    "date": date,
    "uuid": uuid,
    "json": json,
}
"""Every type by its word in a config. That of `json` can be told how to decode."""

OTHER_NAMES: Mapping[str, str] = {
    "text": "char str string varchar",
    "integer": "bigint int int32 int64 long",
    "float": "decimal double float64 number numeric real",
    "boolean": "bool",
    "timestamp": "datetime time timestamptz",
    "uuid": "guid",
    "json": "array map object parse_json",
}
"""What the types are called elsewhere, by our word."""
