"""The queue of an output: what it has not written is on the disk, so that nobody else waits for it.

While the output keeps up, nothing is stored. A batch goes to the disk when it was not written in time, or
when something before it is there that has not been written: there is one order. Its debts are settled when
it is written or on the disk, whichever is first. What is on the disk is read from there, when the output
has come to it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.compiler.component.queuedoutput import QueueOptions
from headrace.compiler.delivery import BATCHES_UNDER_WAY, Batch, Delivery, Window
from headrace.compiler.errors import BuildRefused, Stopped
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.keptqueue import KeptQueue
from headrace.compiler.runtime.monitoring.links import UP, LinkState
from headrace.compiler.runtime.outputs import QueuedWriter, Writer
from headrace.compiler.runtime.partwritten import may_be_content
from headrace.compiler.runtime.queuedbatch import (
    batch_of_entry,
    count_of_entry,
    entry_of_batch,
    entry_of_large,
)
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.store.storedrows import SET_ASIDE_FROM
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull

if TYPE_CHECKING:
    from headrace.compiler.store.group import Group
    from headrace.compiler.store.journal import Journal, StoredEntry

LATE_SECONDS = 0.05
"""How long a batch is in memory alone that the output has not written."""
AGAIN_SECONDS = 1.0
"""How often it is tried to store something where the disk fails, and to start what does not answer."""
ROOM_SECONDS = 0.05
"""How often it is tried to store something where there is no room."""
READ_AT_ONCE = 64
"""Entries that are taken from the disk before the output has room: what is dropped first is among them."""
START_SECONDS = 2.0
"""How long a start is waited for: then the pipeline runs, and what it hands on is kept."""
LAST_WRITE_SECONDS = 1.0
"""What writes that are under way get at the end, so that less of what is written comes again."""


class _Item:
    """A batch that is on its way to the output, or waits for it; what the output owes for it."""

    __slots__ = (
        *("_queue", "batch", "delivery", "is_in_hand", "is_read", "is_written"),
        *("number", "since"),
    )

    def __init__(self, queue: OutputQueue, batch: Batch, delivery: Delivery | None) -> None:
        self._queue, self.batch, self.delivery = queue, batch, delivery
        self.since = 0.0
        """When it came, where it is not written at once."""
        self.number: int | None = None
        """Of its entry, once it is being stored."""
        self.is_in_hand = self.is_written = False
        """Whether the output has it, or has written it or given it up."""
        self.is_read = False
        """Whether its entry was handed out by the journal, so that it can be let go of."""

    def settle(self) -> None:
        """Settle what it owes: it is written, or on the disk."""
        delivery, self.delivery = self.delivery, None
        if delivery is not None:
            delivery.done()

    def close(self) -> None:
        """Tell the queue that the output has written it, or has given it up."""
        self._queue.ended(self)

    def windows(self) -> Iterable[Window]:
        """Return nothing: inputs are bounded by what is not stored."""
        return ()


class OutputQueue(Writer):
    """Takes deliveries for another writer, and keeps on the disk what that has not written."""

    def __init__(
        self,
        inner: QueuedWriter,
        place: ComponentContext,
        storage: Storage,
        target: str,
        options: QueueOptions,
    ) -> None:
        super().__init__(inner.sink, place)
        self._inner, self._clock = inner, place.clock
        self._kept = KeptQueue(storage, place, target, "queue", options.max_bytes)
        self._drops = options.when_full == "drop_oldest"
        self._in_hand: deque[_Item] = deque()
        """What the output has, in order."""
        self._unstored: deque[_Item] = deque()
        """What is to be stored and is not yet, in order."""
        self._by_number: dict[int, _Item] = {}
        """By entry: what the output has, or has written, and the journal has not handed out yet."""
        self._read: deque[StoredEntry] = deque()
        """Entries that the journal has handed out and the output has not been handed."""
        self._behind = 0
        """Entries that the output has not been handed: those and what is on the disk."""
        self._why: str | None = None
        """Why something could not be stored."""
        self._storing = 0
        """Entries whose commit is under way."""
        self._is_up = self._is_away = False
        """Whether the sink has started; and whether nobody was there when something was tried last."""
        self._moved = asyncio.Event()
        """Set whenever something is written or stored."""
        self._to_store = asyncio.Event()
        """Set whenever something is to be stored that could not be at once."""
        self._late: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        place.expect_losses("dropped")

    @property
    def _journal(self) -> Journal:
        borrowed = self._kept.borrowed
        assert borrowed is not None  # nothing is taken before it is open
        return borrowed.journal

    async def start(self) -> None:
        """Open the queue, and start the sink; one that does not answer is started later.

        Raises:
            BuildRefused: the other side says no.
        """
        await self._kept.open()
        starting = asyncio.ensure_future(self._inner.start())
        try:
            await asyncio.wait([starting], timeout=START_SECONDS)
            if starting.done() and isinstance(starting.exception(), BuildRefused):
                starting.result()
        except BaseException:
            starting.cancel()
            raise
        self._is_up = starting.done() and starting.exception() is None
        self.is_started = True
        self._behind = self._journal.entries
        if not self._is_up:
            self._begin(self._bring_up(starting))
        self._begin(self._hand_out())
        self._begin(self._store_all())
        if self._is_over:
            await self.finish()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))

    async def _bring_up(self, starting: asyncio.Future[None]) -> None:
        """Start the sink until it is up."""
        backoff = Backoff(self.place.random)
        while True:
            try:
                await starting
                break
            except Exception as cause:
                pause = backoff.next()
                self.place.report_lost(cause, pause)
                await self._clock.sleep(pause)
                starting = asyncio.ensure_future(self._inner.start())
        self._is_up = True
        self._moved.set()

    def take(self, delivery: Delivery) -> None:
        """Hand it to the output, or have it stored behind what waits for that."""
        waits = self._behind or self._unstored
        if not (waits or self._in_hand) and self._is_up:  # most are written in the pass
            if (rest := self._inner.begin(delivery)) is not None:
                item = _Item(self, delivery.batch, delivery)
                self._inner.go_on(self._in_hand_of(item), rest)
                self._look_after(item)
            return
        item = _Item(self, delivery.batch, delivery)
        if waits or not self._has_room:
            item.since = self._clock.monotonic()
            self._store(item)
        else:
            self._hand(item)

    @property
    def _has_room(self) -> bool:
        """Whether the output may be handed something."""
        return self._is_up and len(self._in_hand) < BATCHES_UNDER_WAY

    def _hand(self, item: _Item) -> None:
        self._inner.take(self._in_hand_of(item))
        if not (item.is_written or item.number is not None):
            self._look_after(item)

    def _in_hand_of(self, item: _Item) -> Delivery:
        """Return what the output is handed, of an item that it has from now on."""
        item.is_in_hand = True
        self._in_hand.append(item)
        return Delivery(item.batch, item)

    def _look_after(self, item: _Item) -> None:
        """Have an item stored if it is not written in time."""
        item.since = item.since or self._clock.monotonic()
        if self._late is None:
            self._late = self._clock.call_later(LATE_SECONDS, self._store_late)

    def failed(self, cause: Exception) -> None:
        """Take note that the output is going to try something again: that has not ended the process."""
        self._is_away = not may_be_content(cause)
        if self._kept.borrowed is not None:
            self._kept.borrowed.journal.have_survived()

    def ended(self, item: _Item) -> None:
        """Take note that the output has written a batch, or has given it up."""
        if self._in_hand[0] is item:
            self._in_hand.popleft()
        else:
            self._in_hand.remove(item)
        self._is_away = False
        item.is_written = True
        item.settle()
        if item.is_read and item.number is not None:
            self._let_go(item.number)
        self._moved.set()

    def _let_go(self, number: int) -> None:
        if self._kept.borrowed is not None:  # not after it was given back
            self._kept.borrowed.journal.let_go([number])

    def _store_late(self) -> None:
        """Store what the output has had for too long; come again for the rest."""
        self._late = None
        now = self._clock.monotonic()
        for item in [*self._in_hand]:
            if item.number is None and item.delivery is not None and item not in self._unstored:
                if now - item.since < LATE_SECONDS - 1e-6:
                    left = item.since + LATE_SECONDS - now
                    self._late = self._clock.call_later(left, self._store_late)
                    return
                self._store(item)

    def _store(self, item: _Item) -> None:
        """Have a batch stored behind what is to be."""
        if self._unstored or not self._is_stored(item, entry_of_batch(item.batch)):
            self._store_later(item)

    def _store_later(self, item: _Item) -> None:
        self._unstored.append(item)
        self._to_store.set()

    def _is_stored(self, item: _Item, entry: bytes | None) -> bool:
        """Begin to store a batch; return whether that could be."""
        if entry is None:
            return False
        journal, borrowed = self._journal, self._kept.borrowed
        assert borrowed is not None
        number = journal.next_number
        while True:
            try:
                group = journal.append(entry)
                break
            except StoreFull as cause:
                borrowed.is_full, self._why = True, str(cause)
                self._moved.set()  # what is oldest may have to be read, to be dropped
                if not (self._drops and self._drop_oldest()):
                    return False
            except StoreFailed as cause:
                self._why = str(cause)
                return False
        borrowed.is_full = False
        item.number = number
        self._storing += 1
        if item.is_in_hand:
            self._by_number[number] = item
        else:
            self._behind += 1
        group.tell.append(partial(self._committed, group, item))
        return True

    def _committed(self, group: Group, item: _Item) -> None:
        """Settle what is on the disk; what could not be written there is stored again."""
        self._storing -= 1
        self._moved.set()
        if group.cause is None:
            item.settle()
            return
        self._why = str(group.cause)
        assert item.number is not None
        if not item.is_in_hand:
            self._behind -= 1
        self._by_number.pop(item.number, None)
        item.number = None
        if not item.is_written:
            self._store_later(item)
            self._unstored = deque(sorted(self._unstored, key=lambda each: each.since))

    def _drop_oldest(self) -> bool:
        """Give up the oldest that is on the disk and not with the output; return whether there was one."""
        if not self._read:
            return False
        entry = self._read.popleft()
        self._behind -= 1
        said = "dropped: more waited for it than may be kept (max_bytes of 'queue')"
        self.place.lose_count(said, count_of_entry(entry.payload), "unavailable", "dropped")
        self._let_go(entry.number)
        return True

    async def _store_all(self) -> None:
        """Store what could not be stored at once, as soon as it can be."""
        while True:
            await self._to_store.wait()
            self._to_store.clear()
            while self._unstored:
                item = self._unstored[0]
                if item.is_written or await self._is_stored_now(item):
                    if self._unstored and self._unstored[0] is item:
                        self._unstored.popleft()
                        self._moved.set()
                elif self._has_room and not (self._behind or item.is_in_hand):
                    self._unstored.popleft()  # nothing is before it, so it need not be on the disk
                    self._hand(item)
                else:
                    full = self._kept.borrowed is not None and self._kept.borrowed.is_full
                    await self._clock.sleep(ROOM_SECONDS if full else AGAIN_SECONDS)

    async def _is_stored_now(self, item: _Item) -> bool:
        """Begin to store a batch, which may be large; return whether that could be."""
        entry = entry_of_batch(item.batch) or await entry_of_large(item.batch, self._clock)
        return item.is_written or self._is_stored(item, entry)

    async def _hand_out(self) -> None:
        """Hand the output what is on the disk, in order, as it has room."""
        journal = self._journal
        while True:
            while self._is_out_of_reach and not self._has_to_drop:
                await self._change()
            if not (entries := await journal.read(READ_AT_ONCE)):
                return
            for entry in entries:
                item = self._by_number.pop(entry.number, None)
                if item is None:
                    self._read.append(entry)
                    continue
                item.is_read = True
                if item.is_written:
                    journal.let_go([entry.number])
            while self._read:
                if not self._has_room:
                    await self._change()
                    continue
                await self._hand_stored(self._read.popleft())

    @property
    def _is_out_of_reach(self) -> bool:
        """Whether nothing more can be written soon. What is not read is not suspected after a kill."""
        return not self._is_up or (self._is_away and bool(self._in_hand))

    @property
    def _has_to_drop(self) -> bool:
        """Whether there is no room without what is oldest."""
        return self._drops and self._kept.borrowed is not None and self._kept.borrowed.is_full

    async def _hand_stored(self, entry: StoredEntry) -> None:
        """Hand the output a batch that is on the disk."""
        if entry.deaths >= SET_ASIDE_FROM:
            self._behind -= 1
            why = f"set aside: the process ended {entry.deaths} times while it was under way"
            self.place.lose_count(why, count_of_entry(entry.payload), "invalid", "error")
            self._journal.set_aside(entry.number)
            return
        batch = await batch_of_entry(entry.payload, self.place.decoding)
        self._behind -= 1
        item = _Item(self, batch, None)
        item.number, item.is_read = entry.number, True
        self._hand(item)

    async def _change(self) -> None:
        """Wait until something is written or stored."""
        self._moved.clear()
        await self._moved.wait()

    def waiting(self) -> int:
        """Return how many batches are in memory that are not written."""
        return super().waiting() + len(self._in_hand) + len(self._unstored)

    def link(self, now: int) -> LinkState:
        """Return how the link of the output is, or why nothing of it can be stored."""
        state = self._inner.link(now)
        if state is UP and self._unstored:
            return LinkState("waiting", self._why)
        return state

    async def drain(self) -> None:
        """Write what can be written soon, and store the rest; where its pipeline is deleted, write all."""
        await super().drain()
        if not self.is_started or self._kept.borrowed is None:
            return
        if self._kept.is_gone:
            while self._in_hand or self._behind or self._unstored:
                await self._change()
        else:
            with suppress(TimeoutError):
                async with self._clock.timeout(LAST_WRITE_SECONDS):
                    while self._in_hand:
                        await self._change()
            for item in self._in_hand:
                if item.number is None and item not in self._unstored:
                    self._store(item)
            while self._unstored or self._storing:
                await self._change()
        self._journal.stop(at_once=True)

    def abandon(self) -> int:
        """Give up what is not stored: the grace is over. Return how many messages are lost by that."""
        unseen = super().abandon()
        left = {id(each): each for each in (*self._in_hand, *self._unstored)}
        lost = [
            each.batch
            for each in left.values()
            if each.delivery is not None and not each.is_written
        ]
        if self.place.comes_again:
            lost.clear()
        for batch in lost:
            self.place.report(Stopped("stopped before everything was written", "unclear"), batch)
        return unseen + sum(map(len, lost))

    async def finish(self) -> None:
        """Finish the sink. What is on the disk stays there for the next run."""
        if self._finished:
            return
        self._is_over = True
        if self._late is not None:
            self._late.cancel()
        for task in self._tasks:
            task.cancel()
        self._inner.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._finished = self.is_started
        await self._inner.finish()
