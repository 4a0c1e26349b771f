"""A queue on the disk: what is put down is handed out in order, and let go of in any.

What comes while its reader keeps up is handed on as soon as it is stored, as it is. What comes faster stays
on the disk alone, and is read from there when the reader has come to it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice, repeat
from typing import Any, NamedTuple

from headrace.compiler.edges import READY_BYTES, QueueFill
from headrace.compiler.store.group import MOST_BYTES, MOST_ENTRIES, Group
from headrace.compiler.store.inpieces import MOST_JOINED
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storedrows import (
    ALONE_FROM,
    READY_ENTRIES,
    ROW_BYTES,
    SET_ASIDE_FROM,
    EndedRow,
    NewRow,
    StoredQueue,
    StoredRow,
    Stretch,
)
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from headrace.compiler.store.storeformat import WIDTH
from headrace.compiler.store.suspects import Suspects

Payload = bytes
"""What is put down. In a `Journal` that name is something else."""

PAGE_BYTES = 2**20
"""What is read from the disk at a time, at least one row."""
COUNTED_BYTES, COUNTED_ENTRIES = 64 * 1024, 256
"""Of a row that is gathered: how much may be added to it until that is counted, so that no group is much
larger than it may be."""
SURVIVED_SECONDS = 5.0
"""What was under way for so long has not ended the process: others are handed out beside it."""
GIVEN_BACK_BYTES = 4 * 2**20
"""Of rows that are written anew in one transaction: a full disk has to have room for so much."""


class StoredEntry(NamedTuple):
    """What is handed out."""

    number: int
    payload: bytes
    made: Any
    """What was made of it before it was put down; None: it was read from the disk."""
    deaths: int
    """How often the process ended without a word while it, or something of its row, was under way.

    From `ALONE_FROM` on it is handed out when nothing else is, and nothing is until it is let go of, or was
    under way for `SURVIVED_SECONDS`. Of many, some are handed out so together (`Suspects`); that they have
    ended the process is not counted here.
    From `SET_ASIDE_FROM` on it has ended the process alone, and is not counted any more: whoever reads it
    decides what is done with it."""
    at: float
    """When it was put down. Units: seconds since 1970."""


# All of a row are made at once; by its own constructor each would take three times as long.
_entry: Callable[[tuple[Any, ...]], StoredEntry] = partial(tuple.__new__, StoredEntry)


class _Row:
    """A row of which something is still needed."""

    __slots__ = ("at", "bytes", "entries", "left", "n")

    def __init__(self, n: int, entries: int, size: int, at: float) -> None:
        self.n, self.entries, self.left, self.bytes, self.at = n, entries, entries, size, at


class _RowToBe:
    """A row that is being stored, or gathered until it is."""

    __slots__ = (
        "at",
        "counted",
        "first",
        "group",
        "is_taken",
        "left",
        "made",
        "may_have",
        "most",
        "n",
        "payloads",
    )

    def __init__(self, group: Group, row: NewRow) -> None:
        self.group = group
        self.most = self.may_have = self.left = self.counted = 0
        """How many entries it may have, how many bytes more it may have had when it was counted last, and
        may have now, and how many entries are counted."""
        self.n, self.first, self.at, self.payloads = row.n, row.first, row.at, row.payloads
        self.is_taken = row.is_taken
        """Whether it is handed on as soon as it is stored; else it is on the disk alone then."""
        self.made: list[Any] = []
        """What was made of its entries, if it is."""


class _Amount:
    """How much there is."""

    __slots__ = ("bytes", "entries")

    def __init__(self, entries: int, size: int) -> None:
        self.entries, self.bytes = entries, size

    def take(self, entries: int, size: int) -> _Amount:
        """Take so much, or what there is: what is damaged may say more; return it."""
        taken = _Amount(min(entries, self.entries), min(size, self.bytes))
        self.entries -= taken.entries
        self.bytes -= taken.bytes
        return taken


class Journal:
    """One queue of a store. One reader; made by `Journal.open`."""

    def __init__(self, store: Store, queue: StoredQueue, max_bytes: int) -> None:
        self._store, self._queue, self.max_bytes = store, queue.id, max_bytes
        self._bytes = queue.bytes + ROW_BYTES * queue.rows
        self._oldest = queue.oldest
        """When the first of what was there was put down."""
        self._entries = queue.entries
        self._next = self._stored = queue.next
        """The number of the entry that comes next, and of the one behind the last that is stored."""
        self._last = self._seen = -1
        """The entry that was handed out last, and the last that was looked at on the disk."""
        self._unread, self._unread_bytes = self._entries, self._bytes
        """What is on the disk alone, and has to be read from there: entries, and bytes."""
        self._ready: deque[StoredEntry] = deque()
        self._suspects = Suspects()
        """Those of them that may have ended the process: they are handed out alone."""
        self.ready_bytes = 0
        """Bytes of those: what is in memory and waits for its reader."""
        self._to_be: dict[int, _RowToBe] = {}
        """What is being stored, by the number of its row."""
        self._alone_rows = 0
        """How many of those are about to be on the disk alone."""
        self._open: _RowToBe | None = None
        """The one that goes on."""
        self._rows: dict[int, _Row] = {}
        """By the number of an entry that is ready or handed out."""
        self._out = 0
        """Entries that are handed out, without those that have survived."""
        self._is_alone = False
        """Whether what may have ended the process is handed out, or waits for all others."""
        self._survived: set[int] = set()
        """The numbers of entries that were under way for so long that nothing waits for them."""
        self._survival: asyncio.TimerHandle | None = None
        """Runs while something is waited for: until it is not."""
        self._is_stopping = self._is_stopped = self._is_closed = False
        self._moved = asyncio.Event()

    @classmethod
    async def open(
        cls, store: Store, pipeline: str, target: str, kind: str, max_bytes: int
    ) -> Journal:
        """Return the queue of a pipeline and target, with what is in it."""
        return cls(store, await store.queues.open(pipeline, target, kind), max_bytes)

    @property
    def bytes(self) -> int:
        """What it takes on the disk, roughly."""
        self._count()
        return self._bytes

    @property
    def entries(self) -> int:
        """How many entries are not let go of."""
        self._count()
        return self._entries

    def fill(self) -> QueueFill:
        """Return how full it is."""
        return QueueFill("bytes", self.bytes, self.max_bytes)

    def oldest(self) -> float | None:
        """Return when the first was put down that is there; None: there is none. Seconds since 1970."""
        if not self.entries:
            return None
        return next((row.at for row in self._rows.values()), self._oldest)

    @property
    def next_number(self) -> int:
        """The number that the next entry gets."""
        self._count()
        return self._next

    def has_room_for(self, size: int) -> bool:
        """Return whether so many bytes more may be kept."""
        return self.bytes + size + WIDTH <= self.max_bytes

    def could_have_room_for(self, payload: Payload) -> bool:
        """Return whether so much may be kept where nothing else is."""
        return len(payload) + WIDTH <= self.max_bytes

    def append(self, payload: Payload, made: Any = None) -> Group:
        """Put something down; return what can be waited for until it is stored.

        ``made``: what the reader is handed beside the payload, if it keeps up.

        Raises:
            StoreFull: there is no room, here or on the disk.
            StoreFailed: the disk takes nothing now.
        """
        size = len(payload) + WIDTH
        row = self._open
        if row is None or row.group.is_full or row.left < size or len(row.payloads) >= row.most:
            row = self._put(payload, size)
        else:
            row.left -= size
            row.payloads.append(payload)
        if row.is_taken:
            row.made.append(made)
        return row.group

    def _put(self, payload: Payload, size: int) -> _RowToBe:
        """Put down what may not just be added to the row that is open, and open one for what follows."""
        self._count()
        if self._is_closed:
            raise StoreFailed("the queue is closed")
        if self._bytes + size > self.max_bytes:
            raise StoreFull(f"{self._bytes:,} of {self.max_bytes:,} bytes are in use (max_bytes)")
        most = self._most_ready() if not (self._unread or self._alone_rows) else 0
        group, new = self._store.rows.append(self._queue, self._next, payload, is_taken=most > 0)
        if new.first == self._next:
            row = _RowToBe(group, new)
            self._bytes += ROW_BYTES
            self._to_be[new.n] = row
            self._alone_rows += not row.is_taken
            group.tell.append(lambda: self._ended(row))
        else:
            row = self._to_be[new.n]
        self._bytes += size
        self._entries += 1
        self._next += 1
        row.counted += 1
        row.most = (
            row.counted + min(max(most - 1, 0), COUNTED_ENTRIES) if row.is_taken else MOST_ENTRIES
        )
        row.may_have = row.left = min(self.max_bytes - self._bytes, COUNTED_BYTES)
        self._open = row if size <= MOST_JOINED else None
        return row

    def _count(self) -> None:
        """Count what was added to the row that is open: of each entry alone it would take twice as long."""
        row = self._open
        if row is None or not (entries := len(row.payloads) - row.counted):
            return
        size = row.may_have - row.left
        row.may_have, row.counted = row.left, row.counted + entries
        row.group.add(size, entries)
        self._bytes += size
        self._entries += entries
        self._next += entries

    def _most_ready(self) -> int:
        """Return how many entries may be handed on as soon as they are stored, beside those that are."""
        coming = [row.payloads for row in self._to_be.values()]
        # As much as a group may have is left, for it is not asked again within one.
        if (
            self.ready_bytes + sum(sum(map(len, each)) for each in coming)
            > READY_BYTES - MOST_BYTES
        ):
            return 0
        return max(READY_ENTRIES - len(self._ready) - sum(map(len, coming)), 0)

    def let_go(self, numbers: Iterable[int], group: Group | None = None) -> None:
        """Keep some entries no longer that were handed out, in any order; not after it was closed.

        ``group``: they go in the same commit as what is put down there, such as a letter; if that fails,
        they are as they were.
        """
        if group is not None:
            group.let_go(self, numbers)
            return
        for number in numbers:
            self.let_go_of(number)

    def let_go_of(self, number: int) -> None:
        """Keep one entry no longer that was handed out; not after it was closed."""
        if self._is_closed:  # somebody else may have been handed it
            return
        row = self._rows.pop(number)
        row.left -= 1
        self._entries -= 1
        if self._survived and number in self._survived:
            self._survived.remove(number)
        else:
            self._out -= 1
        if not row.left:
            self._bytes -= row.bytes
            self._store.rows.let_go(row.n, self._queue, self.next_number)
        if self._is_alone and not self._out:
            self._go_on()

    def rows_without(self, numbers: Iterable[int]) -> Iterator[EndedRow]:
        """Yield the rows of which nothing is left but these entries."""
        if not self._is_closed:
            for row, count in Counter(self._rows[number] for number in numbers).items():
                if row.left == count:
                    yield EndedRow(row.n, self._queue, self.next_number)

    def set_aside(self, number: int) -> None:
        """Let go of an entry, and have it kept in the store for somebody to look at.

        Raises:
            ValueError: it has come with others, and may be handed out again with them.
        """
        if self._is_closed:
            return
        row = self._rows[number]
        if row.entries > 1:
            raise ValueError(f"entry {number} shares a row with others")
        self._store.rows.set_aside(row.n)
        self.let_go([number])

    def have_survived(self, numbers: Iterable[int]) -> None:
        """Take note that entries that are handed out have been tried, and have not ended the process."""
        if not self._is_closed:
            self._are_innocent({*numbers} & self._rows.keys())

    async def read(self, most: int = READY_ENTRIES) -> list[StoredEntry]:
        """Return what comes next, as soon as there is something; nothing, when it is stopped and empty."""
        while not (self._is_closed or self._is_stopped):
            self._moved.clear()  # it may be closed while what may end the process waits for others
            if self._ready:
                if taken := await self._hand_out(most):
                    return taken
            elif self._unread and len(self._to_be) == self._alone_rows:
                await self._read_page()
                continue  # all of it may have been damaged
            elif self._is_stopping and not self._to_be:
                return []
            await self._moved.wait()
        return []

    def stop(self, *, at_once: bool = False) -> None:
        """Have `read` return nothing when all is read; if ``at_once``, whatever is left."""
        self._is_stopping = True
        self._is_stopped |= at_once
        self._moved.set()

    async def close(self) -> None:
        """Leave it to others, who are handed what was not let go of, in order, and nothing else.

        Where the disk does not take that in time, rows of which something is left may come again whole.
        """
        await self._leave(lambda: None)

    async def end(self) -> None:
        """Leave it to nobody: who opens its like gets a new one. What was not let go of stays.

        Where the disk does not take that in time, it is tried for as long as the store is open.
        """
        await self._leave(lambda: self._store.queues.end(self._queue))

    async def _leave(self, say: Callable[[], None]) -> None:
        if self._is_closed:
            return
        self._count()
        self._is_closed = True
        self._open = None
        self._go_on()
        try:
            async with self._store.leaving():
                try:
                    while self._to_be:  # what is being stored
                        await self._wait()
                    for left in self._left():
                        await self._store.rows.give_back(self._queue, left)
                finally:
                    say()
                await self._store.written()
        finally:
            self._store.queues.leave(self._queue)

    async def _wait(self) -> None:
        """Wait until something is stored, let go of, or wanted."""
        self._moved.clear()
        await self._moved.wait()

    def _left(self) -> Iterator[dict[int, list[Stretch] | None]]:
        """Yield what is left of rows, some at a time, by their numbers; None: all of it."""
        runs: dict[_Row, list[Stretch]] = {}
        for number, row in self._rows.items():
            of_row = runs.setdefault(row, [])
            if of_row and sum(of_row[-1]) == number:
                of_row[-1] = (of_row[-1][0], of_row[-1][1] + 1)
            else:
                of_row.append((number, 1))
        left: dict[int, list[Stretch] | None] = {}
        size = 0
        for row, of_row in runs.items():
            is_whole = row.left == row.entries
            left[row.n] = None if is_whole else of_row
            size += 0 if is_whole else row.bytes
            if size >= GIVEN_BACK_BYTES:
                yield left
                left, size = {}, 0
        yield left

    def _ended(self, row: _RowToBe) -> None:
        """Hand on what is stored; forget what could not be."""
        self._count()
        del self._to_be[row.n]
        made, row.made = row.made, []  # of what is large nothing is held on to
        self._alone_rows -= not row.is_taken
        if self._open is row:
            self._open = None
        count, size = len(row.payloads), sum(map(len, row.payloads))
        on_disk = size + WIDTH * count + ROW_BYTES
        if row.group.cause is not None:
            self._bytes -= on_disk
            self._entries -= count
        else:
            self._stored = row.first + count
            if row.is_taken:
                self.ready_bytes += size
                ready = StoredRow(row.n, row.first, 0, row.at, row.payloads)
                self._make_ready(ready, made, size)
            else:
                self._unread += count
                self._unread_bytes += on_disk
        self._moved.set()

    def _make_ready(self, stored: StoredRow, made: Iterable[Any], size: int) -> None:
        """Take a row to be handed out, with what was made of its payloads, and how many bytes those are."""
        n, first, deaths, at, payloads, ended_together = stored
        count = len(payloads)
        row = _Row(n, count, size + WIDTH * count + ROW_BYTES, at)
        self._store.rows.under_way(n)
        numbers = range(first, first + count)
        if deaths >= ALONE_FROM:
            self._suspects.add(numbers, ended_together=ended_together)
        self._rows.update(zip(numbers, repeat(row), strict=False))
        entries = zip(numbers, payloads, made, repeat(deaths), repeat(at), strict=False)
        self._ready.extend(map(_entry, entries))

    async def _hand_out(self, most: int) -> list[StoredEntry]:
        """Return some of what is ready; what may have ended the process waits until it is alone."""
        ready, suspects, taken = self._ready, self._suspects, list[StoredEntry]()
        if suspects.left and not self._store.rows.goes_on_alone(self._rows[ready[0].number].n):
            # They are taken anew: whatever is handed out has been taken just before.
            left = islice(ready, suspects.left)
            self._store.rows.end_alone([self._rows[each.number].n for each in left])
            suspects.left = 0
        if self._is_alone and not suspects.left:
            return []
        if not suspects.count:
            taken = [ready.popleft() for _ in range(min(most, len(ready)))]
        while suspects.count and len(taken) < most and ready[0].deaths < ALONE_FROM:
            taken.append(ready.popleft())
        if not taken:
            if not (suspects.left or await self._begin_alone()):
                return []
            self._be_alone(is_for_good=ready[0].deaths >= SET_ASIDE_FROM)
            taken = suspects.take(ready, most)
        self._out += len(taken)
        self._last = taken[-1].number
        self.ready_bytes -= sum([len(each.payload) for each in taken])
        return taken

    async def _begin_alone(self) -> bool:
        """Have the first that is ready be under way alone, or with some; return whether that may be now."""
        if self._out:
            self._be_alone()
            return False
        chosen = self._suspects.choose(self._ready)
        if self._ready[0].deaths < SET_ASIDE_FROM:
            rows = [self._rows[each].n for each in chosen]
            await self._store.rows.begin_alone(rows, self._queue)
            if not self._is_closed:
                # What came before is gone for good before these may end the process.
                await self._store.rows.take(rows)
            if self._is_closed:  # they may be somebody else's by now
                self._store.rows.end_alone(rows)
                return False
        self._suspects.left = len(chosen)
        return True

    def _be_alone(self, *, is_for_good: bool = False) -> None:
        """Have nothing else be handed out until what is out is let go of, or has survived."""
        self._is_alone = True
        if self._survival is not None:
            self._survival.cancel()
        if not is_for_good:
            self._survival = self._store.rows.call_later(SURVIVED_SECONDS, self._have_survived)

    def _have_survived(self) -> None:
        """Wait no longer for what is out."""
        self._are_innocent({number for number in self._rows if number <= self._last})

    def _are_innocent(self, numbers: set[int]) -> None:
        """Wait no longer for some of what is out."""
        numbers -= self._survived
        if numbers:
            self._store.rows.survived({self._rows[number].n for number in numbers})
            self._survived |= numbers
            self._out -= len(numbers)
        if self._is_alone and not self._out:
            self._go_on()

    def _go_on(self) -> None:
        """Have something be handed out again."""
        self._is_alone = False
        if self._survival is not None:
            self._survival.cancel()
            self._survival = None
        self._moved.set()

    async def _read_page(self) -> None:
        """Read what comes next from the disk."""
        known = _Amount(
            self._unread, self._unread_bytes
        )  # what is stored meanwhile is behind the page
        page = await self._store.rows.page(
            self._queue, max(self._last, self._seen), self._stored, PAGE_BYTES
        )
        if page.rows and (first := page.rows[0]).has_to_be_split:
            await self._store.rows.split(
                first, self._queue, partial(self._is_split, len(first.payloads))
            )
            return
        self._seen = page.last
        for stored in page.rows:
            count, size = len(stored.payloads), sum(map(len, stored.payloads))
            self.ready_bytes += size
            self._is_read(known.take(count, size + WIDTH * count + ROW_BYTES))
            self._make_ready(stored, repeat(None), size)
        for row in page.damaged:
            self._is_gone(known.take(row.entries, row.bytes + ROW_BYTES))
        if page.is_last and known.entries:
            self._store.rows.lost(self._queue, known.entries)
            self._is_gone(known)

    def _is_split(self, entries: int) -> None:
        """Count the rows that a row of so many entries has become on the disk."""
        more = ROW_BYTES * (entries - 1)
        self._bytes += more
        self._unread_bytes += more

    def _is_read(self, amount: _Amount) -> None:
        self._unread -= amount.entries
        self._unread_bytes -= amount.bytes

    def _is_gone(self, amount: _Amount) -> None:
        self._is_read(amount)
        self._entries -= amount.entries
        self._bytes -= amount.bytes
