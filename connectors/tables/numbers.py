"""Cells of numbers: integers, doubles, and decimals as they were written."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Any

from headrace.compiler import jsontext
from headrace.compiler.decimals import NUMBERS, Written
from headrace.compiler.delivery import JsonValue
from headrace.compiler.schema.records import json_type
from headrace.connectors.tables.fitting import Cell, Misfit, Unusual


def integer(bits: int) -> Cell:
    """Return the cell of signed integers of 32 or 64 bits: no point, no exponent."""
    typecode, limit = {32: "i", 64: "q"}[bits], 1 << (bits - 1)

    def one(value: JsonValue) -> int:
        if type(value) is not int:
            is_number = type(value) in NUMBERS
            found = "a number with a point or an exponent" if is_number else json_type(value)
            raise Misfit("an integer", found)
        if not -limit <= value < limit:
            raise Misfit(f"an integer of {bits} bits", "a larger one")
        return value

    def usual(values: list[int], _kinds: set[type]) -> list[int]:
        array(typecode, values)  # raises for a larger one, in two thirds of the time of min and max
        return values

    return Cell(frozenset({int}), one, usual)


def float_() -> Cell:
    """Return the cell of doubles: any number within their range, as the double nearest to it."""

    def one(value: JsonValue) -> float:
        if type(value) not in NUMBERS:
            raise Misfit("a number", json_type(value))
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

    return Cell(NUMBERS, one, usual)


def decimal(*, before: int = 131_072, after: int = 16_383) -> Cell:
    """Return the cell of decimals with so many digits before and after their point at most.

    They keep the digits that were written, zeros at the end included; only zeros after so many digits
    are cut off.
    """
    last = Decimal((0, (1,), -after))
    exact = Context(before + after, traps=[Inexact, InvalidOperation])
    fitting = f"a number of at most {before:,} digits before its point and {after:,} after it"
    texts = _usual_texts(before, after)

    def one(value: JsonValue) -> Decimal:
        if type(value) not in NUMBERS:
            raise Misfit("a number", json_type(value))
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
        return exact.quantize(number, last) if _places(number) > after else number

    def usual(values: list[Any], kinds: set[type]) -> list[Decimal]:
        return [*map(Decimal, texts(values, kinds))]

    return Cell(NUMBERS, one, usual)


def decimal_text(*, before: int = 131_072, after: int = 16_383) -> Cell:
    """Return the same as text, without exponents: for a driver that would only make text of it."""
    cell = decimal(before=before, after=after)

    def one(value: JsonValue) -> str:
        return f"{cell.one(value):f}"

    return Cell(NUMBERS, one, _usual_texts(before, after))


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


def _places(number: Decimal) -> int:
    """Return how many digits a finite decimal has after its point."""
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _check_finite(value: float) -> None:
    if not math.isfinite(value):  # only arithmetic can make one
        raise Misfit("a number", "one that is not finite")
