"""What is done to the table of what buckets remember, on the thread of the store.

A bucket is one of the queues, which has no entries. A key is a row: a text with the number and the time of
its last write, a checksum, and its values, so that one statement takes as many of them as a commit has. In
columns of their own those took half as much again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from zlib import crc32

import msgspec

from headrace.compiler.durablebucket import BucketFill, KeyChange
from headrace.compiler.store.bucketrows import (
    KEY_BYTES,
    BucketChanges,
    RememberedPage,
)

PAGE_KEYS = 1_000
"""Keys that are read at once."""
DISCARDED_KEYS = 1_000
"""Keys that are deleted in one transaction: commits wait for it."""
PARAMETERS_AT_ONCE = 64
"""Keys of a statement that has them one by one."""

_ON_CONFLICT = " ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value"
_WRITE = f"INSERT INTO remembered SELECT ?, key, value FROM json_each(?) WHERE true{_ON_CONFLICT}"
_WRITE_ONE = "(?, CAST(? AS TEXT), ?)"
_DELETE = "DELETE FROM remembered WHERE bucket = ? AND key IN (SELECT value FROM json_each(?))"
_DELETE_ONE = "DELETE FROM remembered WHERE bucket = ? AND key = CAST(? AS TEXT)"
_PAGE = (
    "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM remembered"
    f" WHERE bucket = ? AND key > CAST(? AS TEXT) ORDER BY key LIMIT {PAGE_KEYS}"
)
_FIRST_PAGE = _PAGE.replace("key >", "key >=")
_ASIDE = (
    "INSERT INTO aside SELECT NULL, bucket, key, NULL, NULL, NULL, value, ?, 'damaged' FROM remembered"
    " WHERE bucket = ? AND key = CAST(? AS TEXT)"
)
_FILL = (
    f"SELECT count(*), CAST(total(length(key) + length(value) + {KEY_BYTES}) AS INTEGER),"
    " min(CAST(substr(value, instr(value, ' ') + 1, 20) AS INTEGER)) FROM remembered WHERE bucket = ?"
)
_DISCARD = (
    "DELETE FROM remembered WHERE bucket = ?1 AND key IN"
    f" (SELECT key FROM remembered WHERE bucket = ?1 LIMIT {DISCARDED_KEYS})"
)
_encode = msgspec.json.Encoder().encode


def are_there(run: sqlite3.Connection) -> bool:
    """Return whether there is the table of what buckets remember."""
    named = "SELECT 1 FROM sqlite_master WHERE name = 'remembered'"
    return run.execute(named).fetchone() is not None


def write(run: sqlite3.Connection, changes: BucketChanges) -> None:
    """Write what has changed, with one statement where no key is unusual."""
    bucket = changes.bucket
    texts: dict[str, str] = {}
    unusual: list[tuple[int, bytes, str]] = []
    gone: list[str] = []
    for key, number, at, values in changes.keys:
        if not is_usual(key):
            if values is None:
                run.execute(_DELETE_ONE, (bucket, _bytes(key)))
            else:
                unusual.append((bucket, _bytes(key), _text(bucket, key, number, at, values)))
        elif values is None:
            gone.append(key)
        else:
            texts[key] = _text(bucket, key, number, at, values)
    if texts:
        run.execute(_WRITE, (bucket, _encode(texts).decode()))
    for some in _parts(unusual):
        rows = ", ".join([_WRITE_ONE] * len(some))
        given = [value for row in some for value in row]
        run.execute(f"INSERT INTO remembered VALUES {rows}{_ON_CONFLICT}", given)
    if gone:
        run.execute(_DELETE, (bucket, json.dumps(gone)))


def page(run: sqlite3.Connection, bucket: int, after: bytes | None) -> RememberedPage:
    """Return some keys of a bucket behind one of them, or its first."""
    keys: list[KeyChange] = []
    damaged: list[bytes] = []
    last = after or b""
    rows = run.execute(_FIRST_PAGE if after is None else _PAGE, (bucket, last)).fetchall()
    for key, value in rows:
        last = max(last, key)  # else one that is damaged could have it read for ever
        found = _found(bucket, key, value)
        if found is None:
            damaged.append(key)
        else:
            keys.append(found)
    return RememberedPage(keys, damaged, last, is_last=len(rows) < PAGE_KEYS or last == after)


def count(run: sqlite3.Connection, bucket: int) -> int:
    """Return how many keys there are, however their order is damaged."""
    counted = "SELECT count(*) FROM remembered WHERE bucket = ?"
    return int(run.execute(counted, (bucket,)).fetchone()[0])


def fill(run: sqlite3.Connection, bucket: int) -> BucketFill:
    """Return how much of a bucket is there: all of it is read for that."""
    keys, size, oldest = run.execute(_FILL, (bucket,)).fetchone()
    return BucketFill(keys, size, oldest / 1e6 if oldest else None)


def set_aside(run: sqlite3.Connection, bucket: int, keys: Iterable[bytes], now: float) -> None:
    """Put what is damaged where it is read no more."""
    for key in keys:
        run.execute(_ASIDE, (now, bucket, key))
        run.execute(_DELETE_ONE, (bucket, key))


def discard(run: sqlite3.Connection, bucket: int) -> bool:
    """Delete some of a bucket; return whether something was there."""
    return run.execute(_DISCARD, (bucket,)).rowcount > 0


def is_usual(key: str) -> bool:
    """Return whether SQLite takes a key from JSON as it is: not beyond a NUL, nor halves of characters."""
    if "\0" in key:
        return False
    return key.isascii() or not any("\ud800" <= each <= "\udfff" for each in key)


def _text(bucket: int, key: str, number: int, at: int, values: bytes) -> str:
    """Return what is written under a key: number, time and checksum before the values."""
    crc = _checksum(bucket, _bytes(key), number, at, values)
    return f"{number} {at} {crc} {values.decode()}"


def _found(bucket: int, key: bytes, value: bytes) -> KeyChange | None:
    """Return what is under a key; None: it is not what was written."""
    try:
        told, moment, crc, values = value.split(b" ", 3)
        number, at = int(told), int(moment)
        if _checksum(bucket, key, number, at, values) == int(crc):
            return KeyChange(key.decode(errors="surrogatepass"), number, at, values)
    except (ValueError, AttributeError):
        pass
    return None


def _checksum(bucket: int, key: bytes, number: int, at: int, values: bytes) -> int:
    return crc32(values, crc32(b"%d %d %d %b\0" % (bucket, number, at, key)))


def _bytes(key: str) -> bytes:
    return key.encode(errors="surrogatepass")


def _parts(rows: Sequence[tuple[int, bytes, str]]) -> Iterator[list[tuple[int, bytes, str]]]:
    rest = iter(rows)
    while some := [*islice(rest, PARAMETERS_AT_ONCE)]:
        yield some
