"""Values as a server sends them (the binary encoding of OPC UA), read as messages have them.

Source: https://reference.opcfoundation.org/Core/Part6/v105/docs/5.2
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite, prod
from typing import Any, Final
from uuid import UUID

from asyncua.ua.status_codes import code_to_name_doc
from asyncua.ua.uaerrors import UaError

from headrace.connectors.opcua.nodes import NodeKey

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at a place; returns it and the place behind it."""


class Malformed(UaError):
    """What a server sent cannot be read. One of the client library's errors, so that it passes them on."""


class _Structure:
    """The value that no message can hold."""


STRUCTURE: Final = _Structure()

MOST_STATUSES = 10_000
"""That are remembered."""
MOST_DIMENSIONS = 32
"""Of an array; one that claims more stays flat."""

TICKS = 10_000_000
"""Of 100 ns in a second: the unit of a timestamp, counted from the year 1601."""
_ORIGIN = datetime(1601, 1, 1)  # noqa: DTZ001 - only ever written as text
_FIRST = int((datetime(1602, 1, 1) - _ORIGIN).total_seconds()) * TICKS  # noqa: DTZ001
_LAST = int((datetime(9999, 1, 1) - _ORIGIN).total_seconds()) * TICKS  # noqa: DTZ001


@lru_cache(4096)
def _second(seconds: int) -> str:
    return (_ORIGIN + timedelta(seconds=seconds)).isoformat()


def timestamp(ticks: int) -> str | None:
    """Return a timestamp as RFC 3339 in UTC; None in the first and the last year, which mean none.

    A fraction has 3, 6 or 9 digits, as everywhere.
    """
    if not _FIRST <= ticks < _LAST:
        return None
    seconds, rest = divmod(ticks, TICKS)
    if not rest:
        return f"{_second(seconds)}Z"
    if not rest % 10_000:
        return f"{_second(seconds)}.{rest // 10_000:03}Z"
    return (
        f"{_second(seconds)}.{rest // 10:06}Z"
        if not rest % 10
        else f"{_second(seconds)}.{rest:07}00Z"
    )


_i32, _u16, _u32 = (struct.Struct(form).unpack_from for form in ("<i", "<H", "<I"))
_f32 = struct.Struct("<f")
_SMALLEST_PRECISE = 2.0**-126


def shortest(value: float) -> float | None:
    """Return a 32-bit float with the fewest digits that mean it; None if it is not finite."""
    if not isfinite(value):
        return None
    octets = _f32.pack(value)
    # Six digits always come back from a float, except from one that is so small that it has fewer.
    for digits in range(6 if abs(value) >= _SMALLEST_PRECISE else 1, 9):
        short = float(f"{value:.{digits}g}")
        if _f32.pack(short) == octets:
            return short
    return float(f"{value:.9g}")


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _status(code: int) -> str:
    return STATUSES[code][0]


FIXED: Mapping[int, tuple[str, int]] = {
    1: ("?", 1),
    2: ("b", 1),
    3: ("B", 1),
    4: ("h", 2),
    5: ("H", 2),
    6: ("i", 4),
    7: ("I", 4),
    8: ("q", 8),
    9: ("Q", 8),
    10: ("f", 4),
    11: ("d", 8),
    13: ("q", 8),
    19: ("I", 4),
}
"""Types of a fixed size: how `struct` calls each, and its bytes."""

MADE: Mapping[int, Callable[[Any], Any]] = {
    10: shortest,
    11: _finite,
    13: timestamp,
    19: _status,
}
"""What is made of a value of a fixed size; of the others nothing."""


