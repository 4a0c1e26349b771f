"""What is told of each thing in a store, and how it is checked: for commands that look at a stopped one.

A thing that a store has besides gets a row of `SUBJECTS`; what no row knows is told by the name of its
table.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.compiler.durablebucket import BucketFill
from headrace.compiler.store import buckettables, historytable, lettertables
from headrace.compiler.store.database import Database
from headrace.compiler.store.letterrows import Letter
from headrace.compiler.store.storedrows import BUCKET
from headrace.compiler.store.storeformat import is_right

SubjectRow = dict[str, Any]
"""A row of what is told: names and values. Times are milliseconds since 1970."""

NO_KEYS = BucketFill(0, 0, None)
MOST_COMPLAINTS = 100
"""Of SQLite about the structure of the file."""

_NAMES = "SELECT id, target, kind FROM queues"
_ENTRIES = "n, queue, first, count, at, crc, body"
_ASIDE = """
    SELECT aside.queue, pipeline, target, kind, why, count(*),
        CAST(total(CASE WHEN count BETWEEN 1 AND length(body) / 4 THEN count ELSE 1 END) AS INTEGER),
        CAST(total(length(body)) AS INTEGER), min(found)
    FROM aside LEFT JOIN queues ON id = aside.queue GROUP BY 1, 5 ORDER BY 1, 5
"""
_ALIKE = (
    "SELECT pipeline, stage, component, message, class, letters, messages, size, first_seen, last_seen"
    " FROM signatures ORDER BY last_seen DESC"
)
_HISTORY = (
    "SELECT pipeline, count(*), CAST(total(length(pipeline) + length(counts)) AS INTEGER), min(start)"
    " FROM history GROUP BY 1 ORDER BY 1"
)
_MISCOUNTED = """
    SELECT id FROM signatures LEFT JOIN (
        SELECT signature, count(*) AS a, CAST(total(messages) AS INTEGER) AS b,
            CAST(total(size) AS INTEGER) AS c FROM letters GROUP BY 1
    ) ON signature = id WHERE (letters, messages, signatures.size) IS NOT (a, b, c)
    UNION SELECT signature FROM letters WHERE signature NOT IN (SELECT id FROM signatures)
"""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not what was written."""

    place: str
    found: str


class StoreSubject(NamedTuple):
    """One thing that a store has."""

    name: str
    tables: tuple[str, ...]
    tell: Callable[[Database], list[SubjectRow]]
    """Returns how much there is of it."""
    check: Callable[[sqlite3.Connection], Iterator[Damage]]
    """Yields what is damaged of it; tables that are not there are not."""


def damages(run: sqlite3.Connection) -> Iterator[Damage]:
    """Yield all that is damaged in a database."""
    yield from _structure(run)
    there = {name for [name] in _rows_of(run, _TABLES)}
    for table in sorted(_ALWAYS - there):
        yield Damage(f"table {table}", "is not there")
    if "store" in there:
        yield from _head(run)
    for subject in SUBJECTS:
        if there.issuperset(subject.tables):
            try:
                yield from subject.check(run)
            except sqlite3.DatabaseError as cause:
                yield Damage(f"tables {', '.join(subject.tables)}", f"cannot be read: {cause}")


def tell(database: Database) -> dict[str, list[SubjectRow]]:
    """Return how much there is of each thing, by its name."""
    there = {name for [name] in database.read(lambda run: run.execute(_TABLES).fetchall())}
    told = {
        subject.name: subject.tell(database) if there.issuperset(subject.tables) else []
        for subject in SUBJECTS
    }
    known = {"store", *(table for subject in SUBJECTS for table in subject.tables)}
    unknown = sorted(there - known)
    return {**told, "others": [_unknown(database, table) for table in unknown]}


_ALWAYS = {"store", "queues", "entries", "aside"}
"""The tables that every store has."""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"


def _unknown(database: Database, table: str) -> SubjectRow:
    quoted = table.replace('"', '""')
    [count] = database.read(lambda run: run.execute(f'SELECT count(*) FROM "{quoted}"').fetchone())
    return {"table": table, "rows": count}


