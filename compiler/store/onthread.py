"""What a store has done on its thread, as one piece each."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from headrace.compiler.store.database import LOG_PAGES, Database
from headrace.compiler.store.disk import is_full
from headrace.compiler.store.room import Room, on_the_reserve
from headrace.compiler.store.storedrows import Changes, StoredPage, StoredQueue
from headrace.compiler.store.storeerrors import StoreFull

T = TypeVar("T")

TO_GO_ON_BYTES = 4 * 2**20
"""Room that there has to be until something new is taken again, or it would be for moments only."""


def commit(changes: Changes, room: Room | None, database: Database) -> None:
    """Commit; on a full disk what makes room goes all the same, and what is new does not.

    Raises:
        StoreFull: there is no room.
    """
    if not changes.is_new:
        on_the_reserve(room, lambda: database.commit(changes))
    else:
        _within_room(room, changes.bytes, lambda: database.commit(changes))


def _within_room(room: Room | None, size: int, work: Callable[[], T]) -> T:
    """Write so many bytes that are new; where there is no room for them, nothing of it."""
    if room is not None:
        room.ask(size)
    try:
        return work()
    except Exception as cause:
        if room is None or not is_full(cause):
            raise
        room.give_up_reserve()
        raise StoreFull("the disk is full") from cause


def queue(
    room: Room | None, key: tuple[str, str, str], changes: Changes, database: Database
) -> StoredQueue:
    """Return a queue as it is after changes."""
    if not changes.is_empty:
        on_the_reserve(room, lambda: database.commit(changes))
    return database.queue(*key)


def discard(queue: int, room: Room | None, database: Database) -> bool:
    """Forget some of a queue, also on a full disk; return whether there is more of it."""
    return on_the_reserve(room, lambda: database.discard(queue))


def discard_aside(queue: int, room: Room | None, database: Database) -> bool:
    """The same of what of it was set aside, and of nothing else."""
    return on_the_reserve(room, lambda: database.discard_aside(queue))


def write(work: Callable[[sqlite3.Connection], T], room: Room | None, database: Database) -> T:
    """Write something that makes room, also on a full disk."""
    return on_the_reserve(room, lambda: database.write(work))


def write_new(
    work: Callable[[sqlite3.Connection], T], size: int, room: Room | None, database: Database
) -> T:
    """Write something of so many bytes that is new.

    Raises:
        StoreFull: there is no room.
    """
    return _within_room(room, size, lambda: database.write(work))


def page(
    queue: int,
    after: int,
    before: int,
    most_bytes: int,
    now: float,
    room: Room | None,
    database: Database,
) -> tuple[StoredPage, Exception | None]:
    """Return some rows, and why they could not be marked, if they could not."""
    found = database.page(queue, after, before, most_bytes)
    try:
        on_the_reserve(room, lambda: database.mark(found, queue, before, now))
    except Exception as cause:
        return found, cause
    return found, None


def look(is_under_way: bool, database: Database) -> bool:
    """Return whether the files are still there; what is under way has not ended the process until now."""
    if is_under_way:
        with suppress(sqlite3.Error):  # the next commit tells
            database.mark_alive()
    return database.is_there()


def look_for_room(room: Room | None, database: Database) -> None:
    """See whether there is room for what is new.

    Raises:
        StoreFull: there is not.
    """
    if room is not None:
        if database.free_pages():
            on_the_reserve(room, lambda: database.give_back(LOG_PAGES))
        database.checkpoint()
        room.take_reserve()
        room.ask(TO_GO_ON_BYTES)
    database.touch()


def close(room: Room | None, database: Database) -> None:
    """Close, and say that nothing is under way any more."""
    try:
        on_the_reserve(room, database.mark_clean)
    finally:
        database.close()
