"""A durable bucket as it is loaded: its keys read a page at a time, and put in the order of their writes.

All of it is done on the thread of the store, or on one of its own, where no call takes long: the loop goes
on.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.compiler.durablebucket import KeptEntry
from headrace.compiler.jsontext import (
    Decoding,
    decode_shallow_lines,
    decode_usual,
    encode,
    encode_lines,
)

if TYPE_CHECKING:
    import sqlite3

    from headrace.compiler.store.bucketrows import JoinedKeys

FIRST_KEYS = 100
"""Keys of the first page, as it is not known how large they are."""
MOST_KEYS = 1_000
"""Keys of a page."""
PAGE_BYTES = 2**19
"""How large a page becomes, roughly."""
SORTED_TOGETHER = 5_000
"""Keys that are sorted at once, roughly: some milliseconds."""
SAMPLES = 32
"""Keys of each part that tell where it begins, so that the parts are about as large."""

_EXACTLY = Decoding()
_EXACTLY.keep_digits(keeps=True)  # as some pipeline had them

LoadedKey = tuple[int, str, KeptEntry]
"""A key as it was on the disk: the number of its last change, the key, what was under it."""
_NUMBER = itemgetter(0)


class LoadedKeys(NamedTuple):
    """Some keys as they were on the disk: of each its number, its name, and what is under it.

    Tuples: the garbage collector looks through a list each time, and through these once.
    """

    numbers: tuple[int, ...]
    keys: tuple[str, ...]
    entries: tuple[KeptEntry, ...]


class LoadedPage(NamedTuple):
    """What was read at once."""

    loaded: LoadedKeys
    damaged: list[bytes]
    """The keys, as they are there, of what is not what was written."""
    last: bytes
    """The next page begins behind this key."""
    is_last: bool
    next_most: int
    """How many keys the next page should have."""


def read(
    run: sqlite3.Connection, bucket: int, after: bytes | None, most: int, began: int
) -> LoadedPage:
    """Read a page of a bucket.

    ``most``: how many keys, if they are usual.
    ``began``: the wall time at which the monotonic clock read 0. Units: microseconds since 1970.
    """
    from headrace.compiler.store import buckettables

    joined = buckettables.joined(run, bucket, after, most)
    if joined is not None and (loaded := _usual(joined, began)) is not None:
        fitting = most * PAGE_BYTES // max(1, len(joined.values))
        next_most = max(1, min(fitting, MOST_KEYS))
        return LoadedPage(loaded, [], joined.last, is_last=False, next_most=next_most)
    page = buckettables.page(run, bucket, after)
    numbers, keys, entries = list[int](), list[str](), list[KeptEntry]()
    for number, key, at, values in page.keys:
        numbers.append(number)
        keys.append(key)
        at_second = (at - began) / 1e6
        entries.append(KeptEntry(_decoded(values), at_second, -1, len(values), is_on_disk=True))
    loaded = LoadedKeys(tuple(numbers), tuple(keys), tuple(entries))
    return LoadedPage(loaded, page.damaged, page.last, page.is_last, most)


def _usual(joined: JoinedKeys, began: int) -> LoadedKeys | None:
    """Return the keys of a page, None: something about them is unusual, or damaged."""
    rows = joined.rows
    try:
        keys = joined.keys.decode().split("\n")
        items = decode_shallow_lines(joined.values)  # checksum, number, time, values; and again
        if len(items) != 4 * len(rows) or items[::4] != joined.checksums:
            return None
        numbers: list[Any] = items[1::4]
        values: list[Any] = items[3::4]
        texts = encode_lines(values).split(b"\n")[:-1]
    except (ValueError, RecursionError):
        return None
    # Few have numbers that are not as they were written: what those take all others need not.
    if not all(map(bytes.endswith, rows, texts)):
        for place, (row, text) in enumerate(zip(rows, texts, strict=True)):
            if not row.endswith(text):
                texts[place] = row.split(b" ", 3)[3]
                values[place] = _EXACTLY.decode_shallow(texts[place])
    seconds = [(at - began) / 1e6 for at in items[2::4]]
    entries = map(KeptEntry, values, seconds, repeat(-1), map(len, texts), repeat(True))
    return LoadedKeys(tuple(numbers), tuple(keys), tuple(entries))


def _decoded(values: bytes) -> dict[str, Any]:
    """Return values, of which numbers are as they were written: few need what that takes."""
    try:
        plain: dict[str, Any] = decode_usual(values)
        if encode(plain) == values:
            return plain
    except ValueError:
        pass
    exact: dict[str, Any] = _EXACTLY.decode_shallow(values)
    return exact


def in_order(pages: Sequence[LoadedKeys]) -> Iterator[LoadedKeys]:
    """Yield keys in parts, in the order of their numbers.

    Sorted at once, a million would take most of a second, in which nothing else runs.
    """
    if _are_ascending(pages):
        yield from pages
        return
    loaded = [*chain.from_iterable(zip(*page, strict=True) for page in pages)]
    for part in _sorted(loaded):
        if part:
            yield LoadedKeys(*zip(*part, strict=True))


def pieces(loaded: LoadedKeys) -> Iterator[tuple[Sequence[str], Sequence[KeptEntry]]]:
    """Yield keys and entries, as many at once as are put into a bucket without a pause."""
    for start in range(0, len(loaded.keys), MOST_KEYS):
        end = start + MOST_KEYS
        yield loaded.keys[start:end], loaded.entries[start:end]


def _are_ascending(pages: Iterable[LoadedKeys]) -> bool:
    last = -1
    for numbers, _, _ in pages:
        if not numbers:
            continue
        if numbers[0] <= last or tuple(sorted(numbers)) != numbers:
            return False
        last = numbers[-1]
    return True


def _sorted(loaded: Sequence[LoadedKey]) -> Iterator[list[LoadedKey]]:
    count = max(1, len(loaded) // SORTED_TOGETHER)
    step = max(1, len(loaded) // (count * SAMPLES))
    samples = sorted(map(_NUMBER, islice(loaded, 0, None, step)))
    starts = samples[SAMPLES::SAMPLES]
    sorted_apart: list[list[LoadedKey]] = [[] for _ in range(len(starts) + 1)]
    for each in loaded:
        sorted_apart[bisect(starts, each[0])].append(each)
    for part in sorted_apart:
        part.sort(key=_NUMBER)
        yield part
