"""What a stopped store has in its parts and its dead letters, record by record, one JSON object each.

At most a page of a mebibyte, or one record, is in memory.
"""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from struct import error as NotUnpackable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.letterfigures import (
    DeadLetterRecord,
    PayloadCoding,
)
from headrace.compiler.runtime.queuedbatch import START
from headrace.compiler.runtime.storedletters import stored_letter, stored_payload
from headrace.compiler.store import buckettables, lettertables
from headrace.compiler.store.inspection import Inspection
from headrace.compiler.store.journal import PAGE_BYTES
from headrace.compiler.store.letterrecords import ABOVE_ALL, storable
from headrace.compiler.store.storedrows import BUCKET, StoredQueue
from headrace.compiler.store.storeformat import is_right, unpacked

LETTER_IDS = 200
"""Letters that are looked for at a time."""

_IDS = (
    "SELECT id FROM letters WHERE id > ?1 AND (?2 IS NULL OR pipeline = ?2) ORDER BY id"
    f" LIMIT {LETTER_IDS}"
)
_ASIDE = "SELECT rowid FROM aside WHERE queue = ? ORDER BY first"
_ASIDE_ROW = "SELECT n, queue, first, count, at, crc, body, why FROM aside WHERE rowid = ?"


class DamagedRecord(NamedTuple):
    """Something that is not what was written, and is left out."""

    text: str


class ExportedEntry(msgspec.Struct, frozen=True):
    """An entry of a part: the messages of a batch, or what an input received."""

    stored_id: int
    pipeline_id: str
    target: str
    part: str
    number: int
    """Which entry of its part it is."""
    stored_at: int
    """When it was put down. Units: milliseconds since 1970."""
    set_aside: str | UnsetType = UNSET
    """Why it is handed out no more."""
    messages: Any | UnsetType = UNSET
    payload: str | UnsetType = UNSET
    payload_encoding: PayloadCoding | UnsetType = UNSET
    is_message: bool | UnsetType = UNSET
    metadata: Any | UnsetType = UNSET


class ExportedKey(msgspec.Struct, frozen=True):
    """What is remembered under a key of a bucket."""

    stored_id: int
    bucket: str
    key: str
    written_at: int
    """When it was written last. Units: milliseconds since 1970."""
    values: Any


def records_of(store: Inspection, part: StoredQueue) -> Iterator[bytes | DamagedRecord]:
    """Yield what is in a part: its entries, or the keys of a bucket.

    Raises:
        sqlite3.Error: it cannot be read on.
    """
    return keys_of(store, part) if part.kind == BUCKET else entries_of(store, part)


def keys_of(store: Inspection, part: StoredQueue) -> Iterator[bytes | DamagedRecord]:
    """Yield the keys of a bucket in the order of the keys.

    Raises:
        sqlite3.Error: they cannot be read on.
    """
    if not store.read(buckettables.are_there):
        return
    after: bytes | None = None
    while True:
        page = store.read(partial(buckettables.page, bucket=part.id, after=after))
        for _, key, at, values in page.keys:
            told = ExportedKey(
                part.id, part.target, storable(key), round(at / 1000), msgspec.Raw(values)
            )
            yield encode(told)
        for damaged in page.damaged:
            yield DamagedRecord(f"key '{damaged.decode(errors='replace')}' is damaged")
        if page.is_last:
            break
        after = page.last


def entries_of(store: Inspection, part: StoredQueue) -> Iterator[bytes | DamagedRecord]:
    """Yield the entries of a part in order, then those that were set aside.

    Raises:
        sqlite3.Error: it cannot be read on.
    """
    after = -1
    while True:
        page = store.database.page(part.id, after, ABOVE_ALL, PAGE_BYTES)
        for row in page.rows:
            for number, payload in enumerate(row.payloads, row.first):
                yield _line(part, number, row.at, payload)
        for damaged in page.damaged:
            yield DamagedRecord(f"row {damaged.n}: {damaged.entries:,} entries are damaged")
        if page.is_last or (page.last == after and not page.rows):
            break
        after = page.last
    yield from _set_aside(store, part)


def _set_aside(store: Inspection, part: StoredQueue) -> Iterator[bytes | DamagedRecord]:
    ids = store.read(lambda run: run.execute(_ASIDE, (part.id,)).fetchall())
    for id in ids:
        *row, why = _row(store, id)
        if is_right(*row):
            _, _, first, count, at, _, body = row
            for number, payload in enumerate(unpacked(count, body), first):
                yield _line(part, number, at, payload, why)
        else:
            yield DamagedRecord(f"row {row[0]}, which was set aside ({why}), is damaged")


def _row(store: Inspection, id: tuple[Any, ...]) -> tuple[Any, ...]:
    row: tuple[Any, ...] = store.read(lambda run: run.execute(_ASIDE_ROW, id).fetchone())
    return row


def _line(
    part: StoredQueue, number: int, at: float, entry: bytes, why: str | UnsetType = UNSET
) -> bytes:
    known = (part.id, part.pipeline, part.target, part.kind, number, round(at * 1000), why)
    if part.kind == "queue":
        return encode(ExportedEntry(*known, messages=msgspec.Raw(entry[START:])))
    try:
        start, told = stored_payload(entry)
    except (NotUnpackable, msgspec.DecodeError):  # of a part of which the kind is damaged
        return encode(ExportedEntry(*known, UNSET, *_payload(entry)))
    payload = _payload(entry[start:])
    metadata = msgspec.Raw(told.metadata)
    return encode(ExportedEntry(*known, UNSET, *payload, told.is_message, metadata))


def letters_of(store: Inspection, pipeline: str | None) -> Iterator[bytes | DamagedRecord]:
    """Yield the dead letters of a pipeline, None: of all, the oldest first, as the API tells one.

    Raises:
        sqlite3.Error: they cannot be read on.
    """
    if not store.read(lettertables.are_there):
        return
    after, named = 0, None if pipeline is None else storable(pipeline)
    while ids := _ids(store, after, named):
        for id in ids:
            yield _letter(store, id)
        after = ids[-1]


def _ids(store: Inspection, after: int, pipeline: str | None) -> list[int]:
    rows = store.read(lambda run: run.execute(_IDS, (after, pipeline)).fetchall())
    return [id for [id] in rows]


def _letter(store: Inspection, id: int) -> bytes | DamagedRecord:
    try:
        whole = store.read(lambda run: lettertables.one(run, id))
    except sqlite3.DatabaseError as cause:
        return DamagedRecord(f"letter {id} cannot be read: {cause}")
    if whole is None or whole.found is None:
        return DamagedRecord(f"letter {id} is damaged")
    letter = stored_letter(whole.found, whole.body)
    told: dict[str, Any] = {**asdict(letter.entry), "damaged": letter.body is None}
    if letter.body is not None:
        content = letter.body[letter.start :]
        if letter.payload is None:
            told["messages"] = msgspec.Raw(content)
        else:
            told["payload"], told["payload_encoding"] = _payload(content)
            told["is_message"] = letter.payload.is_message
            told["metadata"] = msgspec.Raw(letter.payload.metadata)
    return encode(DeadLetterRecord(**told))


def _payload(content: bytes) -> tuple[str, PayloadCoding]:
    """Return a payload as it can stand in JSON, and how."""
    try:
        return content.decode(), "utf-8"
    except UnicodeDecodeError:
        return b64encode(content).decode(), "base64"
