"""The one who writes: gathers what comes in one turn of the loop, and commits it as a whole, on a thread.

There is no timer. A group goes when the writer is idle, else when the commit before has ended, so that the
busier it is the larger the groups are. What nobody needs any more goes with the next group, or alone when
nothing else has come for a moment: it never keeps a group waiting.

One task does one thing after the other (`_work`): nothing is committed while a failed database is tried.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

from headrace.compiler.clock import Clock
from headrace.compiler.store import onthread
from headrace.compiler.store.bucketrows import ChangedBucket
from headrace.compiler.store.changedbuckets import ChangedBuckets
from headrace.compiler.store.database import Database
from headrace.compiler.store.disk import is_damage
from headrace.compiler.store.group import Group
from headrace.compiler.store.medium import Medium
from headrace.compiler.store.queuesinuse import QueuesInUse
from headrace.compiler.store.storecondition import StoreCondition
from headrace.compiler.store.storedrows import Changes
from headrace.compiler.store.storeerrors import StoreFailed

T = TypeVar("T")

QUIET_SECONDS = 0.05
"""How long nothing comes until what is not needed any more goes alone."""
AGAIN_SECONDS = 1.0
"""How often a store that takes nothing is tried."""
GIVEN_BACK_PAGES = 1_024
"""Pages that are given back at a time, if more hold nothing."""
LOOK_SECONDS = 5.0
"""How often is looked whether the files are still there."""
LEAVE_SECONDS = 2.0
"""How long a disk may take when a queue is left."""
CLOSE_SECONDS = 2.0
"""How long a disk may take at the end."""


class StoreWriter:
    """The writer of one store, from `begin` until `close`."""

    def __init__(self, clock: Clock, medium: Medium, condition: StoreCondition) -> None:
        self.clock, self.condition = clock, condition
        self._medium = medium
        self.in_use = QueuesInUse()
        self.buckets = ChangedBuckets(clock)
        self.under_way: set[int] = set()
        """The rows that are handed out, or about to be."""
        self.gone_along: set[int] = set()
        """The rows that have just gone with what was committed, while that is told."""
        self.changes = Changes()
        """What goes with the next commit: rows that nobody needs, and what else is changed."""
        self.next_row, self.next_letter = 0, 1
        self._groups: deque[Group] = deque()
        self._work: asyncio.Task[None] | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._trial: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._is_quiet = self._is_tried = self._is_looked_after = False
        """What the timers want done."""
        self._may_give_back = self._is_begun_anew = False
        self.is_read_back = False
        """Whether a page of a queue was read since it was quiet last. The room that is free by then costs
        the more to give back the more there is behind it, which is about to go: that waits for the end."""
        self.commits = 0
        self.commit_seconds = 0.0, 0
        """How long commits took, and of how many that is. Units: seconds."""

    async def begin(self, *, watches: bool) -> None:
        """Open the database; ``watches``: it has files that can be removed.

        Raises:
            StoreRefused: it cannot be opened; nothing was touched.
        """
        try:
            await self._told(partial(self._medium.open, say_alive=self._say_alive))
        except BaseException:
            self._end()
            raise
        self.next_row = self.database.next_row
        self.next_letter = self.database.next_letter
        if watches:
            self._watch = self.clock.call_later(LOOK_SECONDS, self._look_soon)

    @property
    def database(self) -> Database:
        """The database, which is opened anew where it fails."""
        return self._medium.database

    def group(self) -> Group:
        """Return what is committed next, to put something new into it; `go_on` is called then.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        if not self.condition.takes:
            raise self.condition.refusal()
        groups = self._groups
        if not groups or groups[-1].is_full:
            groups.append(Group())
        return groups[-1]

    def go_on(self) -> None:
        """Have done what there is to do, if that is not under way."""
        if self._work is None:
            self._begin()

    async def groups_ended(self) -> None:
        """Wait until all that was put down until now is there, or is not."""
        for group in [*self._groups]:
            await group.ended()

    def bucket_changed(self, bucket: ChangedBucket) -> None:
        """Have what has changed in a bucket be committed, as it is by then, as soon as that can be."""
        self.buckets.has_changed(bucket)
        if self.condition.takes:
            self.go_on()

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something; where it is damaged, what is left when that is made anew.

        Raises:
            StoreFailed: it cannot be read.
        """
        return await self.repaired(lambda database: database.read(work))

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Write something that makes room, or needs none, also on a full disk.

        Raises:
            StoreFailed: it cannot be written.
        """
        written = await self.repaired(partial(onthread.write, work, self._medium.room))
        self.give_back_soon()
        return written

    async def write_new(self, work: Callable[[sqlite3.Connection], T], size: int) -> T:
        """Write something of so many bytes that is new.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        if not self.condition.takes:
            raise self.condition.refusal()
        return await self.do(partial(onthread.write_new, work, size, self._medium.room))

    async def written(self) -> None:
        """Wait until all that is to be changed is written, however often that has to be tried.

        Raises:
            StoreFailed: the store is closed.
        """
        if self.condition.is_closing:
            raise self.condition.refusal()
        if self.changes.is_empty:
            return
        written = asyncio.Event()
        self.changes.then.append(written.set)
        if self.condition.state != "failing":  # else it is tried
            self._is_quiet = True
            self._begin()
        await written.wait()
        if self.condition.is_closing:
            raise self.condition.refusal()

    @asynccontextmanager
    async def leaving(self) -> AsyncIterator[None]:
        """Wait for what is written when a queue is left, but not for long; nobody is told if it cannot be.

        What is not written within that time is tried on for as long as the store is open.
        """
        with suppress(TimeoutError, StoreFailed):
            async with self.clock.timeout(LEAVE_SECONDS):
                yield

    def soon(self) -> None:
        """Have what is to be changed be written when nothing else has come for a moment."""
        if self._work is None and self._quiet is None and self.condition.takes:
            self._quiet = self.clock.call_later(QUIET_SECONDS, self._tidy_soon)

    def give_back_soon(self) -> None:
        """Have room that is free be given back when nothing else has come for a moment."""
        self._may_give_back = True
        self.soon()

    async def do(self, work: Callable[[Database], T]) -> T:
        """Do something that finds out whether the store fails.

        Raises:
            StoreFailed: it does.
        """
        try:
            return await self.run(work)
        except Exception as cause:
            raise self.fails(cause) from cause

    async def run(self, work: Callable[[Database], T]) -> T:
        """Do something; what it raises is as it is."""
        return await self._medium.run(lambda: work(self.database))

    async def changed_first(self, work: Callable[[Changes, Database], T]) -> T:
        """Do something that writes what is to be changed as well."""
        changes, self.changes = self.changes, Changes()
        try:
            done = await self.run(partial(work, changes))
        except Exception:
            self._put_back(changes)
            raise
        self._is_committed(changes)
        return done

    def fails(self, cause: Exception) -> StoreFailed:
        """Take nothing until it can be written again; return what is told of it."""
        told = self.condition.fails(cause)
        if not self.condition.is_closing:
            groups = [*self._groups]
            self._groups.clear()
            for group in groups:
                group.end(told)
            if self._trial is None:
                self._trial = self.clock.call_later(AGAIN_SECONDS, self._try_soon)
        return told

    async def close(self) -> None:
        """Write what is left, and close. A disk that does not answer is left alone after some seconds."""
        if self.condition.is_closing:
            return
        self.condition.closes()
        self._is_quiet = True
        for group in self._groups:
            group.is_full = True
        self._stop_timers()
        try:
            async with self.clock.timeout(CLOSE_SECONDS):
                self.go_on()
                if self._work is not None:
                    await asyncio.wait([self._work])
                await self.run(partial(onthread.close, self._medium.room))
        except TimeoutError:
            seconds = f"{CLOSE_SECONDS:g}"
            self.condition.tell(f"the store has not answered for {seconds} s: it is left as it is")
            self._end(is_idle=False)
        except Exception as cause:
            self.condition.tell(f"the store could not be closed in order: {cause}")
            self._end()
        except BaseException:
            self._end(is_idle=False)
            raise
        else:
            self._end()

    def _say_alive(self) -> None:
        """Say that what is under way has not ended the process until now, as is said every few seconds."""
        if self.under_way:
            self.database.mark_alive()

    async def repaired(self, work: Callable[[Database], T]) -> T:
        """Do something, again where the database had to be made anew for it.

        Raises:
            StoreFailed: it cannot be done.
        """
        try:
            return await self.run(work)
        except Exception as cause:
            told = self.fails(cause)
            if not is_damage(cause) or self.condition.is_closing:
                raise told from cause
        await self.condition.readable.wait()
        if self.condition.is_closing:
            raise self.condition.refusal()
        return await self.do(work)

    def _begin(self) -> None:
        """Have done what there is to do."""
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        if self._work is None:
            self._work = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        """Do one thing after the other until nothing is left to do."""
        try:
            while True:
                if self._is_tried:
                    self._is_tried = False
                    await self._try_again()
                elif self._is_looked_after:
                    self._is_looked_after = False
                    await self._look()
                elif self._groups:
                    await self._commit(self._groups.popleft())
                elif self.condition.state == "open" and self.buckets.have_changed:
                    await self._commit(Group())
                elif self._is_quiet:
                    self._is_quiet = False
                    await self._tidy()
                else:
                    break
        finally:
            self._work = None
        if not self.changes.is_empty or self._may_give_back:
            self.soon()

    def _tidy_soon(self) -> None:
        self._quiet = None
        self._is_quiet = True
        self._begin()

    async def _tidy(self) -> None:
        """Nothing else has come: what is not needed goes, and room that is free is given back."""
        if not self.changes.is_empty:
            await self._commit(Group())
        if not self._may_give_back or not self.condition.takes:
            return
        if self.is_read_back:
            self.is_read_back = False
            return
        self._may_give_back = False
        try:
            if self._medium.gives_back and await self.run(Database.free_pages) > GIVEN_BACK_PAGES:
                await self.run(lambda database: database.give_back(GIVEN_BACK_PAGES))
                self._may_give_back = True
        except Exception as cause:
            self.fails(cause)

    async def _commit(self, group: Group) -> None:
        group.is_full = True
        changes = self.changes
        self.changes = Changes()
        changes.rows, changes.letters, changes.rests = group.rows, group.letters, group.rests
        changes.letters_along = group.letters_along
        for row, queue, next in group.rows_along():
            changes.rows_along.append(row)
            changes.nexts[queue] = next
        buckets = await self.buckets.gather(changes) if self.condition.state == "open" else []
        try:
            seconds = await self.run(partial(self._timed, changes))
        except Exception as cause:
            self._put_back(changes)
            told = self.fails(cause)
            group.end(told)
            for each in buckets:
                each.ended(told)
            if self.condition.is_closing:
                self.buckets.clear()  # or it would be tried for ever
        else:
            total, count = self.commit_seconds
            self.commit_seconds = total + seconds, count + 1
            self._is_committed(changes)
            group.dropped = changes.dropped
            self.gone_along.update(changes.rows_along)
            group.end()
            self.gone_along.clear()
            for each in buckets:
                each.ended(None)

    def _timed(self, changes: Changes, database: Database) -> float:
        """Commit, on the thread; return how long that took."""
        began = self.clock.monotonic()
        onthread.commit(changes, self._medium.room, database)
        return self.clock.monotonic() - began

    def _is_committed(self, changes: Changes) -> None:
        self.commits += not changes.is_empty
        self.condition.set_asides += len(changes.aside)
        self._may_give_back |= bool(changes.gone or changes.rows_along or changes.deleted)
        letters = self.database.letters
        for letter in changes.letters:
            letters.add(letter.place, letter.amount)
        letters.subtract(changes.deleted)
        self.in_use.committed(changes.rows)
        for tell in changes.then:
            tell()

    def _put_back(self, changes: Changes) -> None:
        """Have what could not be committed go with a later one; the rows must not be there after all."""
        self.changes = changes.before(self.changes)
        if self.condition.is_closing:
            self._tell_closed()

    def _tell_closed(self) -> None:
        """_Tell those who wait for what is not written that it will not be."""
        waiting, self.changes.then = self.changes.then, []
        for tell in waiting:
            tell()

    def _try_soon(self) -> None:
        self._trial = None
        self._is_tried = True
        self._begin()

    async def _try_again(self) -> None:
        """See whether it can be written again; what is not needed any more goes first."""
        changes, self.changes = self.changes, Changes()
        if self.condition.is_damaged and self.condition.state == "failing":
            self._is_begun_anew = True
        try:
            await self._told(partial(self._revive, changes))
        except Exception as cause:
            self._put_back(changes)
            self.fails(cause)
            return
        self._is_committed(changes)
        if self._is_begun_anew:
            self._is_begun_anew = False
            self.buckets.begin_anew()
        self.condition.can_be_read()
        try:
            await self.run(partial(onthread.look_for_room, self._medium.room))
        except Exception as cause:
            self.fails(cause)
        else:
            self.condition.takes_again()

    def _revive(self, changes: Changes, tell: Callable[[str], None]) -> None:
        """Write what goes; on a database that is opened anew, if it was not the disk that was full."""
        is_failing, is_damaged = self.condition.state == "failing", self.condition.is_damaged
        if is_failing and self._medium.reopen(tell, is_damaged=is_damaged):
            self.condition.is_damaged = False
            self.in_use.restore(self.database)
        onthread.commit(changes, self._medium.room, self.database)

    def _look_soon(self) -> None:
        self._is_looked_after = True
        self._watch = self.clock.call_later(LOOK_SECONDS, self._look_soon)
        self._begin()

    async def _look(self) -> None:
        """See whether the files are still there: that they are removed nobody would notice otherwise.

        What is under way has not ended the process so far, which is written.
        """
        look = partial(onthread.look, bool(self.under_way))
        if self.condition.state != "failing" and not await self.run(look):
            self.fails(StoreFailed(f"'{self.database.file}' was removed"))

    async def _told(self, work: Callable[[Callable[[str], None]], object]) -> None:
        """Do what tells of damage, which is told here and not on the thread."""
        told: list[str] = []
        try:
            await self._medium.run(partial(work, told.append))
        finally:
            for each in told:
                self.condition.has_damaged(1, each)

    def _stop_timers(self) -> None:
        for each in (self._quiet, self._trial, self._watch):
            if each is not None:
                each.cancel()
        self._quiet = self._trial = self._watch = None

    def _end(self, *, is_idle: bool = True) -> None:
        """Let others have the medium, unless something may still be written."""
        self.condition.is_closing = True
        for group in self._groups:
            group.end(self.condition.refusal())
        self._groups.clear()
        self._tell_closed()
        self._medium.end(is_idle=is_idle)
