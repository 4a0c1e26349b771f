"""How much the messages share that are made of one: it is written as often as there are messages."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import chain

from headrace.compiler.delivery import JsonValue, parts
from headrace.compiler.jsontext import encode

MOST_SHARED = 24 * 1024 * 1024
"""Bytes of JSON that the messages of one batch may share, counted for each of them: some 250 for a hundred
thousand. Whatever reads them later reads as many, and an output puts all of them into one text, in one
turn: 6 to 20 ms for as many."""
MUCH_SHARED = 256 * 1024
"""The same from which on a batch is worked on in slices, however few its messages are: as from a text of
so many bytes. Here as characters, or as the bytes."""
_ASIDE = 8
"""What counts for a value that is no text, unless it is looked at, and for a list or an object."""
_AT_ONCE = 2_048
"""Values that are looked at before others may have a turn."""
_TEXT_AT_ONCE = 32 * 1024
"""Characters that are: of those that are written as six each it takes 30 ns for one."""


def size_of_few(container: JsonValue) -> int | None:
    """Return how many characters the values in a list or an object have, names included; None for many.

    A number counts as 8. What JSON has is at most six times as much, but of long numbers.
    """
    size, looked_at = 0, 0
    left = [container]
    for each in left:
        looked_at += len(each) + 1
        if looked_at > _AT_ONCE:
            return None
        if each.__class__ is dict:
            size += sum(map(len, each))
            each = each.values()
        for value in each:
            if value.__class__ is str:
                size += len(value)
                continue
            size += _ASIDE
            if value.__class__ is dict or value.__class__ is list:
                left.append(value)
            elif value.__class__ is int and value.bit_length() > 64:
                return None
    return size


def size_of(container: JsonValue, most: int) -> Generator[None, None, int]:
    """Return how many bytes of JSON the values in a list or an object have, names included.

    More than ``most``, if it is more.

    Pauses on the way: it may take as long as they are large.
    """
    size, looked_at, written = 0, 0, 0
    left = [container]
    while left:
        container = left.pop()
        inside = chain(container, container.values()) if type(container) is dict else container
        for part in parts(inside, _AT_ONCE):
            for value in part:
                if value.__class__ is dict or value.__class__ is list:
                    size += _ASIDE
                    left.append(value)
                    continue
                for some in _pieces(value):
                    size += _written(some)
                    if size > most:
                        return size
                    if size - written >= _TEXT_AT_ONCE:
                        written = size
                        yield
            if size > most:
                return size
            looked_at += len(part) + 1
            if looked_at >= _AT_ONCE:
                looked_at = 0
                yield
    return size


def _pieces(value: JsonValue) -> Iterator[JsonValue]:
    """Yield a value; a long text in pieces."""
    if value.__class__ is not str or len(value) <= _TEXT_AT_ONCE:
        yield value
        return
    for start in range(0, len(value), _TEXT_AT_ONCE):
        yield value[start : start + _TEXT_AT_ONCE]


def _written(value: JsonValue) -> int:
    """Return how many bytes JSON has for a value."""
    try:
        return len(encode(value))
    except ValueError:  # nobody can write it
        return _ASIDE
