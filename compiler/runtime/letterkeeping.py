"""Dead letters of one run on their way to the disk: put down, with room for them, or lost.

Those of outputs wait for room, in order. For those of inputs and transforms the oldest go; what the disk
does not take then is lost, and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from headrace.compiler.clock import Clock
from headrace.compiler.errors import worded
from headrace.compiler.runtime.failedparts import FailedPart, PutDown
from headrace.compiler.runtime.monitoring.losses import Losses
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.store.storeerrors import StoreFailed

if TYPE_CHECKING:
    from headrace.compiler.store.group import Group
    from headrace.compiler.store.letterrows import Letter

ROOM_SECONDS = 0.25
"""How often it is tried to put down what waits for room."""
MOST_BYTES_COMING = 32 * 2**20
"""Bytes of letters that are being written before the next ones wait for that."""


class LetterKeeping:
    """Puts letters down, each when its turn has come, and knows what is not on the disk yet."""

    def __init__(
        self,
        max_bytes: int,
        storage: Storage,
        clock: Clock,
        losses: Losses,
        warn: Callable[[str], None],
        count: Callable[[Letter], None],
    ) -> None:
        """Take how much there may be, what counts what is lost all the same, who is told why letters
        wait, and of each one that is on the disk."""
        self._max_bytes, self._storage, self._clock = max_bytes, storage, clock
        self._losses, self._warn, self._count = losses, warn, count
        self._last = 0
        self._pending: dict[int, None] = {}
        """The numbers of what is not on the disk, in order."""
        self._after: deque[tuple[int, Callable[[], None]]] = deque()
        """What is done when all up to a number is on the disk."""
        self._bytes_coming = 0
        """Of the bodies that are being written. Units: bytes."""
        self._written = asyncio.Event()
        """Set whenever something was written, or could not be."""
        self._is_over: bool | None = None
        """Set at the end of the run: whether what is not put down comes again."""
        self._queued: Collection[int] = ()
        """The batches that do in any case, or are counted by others."""
        self._waiting: deque[PutDown] = deque()
        """What outputs have refused and there was no room for, in order."""
        self._trying: asyncio.Task[None] | None = None
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def expect(self, part: FailedPart) -> None:
        """Take note of something that is going to be put down, or lost."""
        self._last = part.number = self._last + 1
        self._pending[part.number] = None
        self._is_idle.clear()

    async def until_written(self) -> None:
        """Wait while too much is being written."""
        while self._bytes_coming >= MOST_BYTES_COMING:
            self._written.clear()
            await self._written.wait()

    def put(self, put: PutDown) -> None:
        """Put a letter down, or have it wait for room."""
        if put.part.place.stage != "output":
            self._append(put, drops=True)
        elif self._waiting or self._append(put, drops=False) is None:
            self._wait(put)

    def lost(self, part: FailedPart, why: str) -> None:
        """Count as lost what was expected and will not be put down."""
        self.lose(part, why)
        self._ended(part.number)

    def lose(self, part: FailedPart, why: str) -> None:
        """Count as lost what is not put down."""
        self._losses.add(part.place.stage, part.place.at, part.reason, part.count)
        self._warn(f"messages lost that could not be put down as dead letters: {why}")

    def when_kept(self, action: Callable[[], None]) -> None:
        """Do something when all is on the disk that was expected until now: at once, mostly."""
        if self._pending:
            self._after.append((self._last, action))
        else:
            action()

    async def drained(self) -> None:
        """Wait until all is on the disk."""
        await self._is_idle.wait()

    def abandon(self, *, comes_again: bool, queued: Collection[int] = ()) -> int:
        """Give up what waits for room: the time is over. Return how many messages are lost by that.

        ``queued``: by their ids as objects, the batches that the queue of an output has still, or has told
        of as lost.
        """
        self._is_over, self._queued = comes_again, queued
        waiting, self._waiting = self._waiting, deque()
        self._after.clear()  # nobody may take for written what is not
        return sum(map(self._give_up, waiting))

    def close(self) -> None:
        """Try no more."""
        if self._trying is not None:
            self._trying.cancel()

    def _append(self, put: PutDown, *, drops: bool) -> Group | None:
        """Begin to put a letter down; return what it is committed with, None: it cannot be now."""
        records = self._storage.records
        try:
            if records is None:
                raise StoreFailed("the store is closed")
            group = records.append(put.letter, put.body, self._max_bytes, drops_oldest=drops)
        except StoreFailed as cause:
            if drops or not self._could_fit(put):
                self.lost(put.part, str(cause))
            elif not self._waiting:
                self._warn(
                    f"output {put.part.place.at} waits for room for its dead letters: {cause}"
                )
            return None
        except Exception as cause:  # a fault of ours, and what comes behind it does not wait for it
            self.lost(put.part, worded(cause))
            return None
        self._bytes_coming += len(put.body)
        group.tell.append(partial(self._committed, group, put, drops=drops))
        return group

    def _could_fit(self, put: PutDown) -> bool:
        """Return whether there would be room for a letter if there were no other."""
        from headrace.compiler.store.letterrecords import room_for

        return room_for(put.letter, put.body) <= self._max_bytes

    def _committed(self, group: Group, put: PutDown, *, drops: bool) -> None:
        self._bytes_coming -= len(put.body)
        self._written.set()
        if group.cause is None:
            self._count(put.letter)
            self._ended(put.part.number)
        elif drops:
            self.lost(put.part, str(group.cause))
        else:
            self._wait(put)

    def _wait(self, put: PutDown) -> None:
        """Have a letter of an output wait for room, behind those that do."""
        if put.part.number not in self._pending:
            return  # it did not fit, and is lost
        if self._is_over is not None:
            self._give_up(put)
            return
        self._waiting.append(put)
        if self._trying is None or self._trying.done():
            self._trying = asyncio.ensure_future(self._try_again())

    def _give_up(self, put: PutDown) -> int:
        """Count as lost what there is no time left for, unless it comes again; return how much that is."""
        part = put.part
        self._ended(part.number)
        # What a queue has just given up itself is counted here, and not there.
        if self._is_over or (id(part.batch) in self._queued and part.reason != "stopped"):
            return 0
        self._losses.add(part.place.stage, part.place.at, "stopped", part.count)
        return part.count

    async def _try_again(self) -> None:
        """Put down what waits, in order, as soon as there is room."""
        while self._waiting:
            await self._clock.sleep(ROOM_SECONDS)
            while self._waiting:
                first = self._waiting[0]
                if self._append(first, drops=False) is None and self._is_pending(first):
                    break
                self._waiting.popleft()

    def _is_pending(self, put: PutDown) -> bool:
        return put.part.number in self._pending

    def _ended(self, number: int) -> None:
        """Take note that a letter is on the disk, or will never be."""
        self._pending.pop(number, None)
        oldest = next(iter(self._pending), inf)
        while self._after and self._after[0][0] < oldest:
            self._after.popleft()[1]()
        if not self._pending:
            self._is_idle.set()
