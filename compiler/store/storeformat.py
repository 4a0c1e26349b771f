"""The format on disk: tables, their version, and how the entries of a row are put together.

Version 1 is opened for ever. A change of what is written is a new version, with a step from the one before;
a newer one than ours is refused. `docs/store-format.md` describes it for whoever looks into the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from struct import Struct
from sys import byteorder
from zlib import crc32

FORMAT = 1

STORE = "INSERT INTO store SELECT 1, 0, lower(hex(randomblob(16))) WHERE NOT EXISTS (SELECT 1 FROM store)"
SCHEMA = (
    # One row. `clean` is 0 while a process has it open, which was `alive` then; `id` tells it from others.
    "CREATE TABLE store (clean INTEGER NOT NULL, alive INTEGER NOT NULL, id TEXT NOT NULL) STRICT",
    STORE,
    # Numbered for good, so that queue and entry together are never used again.
    "CREATE TABLE queues (id INTEGER PRIMARY KEY AUTOINCREMENT, pipeline TEXT NOT NULL,"
    " target TEXT NOT NULL, kind TEXT NOT NULL, next INTEGER NOT NULL, ended REAL) STRICT",
    "CREATE UNIQUE INDEX queues_that_go_on ON queues (pipeline, target, kind) WHERE ended IS NULL",
    # What one queue got in one commit. `n` counts over all queues, `first` in its own.
    "CREATE TABLE entries (n INTEGER PRIMARY KEY, queue INTEGER NOT NULL, first INTEGER NOT NULL,"
    " count INTEGER NOT NULL, taken INTEGER NOT NULL, deaths INTEGER NOT NULL, at REAL NOT NULL,"
    " crc INTEGER NOT NULL, body BLOB NOT NULL) STRICT",
    "CREATE INDEX entries_of_queue ON entries (queue, first)",
    # Rows that are handed out no more, as they were: what is damaged may be of any type.
    "CREATE TABLE aside (n ANY, queue ANY, first ANY, count ANY, at ANY, crc ANY, body ANY,"
    " found REAL NOT NULL, why TEXT NOT NULL) STRICT",
)
LETTERS = (
    # Numbered for good, in order of time. What lists show; `signature` is the same for what failed alike.
    "CREATE TABLE letters (id INTEGER PRIMARY KEY AUTOINCREMENT, pipeline TEXT NOT NULL,"
    " stage TEXT NOT NULL, component INTEGER, input_index INTEGER, target TEXT, class TEXT NOT NULL,"
    " message TEXT NOT NULL, detail TEXT, first_seen REAL NOT NULL, last_seen REAL NOT NULL,"
    " tries INTEGER NOT NULL, maybe_written INTEGER NOT NULL, received_at REAL, config TEXT,"
    " messages INTEGER NOT NULL, bytes INTEGER NOT NULL, size INTEGER NOT NULL,"
    " signature INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT",
    "CREATE INDEX letters_of_pipeline ON letters (pipeline)",
    "CREATE INDEX letters_alike ON letters (signature)",
    "CREATE TABLE bodies (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL) STRICT",
    # Figures of what failed alike: of 100,000 letters they took 60 ms each time they were asked for.
    "CREATE TABLE signatures (id INTEGER PRIMARY KEY, pipeline TEXT NOT NULL, stage TEXT NOT NULL,"
    " component INTEGER, message TEXT NOT NULL, class TEXT NOT NULL, letters INTEGER NOT NULL,"
    " messages INTEGER NOT NULL, size INTEGER NOT NULL, first_seen REAL NOT NULL,"
    " last_seen REAL NOT NULL) STRICT",
    "CREATE INDEX signatures_of_pipeline ON signatures (pipeline, last_seen)",
)
"""Tables of dead letters, which the first stores of format 1 did not have."""

BUCKETS = (
    # What is under one key of a bucket, which is one of `queues`: see `buckettables`.
    "CREATE TABLE remembered (bucket INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY (bucket, key)) STRICT, WITHOUT ROWID",
)
"""The table of what buckets remember, which the first stores of format 1 did not have."""

_KEY = Struct("<QQQQd")
_LENGTH = Struct("<I")
WIDTH = _LENGTH.size
"""Bytes of the length of each payload, before the payloads."""


def lengths(payloads: Sequence[bytes]) -> bytes:
    """Return what stands before the payloads of a row: the length of each. Units: bytes, little endian."""
    if len(payloads) == 1:
        return _LENGTH.pack(len(payloads[0]))
    numbers = array("I", map(len, payloads))
    if byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def unpacked(count: int, body: bytes) -> Iterator[bytes]:
    """Yield the payloads of a row."""
    start = WIDTH * count
    for place in range(count):
        [length] = _LENGTH.unpack_from(body, WIDTH * place)
        yield body[start : start + length]
        start += length


def is_right(
    n: object, queue: object, first: object, count: object, at: object, crc: object, body: object
) -> bool:
    """Return whether a row is what was written; a damaged one may have any value in any column."""
    match n, queue, first, count, at, body:
        case int(), int(), int(), int(), float(), bytes():
            if not 0 < count <= len(body) // WIDTH or min(n, queue, first) < 0:
                return False
            return checksum(n, queue, first, count, at, body) == crc
    return False


def checksum(n: int, queue: int, first: int, count: int, at: float, *parts: bytes) -> int:
    """Return the CRC-32 of a row: of its key and time, then of its body, which may be given in parts."""
    found = crc32(_KEY.pack(n, queue, first, count, at))
    for part in parts:
        found = crc32(part, found)
    return found
