"""Changes as a server tells of them, read into messages.

Numbers, texts, times and statuses are read from their octets: a notification holds a thousand of them,
and the client library makes ten objects of each. All other values are read by the library, and then
written as messages have them. A structure is passed over unread, so that one that the library cannot read
takes no other change with it.

Source: https://reference.opcfoundation.org/Core/Part6/v105/docs/5.2 (DataValue: 5.2.2.17)
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isfinite, prod
from typing import Any, Final
from uuid import UUID

from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.status_codes import code_to_name_doc
from asyncua.ua.ua_binary import nodeid_from_binary, variant_from_binary

from headrace.connectors.opcua.nodes import Node, NodeKey

STRUCTURE: Final = object()
"""The value that no message can hold."""
MOST_STATUSES = 10_000
"""That are remembered."""
MOST_DIMENSIONS = 32
"""Of an array; one that claims more stays flat."""

TICKS = 10_000_000
"""Of 100 ns in a second: the unit of a timestamp, counted from the year 1601."""
_ORIGIN = datetime(1601, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1602, 1, 1, tzinfo=UTC) - _ORIGIN).total_seconds()) * TICKS
_LAST = int((datetime(9999, 1, 1, tzinfo=UTC) - _ORIGIN).total_seconds()) * TICKS


_KINDS = {
    "i": ua.NodeIdType.Numeric,
    "s": ua.NodeIdType.String,
    "g": ua.NodeIdType.Guid,
    "b": ua.NodeIdType.ByteString,
}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()} | {
    ua.NodeIdType.TwoByte: "i",
    ua.NodeIdType.FourByte: "i",
}


def node_id(key: NodeKey) -> ua.NodeId:
    """Return a node id as the client library has it."""
    identifier: Any = key.identifier
    return ua.NodeId(identifier, ua.Int16(key.namespace), _KINDS[key.kind])


def node_key(found: ua.NodeId) -> NodeKey:
    """Return a node id of the client library as we have it."""
    identifier: Any = found.Identifier
    return NodeKey(found.NamespaceIndex, _LETTERS[found.NodeIdType], identifier)


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


@lru_cache(4096)
def _second(seconds: int) -> str:
    return (_ORIGIN + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


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


_FIXED: Mapping[int, tuple[str, Callable[[Any], Any] | None]] = {
    1: ("<?", None),
    2: ("<b", None),
    3: ("<B", None),
    4: ("<h", None),
    5: ("<H", None),
    6: ("<i", None),
    7: ("<I", None),
    8: ("<q", None),
    9: ("<Q", None),
    10: ("<f", shortest),
    11: ("<d", _finite),
    13: ("<q", timestamp),
    19: ("<I", _status),
}
"""Types of a fixed size: how `struct` calls each, and what is made of it."""
_READ = {
    kind: (struct.Struct(form).unpack_from, struct.calcsize(form), make)
    for kind, (form, make) in _FIXED.items()
}
_DOUBLE = 11
_ARRAY = 0x80
_DIMENSIONS = 0x40
_STRING = 12
_STRUCTURES = 22

_head, _double, _i32, _u32, _i64 = (
    struct.Struct(form).unpack_from for form in ("<IB", "<d", "<i", "<I", "<q")
)


def messages(
    data: bytes, at: int, nodes: Sequence[Node], skip: Callable[[Node], None]
) -> list[dict[str, Any]]:
    """Return what a DataChangeNotification tells, a message for each change.

    Client handles are places in ``nodes``. ``skip`` is told of each change whose value is a
    structure, which becomes no message. What cannot be read raises one of many errors.
    """
    found = []
    (count,) = _i32(data, at)
    at += 4
    for _ in range(count):
        handle, mask = _head(data, at)
        at += 5
        value: Any = None
        source = server = None
        status, is_bad = "Good", False
        if mask & 0x01:
            kind = data[at]
            if kind == _DOUBLE:
                (value,) = _double(data, at + 1)
                at += 9
                if not isfinite(value):
                    value = None
            else:
                value, at = variant(data, at)
        if mask & 0x02:
            status, is_bad = STATUSES[_u32(data, at)[0]]
            at += 4
        if mask & 0x04:
            (ticks,) = _i64(data, at)
            source = timestamp(ticks)
            at += 10 if mask & 0x10 else 8
        if mask & 0x08:
            (ticks,) = _i64(data, at)
            server = timestamp(ticks)
            at += 10 if mask & 0x20 else 8
        node = nodes[handle]
        if is_bad:
            value = None
        elif value is STRUCTURE:
            skip(node)
            continue
        found.append(
            {
                "node": node.text,
                "name": node.name,
                "value": value,
                "status": status,
                "source_timestamp": source,
                "server_timestamp": server,
            }
        )
    return found


def variant(data: bytes, at: int) -> tuple[Any, int]:
    """Read a value of any type at a place; return it, `STRUCTURE` if there is one in it, and its end."""
    kind = data[at]
    if kind in _READ:
        unpack, size, make = _READ[kind]
        (value,) = unpack(data, at + 1)
        return value if make is None else make(value), at + 1 + size
    if kind == _STRING:
        (length,) = _i32(data, at + 1)
        begin, end = at + 5, at + 5 + max(length, 0)
        if end > len(data):
            raise ValueError("a text behind the end")
        return None if length < 0 else data[begin:end].decode("utf-8", "replace"), end
    if kind == _STRUCTURES:
        key, begin, end = extension_object(data, at + 1)
        return None if key.is_null() and begin == end else STRUCTURE, end
    if kind == _ARRAY | _STRUCTURES:
        (count,) = _i32(data, at + 1)
        at += 5
        for _ in range(count):
            _, _, at = extension_object(data, at)
        return STRUCTURE if count > 0 else [] if count == 0 else None, at
    if kind & _DIMENSIONS:
        values, end = variant(bytes([kind ^ _DIMENSIONS]) + data[at + 1 :], 0)
        end += at
        (count,) = _i32(data, end)
        dimensions = struct.unpack_from(f"<{count}i", data, end + 4)
        return _shaped(values, dimensions), end + 4 + 4 * count
    rest = Buffer(data, at)
    found = variant_from_binary(rest)
    return written(found.Value, found.VariantType), rest.cur_pos


def _shaped(values: Any, dimensions: Sequence[int]) -> Any:
    """Return an array of several dimensions as lists in lists; flat, if the numbers do not fit.

    The library makes up what is missing then, and reads no more than a million elements.
    """
    if not isinstance(values, list) or not dimensions or min(dimensions) < 1:
        return values
    if len(dimensions) > MOST_DIMENSIONS or prod(dimensions) != len(values):
        return values
    for length in reversed(dimensions[1:]):
        values = [values[start : start + length] for start in range(0, len(values), length)]
    return values


def extension_object(data: bytes, at: int) -> tuple[ua.NodeId, int, int]:
    """Return of what type an ExtensionObject at a place is, and where its body begins and ends."""
    rest = Buffer(data, at)
    key = nodeid_from_binary(rest)
    begin = rest.cur_pos + 1
    if not data[begin - 1]:
        return key, begin, begin
    (length,) = _i32(data, begin)
    begin += 4
    if begin + length > len(data):
        raise ValueError("a body behind the end")
    return key, begin, begin + max(length, 0)


def written(value: Any, kind: ua.VariantType) -> Any:
    """Return a value of the library as messages have it, an array element by element."""
    match value:
        case None | int():
            return value
        case float():
            return shortest(value) if kind is ua.VariantType.Float else _finite(value)
        case str():
            # What is not UTF-8 has become halves of pairs that no text may hold.
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        case list():
            made = [written(each, kind) for each in value]
            return STRUCTURE if any(each is STRUCTURE for each in made) else made
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return timestamp((value - _ORIGIN) // timedelta(microseconds=1) * 10)
        case UUID():
            return str(value)
        case ua.ExpandedNodeId():
            _, letter, identifier = key = node_key(value)
            uri, server = value.NamespaceUri, value.ServerIndex
            text = key.text if uri is None else f"nsu={uri};{NodeKey(0, letter, identifier).text}"
            return f"svr={server};{text}" if server else text
        case ua.NodeId():
            return node_key(value).text
        case ua.XmlElement():
            return written(value.Value, ua.VariantType.String)
        case ua.StatusCode():
            return _status(value.value)
        case ua.QualifiedName():
            name = value.Name or ""
            return f"{value.NamespaceIndex}:{name}" if value.NamespaceIndex else name
        case ua.LocalizedText():
            return written(value.Text, ua.VariantType.String)
        case ua.Variant():
            return written(value.Value, value.VariantType)
        case ua.DataValue():
            # What it holds, unless it is bad.
            is_bad = value.StatusCode is not None and STATUSES[value.StatusCode.value][1]
            return None if is_bad or value.Value is None else written(value.Value, kind)
    return STRUCTURE
