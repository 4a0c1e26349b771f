"""Changes as a server tells of them, many in one notification, read straight into messages.

The client library would make ten objects of each change and take as long for that as for everything
else; and where a structure is in a notification that it does not know, it loses the whole of it.

Source: https://reference.opcfoundation.org/Core/Part6/v105/docs/5.2.2.17 (DataValue)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from headrace.connectors.opcua.nodes import Node
from headrace.connectors.opcua.values import (
    FIXED,
    MADE,
    STATUSES,
    STRUCTURE,
    timestamp,
    variant,
)

_DOUBLE = 11
_PLAIN = {
    kind: (struct.Struct(f"<{form}").unpack_from, size)
    for kind, (form, size) in FIXED.items()
    if kind not in MADE
}
"""How to read a value of which nothing is made, by its type, and its bytes."""

_head, _double, _i32, _u32, _i64 = (
    struct.Struct(form).unpack_from for form in ("<IB", "<d", "<i", "<I", "<q")
)


def messages(
    data: bytes, at: int, nodes: Sequence[Node], skip: Callable[[Node], None]
) -> list[dict[str, Any]]:
    """Return what a DataChangeNotification tells, a message for each change.

    Client handles are places in ``nodes``. ``skip`` is told of each change whose value is a
    structure, which becomes no message.

    Raises:
        Malformed: or `struct.error`, `IndexError`, `RecursionError`: it cannot be read.
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
            elif kind in _PLAIN:
                unpack, size = _PLAIN[kind]
                (value,) = unpack(data, at + 1)
                at += 1 + size
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
