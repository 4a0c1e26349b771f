"""Cells: what a value has to be to go into a column of a type, and what a driver is handed for it.

Every rule of a type is written twice. `Cell.one` is the plain truth, for one value. `Cell.usual` is the
same for a whole column at the speed of C, for values as they usually are; it may give up on any other,
by raising whatever it likes, but it never takes what `one` refuses, and never hands on something else.

The cells of moments and dates are in `moments.py`.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Any

from headrace.compiler import jsontext
from headrace.compiler.decimals import NUMBERS, Written
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.records import json_type

_HEX_AS_ZERO = str.maketrans(dict.fromkeys("123456789abcdefABCDEF", "0"))
_UUID = "00000000-0000-0000-0000-000000000000"
_JSON_NUL = b"\\u0000"


class Misfit(ValueError):
    """A value does not fit a column. The text names types and rules only: no value, so that all that
    is wrong in the same way is counted as one failure."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {found}")


class Unusual(Exception):
    """The fast way met what it was not written for: the plain one has to decide."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One type of column, for one database. Values are checked, never coerced.

    - ``kinds``: the Python types that its values can have; None: any.
    - ``expected``: what is wanted, in the words for a value of another kind.
    - ``read``: returns what the driver is handed for one value of these kinds, or raises `Misfit`.
    - ``usual``: the same for a column of such values, handed the kinds that are among them.
    """

    kinds: frozenset[type] | None
    expected: str
    read: Callable[[Any], Any]
    usual: Callable[[list[Any], set[type]], list[Any]]

    def one(self, value: JsonValue) -> Any:
        """Return what the driver is handed for one value, or raise `Misfit`."""
        if self.kinds is not None and type(value) not in self.kinds:
            raise Misfit(self.expected, json_type(value))
        return self.read(value)

    def many(self, values: list[Any], kinds: set[type]) -> list[Any]:
        """Return what the driver is handed for a column without nulls, if it is a usual one.

        Raises:
            Exception: of any class; then `one` has to decide, value by value.
        """
        if self.kinds is not None and not kinds <= self.kinds:
            raise Unusual
        return self.usual(values, kinds)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a column of a table that is there asks of its values, beside what their type does.

    ``fits`` is handed what the driver would be, without nulls, and tells whether the table keeps all of
    it as it is. The other two say what is wrong with one that it does not keep.
    """

    fits: Callable[[list[Any]], bool]
    expected: str
    found: str

    def within(self, cell: Cell) -> Cell:
        """Return a cell that takes what fits only."""

        def read(value: JsonValue) -> Any:
            handed = cell.read(value)
            if not self.fits([handed]):
                raise Misfit(self.expected, self.found)
            return handed

        def usual(values: list[Any], kinds: set[type]) -> list[Any]:
            handed = cell.usual(values, kinds)
            if not self.fits(handed):
                raise Unusual
            return handed

        return replace(cell, read=read, usual=usual)


def shapes(values: list[str], table: Mapping[int, int | str]) -> set[str]:
    """Return what values look like when one character stands for all of its sort.

    Four times as fast as a pattern for every value: there are few shapes, often one.
    """
    looks = "\n".join(values).translate(table).split("\n")
    if len(looks) != len(values):
        raise Unusual
    return set(looks)


def text(*, nul: bool = True) -> Cell:
    """Return the cell of strings; ``nul`` tells whether they may hold a NUL character."""

    def read(value: str) -> str:
        _check_characters(value, "a string", nul=nul)
        return value

    def usual(values: list[str], _kinds: set[type]) -> list[str]:
        _check_characters("".join(values), "a string", nul=nul)
        return values

    return Cell(frozenset({str}), "a string", read, usual)


def boolean() -> Cell:
    """Return the cell of booleans."""
    return Cell(frozenset({bool}), "a boolean", bool, lambda values, kinds: values)


def uuid() -> Cell:
    """Return the cell of UUIDs: strings of 8-4-4-4-12 hexadecimal digits, of either case."""

    def read(value: str) -> str:
        if value.translate(_HEX_AS_ZERO) != _UUID:
            raise Misfit("8-4-4-4-12 hexadecimal digits", "another string")
        return value

    def usual(values: list[str], _kinds: set[type]) -> list[str]:
        if shapes(values, _HEX_AS_ZERO) != {_UUID}:
            raise Unusual
        return values

    return Cell(frozenset({str}), "a UUID in a string", read, usual)


def json(*, nul: bool = True) -> Cell:
    """Return the cell of any JSON; ``nul`` tells whether its strings and keys may hold a NUL."""

    def read(value: JsonValue) -> bytes:
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

    return Cell(None, "JSON", read, usual)


def integer(bits: int) -> Cell:
    """Return the cell of signed integers of 32 or 64 bits: no point, no exponent."""
    typecode, limit = {32: "i", 64: "q"}[bits], 1 << (bits - 1)

    def read(value: float) -> int:
        if type(value) is not int:
            raise Misfit("an integer", "a number with a point or an exponent")
        if not -limit <= value < limit:
            raise Misfit(f"an integer of {bits} bits", "a larger one")
        return value

    def usual(values: list[int], _kinds: set[type]) -> list[int]:
        # Raises for another number and for a larger one, in two thirds of the time of min and max.
        array(typecode, values)
        return values

    return Cell(NUMBERS, "an integer", read, usual)


def float_() -> Cell:
    """Return the cell of doubles: any number within their range, as the double nearest to it."""

    def read(value: float) -> float:
        try:
            double = float(value)
        except OverflowError:
            raise Misfit("a number", "one beyond the range of doubles") from None
        _check_finite(double)
        return double

    def usual(values: list[Any], kinds: set[type]) -> list[float]:
        doubles = values if kinds == {float} else [*map(float, values)]
        if not math.isfinite(sum(doubles)):  # as it is with one that is not, and if they are huge
            raise Unusual
        return doubles

    return Cell(NUMBERS, "a number", read, usual)


def decimal(*, before: int = 131_072, after: int = 16_383) -> Cell:
    """Return the cell of decimals with so many digits before and after their point at most.

    They keep the digits that were written, zeros at the end included; only zeros after so many digits
    are cut off.
    """
    last = Decimal((0, (1,), -after))
    exact = Context(before + after, traps=[Inexact, InvalidOperation])
    fitting = f"a number of at most {before:,} digits before its point and {after:,} after it"
    texts = _usual_texts(before, after)

    def read(value: float) -> Decimal:
        if type(value) is not int:
            _check_finite(value)
        try:
            return fitted(Decimal(_digits(value)))
        except ArithmeticError:
            raise Misfit(fitting, "one of more") from None

    def fitted(number: Decimal) -> Decimal:
        if not number and number.adjusted() > 0:
            return Decimal(0)  # 0e9 has no digit more than 0
        if number.adjusted() >= before:
            raise Overflow
        exponent = number.as_tuple().exponent
        has_more = isinstance(exponent, int) and -exponent > after
        return exact.quantize(number, last) if has_more else number

    def usual(values: list[Any], kinds: set[type]) -> list[Decimal]:
        return [*map(Decimal, texts(values, kinds))]

    return Cell(NUMBERS, "a number", read, usual)


def decimal_text(*, before: int = 131_072, after: int = 16_383) -> Cell:
    """Return the same as text, without exponents: for a driver that would only make text of it."""
    cell = decimal(before=before, after=after)

    def read(value: float) -> str:
        return f"{cell.read(value):f}"

    return replace(cell, read=read, usual=_usual_texts(before, after))


def _usual_texts(before: int, after: int) -> Callable[[list[Any], set[type]], list[str]]:
    """Return what gives the digits of numbers that have no exponent and fit."""
    plain_list = re.compile(rf"(?:-?[0-9]{{1,{before}}}(?:\.[0-9]{{1,{after}}})?,)+")

    def texts(values: list[Any], kinds: set[type]) -> list[str]:
        if Written in kinds:  # the encoder would ask a function of ours for each of them
            written = [v.text if v.__class__ is Written else repr(v) for v in values]
        else:
            written = jsontext.encode(values)[1:-1].decode().split(",")
        if not plain_list.fullmatch(",".join(written) + ","):
            raise Unusual
        return written

    return texts


def _digits(value: float) -> int | str:
    if type(value) is int:
        return value
    return value.text if isinstance(value, Written) else jsontext.text(value)


def _check_finite(value: float) -> None:
    if not math.isfinite(value):  # only arithmetic can make one
        raise Misfit("a number", "one that is not finite")


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