def _structure(run: sqlite3.Connection) -> Iterator[Damage]:
    """Yield what SQLite says of its pages, and of indexes that have not what is there."""
    try:
        for [said] in run.execute(f"PRAGMA integrity_check({MOST_COMPLAINTS})"):
            for line in str(said).splitlines():
                if line not in ("ok", "*** in database main ***"):
                    yield Damage("the file", line)
    except sqlite3.DatabaseError as cause:
        yield Damage("the file", str(cause))


def _head(run: sqlite3.Connection) -> Iterator[Damage]:
    rows = _rows_of(run, "SELECT clean, alive, id FROM store")
    ids = [id for _, _, id in rows]
    if len(ids) != 1 or not re.fullmatch("[0-9a-f]{32}", str(ids[0])):
        yield Damage("table store", f"has {len(ids):,} rows with an id, and not one")


def _parts(database: Database) -> list[SubjectRow]:
    return [
        {
            "id": each.id,
            "pipeline_id": each.pipeline,
            "target": each.target,
            "part": each.kind,
            "entries": each.entries,
            "bytes": each.bytes,
            "oldest": millis(each.oldest),
            "ended": millis(each.ended),
        }
        for each in database.queues()
        if each.kind != BUCKET
    ]


def _check_parts(run: sqlite3.Connection) -> Iterator[Damage]:
    queues = {id for [id] in _rows_of(run, "SELECT id FROM queues")}
    for row in _scanned(run, "entries", "n", _ENTRIES):
        if isinstance(row, Damage):
            yield row
        elif not is_right(*row):
            yield Damage(f"row {row[0]} of entries, part {row[1]}", "its checksum is wrong")
        elif row[1] not in queues:
            yield Damage(f"row {row[0]} of entries", f"there is no part {row[1]} that it is of")


def _buckets(database: Database) -> list[SubjectRow]:
    told: list[SubjectRow] = []
    for each in database.queues():
        if each.kind == BUCKET:
            fill = bucket_fill(database, each.id)
            told.append(
                {
                    "id": each.id,
                    "bucket": each.target,
                    "keys": fill.keys,
                    "bytes": fill.bytes,
                    "oldest": millis(fill.oldest),
                    "ended": millis(each.ended),
                }
            )
    return told


def bucket_fill(database: Database, bucket: int) -> BucketFill:
    """Return how much is in a bucket; nothing where no bucket was ever written."""

    def filled(run: sqlite3.Connection) -> BucketFill:
        return buckettables.fill(run, bucket) if buckettables.are_there(run) else NO_KEYS

    return database.read(filled)


def _check_buckets(run: sqlite3.Connection) -> Iterator[Damage]:
    named = {id: name for id, name, kind in _rows_of(run, _NAMES) if kind == BUCKET}
    for [id] in _rows_of(run, "SELECT DISTINCT bucket FROM remembered"):
        if id not in named:
            yield Damage(f"keys of bucket {id}", "there is no bucket that they are of")
            continue
        for page in buckettables.pages(run, id):
            for key in page.damaged:
                place = f"key '{key.decode(errors='replace')}' of bucket '{named[id]}'"
                yield Damage(place, "its checksum is wrong")


def _aside(database: Database) -> list[SubjectRow]:
    rows = database.read(lambda run: run.execute(_ASIDE).fetchall())
    return [
        {
            "id": queue,
            "pipeline_id": pipeline,
            "target": target,
            "part": kind,
            "why": why,
            "rows": count,
            "entries": entries,
            "bytes": size,
            "found": millis(found),
        }
        for queue, pipeline, target, kind, why, count, entries, size, found in rows
    ]


def _check_aside(run: sqlite3.Connection) -> Iterator[Damage]:
    """Yield what was whole when it was set aside."""
    for row in _scanned(run, "aside", "rowid", f"rowid, why, {_ENTRIES}"):
        if isinstance(row, Damage):
            yield row
        elif row[1] != "damaged" and not is_right(*row[2:]):
            yield Damage(f"row {row[0]} of aside, part {row[3]}", "its checksum is wrong")


def _letters(database: Database) -> list[SubjectRow]:
    rows = database.read(lambda run: run.execute(_ALIKE).fetchall())
    return [
        {
            "pipeline_id": pipeline,
            "stage": stage,
            "component": component,
            "class": failure,
            "count": letters,
            "message_count": messages,
            "bytes": size,
            "first_seen": millis(first),
            "last_seen": millis(last),
            "message": message,
        }
        for (
            pipeline,
            stage,
            component,
            message,
            failure,
            letters,
            messages,
            size,
            first,
            last,
        ) in rows
    ]


