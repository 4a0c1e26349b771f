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
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from headrace.compiler.clock import Clock
from headrace.compiler.store import onthread
from headrace.compiler.store.bucketrows import ChangedBucket
from headrace.compiler.store.database import Database, Sync
from headrace.compiler.store.disk import failed, is_damage
from headrace.compiler.store.folder import StoreFolder
from headrace.compiler.store.group import MOST_BYTES, MOST_ENTRIES, Group
from headrace.compiler.store.inpieces import MOST_JOINED
from headrace.compiler.store.letterrows import (
    LetterAmounts,
    LetterFigures,
    LetterRest,
    LetterTry,
    NewLetter,
)
from headrace.compiler.store.memorydisk import MemoryDisk, MemoryRoom, MountedDisk
from headrace.compiler.store.onethread import OneThread
from headrace.compiler.store.room import KEEP_FREE_BYTES, RESERVE_BYTES, Room
from headrace.compiler.store.storedrows import (
    Changes,
    NewRow,
    Parts,
    RowBeginning,
    StoredPage,
    StoredQueue,
    StoredRow,
    Stretch,
)
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull, StoreInUse, StoreRefused

T = TypeVar("T")

QUIET_SECONDS = 0.05
"""How long nothing comes until what is not needed any more goes alone."""
AGAIN_SECONDS = 1.0
"""How often a store that takes nothing is tried."""
GIVEN_BACK_PAGES = 1_024
"""Pages that are given back at a time, if more hold nothing."""
LOOK_SECONDS = 5.0
"""How often is looked whether the files are still there."""
ALONE_SECONDS = 5.0
"""How long what may end the process in one queue waits for that of another."""
LEAVE_SECONDS = 2.0
"""How long a disk may take when a queue is left."""
TAKES_AGAIN = "the store takes entries again"
"""What is told when it does."""
CLOSE_SECONDS = 2.0
"""How long a disk may take at the end."""

State = Literal["open", "full", "failing"]
StoreNews = Literal["open", "full", "failing", "damaged"]
"""What is heard of a store: a state that it has from now on, or that something of it is damaged."""


@dataclass(slots=True)
class _InUse:
    """A queue that somebody has."""

    key: tuple[int, str, str, str]
    next: int
    users: int


