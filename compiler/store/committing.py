"""What one commit does to the tables of a store.

All of it may be done again, where it was written although that was said to have failed.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from headrace.compiler.store import buckettables, lettertables
from headrace.compiler.store.inpieces import MOST_JOINED, ROWS_AT_ONCE, write_in_pieces
from headrace.compiler.store.storedrows import (
    ALONE_FROM,
    TAKEN_TOGETHER,
    Changes,
    NewRow,
    Parts,
)
from headrace.compiler.store.storeformat import checksum, is_right, lengths, unpacked

T = TypeVar("T")

_VALUES = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT = "INSERT INTO entries VALUES "
_INSERT_LARGE = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, zeroblob(?))"
_DELETE = "DELETE FROM entries WHERE n IN (SELECT value FROM json_each(?))"
_DELETE_ONE = "DELETE FROM entries WHERE n = ?"
# What is not taken has a number below 0, of as many digits: so a row that is marked stays where it is. One
# that needed more room than before would be written anew, with all that is in it.
_TAKE = "UPDATE entries SET taken = ?1 WHERE n IN (SELECT value FROM json_each(?2)) AND taken <> ?1"
_LEAVE = (
    "UPDATE entries SET taken = -taken WHERE n IN (SELECT value FROM json_each(?)) AND taken > 0"
)
_SUSPECT = "UPDATE entries SET deaths = ?1 WHERE n IN (SELECT value FROM json_each(?2))"
_INNOCENT = (
    "UPDATE entries SET deaths = 0, taken = CASE WHEN taken > 0 THEN -taken ELSE taken END"
    " WHERE n IN (SELECT value FROM json_each(?))"
)
_NEXT = (
    "UPDATE queues SET next = max(next, given.value) FROM json_each(?) AS given"
    " WHERE queues.id = CAST(given.key AS INTEGER)"
)
_ASIDE = (
    "INSERT INTO aside SELECT n, queue, first, count, at, crc, body, ?, ? FROM entries WHERE n = ?"
)
_DISCARD_EMPTY = (
    "DELETE FROM queues WHERE id = ? AND NOT EXISTS (SELECT 1 FROM entries WHERE queue = id)"
    " AND NOT EXISTS (SELECT 1 FROM aside WHERE queue = id)"
    " AND NOT EXISTS (SELECT 1 FROM remembered WHERE bucket = id)"
)
_END = "UPDATE queues SET ended = ? WHERE id = ? AND ended IS NULL"
_ROW = "SELECT queue, first, count, deaths, at, crc, body FROM entries WHERE n = ?"


def write(run: sqlite3.Connection, changes: Changes) -> None:
    """Write changes, within a transaction."""
    _insert(run, changes.rows)
    changes.deleted, changes.dropped = {}, []
    if changes.letters:
        lettertables.insert(run, changes.letters)
        changes.dropped = lettertables.drop(run, changes.letters, changes.deleted)
    if changes.rests:
        lettertables.keep_rests(run, changes.rests, changes.deleted)
    if changes.tried:
        lettertables.update(run, changes.tried)
    if gone := changes.letters_gone + changes.letters_along:
        lettertables.delete(run, gone, changes.deleted)
    for each in changes.remembered:
        buckettables.write(run, each)
    for n, now in changes.aside.items():
        set_aside(run, n, now, "process")
    if changes.gone or changes.rows_along:
        delete(run, changes.gone + changes.rows_along)
    for n, parts in changes.parts.items():
        _replace(run, n, parts)
    for now, rows in _by_value(changes.taken):
        take(run, rows, now)
    for deaths, rows in _by_value(changes.suspected):
        run.execute(_SUSPECT, (deaths, json.dumps(rows)))
    if changes.innocent:
        run.execute(_INNOCENT, (json.dumps(changes.innocent),))
    if behind := _told_by_no_row(changes):
        go_on_at(run, behind)
    for queue, now in changes.ended.items():
        run.execute(_DISCARD_EMPTY, (queue,))
        run.execute(_END, (now, queue))


def _by_value(of_rows: dict[int, T]) -> Iterable[tuple[T, list[int]]]:
    """Return the rows that have something in common, for each such thing."""
    found: defaultdict[T, list[int]] = defaultdict(list)
    for n, value in of_rows.items():
        found[value].append(n)
    return found.items()


def _told_by_no_row(changes: Changes) -> dict[int, int]:
    """Return which entry comes next, of the queues of which no new row tells.

    To write it costs a page of the log, with every commit of a queue that is read as fast as it is written.
    """
    if not changes.nexts:
        return {}
    told = {row.queue: row.first + len(row.payloads) for row in changes.rows}
    return {queue: next for queue, next in changes.nexts.items() if next > told.get(queue, 0)}


def delete(run: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Have rows go."""
    if len(rows) == 1:  # of a queue that is read as fast as it is written: at half the cost
        run.execute(_DELETE_ONE, rows)
    else:
        run.execute(_DELETE, (json.dumps(rows),))


