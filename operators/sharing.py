"""How much the messages share that are made of one: it is written as often as there are messages."""

from __future__ import annotations

from collections.abc import Generator
from itertools import chain

from headrace.compiler.delivery import JsonValue, parts

MOST_SHARED = 128 * 1024 * 1024
"""Characters that the messages of one batch may share, counted for each of them: some 1,300 for a hundred
thousand. Whatever reads them later reads as many."""
_ASIDE = 8
"""What counts for a value that is no text: as many characters as most numbers have."""
_AT_ONCE = 2_048
"""Values that are looked at before others may have a turn."""


def size_of_few(container: JsonValue) -> int | None:
    """Return what `size_of` does, of a list or an object with few values in all; None for many."""
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
    return size


def size_of(container: JsonValue, most: int) -> Generator[None, None, int]:
    """Return how many characters the values in a list or an object have, names included.

    More than ``most``, if it is more.

    Pauses on the way: it may take as long as they are large.
    """
    size, looked_at = 0, 0
    left = [container]
    while left:
        container = left.pop()
        inside = chain(container, container.values()) if type(container) is dict else container
        for part in parts(inside, _AT_ONCE):
            for value in part:
                if value.__class__ is str:
                    size += len(value)
                    continue
                size += _ASIDE
                if value.__class__ is dict or value.__class__ is list:
                    left.append(value)
            if size > most:
                return size
            looked_at += len(part) + 1
            if looked_at >= _AT_ONCE:
                looked_at = 0
                yield
    return size
