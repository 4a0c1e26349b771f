"""The queue of an output: what it has not written is on the disk, so that nobody else waits for it.

While the output keeps up, nothing is stored. A batch goes to the disk when it was not written in time, or
when something before it is there that has not been written: there is one order. Its debts are settled when
it is written or on the disk, whichever is first. What is on the disk is read from there, when the output
has come to it.

In their order, batches are: with the output, and on the disk as well; with the output alone; waiting to be
stored. Or, once something is on the disk alone: with the output, on the disk, waiting to be stored.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from functools import partial
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from headrace.compiler.component.queuedoutput import QueueOptions
from headrace.compiler.delivery import BATCHES_UNDER_WAY, Batch, Delivery
from headrace.compiler.errors import BuildRefused, FailureClass, Stopped
from headrace.compiler.largejson import TURN_SECONDS
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
from headrace.compiler.runtime.queueditem import QueuedItem
from headrace.compiler.runtime.selecting import Broke
from headrace.compiler.runtime.settingaside import set_aside
from headrace.compiler.store.storedrows import ALONE_FROM, SET_ASIDE_FROM
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull

if TYPE_CHECKING:
    from headrace.compiler.store.group import Group
    from headrace.compiler.store.journal import Journal, StoredEntry

LATE_SECONDS = 0.05
"""How long a batch is in memory alone that the output has not written."""
AGAIN_SECONDS = 1.0
"""How often it is tried to store something where the disk fails."""
ROOM_SECONDS = 0.05
"""How often it is tried to store something where there is no room."""
READ_AT_ONCE = 64
"""Entries that are taken from the disk before the output has room: what is dropped first is among them."""
START_SECONDS = 2.0
"""How long a start is waited for: then the pipeline runs, and what it hands on is kept."""
LAST_WRITE_SECONDS = 1.0
"""What writes that are under way get at the end, so that less of what is written comes again."""
LOOKS_SECONDS = 0.25
"""How often whoever waits until all is written looks whether something was damaged and is gone."""

_BY_PLACE = attrgetter("place")


class OutputQueue(Writer):
    """Takes deliveries for another writer, and keeps on the disk what that has not written."""

    def __init__(
        self,
        inner: QueuedWriter,
        place: ComponentContext,
        kept: KeptQueue,
        options: QueueOptions,
        broke: Broke,
    ) -> None:
        """Take who writes, where it is kept, and who is told of a fault that ends the queue."""
        super().__init__(inner.sink, place)
        self._inner, self._kept, self._clock, self._broke = inner, kept, place.clock, broke
        self._drops = options.when_full == "drop_oldest"
        self._places = count()
        self._in_hand: deque[QueuedItem] = deque()
        """What the output has, in order."""
        self._fresh: deque[QueuedItem] = deque()
        """What of that is in memory alone, in order."""
        self._waiting: deque[QueuedItem] = deque()
        """What is to be stored before the output has it, in order; all of it is behind what is in hand."""
        self._storing: dict[int, QueuedItem] = {}
        """By entry: what is being stored."""
        self._held: dict[int, QueuedItem] = {}
        """By entry: what the output has, or has written, and was not let go of."""
        self._read: deque[StoredEntry] = deque()
        """Entries that the journal has handed out and the output has not been handed."""
        self._why: str | None = None
        """Why something could not be stored."""
        self._is_up = self._is_away = self._is_ending = False
        """Whether the sink has started; whether nobody was there when something was tried last; and whether
        nothing more is handed out."""
        self._is_through = False
        """Whether it is known that nothing is before what comes next: that stays so until something is
        handed to the output and is not written in the pass."""
        self._moved = asyncio.Event()
        """Set whenever something is written, stored or read."""
        self._to_store = asyncio.Event()
        """Set whenever something may have to be stored."""
        self._late: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        place.expect_losses("dropped")

    async def start(self) -> None:
        """Open the queue, and start the sink; one that does not answer is started later.

        Raises:
            BuildRefused: the other side says no.
        """
        self._journal: Journal = (await self._kept.open()).journal
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
        if not self._is_up:
            self._begin(self._bring_up(starting))
        self._begin(self._hand_out())
        self._begin(self._store_all())
        if self._is_over:
            await self.finish()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._has_ended)
        self._tasks.append(task)

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(cause := task.exception(), Exception):
            self._broke(cause)

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
        if self._is_through:
            rest = self._inner.begin(delivery)
            if rest is not None:  # else it was written in the pass, as most are
                item = self._item(delivery)
                self._inner.go_on(self._in_hand_of(item), rest)
            return
        if self._is_up and not (self._in_hand or self._waiting or self._journal.entries):
            self._is_through = True
            self.take(delivery)
            return
        item = self._item(delivery)
        if self._may_hand:
            self._hand(item)
        else:
            self._waiting.append(item)
            self._to_store.set()

    def _item(self, delivery: Delivery) -> QueuedItem:
        item = QueuedItem(delivery.batch, delivery, next(self._places), self.ended)
        item.since = self._clock.monotonic()
        return item

    @property
    def _behind(self) -> int:
        """How many entries are on the disk, or on their way there, that the output has not been handed."""
        return self._journal.entries - len(self._held)

    @property
    def _has_room(self) -> bool:
        """Whether the output may be handed something."""
        return self._is_up and len(self._in_hand) < BATCHES_UNDER_WAY

    @property
    def _may_hand(self) -> bool:
        """Whether the output may be handed what comes: nothing is before it."""
        return self._has_room and not self._behind and not self._waiting

    def _hand(self, item: QueuedItem) -> None:
        self._inner.take(self._in_hand_of(item))

    def _in_hand_of(self, item: QueuedItem) -> Delivery:
        """Return what the output is handed, of an item that it has from now on."""
        self._is_through = False
        item.is_in_hand = True
        self._in_hand.append(item)
        if item.number is None:
            self._fresh.append(item)
            if self._late is None:
                self._late = self._clock.call_later(LATE_SECONDS, self._is_late)
        else:
            self._held[item.number] = item
        return Delivery(item.batch, item)

    def _is_late(self) -> None:
        self._late = None
        self._to_store.set()

    def failed(self, cause: Exception) -> None:
        """Take note that the output is going to try something again: that has not ended the process.

        Nor has what waits for it. Of what may have ended it before, that is not known until it is tried.
        """
        self._is_away = not may_be_content(cause)
        tried = [each.number for each in self._in_hand if each.is_read and each.number is not None]
        waiting = [each.number for each in self._read if each.deaths < ALONE_FROM]
        self._journal.have_survived(tried + waiting)

    def ended(self, item: QueuedItem) -> None:
        """Take note that the output has written a batch, or has given it up."""
        _remove(item, self._in_hand)
        self._is_away = False
        item.is_written = True
        item.settle()
        if item.number is None:
            _remove(item, self._fresh)
        elif item.is_read:
            self._let_go(item.number)
        self._moved.set()

    def _let_go(self, number: int) -> None:
        """Let go of an entry that was handed out."""
        self._held.pop(number, None)
        self._journal.let_go([number])

    async def _store_all(self) -> None:
        """Store what has to be, in order: what comes while something is being stored waits for that.

        So what a commit that fails has not stored is not behind something that came later.
        """
        while True:
            await self._to_store.wait()
            self._to_store.clear()
            while (item := self._next_to_store()) is not None:
                entry = entry_of_batch(item.batch) or await entry_of_large(item.batch, self._clock)
                if item is not self._next_to_store():
                    continue  # it was written meanwhile
                if (group := self._append(item, entry)) is not None:
                    self._append_more(group)
                    await group.ended()
                elif item is self._next_to_store():
                    await self._wait_for_room()

    def _append_more(self, group: Group) -> None:
        """Store with a group whatever else has to be, as far as a turn takes that and nothing is large."""
        ends = self._clock.monotonic() + TURN_SECONDS
        while not group.is_full and (item := self._next_to_store()) is not None:
            if self._clock.monotonic() >= ends:
                return
            entry = entry_of_batch(item.batch)
            if entry is None or self._append(item, entry) is None:
                return

    def _next_to_store(self) -> QueuedItem | None:
        """Return what has to be stored next; have what is not late yet looked at again."""
        if not self._fresh:
            return self._waiting[0] if self._waiting else None
        first = self._fresh[0]
        left = first.since + LATE_SECONDS - self._clock.monotonic()
        if self._waiting or self._is_ending or left <= 1e-6:
            return first
        if self._late is None:
            self._late = self._clock.call_later(left, self._is_late)
        return None

    def _append(self, item: QueuedItem, entry: bytes) -> Group | None:
        """Begin to store what is next; return what it is committed with, None: it cannot be now."""
        journal = self._journal
        while not journal.has_room_for(len(entry)):
            why = f"more than may be kept waits for it (max_bytes: {journal.max_bytes:,})"
            self._note_full(len(entry), why)
            if not (self._drops and self._drop_for(entry)):
                return None
            if item is not self._next_to_store():
                return None  # it was given up itself
        number = journal.next_number
        try:
            group = journal.append(entry)
        except StoreFailed as cause:
            self._note_full(len(entry) if isinstance(cause, StoreFull) else None, str(cause))
            return None
        self._note_full(None, None)
        item.number = number
        self._storing[number] = item
        if item.is_in_hand:
            self._fresh.popleft()
            self._held[number] = item
        else:
            self._waiting.popleft()
        group.tell.append(partial(self._committed, group, number))
        return group

    def _note_full(self, turned_down: int | None, why: str | None) -> None:
        """Note how many bytes there was no room for; None: that is not why."""
        self._why = why
        borrowed = self._kept.borrowed
        if borrowed is None:
            return
        was_full, borrowed.turned_down = borrowed.is_full, turned_down
        if borrowed.is_full != was_full:
            self._moved.set()  # what is oldest may have to be read, to be dropped

    def _committed(self, group: Group, number: int) -> None:
        """Settle what is on the disk; what could not be written there is to be stored again."""
        item = self._storing.pop(number)
        self._moved.set()
        if group.cause is None:
            item.settle()
            return
        self._why = str(group.cause)
        self._held.pop(number, None)
        item.number = None
        if not item.is_in_hand:
            self._waiting = deque(sorted([*self._waiting, item], key=_BY_PLACE))
        elif not item.is_written:
            self._fresh = deque(sorted([*self._fresh, item], key=_BY_PLACE))
        self._to_store.set()

    async def _wait_for_room(self) -> None:
        """Wait a while for the disk to take something; what needs not be there is handed on meanwhile."""
        while self._waiting and self._has_room and not self._behind:
            self._hand(self._waiting.popleft())
        full = self._kept.borrowed is not None and self._kept.borrowed.is_full
        await self._clock.sleep(ROOM_SECONDS if full else AGAIN_SECONDS)

    def _drop_for(self, entry: bytes) -> bool:
        """Give up the oldest that the output does not have, for what comes; return whether there was one.

        What comes is given up itself where it would not fit into an empty queue. What the output has is not
        stored then, and is lost if it is not written before the end.
        """
        if not self._journal.could_have_room_for(entry):
            if self._fresh:
                self._fresh.popleft()
            else:
                self._dropped(count_of_entry(entry))
                self._waiting.popleft().settle()
            return True
        if not self._read:
            return False
        oldest = self._read.popleft()
        self._dropped(count_of_entry(oldest.payload))
        self._let_go(oldest.number)
        return True

    def _dropped(self, messages: int) -> None:
        said = "dropped: more waited for it than may be kept (max_bytes of 'queue')"
        self.place.lose_count(said, messages, "unavailable", "dropped")

    async def _hand_out(self) -> None:
        """Hand the output what is on the disk, in order, as it has room."""
        ends = 0.0
        while True:
            while not (most := self._most_to_read()):
                await self._change()
            if not (entries := await self._journal.read(most)):
                return
            for entry in entries:
                if (item := self._held.get(entry.number)) is None:
                    self._read.append(entry)
                    continue
                item.is_read = True
                if item.is_written:
                    self._let_go(entry.number)
            self._moved.set()
            while self._read and not self._is_ending:
                if not self._has_room:
                    await self._change()
                    continue
                await self._hand_stored(self._read.popleft())
                if (
                    self._clock.monotonic() >= ends
                ):  # an output that writes in the pass waits for nobody
                    await self._clock.sleep(0)
                    ends = self._clock.monotonic() + TURN_SECONDS

    def _most_to_read(self) -> int:
        """Return how many entries may be taken from the journal now.

        What is not taken is not suspected where the process is killed. What the output has is taken in any
        case, as it can be let go of only then; it is before what it does not have.
        """
        unread = sum(not each.is_read for each in self._held.values())
        if self._is_ending:
            return unread
        full = self._kept.borrowed is not None and self._kept.borrowed.is_full
        if (self._is_up and not (self._is_away and self._in_hand)) or (self._drops and full):
            return READ_AT_ONCE
        return unread if any(each.is_written for each in self._held.values()) else 0

    async def _hand_stored(self, entry: StoredEntry) -> None:
        """Hand the output a batch that is on the disk."""
        if entry.deaths >= SET_ASIDE_FROM:
            self._set_aside(entry)
            return
        batch = await batch_of_entry(entry.payload, self.place.decoding)
        item = QueuedItem(batch, None, next(self._places), self.ended)
        item.number, item.is_read = entry.number, True
        self._hand(item)

    def _set_aside(self, entry: StoredEntry) -> None:
        """Keep out of the way, as a dead letter if there are any, what has ended the process repeatedly."""
        set_aside(self.place, entry, self._journal, count_of_entry(entry.payload))

    async def _change(self) -> None:
        """Wait until something is written, stored or read."""
        self._moved.clear()
        await self._moved.wait()

    def waiting(self) -> int:
        """Return how many batches are in memory that are not written."""
        return super().waiting() + len(self._in_hand) + len(self._waiting)

    def link(self, now: int) -> LinkState:
        """Return how the link of the output is, or why nothing of it can be stored."""
        state = self._inner.link(now)
        if state is UP and self._waiting and self._why is not None:
            return LinkState("waiting", self._why)
        return state

    async def drain(self) -> None:
        """Write what can be written soon, and store the rest; where its pipeline is deleted, write all.

        What is being written for longer is on the disk as well, and is let go of when it is written.
        """
        await super().drain()
        if not self.is_started or self._kept.borrowed is None:
            return
        if self._kept.is_gone:
            while self._in_hand or self._waiting or self._behind:
                with suppress(TimeoutError):
                    async with self._clock.timeout(LOOKS_SECONDS):
                        await self._change()
            return
        self._is_ending = True
        self._to_store.set()
        with suppress(TimeoutError):
            async with self._clock.timeout(LAST_WRITE_SECONDS):
                while self._in_hand:
                    await self._change()
        self._moved.set()
        while self._fresh or self._waiting or self._storing or self._most_to_read():
            await self._change()

    def queued(self) -> Iterable[Batch]:
        """Return what the output has, also what it waits to put down as a dead letter."""
        return (each.batch for each in self._in_hand)

    def abandon(self) -> int:
        """Give up what is not stored: the grace is over. Return how many messages are lost by that."""
        unseen = super().abandon()
        unwritten = (*self._in_hand, *self._waiting)
        left = [each for each in unwritten if each.delivery and each.number is None]
        if self.place.comes_again:
            left.clear()
        for each in left:
            failure: FailureClass = "unclear" if each.is_in_hand else "unavailable"
            said = Stopped("stopped before everything was written", failure)
            self.place.report(said, each.batch)
        lost = sum(len(each.batch) for each in left)
        if left:
            told = f"because not written in time: {lost:,} (batches: {len(left):,})"
            if self.place.letters is not None:
                self.place.warn(f"messages put down as dead letters, {told}")
                lost = 0
            else:
                self.place.warn(f"messages lost, {told}")
        return unseen + lost

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


def _remove(item: QueuedItem, among: deque[QueuedItem]) -> None:
    """Take an item out, if it is there; it is the first of them mostly."""
    if among and among[0] is item:
        among.popleft()
    elif item in among:
        among.remove(item)