def take(run: sqlite3.Connection, rows: Sequence[int], now: float) -> None:
    """Mark rows as taken at a time, or as not, where that is 0."""
    if now:
        run.execute(_TAKE, (int(now), json.dumps(rows)))
    else:
        run.execute(_LEAVE, (json.dumps(rows),))


def go_on_at(run: sqlite3.Connection, nexts: dict[int, int]) -> None:
    """Say of queues, by their ids, which entry comes next: no row may be left that tells."""
    run.execute(_NEXT, (json.dumps(nexts),))


def set_aside(run: sqlite3.Connection, row: int, now: float, why: str) -> None:
    """Copy a row to those that are set aside."""
    run.execute(_ASIDE, (now, why, row))


def deaths_of(count: int, deaths: object) -> int:
    """Return how often a row ended the process, as far as that can be: it has no checksum.

    Only one of a single entry is ever handed out so often that it can have more than `ALONE_FROM`.
    """
    found = deaths if isinstance(deaths, int) else 0
    if count == 1:
        return ALONE_FROM if TAKEN_TOGETHER <= found < 0 else max(found, 0)
    return min(max(found, 0), ALONE_FROM)


def _replace(run: sqlite3.Connection, n: int, parts: Parts) -> None:
    """Put rows of some of its entries in the place of a row."""
    for queue, first, count, deaths, at, crc, body in run.execute(_ROW, (n,)).fetchall():
        if not is_right(n, queue, first, count, at, crc, body):
            return  # it is found to be damaged when it is read
        payloads = [*unpacked(count, body)]
        rows = [
            NewRow(
                parts.n + place,
                queue,
                start,
                at,
                payloads[start - first : start - first + entries],
                is_taken=False,
                deaths=deaths_of(count, deaths),
            )
            for place, (start, entries) in enumerate(parts.runs)
        ]
        _insert(run, rows)
        delete(run, [n])
        go_on_at(run, {queue: first + count})  # the last of what is left may come before its end


def _insert(run: sqlite3.Connection, rows: Sequence[NewRow]) -> None:
    """Insert rows, as many at once as may be."""
    small: list[NewRow] = []
    for row in rows:
        if len(row.payloads) == 1 and len(row.payloads[0]) > MOST_JOINED:
            _insert_large(run, row)
        else:
            small.append(row)
    for start in range(0, len(small), ROWS_AT_ONCE):
        _insert_small(run, small[start : start + ROWS_AT_ONCE])


def _insert_small(run: sqlite3.Connection, rows: Sequence[NewRow]) -> None:
    """Insert rows with one statement."""
    values: list[object] = []
    for row in rows:
        body = b"".join((lengths(row.payloads), *row.payloads))
        values += (*_key(row, checksum(*row.key, body)), body)
    run.execute(_INSERT + ", ".join([_VALUES] * len(rows)), values)


def _insert_large(run: sqlite3.Connection, row: NewRow) -> None:
    """Insert a row of one large payload, in pieces."""
    [payload] = row.payloads
    before = lengths(row.payloads)
    crc = checksum(*row.key, before, payload)
    run.execute(_INSERT_LARGE, (*_key(row, crc), len(before) + len(payload)))
    write_in_pieces(run, "entries", row.n, before, payload)


def _key(row: NewRow, crc: int) -> tuple[object, ...]:
    """Return the columns of a row that come before its body."""
    n, queue, first, count, at = row.key
    return n, queue, first, count, int(at) if row.is_taken else -int(at), row.deaths, at, crc
