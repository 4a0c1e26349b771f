"""What is done to the table of what buckets remember, on the thread of the store.

A bucket is one of the queues, which has no entries. A key is a row: a text with a checksum, the number and
the time of its last write, and its values, so that one statement takes as many of them as a commit has. In
columns of their own those took half as much again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from operator import itemgetter
from zlib import crc32

import msgspec

from headrace.compiler.durablebucket import BucketFill
from headrace.compiler.store.bucketrows import (
    KEY_BYTES,
    BucketChanges,
    JoinedKeys,
    RememberedKey,
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
_LAST_OF = (
    "SELECT CAST(key AS BLOB) FROM remembered"
    " WHERE bucket = ? AND key > CAST(? AS TEXT) ORDER BY key LIMIT 1 OFFSET ?"
)
_FIRST_LAST = _LAST_OF.replace("key >", "key >=")
# One row: the interpreter lock is let go of for each, and taken again.
_JOINED = (
    "SELECT count(*), CAST(group_concat(key, x'0A') AS BLOB), CAST(group_concat(value, x'0A') AS BLOB)"
    " FROM remembered WHERE bucket = ? AND key > CAST(? AS TEXT) AND key <= CAST(? AS TEXT)"
)
_FIRST_JOINED = _JOINED.replace("key >", "key >=")
_ASIDE = (
    "INSERT INTO aside SELECT NULL, bucket, key, NULL, NULL, NULL, value, ?, 'damaged' FROM remembered"
    " WHERE bucket = ? AND key = CAST(? AS TEXT)"
)
_FILL = (
    f"SELECT count(*), CAST(total(length(key) + length(value) + {KEY_BYTES}) AS INTEGER),"
    " min(CAST(substr(rest, instr(rest, ' ') + 1) AS INTEGER)) FROM"
    " (SELECT key, value, substr(value, instr(value, ' ') + 1, 44) AS rest FROM remembered"
    " WHERE bucket = ?)"
)
_DISCARD = (
    "DELETE FROM remembered WHERE bucket = ?1 AND key IN"
    f" (SELECT key FROM remembered WHERE bucket = ?1 LIMIT {DISCARDED_KEYS})"
)
_KEY = itemgetter(0)
_encode = msgspec.json.Encoder().encode


def are_there(run: sqlite3.Connection) -> bool:
    """Return whether there is the table of what buckets remember."""
    named = "SELECT 1 FROM sqlite_master WHERE name = 'remembered'"
    return run.execute(named).fetchone() is not None


def write(run: sqlite3.Connection, changes: BucketChanges) -> None:
    """Write what has changed, with one statement where no key is unusual."""
    bucket, salt = changes.bucket, _salt(changes.bucket)
    texts: dict[str, str] = {}
    unusual: list[tuple[int, bytes, str]] = []
    gone: list[str] = []
    all_usual = is_usual("".join([each[0] for each in changes.keys]))
    # In the order of the table: written out of it, a key takes SQLite up to half as much again.
    for key, number, at, values in sorted(changes.keys, key=_KEY):
        if values is not None:
            rest = f"{number} {at} {values.decode()}"
            if all_usual or is_usual(key):
                texts[key] = f"{crc32((key + rest).encode(), salt)} {rest}"
            else:
                name = key.encode(errors="surrogatepass")
                text = f"{crc32(rest.encode(), crc32(name, salt))} {rest}"
                unusual.append((bucket, name, text))
        elif all_usual or is_usual(key):
            gone.append(key)
        else:
            run.execute(_DELETE_ONE, (bucket, key.encode(errors="surrogatepass")))
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
    keys: list[RememberedKey] = []
    damaged: list[bytes] = []
    last, salt = after or b"", _salt(bucket)
    rows = run.execute(_FIRST_PAGE if after is None else _PAGE, (bucket, last)).fetchall()
    for key, value in rows:
        if key > last:  # else one that is damaged could have it read for ever
            last = key
        try:
            crc, number, at, values = value.split(b" ", 3)
            if crc32(value[len(crc) + 1 :], crc32(key, salt)) == int(crc):
                keys.append((int(number), key.decode(errors="surrogatepass"), int(at), values))
                continue
        except (ValueError, AttributeError):
            pass
        damaged.append(key)
    return RememberedPage(keys, damaged, last, is_last=len(rows) < PAGE_KEYS or last == after)


def joined(
    run: sqlite3.Connection, bucket: int, after: bytes | None, most: int
) -> JoinedKeys | None:
    """Return so many keys of a bucket behind one of them, or its first, as they are: nothing is checked.

    None: there are too few, or they cannot be told from each other, and `page` has them.
    """
    first = after or b""
    is_first = after is None
    [last] = run.execute(
        _FIRST_LAST if is_first else _LAST_OF, (bucket, first, most - 1)
    ).fetchone() or [None]
    if last is None or (last <= first and not is_first):  # of what is damaged it may be any
        return None
    try:
        found = run.execute(_FIRST_JOINED if is_first else _JOINED, (bucket, first, last))
        count, names, values = found.fetchone()
    except sqlite3.DataError:  # longer than SQLite lets a text be
        return None
    if names is None or values is None:
        return None
    keys, rows = names.split(b"\n"), values.split(b"\n")
    if len(keys) != count or len(rows) != count or keys[-1] != last:
        return None
    rests = [row.partition(b" ")[2] for row in rows]
    crcs = [*map(crc32, rests, map(crc32, keys, repeat(_salt(bucket))))]
    return JoinedKeys(names, values, rows, crcs, last)


def pages(run: sqlite3.Connection, bucket: int) -> Iterator[RememberedPage]:
    """Yield all keys of a bucket, in their order."""
    after: bytes | None = None
    while True:
        found = page(run, bucket, after)
        yield found
        if found.is_last:
            return
        after = found.last


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
    if key.isascii():
        return "\0" not in key
    return "\0" not in key and not any("\ud800" <= each <= "\udfff" for each in key)


def _salt(bucket: int) -> int:
    """Return the checksum of a bucket, to which those of a key and of what is under it are added."""
    return crc32(b"%d " % bucket)


def _parts(rows: Sequence[tuple[int, bytes, str]]) -> Iterator[list[tuple[int, bytes, str]]]:
    rest = iter(rows)
    while some := [*islice(rest, PARAMETERS_AT_ONCE)]:
        yield some
