"""How much is written with one statement, and how what is large is written and read in pieces."""

from __future__ import annotations

import sqlite3

MOST_JOINED = 256 * 1024
"""Bytes of a payload above which it has a row of its own, and is written in pieces of as many."""
ROWS_AT_ONCE = 64
"""Rows of one statement: each statement may have to wait for the interpreter."""


def write_in_pieces(run: sqlite3.Connection, table: str, row: int, *parts: bytes) -> None:
    """Write parts into the body of a row, which has room for them.

    Joined, 16 MiB hold up everybody for 12 ms.
    """
    with run.blobopen(table, "body", row) as blob:
        for part in parts:
            view = memoryview(part)
            for start in range(0, len(part), MOST_JOINED):
                blob.write(view[start : start + MOST_JOINED])


def read_in_pieces(run: sqlite3.Connection, table: str, row: int) -> bytes:
    """Return the body of a row; others have their turn between the pieces of a large one."""
    with run.blobopen(table, "body", row, readonly=True) as blob:
        return b"".join(blob.read(MOST_JOINED) for _ in range(0, len(blob), MOST_JOINED))
