"""Numbers that are longer than a slice: refused by their text, or cut to what decides the double.

An integer of so many digits is refused anyway, and no double depends on digits behind the 800th but for
whether any of them is not zero. So nobody has to read them all at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator

from headrace.compiler.jsontext import NotJson

STRIDE = 32 * 1024
"""Bytes that are looked at in one turn."""
_DECIDING = 800
"""A number half way between two doubles has at most 767 significant digits.

Source: Muller et al., Handbook of Floating-Point Arithmetic (2nd edition), section 4.9
"""
_MOST_DIGITS = 4300
"""Of an integer, as `jsontext` has it."""
_EXPONENT = 20
"""Digits of an exponent beyond which no text is long enough to make up for it."""

_DIGITS = re.compile(rb"[0-9]*+")
_ZEROS = re.compile(rb"0*+")

JsonBytes = bytes | bytearray


def shortened(text: JsonBytes, start: int) -> Generator[None, None, tuple[int, bytes]]:
    """Return where a number ends, and a short text of the same double. Yields now and then.

    What stands behind it is not looked at.

    Raises:
        NotJson: it is no number, an integer of too many digits, or beyond the range of doubles.
    """
    whole = start + (text[start : start + 1] == b"-")
    point = end = yield from _end(_DIGITS, text, whole)
    if point == whole or (text[whole] == ord("0") and point > whole + 1):
        raise _invalid(whole)
    if has_point := text[point : point + 1] == b".":
        end = yield from _end(_DIGITS, text, point + 1)
        if end == point + 1:
            raise _invalid(end)
    last, shift = end, 0
    if has_exponent := text[end : end + 1] in (b"e", b"E"):
        end, shift = yield from _exponent(text, end + 1)
    if not has_point and not has_exponent:
        if end - start <= _MOST_DIGITS:
            return end, bytes(text[start:end])
        raise NotJson("Integer value out of range")

    def behind_zeros(at: int) -> Generator[None, None, int]:
        at = yield from _end(_ZEROS, text, at)
        if at == point and has_point:
            at = yield from _end(_ZEROS, text, at + 1)
        return at

    first = yield from behind_zeros(whole)
    rest = min(first + _DECIDING, last)
    digits = bytes(text[first:rest]).replace(b".", b"") or b"0"
    power = shift + (point - rest if rest <= point else point + 1 - rest)
    if (yield from behind_zeros(rest)) < last:
        digits, power = digits + b"1", power - 1
    number = float(b"%b%be%d" % (bytes(text[start:whole]), digits, power))
    if math.isinf(number):
        raise NotJson("Number out of range")
    return end, repr(number).encode()


def _exponent(text: JsonBytes, at: int) -> Generator[None, None, tuple[int, int]]:
    """Return where an exponent ends, and its value: of a very large one, some very large one."""
    sign = text[at : at + 1]
    begin = at + (sign in (b"+", b"-"))
    end = yield from _end(_DIGITS, text, begin)
    if end == begin:
        raise _invalid(end)
    first = yield from _end(_ZEROS, text, begin)
    value = int(text[first : min(end, first + _EXPONENT)] or b"0")
    return end, -value if sign == b"-" else value


def _end(pattern: re.Pattern[bytes], text: JsonBytes, at: int) -> Generator[None, None, int]:
    """Return where the characters of a pattern end that begin at ``at``."""
    while (end := pattern.match(text, at, at + STRIDE).end()) - at == STRIDE:  # type: ignore[union-attr]
        at = end
        yield
    return end


def _invalid(at: int) -> NotJson:
    return NotJson(f"JSON is malformed: invalid number (byte {at})")
