"""The one who writes: gathers what comes in one turn of the loop, and commits it as a whole, on a thread.

There is no timer. A group goes when the writer is idle, else when the commit before has ended, so that the
busier it is the larger the groups are. What nobody needs any more goes with the next group, or alone when
nothing else has come for a moment: it never keeps a group waiting.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from headrace.compiler.clock import Clock
from headrace.compiler.store.database import (
    MOST_JOINED,
    Changes,
    Database,
    NewRow,
    Page,
    StoredQueue,
    Sync,
    total,
)
from headrace.compiler.store.errors import StoreFailed, StoreFull, StoreRefused
from headrace.compiler.store.folder import StoreFolder
from headrace.compiler.store.room import KEEP_FREE_BYTES, RESERVE_BYTES, Room

T = TypeVar("T")

MOST_ENTRIES = 4_096
MOST_BYTES = 2**20
"""Of one group: entries, and bytes of them."""
QUIET_SECONDS = 0.05
"""How long nothing comes until what is not needed any more goes alone."""
AGAIN_SECONDS = 1.0
"""How often a store that takes nothing is tried."""
GIVEN_BACK_PAGES = 1_024
"""Pages that are given back at a time, if more hold nothing."""
LOOK_SECONDS = 5.0
"""How often is looked whether the file is still there."""

State = Literal["open", "full", "failing"]


class Group:
    """What is committed as a whole, and whoever waits for that."""

    def __init__(self) -> None:
        self.rows: list[NewRow] = []
        self.open: dict[int, NewRow] = {}
        """The row that a queue goes on with, by its id."""
        self.tell: list[Callable[[], None]] = []
        """Called in order when it is committed, or is not: see `cause`."""
        self.entries = self.bytes = 0
        self.cause: StoreFailed | None = None
        self._ended = asyncio.Event()

    async def stored(self) -> None:
        """Wait until it is committed.

        Raises:
            StoreFailed: it is not, and will not be.
        """
        await self._ended.wait()
        if self.cause is not None:
            raise self.cause

    @property
    def is_full(self) -> bool:
        """Whether nothing more goes into it."""
        return self.entries >= MOST_ENTRIES or self.bytes >= MOST_BYTES

    def end(self, cause: StoreFailed | None = None) -> None:
        """Tell all who wait."""
        self.cause = cause
        for tell in self.tell:
            tell()
        self._ended.set()


class Store:
    """A store that is open, as the loop knows it. Made by `Store.open`, ended by `close`."""

    def __init__(
        self,
        clock: Clock,
        folder: StoreFolder | None,
        room: Room | None,
        sync: Sync,
        tell: Callable[[str], None],
    ) -> None:
        self._clock, self._folder, self._room, self._sync = clock, folder, room, sync
        self._tell = tell
        self._thread = None if folder is None else ThreadPoolExecutor(1, "headrace-store")
        self._database: Database
        self._known: list[tuple[int, str, str, str]] = []
        """The queues that are in use: id, pipeline, target, kind."""
        self._groups: deque[Group] = deque()
        self._gone: list[int] = []
        self._nexts: dict[int, int] = {}
        self._next_row = 0
        self._committing: asyncio.Task[None] | None = None
        self._trying: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._trial: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._may_give_back = self._is_closing = False
        self.state: State = "open"
        self.why = ""
        """Why it takes nothing, if it does not."""
        self.commits = 0

    @classmethod
    async def open(
        cls,
        clock: Clock,
        folder: Path | None = None,
        *,
        sync: Sync = "power",
        keep_free_bytes: int = KEEP_FREE_BYTES,
        reserve_bytes: int = RESERVE_BYTES,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Store:
        """Open the store of a folder, or one in memory; ``tell`` hears of damage and of changes of state.

        Raises:
            StoreRefused: it cannot be opened; nothing was touched.
        """
        if folder is None:
            store = cls(clock, None, None, sync, tell)
            store._database = Database(None, sync)
        else:
            held = StoreFolder(folder)
            room = Room(folder, keep_free_bytes, reserve_bytes)
            store = cls(clock, held, room, sync, tell)
            try:
                store._database = await store._on_thread(partial(held.open, sync, tell))
                await store._on_thread(room.take_reserve)
            except BaseException:
                store._end()
                raise
            store._watch = clock.call_later(LOOK_SECONDS, store._look)
        store._next_row = await store._do(Database.next_row)
        return store

    async def queue(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        """Return what there is of a queue, which begins empty."""
        found = await self._do(lambda database: database.queue(pipeline, target, kind))
        self._known.append(found[:4])
        return found

    async def queues(self) -> list[StoredQueue]:
        """Return all queues that there are."""
        return await self._do(Database.queues)

    async def discard(self, queue: int) -> None:
        """Forget a queue and all that is in it. Nobody may be using it."""
        await self._do(lambda database: database.discard(queue))

    async def page(self, queue: int, after: int, most_bytes: int) -> Page:
        """Return some of what is in a queue behind an entry."""
        now = self._clock.seconds()
        page = await self._do(lambda database: database.page(queue, after, most_bytes, now))
        for first, count, _ in page.damaged:
            self._tell(f"{count:,} entries from {first:,} on are damaged: they are set aside")
        return page

    def append(
        self, queue: int, number: int, payload: bytes, *, is_taken: bool
    ) -> tuple[Group, NewRow]:
        """Put down one entry of a queue; return the group that it is committed with, and its row.

        ``is_taken``: it is handed on as soon as it is there.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        if self.state != "open":
            raise (StoreFull if self.state == "full" else StoreFailed)(self.why)
        group = self._open_group()
        row = group.open.get(queue)
        is_large = len(payload) > MOST_JOINED
        if row is None or row.is_taken != is_taken or is_large:
            row = NewRow(self._next_row, queue, number, self._clock.seconds(), [], is_taken)
            self._next_row += 1
            group.rows.append(row)
            group.open[queue] = row
            if is_large:
                del group.open[queue]
        row.payloads.append(payload)
        group.entries += 1
        group.bytes += len(payload)
        if self._committing is None:
            self._begin()
        return group, row

    def let_go(self, row: int, queue: int, next: int) -> None:
        """Have a row go, of which nothing is needed any more; of its queue ``next`` comes next."""
        self._gone.append(row)
        self._nexts[queue] = next
        if self._committing is None and self._timer is None:
            self._wait_for_quiet()

    async def close(self) -> None:
        """Write what is left, and close."""
        self._is_closing = True
        self._stop(self._timer, self._trial, self._watch)
        if self._gone and self._committing is None and self.state != "failing":
            self._begin()
        if self._committing is not None:
            await self._committing
        try:
            await self._do(Database.close)
        except sqlite3.Error as cause:
            self._tell(f"the store could not be closed in order: {cause}")
        self._end()

    def _open_group(self) -> Group:
        if not self._groups or self._groups[-1].is_full:
            self._groups.append(Group())
        return self._groups[-1]

    def _begin(self) -> None:
        self._stop(self._timer)
        self._timer = None
        self._committing = asyncio.ensure_future(self._commit_all())

    @staticmethod
    def _stop(*timers: asyncio.TimerHandle | None) -> None:
        for each in timers:
            if each is not None:
                each.cancel()

    def _wait_for_quiet(self) -> None:
        if self._committing is None and self._timer is None and not self._is_closing:
            self._timer = self._clock.call_later(QUIET_SECONDS, self._quiet)

    def _quiet(self) -> None:
        """Nothing else has come: what is not needed goes, and room that is free is given back."""
        self._timer = None
        if self._committing is None and self.state != "failing":
            self._begin()

    async def _commit_all(self) -> None:
        """Commit group after group for as long as there is one, and what is to go with the first."""
        try:
            if not self._groups:
                await self._commit(Group())
                await self._give_back()
            while self._groups:
                await self._commit(self._groups.popleft())
        finally:
            self._committing = None
        if (self._gone or self._may_give_back) and self.state == "open":
            self._wait_for_quiet()

    async def _commit(self, group: Group) -> None:
        changes = Changes(group.rows, self._gone, self._nexts)
        self._gone, self._nexts = [], {}
        try:
            await self._do(partial(_commit, changes=changes, room=self._room))
        except (sqlite3.Error, StoreFailed, OSError) as cause:
            self._gone = changes.gone + self._gone
            self._nexts = changes.nexts | self._nexts
            failed = _failed(cause)
            self._fails(failed)
            group.end(failed)
        else:
            self.commits += 1
            self._may_give_back |= bool(changes.gone)
            group.end()

    async def _give_back(self) -> None:
        """Give room back that the file does not need, some at a time."""
        self._may_give_back = False
        if self._folder is None or self._groups or self.state != "open":
            return
        try:
            if await self._do(Database.free_pages) > GIVEN_BACK_PAGES:
                await self._do(lambda database: database.give_back(GIVEN_BACK_PAGES))
                self._may_give_back = True
        except sqlite3.Error as cause:
            self._fails(_failed(cause))

    def _fails(self, cause: StoreFailed) -> None:
        """Take nothing until it can be written again."""
        state: State = "full" if isinstance(cause, StoreFull) else "failing"
        if (state, str(cause)) != (self.state, self.why):
            self._tell(f"the store takes nothing: {cause}")
        self.state, self.why = state, str(cause)
        for group in self._groups:
            group.end(cause)
        self._groups.clear()
        self._stop(self._trial)
        if not self._is_closing:
            self._trial = self._clock.call_later(AGAIN_SECONDS, self._try)

    def _try(self) -> None:
        self._trial = None
        self._trying = asyncio.ensure_future(self._try_again())

    async def _try_again(self) -> None:
        """See whether it can be written again; what is not needed any more goes first."""
        gone, nexts = self._gone, self._nexts
        self._gone, self._nexts = [], {}
        try:
            await self._on_thread(partial(self._revive, Changes([], gone, nexts)))
        except (sqlite3.Error, StoreFailed, StoreRefused, OSError) as cause:
            self._gone = gone + self._gone
            self._nexts = nexts | self._nexts
            self._fails(_failed(cause))
        else:
            self.state, self.why = "open", ""
            self._tell("the store takes entries again")

    def _revive(self, changes: Changes) -> None:
        """Write what goes; on a database that is opened anew, if it was not the disk that was full."""
        if self._folder is not None and self.state == "failing":
            with suppress(sqlite3.Error):
                self._database.close(is_clean=False)
            self._database = self._folder.open(self._sync, self._tell, is_again=True)
            for each in self._known:
                self._database.restore(*each)
        self._database.commit(changes)
        if self._room is not None:
            self._database.checkpoint()
            self._room.ask(0)
            self._room.take_reserve()
        self._database.touch()

    def _look(self) -> None:
        """See whether the file is still there: that it is removed nobody would notice otherwise."""
        assert self._folder is not None
        if self.state == "open" and not self._folder.is_there(self._database):
            self._fails(StoreFailed(f"'{self._folder.file}' was removed"))
        self._watch = self._clock.call_later(LOOK_SECONDS, self._look)

    async def _do(self, work: Callable[[Database], T]) -> T:
        return await self._on_thread(lambda: work(self._database))

    async def _on_thread(self, work: Callable[[], T]) -> T:
        """Do what may wait for the disk; what is in memory is done at once, also in virtual time."""
        if self._thread is None:
            return work()
        with self._clock.outside():
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        if self._folder is not None:
            self._folder.close()


def _commit(database: Database, changes: Changes, room: Room | None) -> None:
    """Commit on the thread; where the disk is full, what is not needed any more goes all the same."""
    if room is not None and changes.rows:
        room.ask(total(changes.rows))
    try:
        database.commit(changes)
    except sqlite3.OperationalError as cause:
        if room is None or cause.sqlite_errorname != "SQLITE_FULL":
            raise
        room.give_up_reserve()
        raise StoreFull("the disk is full") from cause


def _failed(cause: Exception) -> StoreFailed:
    """Return what is told of what the disk, or SQLite, says."""
    if isinstance(cause, StoreFailed):
        return cause
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", "")
        if name == "SQLITE_FULL":
            return StoreFull("the disk is full")
        return StoreFailed(f"it cannot be written: {cause}" + (f" ({name})" if name else ""))
    return StoreFailed(f"it cannot be written: {cause}")
