"""Messages as JSON text, in and out: msgspec, with the refusals that a message bus needs.

Integers keep every digit, 42.0 stays 42.0, keys stay in the order they came in, and of a repeated
key the last value counts. Refused: NaN, Infinity, numbers beyond a double, lone surrogates,
anything but UTF-8, a byte order mark, trailing text, integers of more than 4,300 characters
(Python's guard against quadratic work), and nesting deeper than `MAX_DEPTH`.

Numbers with a point or an exponent become doubles. In a pipeline that feeds a column of decimals
they also remember how they were written (`decimals.py`), and are written so again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.compiler.decimals import Written, exact
from headrace.compiler.delivery import JsonValue
from headrace.compiler.errors import HeadraceError
from headrace.compiler.slownumbers import UNSEEN, finder, has_slow_numbers

MAX_DEPTH = 128
"""How many lists and objects may lie inside each other."""


class NotJson(HeadraceError, ValueError):
    """A payload is not JSON as we take it: one line says why and where, and quotes nothing."""


def _nested(levels: int) -> Any:
    """Return the type of every JSON value that nests so many levels at most."""
    scalar = None | bool | int | float | str
    value: Any = scalar
    for _ in range(levels):
        value = scalar | list[value] | dict[str, value]
    return value


# The depth limit as a type: msgspec checks it while it decodes, for one per cent at most. Counting
# brackets in the text took 6 to 30 per cent, and those in strings had to be told apart. The type
# doubles with each level, so it ends at what messages have; what is deeper is decoded once more.
_SHALLOW = msgspec.json.Decoder(_nested(8))
_PLAIN = msgspec.json.Decoder()
# Without a type: msgspec asks its `float_hook` only where none says float.
_EXACT = msgspec.json.Decoder(float_hook=exact)


def _double(text: str) -> float:
    """Return the double that a number stands for, whatever its exponent, in about the same time."""
    number = float(text)
    if math.isinf(number):
        raise ValueError("Number out of range")
    return number


_EXPONENTS = msgspec.json.Decoder(float_hook=_double)


def _as_written(value: object) -> msgspec.Raw:
    """Return what msgspec writes of a value that it does not know itself."""
    if type(value) is Written:
        return msgspec.Raw(value.text.encode())
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


_PIECES = msgspec.json.Decoder(list[msgspec.Raw])
_ENCODER = msgspec.json.Encoder(decimal_format="number", enc_hook=_as_written)

Body = bytes | bytearray | memoryview


decode_usual = _SHALLOW.decode
"""Return the value that a payload without slow numbers holds, or one of at most `UNSEEN` bytes: `decode`
without a call of ours.

Raises:
    ValueError: it is not JSON, or nests deeper than messages do. `decode` knows which.
"""


def decode(body: Body) -> JsonValue:
    """Return the value that ``body`` holds.

    Raises:
        NotJson: it is malformed, or well-formed and refused.
    """
    if len(body) <= UNSEEN or not has_slow_numbers(body):
        try:
            return _SHALLOW.decode(body)
        except ValueError:
            pass  # it nests deeper than messages do, or is not JSON
    return decode_unusual(body)


def decode_unusual(body: Body) -> JsonValue:
    """Return what `decode` does, of a text that has slow numbers, nests deep or is not JSON.

    Raises:
        NotJson: as `decode` does.
    """
    value = decode_shallow(body)
    if _may_be_deep(body):
        _check_depth(value)
    return value


def decode_shallow(body: Body) -> JsonValue:
    """Return what a text holds that is known to nest no deeper than `MAX_DEPTH`.

    Raises:
        NotJson: as `decode` does.
    """
    decoder = _EXPONENTS if has_slow_numbers(body) else _PLAIN
    try:
        return decoder.decode(body)
    # `from None`: the reason is all there is to tell, and a decoding error carries the payload.
    except UnicodeDecodeError:
        raise NotJson("not UTF-8") from None
    except RecursionError:
        raise NotJson(f"nested deeper than {MAX_DEPTH}") from None
    except msgspec.DecodeError as cause:
        raise NotJson(str(cause)) from None


def decode_lines(body: bytes) -> list[JsonValue]:
    """Return the values of lines, and of whatever else is between values: who calls it counts them.

    Raises:
        ValueError: a line is not JSON, or unusual: `decode` of each tells.
    """
    return _SHALLOW.decode_lines(body)


decode_shallow_lines = _PLAIN.decode_lines
"""Return what `decode_lines` does, of values that are known to nest no deeper than `MAX_DEPTH`.

Raises:
    ValueError: a line is not JSON.
    RecursionError: it nests far deeper.
