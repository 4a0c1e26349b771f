"""Messages as JSON text, in and out: msgspec, with the refusals that a message bus needs.

Integers keep every digit, 42.0 stays 42.0, keys stay in the order they came in, and of a repeated
key the last value counts. Refused: NaN, Infinity, numbers beyond a double, lone surrogates,
anything but UTF-8, a byte order mark, trailing text, integers of more than 4,300 characters
(Python's guard against quadratic work), and nesting deeper than `MAX_DEPTH`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.errors import HeadraceError

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
_ENCODER = msgspec.json.Encoder(decimal_format="number")


decode_usual = _SHALLOW.decode
"""Return the value that a payload holds, for loops over many: `decode` without a call of ours.

Raises:
    ValueError: it is not JSON, or nests deeper than messages do. `decode` knows which.
"""


def decode(body: bytes | bytearray | memoryview) -> JsonValue:
    """Return the value that ``body`` holds.

    Raises:
        NotJson: it is malformed, or well-formed and refused.
    """
    try:
        return _SHALLOW.decode(body)
    except ValueError:
        return _decode_any(body)


def _decode_any(body: bytes | bytearray | memoryview) -> JsonValue:
    """Decode what nests deeper than messages do, or say why it is not JSON."""
    try:
        value = _PLAIN.decode(body)
    # `from None`: the reason is all there is to tell, and a decoding error carries the payload.
    except UnicodeDecodeError:
        raise NotJson("not UTF-8") from None
    except RecursionError:
        raise NotJson(f"nested deeper than {MAX_DEPTH}") from None
    except msgspec.DecodeError as cause:
        raise NotJson(str(cause)) from None
    _check_depth(value)
    return value


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


encode = _ENCODER.encode
"""Return one value as compact JSON in UTF-8, with the keys in the order they stand in.

Doubles take the fewest digits that read back the same, and always a point or an exponent. NaN and
the infinities, which only arithmetic can make, become null; a Decimal is written as a number.

Raises:
    ValueError: a string holds a lone surrogate, or an integer has more than 4,300 digits.
    TypeError: a value or a key is not JSON.
    RecursionError: nested far deeper than anything that is let in.
"""


def encode_lines(batch: Batch) -> bytes:
    """Return a batch as newline-delimited JSON: one message a line, a newline after each.

    Raises:
        ValueError, TypeError, RecursionError: as `encode` does.
    """
    return _ENCODER.encode_lines(batch)


def text(value: JsonValue) -> str:
    """Return one value as JSON text, as a cast to text shows it: ``1e16``, ``1e-5``, ``true``.

    Raises:
        ValueError, TypeError, RecursionError: as `encode` does.
    """
    if type(value) is float and 1e-5 <= abs(value) < 1e-4:
        # The one decade that msgspec writes out (0.00001) and the established format does not.
        return repr(value).replace("e-0", "e-")
    return encode(value).decode()
