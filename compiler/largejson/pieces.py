"""One value encoded piece by piece: a message may be as large as a post, and take long at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.compiler.delivery import JsonValue, parts
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson.beginning import are_small

MOST_ITEMS = 1024
"""Items of a list or an object that are encoded together, if they are small."""
TEXT_SLICE = 128 * 1024
"""Characters of a text that are encoded at once: each may be six."""


def pieces(value: JsonValue) -> Iterator[bytes]:
    """Yield the text that `encode` makes of a value, in pieces that take some two milliseconds at most.

    Raises:
        ValueError, TypeError, RecursionError: as `encode` does.
    """
    # A list is looked at by its items: one of a kind of its own is no list to who looks at types alone.
    if are_small(value if isinstance(value, list) else [value]):
        yield encode(value)
    elif isinstance(value, str):
        yield b'"'
        for start in range(0, len(value), TEXT_SLICE):
            yield encode(value[start : start + TEXT_SLICE])[1:-1]
        yield b'"'
    elif isinstance(value, list):
        yield from enclosed(b"[", _items(value), b"]")
    elif isinstance(value, dict):
        yield from enclosed(b"{", _fields(value), b"}")
    else:
        yield encode(value)


def enclosed(begin: bytes, inside: Iterable[Iterator[bytes]], end: bytes) -> Iterator[bytes]:
    """Yield items between brackets, each of which is yielded in pieces."""
    before = begin
    for each in inside:
        yield before
        yield from each
        before = b","
    yield end if before == b"," else begin + end


def _items(items: list[JsonValue]) -> Iterator[Iterator[bytes]]:
    for some in parts(items, MOST_ITEMS):
        if are_small(some):
            yield iter((encode(some)[1:-1],))
        else:
            yield from map(pieces, some)


def _fields(fields: dict[str, JsonValue]) -> Iterator[Iterator[bytes]]:
    for some in parts(fields.items(), MOST_ITEMS):
        together: Any = dict(some)
        if are_small([together]):
            yield iter((encode(together)[1:-1],))
        else:
            yield from (_field(key, each) for key, each in some)


def _field(key: str, value: JsonValue) -> Iterator[bytes]:
    yield from pieces(key)
    yield b":"
    yield from pieces(value)