"""


def _decode_exact_lines(body: bytes) -> list[JsonValue]:
    return [_decode_exact_usual(line) for line in body.split(b"\n") if line.strip()]


def _check_depth(value: JsonValue) -> None:
    """Raise `NotJson` for a value that nests deeper than `MAX_DEPTH`."""
    holders: list[JsonValue] = [[value]]
    for _ in range(MAX_DEPTH + 1):  # level by level, so that depth costs no recursion here
        holders = [
            item
            for holder in holders
            for item in (holder.values() if type(holder) is dict else holder)
            if type(item) is dict or type(item) is list
        ]
        if not holders:
            return
    raise NotJson(f"nested deeper than {MAX_DEPTH}")


def decode_exact(body: Body) -> JsonValue:
    """Return what `decode` does, with numbers that remember how they were written.

    It takes four times as long and more: a message of six fields, three of them readings, 1.3 µs in
    place of 0.35, and 1.8 where the readings end in zeros.

    Raises:
        NotJson: as `decode` does, in the same words.
    """
    try:
        return _decode_exact_usual(body)
    except NotJson:
        raise
    except ValueError:
        return decode_unusual(body)


def _decode_exact_usual(body: Body) -> JsonValue:
    """Return what `decode_exact` does, or raise some `ValueError`: decoding once more tells which."""
    try:
        value = _EXACT.decode(body)
    except RecursionError:
        raise NotJson(f"nested deeper than {MAX_DEPTH}") from None
    if _may_be_deep(body):
        _check_depth(value)
    return value


def _decode_exact_shallow(body: Body) -> JsonValue:
    try:
        return _EXACT.decode(body)
    except (ValueError, RecursionError):
        return decode_shallow(body)


def _may_be_deep(body: Body) -> bool:
    """Return whether a text has the brackets to nest too deep: counting them costs less than looking.

    A list of messages has many, and each message few: a fifth of what it takes to look at them.
    """
    if not _has_brackets(body, MAX_DEPTH):
        return False
    try:
        messages = _PIECES.decode(body)
    except (ValueError, RecursionError):  # no list
        return True
    return any(_has_brackets(each, MAX_DEPTH - 1) for each in messages)


def _has_brackets(text: Body | msgspec.Raw, levels: int) -> bool:
    """Return whether a text opens more than so many brackets. What is short does not even close them."""
    if len(text) <= 2 * levels:
        return False
    whole = bytes(text)
    return whole.count(b"[") + whole.count(b"{") > levels


class Decoding:
    """How one pipeline decodes what comes in. It may change while the pipeline runs.

    So whoever decodes much takes `decode` or `decode_usual` from here for each batch anew.
    """

    __slots__ = (
        "decode",
        "decode_lines",
        "decode_shallow",
        "decode_unusual",
        "decode_usual",
        "has_slow_numbers",
        "keeps_digits",
    )

    decode: Callable[[Body], JsonValue]
    decode_usual: Callable[[Body], JsonValue]
    decode_unusual: Callable[[Body], JsonValue]
    decode_shallow: Callable[[Body], JsonValue]
    decode_lines: Callable[[bytes], list[JsonValue]]
    has_slow_numbers: Callable[[bytes], bool]
    """For texts that are looked at however short they are, because there are many."""
    keeps_digits: bool

    def __init__(self) -> None:
        self.has_slow_numbers = self._first_look
        self.keep_digits(keeps=False)

    def keep_digits(self, *, keeps: bool) -> None:
        """Decode with `decode_exact` from now on, or as usual."""
        self.keeps_digits = keeps
        self.decode = decode_exact if keeps else decode
        self.decode_usual = _decode_exact_usual if keeps else decode_usual
        self.decode_unusual = decode_exact if keeps else decode_unusual
        self.decode_shallow = _decode_exact_shallow if keeps else decode_shallow
        self.decode_lines = _decode_exact_lines if keeps else decode_lines

    def _first_look(self, text: bytes) -> bool:
        """Find out who looks at texts only now that there is one."""
        self.has_slow_numbers = finder()
        return self.has_slow_numbers(text)


encode = _ENCODER.encode
"""Return one value as compact JSON in UTF-8, with the keys in the order they stand in.

Doubles take the fewest digits that read back the same, and always a point or an exponent. NaN and
the infinities, which only arithmetic can make, become null; a Decimal is written as a number, and
a number that remembers how it was written as that.

Raises:
    ValueError: a string holds a lone surrogate, or an integer has more than 4,300 digits.
    TypeError: a value or a key is not JSON.
    RecursionError: nested far deeper than anything that is let in.
"""


encode_lines = _ENCODER.encode_lines
"""Return a batch as newline-delimited JSON: one message a line, a newline after each.

Raises:
    ValueError, TypeError, RecursionError: as `encode` does.
"""


def text(value: JsonValue) -> str:
    """Return one value as JSON text, as a message has it: ``1e16``, ``0.00001``, ``true``.

    This is how a number becomes text, wherever it does: in a cast, a part of a `concat`, the key of a
    bucket or of a record. Of a number that remembers how it was written, it is that of the double: so
    text and keys do not depend on what is downstream.

    Raises:
        ValueError, TypeError, RecursionError: as `encode` does.
    """
    return encode(float(value) if type(value) is Written else value).decode()
