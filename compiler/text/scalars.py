"""What the characters of a scalar mean: JSON numbers, and YAML 1.2's rules for unquoted text.

The core schema of YAML 1.2: only ``true`` and ``false`` are booleans, so ``yes`` and ``off`` are
strings, as are dates, ``1_000`` and ``12:30:45``. Its infinities and NaN are numbers that a message
cannot carry, and are refused.

Source: https://yaml.org/spec/1.2.2/#103-core-schema
"""

from __future__ import annotations

import math
import re
import sys

from headrace.compiler.text.diagnostics import Codes, Fault

CODES: Codes = {
    "lone-surrogate": "A string contains half of a surrogate pair, which is no character.",
    "number-too-large": "A number is larger than its type can hold, or is not finite.",
}

_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(
    r"(?P<whole>[-+]?\d+)"
    r"|0o(?P<octal>[0-7]+)"
    r"|0x(?P<hexadecimal>[0-9a-fA-F]+)"
    r"|(?P<real>[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?)"
    r"|(?P<unbounded>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))",
    re.ASCII,
)
_BASES = {"whole": 10, "octal": 8, "hexadecimal": 16}
_SURROGATE = re.compile("[\ud800-\udfff]")

# Python converts no longer integers to and from text, and so could not echo them.
_DIGITS = 4300
_LARGEST = 10**_DIGITS - 1

_UNBOUNDED = Fault(
    "number-too-large",
    "this number is not finite",
    expected=f"a number between -{sys.float_info.max:.1e} and {sys.float_info.max:.1e}",
)


def plain(text: str) -> str | int | float | bool | Fault | None:
    """Return what an unquoted YAML scalar means, or why it is refused."""
    if text in _WORDS:
        return _WORDS[text]
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    kind = str(number.lastgroup)
    if kind in _BASES:
        return integer(number[kind], _BASES[kind])
    return _UNBOUNDED if kind == "unbounded" else real(text)


def integer(digits: str, base: int = 10) -> int | Fault:
    """Return a whole number of any size that can also be written back."""
    if len(digits.lstrip("+-")) <= _DIGITS:
        value = int(digits, base)
        if abs(value) <= _LARGEST:
            return value
    return Fault("number-too-large", f"a whole number has at most {_DIGITS:,} digits")


def real(text: str) -> float | Fault:
    """Return a finite number with a point or an exponent."""
    value = float(text)
    return value if math.isfinite(value) else _UNBOUNDED


def characters(text: str) -> str | Fault:
    """Return a string that is made of characters, as one with half a surrogate pair is not."""
    half = _SURROGATE.search(text)
    if half is None:
        return text
    return Fault("lone-surrogate", f"\\u{ord(half[0]):04x} is half of a character")
