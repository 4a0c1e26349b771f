"""A column of a batch as one text: the literal of an array, which the server takes apart.

An array in the server's own form is asked cell by cell what it is, which takes four times as long. The
literal is nearly JSON: numbers, booleans, null and quoted strings are the same in both.

Source: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import in_slices

Literal = Callable[[list[object]], str]


def plain(values: list[object]) -> str:
    """Return the array of values whose JSON has no escapes, or no others than of ``"`` and ``\\``."""
    return f"{{{encode(values)[1:-1].decode()}}}"


def strings(values: list[object]) -> str:
    """Return the array of any strings. In it a backslash stands for nothing but the next character."""
    written = encode(values)
    if b"\\" not in written:
        return f"{{{written[1:-1].decode()}}}"
    return f"{{{','.join('null' if value is None else _quoted(str(value)) for value in values)}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


async def of_large(write: Literal, values: list[object], clock: Clock) -> str:
    """Return what ``write`` does of a long column. Others have their turns meanwhile."""
    pieces = await in_slices(values, lambda some: write(some)[1:-1], clock)
    return f"{{{','.join(pieces)}}}"


def literal(type: str) -> Literal:
    """Return what writes the array of a column of a type.

    JSON as text has its control characters escaped, so that, encoded once more, it is `plain`.
    """
    return strings if type == "text" else plain