def _check_letters(run: sqlite3.Connection) -> Iterator[Damage]:
    for row in _scanned(run, "letters", "id", "id"):
        if isinstance(row, Damage):
            yield row
        else:
            yield from _check_letter(run, row[0])
    alone = "SELECT id FROM bodies WHERE id NOT IN (SELECT id FROM letters)"
    for [id] in _rows_of(run, alone):
        yield Damage(f"body of letter {id}", "there is no such letter")
    for id, *known in _rows_of(run, f"SELECT id, {_SIGNATURE} FROM signatures"):
        pipeline, stage, component, message, failure = known
        letter = Letter(pipeline, stage, component, None, None, failure, message, *_NOTHING)
        if lettertables.signature_of(letter) != id:
            yield Damage(f"signature {id}", "its texts are not what was written")
    for [id] in _rows_of(run, _MISCOUNTED):
        yield Damage(f"signature {id}", "there are not as many letters as it says")


_SIGNATURE = "pipeline, stage, component, message, class"
_NOTHING = (None, 0.0, 0.0, 0, False, None, None, 0)


def _check_letter(run: sqlite3.Connection, id: int) -> Iterator[Damage]:
    try:
        whole = lettertables.one(run, id)
    except (sqlite3.DatabaseError, OverflowError) as cause:
        yield Damage(f"letter {id}", f"cannot be read: {cause}")
        return
    if whole is None:
        yield Damage(f"letter {id}", "it is not found under its id")
        return
    if whole.found is None:
        yield Damage(f"letter {id}", "its checksum is wrong")
    if whole.body is None:
        yield Damage(f"body of letter {id}", "it is gone, or its checksum is wrong")


def _history(database: Database) -> list[SubjectRow]:
    rows = database.read(lambda run: run.execute(_HISTORY).fetchall())
    return [
        {
            "pipeline_id": pipeline,
            "rows": count,
            "bytes": size,
            "oldest": millis(start),
        }
        for pipeline, count, size, start in rows
    ]


def _check_history(run: sqlite3.Connection) -> Iterator[Damage]:
    try:
        for *columns, crc in run.execute("SELECT pipeline, width, start, counts, crc FROM history"):
            if not historytable.is_right(columns, crc):
                place = f"row of history of '{columns[0]}', {columns[1]} s, {columns[2]}"
                yield Damage(place, "its checksum is wrong")
    except sqlite3.DatabaseError as cause:
        yield Damage("table history", f"cannot be read on: {cause}")


def _rows_of(run: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    """Return what a query gives until it comes upon damage, which the structure tells."""
    found: list[tuple[Any, ...]] = []
    try:
        found.extend(run.execute(query))
    except sqlite3.DatabaseError:
        return found
    return found


def _scanned(
    run: sqlite3.Connection, table: str, key: str, columns: str
) -> Iterator[Sequence[Any] | Damage]:
    """Yield the rows of a table, and what keeps it from being read: then from the last row back."""
    query, last = f"SELECT {columns} FROM {table} ORDER BY {key}", None
    try:
        for row in run.execute(query):
            yield row
            last = row[0]
        return
    except sqlite3.DatabaseError as cause:
        behind = "" if last is None else f" behind row {last}"
        yield Damage(f"table {table}{behind}", f"cannot be read on: {cause}")
    try:
        for row in run.execute(f"{query} DESC"):
            if last is not None and row[0] <= last:
                return
            yield row
    except sqlite3.DatabaseError:
        return  # it has been told


def millis(seconds: object) -> int | None:
    """Return a moment as it is told; None: there is none, or it is damaged."""
    return round(seconds * 1000) if isinstance(seconds, int | float) else None


SUBJECTS = (
    StoreSubject("parts", ("queues", "entries"), _parts, _check_parts),
    StoreSubject("buckets", ("remembered",), _buckets, _check_buckets),
    StoreSubject("aside", ("aside",), _aside, _check_aside),
    StoreSubject("dead_letters", ("letters", "bodies", "signatures"), _letters, _check_letters),
    StoreSubject("history", ("history",), _history, _check_history),
)
"""All that is known of a store."""