def octets(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Read a ByteString."""
    (length,) = _i32(data, at)
    at += 4
    if length < 0:
        return None, at
    if at + length > len(data):
        raise Malformed
    return data[at : at + length], at + length


def string(data: bytes, at: int) -> tuple[str | None, int]:
    """Read a String; what is not UTF-8 in it becomes a replacement character."""
    found, at = octets(data, at)
    return None if found is None else found.decode("utf-8", "replace"), at


def _base64(data: bytes, at: int) -> tuple[str | None, int]:
    found, at = octets(data, at)
    return None if found is None else base64.b64encode(found).decode(), at


def _guid(data: bytes, at: int) -> tuple[str, int]:
    return str(UUID(bytes_le=data[at : at + 16])), at + 16


def node_key(data: bytes, at: int) -> tuple[NodeKey, int]:
    """Read a NodeId."""
    form = data[at] & 0x3F
    if form == 0:
        return NodeKey(0, "i", data[at + 1]), at + 2
    if form == 1:
        return NodeKey(data[at + 1], "i", _u16(data, at + 2)[0]), at + 4
    (namespace,) = _u16(data, at + 1)
    at += 3
    if form == 2:
        return NodeKey(namespace, "i", _u32(data, at)[0]), at + 4
    if form == 4:
        return NodeKey(namespace, "g", UUID(bytes_le=data[at : at + 16])), at + 16
    if form == 3:
        text, at = string(data, at)
        return NodeKey(namespace, "s", text or ""), at
    if form == 5:
        opaque, at = octets(data, at)
        return NodeKey(namespace, "b", opaque or b""), at
    raise Malformed


def _node(data: bytes, at: int) -> tuple[str, int]:
    """Read a NodeId or an ExpandedNodeId as text."""
    flags = data[at]
    key, at = node_key(data, at)
    text = key.text
    if flags & 0x80:
        uri, at = string(data, at)
        text = f"nsu={uri};{key._replace(namespace=0).text}"
    if flags & 0x40:
        text = f"svr={_u32(data, at)[0]};{text}"
        at += 4
    return text, at


def _qualified_name(data: bytes, at: int) -> tuple[str, int]:
    (namespace,) = _u16(data, at)
    name, at = string(data, at + 2)
    return f"{namespace}:{name or ''}" if namespace else name or "", at


def _localized_text(data: bytes, at: int) -> tuple[str | None, int]:
    mask, text = data[at], None
    at += 1
    if mask & 1:
        _, at = string(data, at)
    if mask & 2:
        text, at = string(data, at)
    return text, at


def extension_object(data: bytes, at: int) -> tuple[NodeKey, int, int]:
    """Read where the body of an ExtensionObject begins and ends, and of what type it is."""
    key, at = node_key(data, at)
    has_body = data[at]
    at += 1
    if not has_body:
        return key, at, at
    (length,) = _i32(data, at)
    at += 4
    if length < -1 or at + length > len(data):
        raise Malformed
    return key, at, at + max(length, 0)


def _structure(data: bytes, at: int) -> tuple[_Structure | None, int]:
    key, begin, end = extension_object(data, at)
    return None if begin == end and not key.identifier else STRUCTURE, end


def _diagnostic_info(data: bytes, at: int) -> tuple[_Structure, int]:
    mask = data[at]
    at += 1 + 4 * (mask & 0x0F).bit_count()
    if mask & 0x10:
        _, at = octets(data, at)
    at += 4 * bool(mask & 0x20)
    if mask & 0x40:
        _, at = _diagnostic_info(data, at)
    return STRUCTURE, at


def _data_value(data: bytes, at: int) -> tuple[Any, int]:
    """Read a DataValue that is itself a value: what it holds, unless it is bad."""
    mask, value, code = data[at], None, 0
    at += 1
    if mask & 0x01:
        value, at = variant(data, at)
    if mask & 0x02:
        (code,) = _u32(data, at)
        at += 4
    at += 8 * bool(mask & 0x04) + 2 * bool(mask & 0x10)
    at += 8 * bool(mask & 0x08) + 2 * bool(mask & 0x20)
    return None if STATUSES[code][1] else value, at


def variant(data: bytes, at: int) -> tuple[Any, int]:
    """Read a value of any type; `STRUCTURE` if there is one in it."""
    kind = data[at]
    at += 1
    if kind & 0x80:
        values, at = _array(kind & 0x3F, data, at)
        if kind & 0x40:
            dimensions, at = _array(6, data, at)
            values = _shaped(values, dimensions)
        return values, at
    if kind == 0:
        return None, at
    if kind in FIXED:
        form, size = FIXED[kind]
        (value,) = struct.unpack_from(f"<{form}", data, at)
        return (MADE[kind](value) if kind in MADE else value), at + size
    return _READERS.get(kind, _base64)(data, at)


def _array(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    """Read an array: a list; None for null; `STRUCTURE` if there is one in it."""
    (length,) = _i32(data, at)
    at += 4
    if length < 0:
        return None, at
    if kind == 0 or length > len(data) - at:  # each of the others takes a byte at least
        raise Malformed
    if kind in FIXED:
        form, size = FIXED[kind]
        values = list(struct.unpack_from(f"<{length}{form}", data, at))
        return ([*map(MADE[kind], values)] if kind in MADE else values), at + length * size
    values, read = [], _READERS.get(kind, _base64)
    for _ in range(length):
        value, at = read(data, at)
        values.append(value)
    return (STRUCTURE if any(value is STRUCTURE for value in values) else values), at


def _shaped(values: Any, dimensions: Any) -> Any:
    """Return an array of several dimensions as lists in lists; flat, if the numbers do not fit."""
    if not isinstance(values, list) or not dimensions or min(dimensions) < 1:
        return values
    if len(dimensions) > MOST_DIMENSIONS or prod(dimensions) != len(values):
        return values
    for length in reversed(dimensions[1:]):
        values = [values[start : start + length] for start in range(0, len(values), length)]
    return values


_READERS: Mapping[int, Reader] = {
    12: string,
    14: _guid,
    15: _base64,
    16: string,
    17: _node,
    18: _node,
    20: _qualified_name,
    21: _localized_text,
    22: _structure,
    23: _data_value,
    24: variant,
    25: _diagnostic_info,
}
"""Types without a fixed size. Those that are still to be invented are to be read as ByteStrings."""


class Statuses(dict[int, tuple[str, bool]]):
    """Status codes with their name and whether they are bad: learnt as they come.

    The lower half of a code says nothing of the quality (that a queue overflowed, for one).
    """

    def __missing__(self, code: int) -> tuple[str, bool]:
        known = code_to_name_doc.get(code & 0xFFFF_0000)
        found = (known[0] if known else f"0x{code:08X}", code >= 0x8000_0000)
        if len(self) < MOST_STATUSES:
            self[code] = found
        return found


STATUSES = Statuses()
