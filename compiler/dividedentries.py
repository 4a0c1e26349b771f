"""Many entries of a bucket, in the order of their last write, in mappings that are small.

One mapping of a million keys is laid out anew as it grows, all of it at once: 0.2 s in which nothing else
runs. What is found or moved here takes a quarter of a microsecond more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from headrace.compiler.buckets import Entry

KEYS_OF_A_PART = 1_000
"""Keys that are written one after the other until a new part begins."""
KEYS_OF_A_PLACE = 8_192
"""Keys that are found in one mapping, about."""
MOST_PLACES = 2**16
_THIN = frozenset({0, 4, 32, 256})
"""So few keys being left of a part, it gives back room: else one key could keep that of a thousand."""


class DividedEntry(Entry, gc=False):
    """An entry that knows where it is."""

    part: int = -1
    """The number of its part."""


E = TypeVar("E", bound=DividedEntry)


class DividedEntries(Generic[E]):
    """As much of an `OrderedDict` as a bucket takes."""

    def __init__(self, most: int, has_gone: Callable[[str, E], object]) -> None:
        """Take how many keys there may be, and who is told of what is taken out."""
        count = 1 << min(most // KEYS_OF_A_PLACE, MOST_PLACES - 1).bit_length()
        self._places: list[dict[str, E]] = [{} for _ in range(count)]
        self._mask = count - 1
        self._newest: dict[str, E] = {}
        self._number = 0
        """The number of the newest part."""
        self._parts = OrderedDict({0: self._newest})
        """By number. None but the newest is empty, and nothing is written into any other."""
        self._has_gone = has_gone
        self._count = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count

    def get(self, key: str) -> E | None:
        """Return the entry of a key, None: there is none."""
        return self._places[hash(key) & self._mask].get(key)

    def __getitem__(self, key: str) -> E:
        """Return the entry of a key that is there."""
        return self._places[hash(key) & self._mask][key]

    def __contains__(self, key: object) -> bool:
        """Return whether there is a key."""
        return key in self._places[hash(key) & self._mask]

    def __setitem__(self, key: str, entry: E) -> None:
        """Put in a key that is new, as the last one."""
        newest = self._newest
        if len(newest) >= KEYS_OF_A_PART:
            newest = self._begin_part({})
        entry.part = self._number
        newest[key] = self._places[hash(key) & self._mask][key] = entry
        self._count += 1

    def take_in(self, entries: dict[str, E]) -> None:
        """Put in keys that are new, in their order, as the last ones; the mapping is given away."""
        if self._newest:
            self._begin_part(entries)
        else:
            self._newest = self._parts[self._number] = entries
        number, mask, places = self._number, self._mask, self._places
        for key, entry in entries.items():
            entry.part = number
            places[hash(key) & mask][key] = entry
        self._count += len(entries)

    def move_to_end(self, key: str) -> None:
        """Have a key that is there be the last one."""
        entry = self._places[hash(key) & self._mask][key]
        number = entry.part
        part = self._parts[number]
        del part[key]
        if len(part) in _THIN:
            self._shrink(number, part)
        newest = self._newest
        if len(newest) >= KEYS_OF_A_PART:
            newest = self._begin_part({})
        newest[key] = entry
        entry.part = self._number

    def popitem(self, last: bool = True) -> tuple[str, E]:
        """Take out the last entry, or the first, and tell of it."""
        parts = reversed(self._parts.items()) if last else iter(self._parts.items())
        number, part = next(each for each in parts if each[1])
        key = next(reversed(part) if last else iter(part))
        entry = part.pop(key)
        del self._places[hash(key) & self._mask][key]
        self._count -= 1
        if len(part) in _THIN:
            self._shrink(number, part)
        self._has_gone(key, entry)
        return key, entry

    def __iter__(self) -> Iterator[str]:
        """Yield the keys, that of the oldest write first."""
        return chain.from_iterable(self._parts.values())

    def __reversed__(self) -> Iterator[str]:
        """Yield the keys, that of the last write first."""
        return chain.from_iterable(map(reversed, reversed(self._parts.values())))

    def values(self) -> Iterable[E]:
        """Yield the entries in their order."""
        return chain.from_iterable(part.values() for part in self._parts.values())

    def items(self) -> Iterable[tuple[str, E]]:
        """Yield keys and entries in their order."""
        return chain.from_iterable(part.items() for part in self._parts.values())

    def unwritten(self) -> Iterator[list[str]]:
        """Yield the keys there are in their order, some at a time, but for what is written meanwhile."""
        if self._newest:
            self._begin_part({})
        parts, numbers = self._parts, [*self._parts][:-1]
        return ([*parts[number]] for number in numbers if number in parts)

    def _begin_part(self, part: dict[str, E]) -> dict[str, E]:
        self._number += 1
        self._newest = self._parts[self._number] = part
        return part

    def _shrink(self, number: int, part: dict[str, E]) -> None:
        """Let go of the room of what has gone out of a part."""
        if number == self._number:
            return  # it grows again
        if part:
            self._parts[number] = dict(part)
        else:
            del self._parts[number]
