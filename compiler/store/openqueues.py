"""The queues of a store: opened for somebody, left, listed, ended, and discarded."""

from __future__ import annotations

import asyncio
from functools import partial

from headrace.compiler.store import onthread
from headrace.compiler.store.alone import Alone
from headrace.compiler.store.database import Database
from headrace.compiler.store.disk import is_damage
from headrace.compiler.store.room import Room
from headrace.compiler.store.storedrows import Changes, StoredQueue
from headrace.compiler.store.storeerrors import StoreFailed, StoreInUse
from headrace.compiler.store.writer import StoreWriter


class OpenQueues:
    """The queues of one store."""

    def __init__(self, writer: StoreWriter, room: Room, alone: Alone) -> None:
        self._writer, self._room, self._alone = writer, room, alone
        self._openings: set[asyncio.Task[StoredQueue]] = set()
        self._opening = asyncio.Lock()
        """Held while a queue is opened, or one is ended that nobody has."""

    async def open(self, pipeline: str, target: str, kind: str) -> StoredQueue:
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

    def leave(self, queue: int) -> None:
        """Use a queue no longer."""
        self._alone.leave(queue)
        self._writer.in_use.leave(queue)

    async def listed(self) -> list[StoredQueue]:
        """Return all queues that there are.

        Raises:
            StoreFailed: they cannot be read.
        """
        return await self._writer.do(Database.queues)

    async def has_entries(self, pipeline: str, target: str, kind: str) -> bool:
        """Return whether something is in a queue that goes on, which is not made for that.

        Raises:
            StoreFailed: it cannot be read.
        """
        key = pipeline, target, kind
        return await self._writer.repaired(lambda database: database.has_entries(key))

    def end(self, queue: int) -> None:
        """Have nobody take up a queue again; where nothing is left of it, it goes."""
        self._writer.changes.ended[queue] = self._writer.clock.seconds()
        self._writer.soon()

    async def discard(self, queue: int) -> None:
        """Forget a queue and all that is in it, or was set aside, some at a time.

        It is ended first, so that nobody takes it up; what is left where this is given up can be discarded.

        Raises:
            StoreInUse: somebody has it.
            StoreFailed: it cannot be written.
        """
        writer = self._writer
        async with self._opening:
            if queue in writer.in_use:
                raise StoreInUse("the queue is in use")
            await writer.groups_ended()
            ended = Changes(ended={queue: writer.clock.seconds()})
            await writer.do(partial(onthread.commit, ended, self._room))
        while await writer.do(partial(onthread.discard, queue, self._room)):
            pass
        writer.give_back_soon()

    async def discard_aside(self, queue: int) -> None:
        """Forget what of a queue was set aside, also while somebody has it, some at a time.

        Raises:
            StoreFailed: it cannot be written.
        """
        async with self._opening:
            while await self._writer.do(partial(onthread.discard_aside, queue, self._room)):
                pass
        self._writer.give_back_soon()

    async def _opened(self, pipeline: str, target: str, kind: str) -> StoredQueue:
        async with self._opening:
            return self._writer.in_use.use(await self._found((pipeline, target, kind)))

    def _nobody_got(self, opening: asyncio.Task[StoredQueue]) -> None:
        """Use a queue no longer that was opened for somebody who did not wait for it."""
        if not opening.cancelled() and opening.exception() is None:
            self.leave(opening.result().id)

    async def _found(self, key: tuple[str, str, str]) -> StoredQueue:
        """Return a queue, also where the database has to be opened anew for it."""
        writer = self._writer
        await writer.groups_ended()  # what is being stored has its numbers
        try:
            return await self._queue(key)
        except StoreFailed:  # nothing was tried
            raise
        except Exception as cause:
            told = writer.fails(cause)
            if not is_damage(cause):
                raise told from cause
            await writer.condition.readable.wait()
            return await self._queue(key)

    async def _queue(self, key: tuple[str, str, str]) -> StoredQueue:
        writer = self._writer
        while True:
            if writer.condition.state == "failing" or writer.condition.is_closing:
                raise writer.condition.refusal()
            # What is let go of is not counted.
            found = await writer.changed_first(partial(onthread.queue, self._room, key))
            if not writer.changes.is_of(found.id):  # put back meanwhile by a commit that failed
                return found
