"""What is done to the table of history, on the thread of the store.

A row is what one pipeline has counted in a stretch of time, bucket by bucket. It is written anew for as
long as something is counted in it. The table is made by the first who writes to it: most stores have none.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

from headrace.compiler.store.inpieces import ROWS_AT_ONCE

HISTORY = (
    "CREATE TABLE IF NOT EXISTS history (pipeline TEXT NOT NULL, width INTEGER NOT NULL,"
    " start INTEGER NOT NULL, counts TEXT NOT NULL, crc INTEGER NOT NULL,"
    " PRIMARY KEY (width, start, pipeline)) STRICT, WITHOUT ROWID"
)
HISTORY_ROW_BYTES = 64
"""What a row takes on the disk beside its texts, roughly."""
FORGOTTEN_ROWS = 1_000
"""Of what is deleted in one transaction: commits wait for it."""

_COLUMNS = "pipeline, width, start, counts, crc"
_WRITE = (
    f"INSERT INTO history ({_COLUMNS}) VALUES {{}}"
    " ON CONFLICT DO UPDATE SET counts = excluded.counts, crc = excluded.crc"
)
_READ = (
    f"SELECT {_COLUMNS} FROM history WHERE width = ? AND start >= ? AND start < ?"
    " ORDER BY start, pipeline"
)
_ELSEWHERE = (
    "SELECT count(*) FROM history WHERE width NOT IN (SELECT value FROM json_each(?)) OR start >= ?"
)
_FORGET = (
    "DELETE FROM history WHERE (width, start, pipeline) IN"
    f" (SELECT width, start, pipeline FROM history WHERE {{}} LIMIT {FORGOTTEN_ROWS})"
)


class HistoryRow(NamedTuple):
    """What a pipeline has counted in a stretch of time."""

    pipeline: str
    width: int
    """Of a bucket. Units: seconds."""
    start: int
    """When the stretch begins. Units: seconds since 1970."""
    counts: str
    """The counts of its buckets, as whoever wrote them knows."""

    @property
    def size(self) -> int:
        """What it takes on the disk, roughly. Units: bytes."""
        return HISTORY_ROW_BYTES + 2 * len(self.pipeline) + len(self.counts)


def is_there(run: sqlite3.Connection) -> bool:
    """Return whether there is a table of history."""
    named = "SELECT 1 FROM sqlite_master WHERE name = 'history'"
    return run.execute(named).fetchone() is not None


def write(run: sqlite3.Connection, rows: Sequence[HistoryRow]) -> None:
    """Write rows, each in the place of the one that is there."""
    run.execute(HISTORY)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = [(*row, _checksum(row)) for row in rows[start : start + ROWS_AT_ONCE]]
        values = ", ".join(["(?, ?, ?, ?, ?)"] * len(some))
        run.execute(_WRITE.format(values), [*chain(*some)])


def read(run: sqlite3.Connection, width: int, start: int, end: int) -> tuple[list[HistoryRow], int]:
    """Return the rows that begin in a stretch of time, in order; and how many are damaged besides."""
    if not is_there(run):
        return [], 0
    rows = run.execute(_READ, (width, start, end)).fetchall()
    right = [HistoryRow(*columns) for *columns, crc in rows if is_right(columns, crc)]
    return right, len(rows) - len(right)


def elsewhere(run: sqlite3.Connection, widths: Collection[int], end: int) -> int:
    """Return how many rows begin at a moment or later, or have another width."""
    if not is_there(run):
        return 0
    [count] = run.execute(_ELSEWHERE, (json.dumps([*widths]), end)).fetchone()
    return int(count)


def forget_before(run: sqlite3.Connection, width: int, start: int) -> int:
    """Delete some of the rows that begin before a moment; return how many, 0: none is left."""
    if not is_there(run):
        return 0
    return run.execute(_FORGET.format("width = ? AND start < ?"), (width, start)).rowcount


def forget_pipelines(run: sqlite3.Connection, pipelines: Collection[str]) -> int:
    """Delete some of the rows of pipelines; return how many, 0: none is left."""
    if not is_there(run):
        return 0
    of_them = _FORGET.format("pipeline IN (SELECT value FROM json_each(?))")
    return run.execute(of_them, (json.dumps([*pipelines]),)).rowcount


def is_right(columns: Sequence[Any], crc: object) -> bool:
    """Return whether a row is what was written; a damaged one may have any value in any column."""
    match columns:
        case [str(pipeline), int(width), int(start), str(counts)]:
            return _checksum(HistoryRow(pipeline, width, start, counts)) == crc
    return False


def copy(source: sqlite3.Connection, target: sqlite3.Connection) -> int:
    """Copy what can be read of a damaged database to another; return how many rows that are."""
    put, count = f"INSERT OR IGNORE INTO history ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)", 0
    for order in ("", "ORDER BY width DESC, start DESC, pipeline DESC"):
        with suppress(sqlite3.DatabaseError):  # from the last one back to where it is damaged
            if not is_there(source):
                break
            target.execute(HISTORY)
            for *columns, crc in source.execute(f"SELECT {_COLUMNS} FROM history {order}"):
                row = [_text(each) if isinstance(each, bytes) else each for each in columns]
                if is_right(row, crc):  # else nobody could tell which it was
                    count += target.execute(put, (*row, crc)).rowcount
    return count


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _checksum(row: HistoryRow) -> int:
    """Return the CRC-32 of a row, as JSON."""
    return crc32(
        json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    )