class Store:
    """A store that is open, as the loop knows it. Made by `Store.open`, ended by `close`."""

    def __init__(
        self,
        clock: Clock,
        folder: StoreFolder | None,
        room: Room | None,
        sync: Sync,
        tell: Callable[[str], None],
        hear: Callable[[StoreNews, str], None] = lambda *_: None,
    ) -> None:
        self._clock, self._folder, self._room, self._sync = clock, folder, room, sync
        self._tell, self._hear = tell, hear
        self._thread = None if folder is None else OneThread("headrace-store")
        self._memory: MountedDisk
        """Where it is in memory, what it is kept on."""
        self._database: Database
        self._in_use: dict[int, _InUse] = {}
        self._openings: set[asyncio.Task[StoredQueue]] = set()
        self._opening = asyncio.Lock()
        """Held while a queue is opened, or one is ended that nobody has."""
        self._alone: dict[int, int] = {}
        """The row that is under way and may end the process, and its queue."""
        self._alone_ended = asyncio.Event()
        """Set when there is one no more."""
        self._under_way: set[int] = set()
        """The rows that are handed out, or about to be."""
        self._groups: deque[Group] = deque()
        self._changes = Changes()
        """What goes with the next commit: rows that nobody needs, and what else is changed."""
        self._next_row, self._next_letter = 0, 1
        self._gone_along: set[int] = set()
        """The rows that have just gone with what was committed, while that is told."""
        self._buckets: dict[ChangedBucket, bool] = {}
        """Those that are open, and whether something has changed in them."""
        self._work: asyncio.Task[None] | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._trial: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._is_quiet = self._is_tried = self._is_looked_after = False
        """What the timers want done."""
        self._may_give_back = self._is_damaged = self._is_closing = self._is_begun_anew = False
        self._readable = asyncio.Event()
        """Set unless it is failing."""
        self._readable.set()
        self.state: State = "open"
        self.why = ""
        """Why it takes nothing, if it does not."""
        self._trouble = ""
        """The same, as it was told."""
        self._heard: StoreNews = "open"
        """The state that was heard of last."""
        self.set_asides = 0
        """How often something was set aside."""
        self.commits = self.failures = self.damaged = 0
        """Commits; commits and reads that failed; entries that were found damaged, or gone."""
        self.commit_seconds = 0.0, 0
        """How long commits took on the thread, and of how many that is. Units: seconds."""

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
        hear: Callable[[StoreNews, str], None] = lambda *_: None,
        disk: MemoryDisk | None = None,
    ) -> Store:
        """Open the store of a folder, or one in memory; ``tell`` hears of damage and of changes of state.

        ``hear`` hears of each of them once, and why; `tell` of the same state for another reason as well.
        ``disk``: what one in memory is kept on, if it is to outlive the store.

        Raises:
            StoreRefused: it cannot be opened; nothing was touched.
        """
        if folder is None:
            disk = disk or MemoryDisk()
            store = cls(clock, None, MemoryRoom(disk), sync, tell, hear)
            store._memory = disk.mount()
            await store._memory.do(store._begin_in_memory)
        else:
            held = StoreFolder(folder, clock.seconds)
            room = Room(folder, keep_free_bytes, reserve_bytes)
            store = cls(clock, held, room, sync, tell, hear)
            try:
                await store._told(partial(store._begin_with, held, room))
            except BaseException:
                store._end()
                raise
            store._watch = clock.call_later(LOOK_SECONDS, store._look_soon)
        return store

    @property
    def id(self) -> str:
        """What tells its entries from those of any other store: 32 hexadecimal digits, for good."""
        return self._database.id

    def free_bytes(self) -> int | None:
        """Return how many bytes are free on its disk; None: it is in memory, or its folder is gone."""
        if self._room is None:
            return None
        try:
            return self._room.free_bytes()
        except OSError:
            return None

    async def queue(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        """Return what there is of a queue that goes on, which begins empty; it is in use until it is left.

        Raises:
            StoreFailed: the store fails, or is full and has no such queue.
        """
        opening = asyncio.ensure_future(self._opened(pipeline, target, kind))
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)
        try:
            await asyncio.wait([opening])  # what is changed with it is changed, whoever waits
        except asyncio.CancelledError:
            opening.add_done_callback(self._nobody_got)
            raise
        return opening.result()

    async def _opened(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        async with self._opening:
            found = await self._found(pipeline, target, kind)
            used = self._in_use.setdefault(found.id, _InUse(found[:4], found.next, 0))
            used.users += 1
            used.next = max(used.next, found.next)
            return found._replace(next=used.next)

    def _nobody_got(self, opening: asyncio.Task[StoredQueue]) -> None:
        """Use a queue no longer that was opened for somebody who did not wait for it."""
        if not opening.cancelled() and opening.exception() is None:
            self.leave(opening.result().id)

    async def _found(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        """Return a queue, also where the database has to be opened anew for it."""
        await self._groups_ended()  # what is being stored has its numbers
        try:
            return await self._queue(pipeline, target, kind)
        except StoreFailed:  # nothing was tried
            raise
        except Exception as cause:
            if not is_damage(cause):
                raise self._fails(cause) from cause
            self._fails(cause)
            await self._readable.wait()
            return await self._queue(pipeline, target, kind)

    async def _groups_ended(self) -> None:
        for group in [*self._groups]:
            await group.ended()

    def under_way(self, row: int) -> None:
        """Say of a row that is marked as taken that it is going to be handed out."""
        self._under_way.add(row)

    def leave(self, queue: int) -> None:
        """Use a queue no longer."""
        for row in [row for row, of in self._alone.items() if of == queue]:
            self._not_alone(row)
        used = self._in_use[queue]
        used.users -= 1
        if not used.users:
            del self._in_use[queue]

    async def queues(self) -> list[StoredQueue]:
        """Return all queues that there are.

        Raises:
            StoreFailed: they cannot be read.
        """
        try:
            return await self._do(Database.queues)
        except Exception as cause:
            raise self._fails(cause) from cause

    async def discard(self, queue: int) -> None:
        """Forget a queue and all that is in it, or was set aside, some at a time.

        It is ended first, so that nobody takes it up; what is left where this is given up can be discarded.

        Raises:
            StoreInUse: somebody has it.
            StoreFailed: it cannot be written.
        """
        async with self._opening:
            if queue in self._in_use:
                raise StoreInUse("the queue is in use")
            await self._groups_ended()
            ended = Changes(ended={queue: self._clock.seconds()})
            await self._write(partial(onthread.commit, ended, self._room))
        while await self._write(partial(onthread.discard, queue, self._room)):
            pass
        self._may_give_back = True
        self._wait_for_quiet()

    async def discard_aside(self, queue: int) -> None:
        """Forget what of a queue was set aside, also while somebody has it, some at a time.

        Raises:
            StoreFailed: it cannot be written.
        """
        async with self._opening:
            while await self._write(partial(onthread.discard_aside, queue, self._room)):
                pass
        self._may_give_back = True
        self._wait_for_quiet()

    async def _write(self, work: Callable[[Database], T]) -> T:
        """Do what writes."""
        try:
            return await self._do(work)
        except Exception as cause:
            raise self._fails(cause) from cause

    async def page(self, queue: int, after: int, before: int, most_bytes: int) -> StoredPage:
        """Return some of what is in a queue between two entries, as soon as it can be read.

        Raises:
            StoreFailed: the store is closed.
        """
        tries = 0
        while True:
            await self._readable.wait()
            if self._is_closing:
                raise self._refusal()
            work = partial(onthread.page, queue, after, before, most_bytes, self._clock.seconds())
            try:
                page, cause = await self._do(partial(work, self._room))
                break
            except Exception as raised:
                tries += 1
                self._is_damaged |= tries > 1  # it was opened anew, and cannot be read all the same
                self._fails(raised)
        if cause is not None:  # what is read is given all the same
            self._fails(cause)
        for row in page.damaged:
            self.damaged += row.entries
            self.set_asides += 1
            self._tell_damage(
                f"{row.entries:,} entries of queue {queue} from {row.first:,} on are damaged:"
                " they are set aside"
            )
        return page

    async def beginnings(self, queue: int, most: int) -> list[RowBeginning]:
        """Return the rows of a queue that have one entry each, with the first bytes of each.

        Raises:
            StoreFailed: they cannot be read.
        """
        return await self._write(lambda database: database.beginnings(queue, most))

    def lost(self, queue: int, count: int) -> None:
        """Tell that entries of a queue are not there which were."""
        self.damaged += count
        self._tell_damage(f"{count:,} entries of queue {queue} are gone")

    def append(
        self, queue: int, number: int, payload: bytes, *, is_taken: bool
    ) -> tuple[Group, NewRow]:
        """Put down one entry of a queue; return the group that it is committed with, and its row.

        ``is_taken``: it is handed on as soon as it is there.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        if self.state != "open" or self._is_closing:
            raise self._refusal()
        groups = self._groups
        group = groups[-1] if groups and not groups[-1].is_full else self._open_group()
        row = group.open.get(queue)
        size = len(payload)
        is_large = size > MOST_JOINED
        if row is None or row.is_taken != is_taken or is_large:
            row = NewRow(self._next_row, queue, number, self._clock.seconds(), [], is_taken)
            self._next_row += 1
            group.rows.append(row)
            group.open[queue] = row
            if is_large:
                del group.open[queue]
        row.payloads.append(payload)
        group.add(size)
        if self._work is None:
            self._begin()
        return group, row

    def append_letter(self, letter: NewLetter) -> Group:
        """Put down a letter, which is given its id; return the group that it is committed with.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        if self.state != "open" or self._is_closing:
            raise self._refusal()
        group = self._open_group()
        letter.id = self._next_letter
        self._next_letter += 1
        group.letters.append(letter)
        group.add(letter.size)
        if self._work is None:
            self._begin()
        return group

    def append_rest(self, rest: LetterRest) -> Group:
        """Have of a letter only what is left of it; return the group that this is committed with.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        if self.state != "open" or self._is_closing:
            raise self._refusal()
        group = self._open_group()
        group.rests.append(rest)
        group.add(len(rest.body))
        if self._work is None:
            self._begin()
        return group

    def join(self, bucket: ChangedBucket) -> None:
        """Have a bucket be asked for what has changed in it, when it says so, until it leaves."""
        self._buckets[bucket] = False

    def part(self, bucket: ChangedBucket) -> None:
        """Have a bucket be asked no more."""
        self._buckets.pop(bucket, None)

    def gather(self, bucket: ChangedBucket) -> None:
        """Have what has changed in a bucket be committed, as it is by then, as soon as that can be."""
        self._buckets[bucket] = True
        if self._work is None and self.state == "open" and not self._is_closing:
            self._begin()

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something of buckets, as `read_letters` does.

        Raises:
            StoreFailed: it cannot be read.
        """
        return await self._repaired(lambda database: database.read(work))

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Write something of buckets that needs no room.

        Raises:
            StoreFailed: it cannot be written.
        """
        return await self._repaired(partial(onthread.write, work, self._room))

    def bucket_damaged(self, name: str, keys: int) -> None:
        """Tell that keys of a bucket are not what was written."""
        self.damaged += keys
        self._tell(f"{keys:,} keys of bucket '{name}' are damaged: they are set aside")

    @property
    def letters(self) -> LetterFigures:
        """How much there is of letters."""
        return self._database.letters

    @property
    def last_letter(self) -> int:
        """The id of the letter that was put down last."""
        return self._next_letter - 1

    def letter_damaged(self, id: int) -> None:
        """Tell that a letter is not what was written."""
        self.damaged += 1
        self._tell_damage(f"letter {id} is damaged")

    def let_go_of_letters(self, ids: Collection[int]) -> None:
        """Have letters go."""
        self._changes.letters_gone += ids
        self._wait_for_quiet()

    async def tried(self, id: int, tried: LetterTry) -> None:
        """Say what became of a letter, as soon as it can be written.

        Raises:
            StoreFailed: the store is closed.
        """
        self._changes.tried[id] = tried
        await self.written()

    async def read_letters(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something of the letters; where it is damaged, what is left when that is made anew.

        Raises:
            StoreFailed: it cannot be read.
        """
        return await self._repaired(lambda database: database.read(work))

    async def delete_letters(
        self, work: Callable[[sqlite3.Connection], LetterAmounts]
    ) -> LetterAmounts:
        """Have some letters go, also on a full disk; return how much that was, nothing: all are gone.

        Raises:
            StoreFailed: it cannot be written.
        """
        deleted = await self._repaired(partial(onthread.write, work, self._room))
        self.letters.subtract(deleted)
        self._may_give_back = True
        self._wait_for_quiet()
        return deleted

    async def read_history(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read something of history; where it is damaged, what is left when that is made anew.

        Raises:
            StoreFailed: it cannot be read.
        """
        return await self._repaired(lambda database: database.read(work))

    async def write_history(self, work: Callable[[sqlite3.Connection], T], size: int) -> T:
        """Write something of history, of so many bytes.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        if self.state != "open" or self._is_closing:
            raise self._refusal()
        return await self._write(partial(onthread.write_new, work, size, self._room))

    async def forget_history(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Have some of history go, also on a full disk.

        Raises:
            StoreFailed: it cannot be written.
        """
        self._may_give_back = True
        return await self._repaired(partial(onthread.write, work, self._room))

    def history_damaged(self, rows: int) -> None:
        """Tell that rows of history are not what was written."""
        self.damaged += rows
        self._tell(f"{rows:,} rows of history are damaged")

    async def _repaired(self, work: Callable[[Database], T]) -> T:
        """Do something, again where the database had to be made anew for it."""
        try:
            return await self._do(work)
        except Exception as cause:
            told = self._fails(cause)
            if not is_damage(cause) or self._is_closing:
                raise told from cause
        await self._readable.wait()
        if self._is_closing:
            raise self._refusal()
        return await self._write(work)

    def let_go(self, row: int, queue: int, next: int) -> None:
        """Have a row go, of which nothing is needed any more; of its queue ``next`` comes next."""
        self._not_alone(row)
        self._under_way.discard(row)
        if row in self._gone_along:
            return
        self._changes.gone.append(row)
        self._changes.nexts[queue] = next
        if self._work is None and self._quiet is None:
            self._wait_for_quiet()

    def set_aside(self, row: int) -> None:
        """Have a row be kept for somebody to look at, when it goes."""
        self._changes.aside[row] = self._clock.seconds()

    async def split(self, row: StoredRow, queue: int, then: Callable[[], object]) -> None:
        """Put each entry of a row into one of its own, and call ``then``, as soon as it can be written.

        Raises:
            StoreFailed: the store is closed.
        """
        if row.n not in self._changes.parts:
            runs = [(row.first + place, 1) for place in range(len(row.payloads))]
            self._replace(row.n, queue, runs)
            self._changes.then.append(then)
        await self.written()

    async def take(self, row: int, queue: int) -> None:
        """Mark a row as taken, as soon as it can be written; what was let go of is gone then as well.

        It may end the process, so one of another queue that was taken so is waited for, but not for long.

        Raises:
            StoreFailed: the store is closed.
        """
        try:
            async with self._clock.timeout(ALONE_SECONDS):
                while self._alone:
                    self._alone_ended.clear()
                    await self._alone_ended.wait()
        except TimeoutError:
            self._alone.clear()  # what has not ended it by now will hardly do so
        self._alone[row] = queue
        self._changes.taken[row] = self._clock.seconds()
        try:
            await self.written()
        except BaseException:
            self._not_alone(row)
            raise

    def survived(self, rows: Collection[int]) -> None:
        """Say of rows that they were under way for so long that they will not end the process."""
        for row in rows:
            self._not_alone(row)
        self._under_way.difference_update(rows)
        self._changes.innocent += rows
        self._wait_for_quiet()

    def call_later(self, seconds: float, action: Callable[[], object]) -> asyncio.TimerHandle:
        """Call ``action`` in so many seconds, unless the handle is cancelled before."""
        return self._clock.call_later(seconds, action)

    async def give_back(self, queue: int, left: dict[int, list[Stretch] | None]) -> None:
        """Have rows be under way no more: what is left of each, or all of it where that is None.

        Raises:
            StoreFailed: the store is closed.
        """
        self._under_way -= left.keys()
        for row, runs in left.items():
            if runs is None:
                self._changes.taken[row] = 0
            else:
                self._replace(row, queue, runs)
        await self.written()

    def end(self, queue: int) -> None:
        """Have nobody take up a queue again; where nothing is left of it, it goes."""
        self._changes.ended[queue] = self._clock.seconds()
        self._wait_for_quiet()

    async def written(self) -> None:
        """Wait until all that is to be changed is written, however often that has to be tried.

        Raises:
            StoreFailed: the store is closed.
        """
        if self._is_closing:
            raise self._refusal()
        if self._changes.is_empty:
            return
        written = asyncio.Event()
        self._changes.then.append(written.set)
        if self.state != "failing":  # else it is tried
            self._is_quiet = True
            self._begin()
        await written.wait()
        if self._is_closing:
            raise self._refusal()

    @asynccontextmanager
    async def leaving(self) -> AsyncIterator[None]:
        """Wait for what is written when a queue is left, but not for long; nobody is told if it cannot be.

        What is not written within that time is tried on for as long as the store is open.
        """
        with suppress(TimeoutError, StoreFailed):
            async with self._clock.timeout(LEAVE_SECONDS):
                yield

    async def close(self) -> None:
        """Write what is left, and close. A disk that does not answer is left alone after some seconds."""
        if self._is_closing:
            return
        self._is_closing = self._is_quiet = True
        for group in self._groups:
            group.is_full = True
        self._stop_timers()
        self._readable.set()  # whoever waits for it hears that it is closed
        try:
            async with self._clock.timeout(CLOSE_SECONDS):
                if self._work is None:
                    self._begin()
                if self._work is not None:
                    await asyncio.wait([self._work])
                await self._do(partial(onthread.close, self._room))
        except TimeoutError:
            self._tell(f"the store has not answered for {CLOSE_SECONDS:g} s: it is left as it is")
            self._end(is_idle=False)
        except Exception as cause:
            self._tell(f"the store could not be closed in order: {cause}")
            self._end()
        except BaseException:
            self._end(is_idle=False)
            raise
        else:
            self._end()

    def _replace(self, row: int, queue: int, runs: list[Stretch]) -> None:
        """Put rows of some of its entries in the place of a row."""
        self._changes.parts[row] = Parts(queue, self._next_row, runs)
        self._next_row += len(runs)

    async def _queue(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        while True:
            if self.state == "failing" or self._is_closing:
                raise self._refusal()
            changes, self._changes = self._changes, Changes()  # what is let go of is not counted
            try:
                found = await self._do(
                    partial(onthread.queue, changes, self._room, (pipeline, target, kind))
                )
            except Exception:
                self._put_back(changes)
                raise
            self._is_committed(changes)
            if not self._changes.is_of(found.id):  # put back meanwhile by a commit that failed
                return found

    def _not_alone(self, row: int) -> None:
        """Have others be handed out that may end the process, if this one may."""
        if self._alone.pop(row, None) is not None:
            self._alone_ended.set()

    def _begin_in_memory(self) -> None:
        memory, now = self._memory, self._clock.seconds
        self._database = Database(None, self._sync, now, connection=memory.connection)
        self._next_row = self._database.next_row
        self._next_letter = self._database.next_letter
        memory.say_alive = self._say_alive

    def _say_alive(self) -> None:
        """Say that what is under way has not ended the process until now, as is said every few seconds."""
        if self._under_way:
            self._database.mark_alive()

    def _begin_with(self, folder: StoreFolder, room: Room, tell: Callable[[str], None]) -> None:
        """Open the database, on the thread."""
        self._database = folder.open(self._sync, tell)
        self._next_row = self._database.next_row
        self._next_letter = self._database.next_letter
        try:
            room.take_reserve()
        except OSError as cause:
            self._database.close()
            raise StoreRefused(f"the store '{folder.path}' cannot be opened: {cause}") from cause

    def _open_group(self) -> Group:
        if not self._groups or self._groups[-1].is_full:
            self._groups.append(Group())
        return self._groups[-1]

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
                elif self.state == "open" and any(self._buckets.values()):
                    await self._commit(Group())
                elif self._is_quiet:
                    self._is_quiet = False
                    await self._tidy()
                else:
                    break
        finally:
            self._work = None
        if not self._changes.is_empty or self._may_give_back:
            self._wait_for_quiet()

    def _wait_for_quiet(self) -> None:
        if (
            self._work is None
            and self._quiet is None
            and self.state == "open"
            and not self._is_closing
        ):
            self._quiet = self._clock.call_later(QUIET_SECONDS, self._tidy_soon)

    def _tidy_soon(self) -> None:
        self._quiet = None
        self._is_quiet = True
        self._begin()

    async def _tidy(self) -> None:
        """Nothing else has come: what is not needed goes, and room that is free is given back."""
        if not self._changes.is_empty:
            await self._commit(Group())
        if not self._may_give_back or self.state != "open" or self._is_closing:
            return
        self._may_give_back = False
        try:
            if self._folder is not None and await self._do(Database.free_pages) > GIVEN_BACK_PAGES:
                await self._do(lambda database: database.give_back(GIVEN_BACK_PAGES))
                self._may_give_back = True
        except Exception as cause:
            self._fails(cause)

    async def _commit(self, group: Group) -> None:
        group.is_full = True
        changes = self._changes
        self._changes = Changes()
        changes.rows, changes.letters, changes.rests = group.rows, group.letters, group.rests
        changes.letters_along = group.letters_along
        for row, queue, next in group.rows_along():
            changes.rows_along.append(row)
            changes.nexts[queue] = next
        buckets = self._gather(changes)
        try:
            seconds = await self._do(partial(self._timed, changes))
        except Exception as cause:
            self._put_back(changes)
            told = self._fails(cause)
            group.end(told)
            for each in buckets:
                each.ended(told)
            if self._is_closing:
                self._buckets.clear()  # or it would be tried for ever
        else:
            total, count = self.commit_seconds
            self.commit_seconds = total + seconds, count + 1
            self._is_committed(changes)
            group.dropped = changes.dropped
            self._gone_along.update(changes.rows_along)
            group.end()
            self._gone_along.clear()
            for each in buckets:
                each.ended(None)

    def _gather(self, changes: Changes) -> list[ChangedBucket]:
        """Take what has changed in buckets, in turn, as much as is written at once, if it can be."""
        if self.state != "open":
            return []
        gathered: list[ChangedBucket] = []
        keys = size = 0
        for bucket in [each for each, has_changed in self._buckets.items() if has_changed]:
            if keys >= MOST_ENTRIES or size >= MOST_BYTES:
                break
            del self._buckets[bucket]
            self._buckets[bucket] = False  # behind all others
            taken = bucket.gather()
            keys, size = keys + len(taken.keys), size + taken.bytes
            changes.remembered.append(taken)
            gathered.append(bucket)
        return gathered

    def _timed(self, changes: Changes, database: Database) -> float:
        """Commit, on the thread; return how long that took."""
        began = self._clock.monotonic()
        onthread.commit(changes, self._room, database)
        return self._clock.monotonic() - began

    def _is_committed(self, changes: Changes) -> None:
        self.commits += not changes.is_empty
        self.set_asides += len(changes.aside)
        self._may_give_back |= bool(changes.gone or changes.rows_along or changes.deleted)
        for letter in changes.letters:
            self.letters.add(letter.place, letter.amount)
        self.letters.subtract(changes.deleted)
        for row in changes.rows:
            if used := self._in_use.get(row.queue):
                used.next = row.first + len(row.payloads)
        for tell in changes.then:
            tell()

    def _put_back(self, changes: Changes) -> None:
        """Have what could not be committed go with a later one; the rows must not be there after all."""
        self._changes = changes.before(self._changes)
        if self._is_closing:
            self._tell_closed()

    def _tell_closed(self) -> None:
        """Tell those who wait for what is not written that it will not be."""
        waiting, self._changes.then = self._changes.then, []
        for tell in waiting:
            tell()

    def _fails(self, cause: Exception) -> StoreFailed:
        """Take nothing until it can be written again; return what is told of it."""
        told = failed(cause)
        if not (isinstance(told, StoreFull) and self.state == "full"):  # that it still is
            self.failures += 1
        if self._is_closing:
            return told
        self._is_damaged |= is_damage(cause)
        # Where it fails, that the disk is full as well changes nothing.
        is_full = isinstance(told, StoreFull) and self.state != "failing"
        state: State = "full" if is_full else "failing"
        trouble = "full" if is_full else str(told)  # how full it is changes all the time
        if trouble != self._trouble:
            self._tell(f"the store takes nothing: {told}")
            self._trouble = trouble
        self.state, self.why = state, str(told)
        self._is_heard(state, str(told))
        if state == "failing":
            self._readable.clear()
        groups = [*self._groups]
        self._groups.clear()
        for group in groups:
            group.end(told)
        if self._trial is None:
            self._trial = self._clock.call_later(AGAIN_SECONDS, self._try_soon)
        return told

    def _is_heard(self, state: State, why: str) -> None:
        """Have a state heard of that was not the last one to be."""
        if state != self._heard:
            self._heard = state
            self._hear(state, why)

    def _tell_damage(self, text: str) -> None:
        self._tell(text)
        self._hear("damaged", text)

    def _try_soon(self) -> None:
        self._trial = None
        self._is_tried = True
        self._begin()

    async def _try_again(self) -> None:
        """See whether it can be written again; what is not needed any more goes first."""
        changes, self._changes = self._changes, Changes()
        if self._is_damaged and self.state == "failing":
            self._is_begun_anew = True
        try:
            await self._told(partial(self._revive, changes))
        except Exception as cause:
            self._put_back(changes)
            self._fails(cause)
            return
        self._is_committed(changes)
        if self._is_begun_anew:
            self._is_begun_anew = False
            for each in self._buckets:
                each.begin_anew()
        self.state = "full"  # it can be read, and let go of; whether there is room is to be seen
        self._readable.set()
        try:
            await self._do(partial(onthread.look_for_room, self._room))
        except Exception as cause:
            self._fails(cause)
        else:
            self.state, self.why, self._trouble = "open", "", ""
            self._tell(TAKES_AGAIN)
            self._is_heard("open", TAKES_AGAIN)

    def _revive(self, changes: Changes, tell: Callable[[str], None]) -> None:
        """Write what goes; on a database that is opened anew, if it was not the disk that was full."""
        if self._folder is not None and self.state == "failing":
            self._database = self._folder.reopen(
                self._database, self._sync, tell, is_damaged=self._is_damaged
            )
            self._is_damaged = False
            self._database.restore((*used.key, used.next) for used in self._in_use.values())
        onthread.commit(changes, self._room, self._database)

    def _look_soon(self) -> None:
        self._is_looked_after = True
        self._watch = self._clock.call_later(LOOK_SECONDS, self._look_soon)
        self._begin()

    async def _look(self) -> None:
        """See whether the files are still there: that they are removed nobody would notice otherwise.

        What is under way has not ended the process so far, which is written.
        """
        look = partial(onthread.look, bool(self._under_way))
        if self.state != "failing" and not await self._do(look):
            self._fails(StoreFailed(f"'{self._database.file}' was removed"))

    def _refusal(self) -> StoreFailed:
        """Return why nothing is taken."""
        if self._is_closing:
            return StoreFailed("the store is closed")
        return (StoreFull if self.state == "full" else StoreFailed)(self.why)

    async def _do(self, work: Callable[[Database], T]) -> T:
        return await self._on_thread(lambda: work(self._database))

    async def _told(self, work: Callable[[Callable[[str], None]], None]) -> None:
        """Do what tells of damage, which is told here and not on the thread."""
        told: list[str] = []
        try:
            await self._on_thread(partial(work, told.append))
        finally:
            for each in told:
                self._tell_damage(each)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        """Do what may wait for the disk; what is in memory is done at once, also in virtual time."""
        if self._thread is None:
            return await self._memory.do(work)
        with self._clock.outside():
            return await self._thread.do(work)

    def _stop_timers(self) -> None:
        for each in (self._quiet, self._trial, self._watch):
            if each is not None:
                each.cancel()
        self._quiet = self._trial = self._watch = None

    def _end(self, *, is_idle: bool = True) -> None:
        """Let others have the folder, unless something may still be written."""
        self._is_closing = True
        for group in self._groups:
            group.end(self._refusal())
        self._groups.clear()
        self._tell_closed()
        if self._thread is not None:
            self._thread.stop()
        else:
            self._memory.close()
        if self._folder is not None and is_idle:
            self._folder.close()
