"""What is done to the rows of the queues of a store: put down, read, handed out, let go of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial

from headrace.compiler.store import onthread
from headrace.compiler.store.alone import Alone
from headrace.compiler.store.group import Group
from headrace.compiler.store.inpieces import MOST_JOINED
from headrace.compiler.store.room import Room
from headrace.compiler.store.storedrows import (
    ALONE_FROM,
    TAKEN_TOGETHER,
    NewRow,
    Parts,
    RowBeginning,
    StoredPage,
    StoredRow,
    Stretch,
)
from headrace.compiler.store.writer import StoreWriter


class QueueRows:
    """The rows of the queues of one store."""

    def __init__(self, writer: StoreWriter, room: Room, alone: Alone) -> None:
        self._writer, self._room, self._alone = writer, room, alone
        self._clock, self._condition = writer.clock, writer.condition

    def append(
        self, queue: int, number: int, payload: bytes, *, is_taken: bool
    ) -> tuple[Group, NewRow]:
        """Put down one entry of a queue; return the group that it is committed with, and its row.

        ``is_taken``: it is handed on as soon as it is there.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        writer = self._writer
        group = writer.group()
        row = group.open.get(queue)
        size = len(payload)
        is_large = size > MOST_JOINED
        if row is None or row.is_taken != is_taken or is_large:
            row = NewRow(writer.next_row, queue, number, self._clock.seconds(), [], is_taken)
            writer.next_row += 1
            group.rows.append(row)
            group.open[queue] = row
            if is_large:
                del group.open[queue]
        row.payloads.append(payload)
        group.add(size)
        writer.go_on()
        return group, row

    async def page(self, queue: int, after: int, before: int, most_bytes: int) -> StoredPage:
        """Return some of what is in a queue between two entries, as soon as it can be read.

        Raises:
            StoreFailed: the store is closed.
        """
        writer, condition = self._writer, self._condition
        tries = 0
        while True:
            await condition.readable.wait()
            if condition.is_closing:
                raise condition.refusal()
            work = partial(onthread.page, queue, after, before, most_bytes, self._clock.seconds())
            try:
                page, cause = await writer.run(partial(work, self._room))
                writer.is_read_back = True
                break
            except Exception as raised:
                tries += 1
                condition.is_damaged |= tries > 1  # opened anew, and cannot be read all the same
                writer.fails(raised)
        if cause is not None:  # what is read is given all the same
            writer.fails(cause)
        for row in page.damaged:
            condition.set_asides += 1
            condition.has_damaged(
                row.entries,
                f"{row.entries:,} entries of queue {queue} from {row.first:,} on are damaged:"
                " they are set aside",
            )
        return page

    async def beginnings(self, queue: int, most: int) -> list[RowBeginning]:
        """Return the rows of a queue that have one entry each, with the first bytes of each.

        Raises:
            StoreFailed: they cannot be read.
        """
        return await self._writer.do(lambda database: database.beginnings(queue, most))

    def lost(self, queue: int, count: int) -> None:
        """_Tell that entries of a queue are not there which were."""
        self._condition.has_damaged(count, f"{count:,} entries of queue {queue} are gone")

    def let_go(self, row: int, queue: int, next: int) -> None:
        """Have a row go, of which nothing is needed any more; of its queue ``next`` comes next."""
        writer = self._writer
        self._alone.end(row)
        writer.under_way.discard(row)
        if row in writer.gone_along:
            return
        writer.changes.gone.append(row)
        writer.changes.nexts[queue] = next
        writer.soon()

    def set_aside(self, row: int) -> None:
        """Have a row be kept for somebody to look at, when it goes."""
        self._writer.changes.aside[row] = self._clock.seconds()

    async def split(self, row: StoredRow, queue: int, then: Callable[[], object]) -> None:
        """Put each entry of a row into one of its own, and call ``then``, as soon as it can be written.

        Raises:
            StoreFailed: the store is closed.
        """
        if row.n not in self._writer.changes.parts:
            runs = [(row.first + place, 1) for place in range(len(row.payloads))]
            self._replace(row.n, queue, runs)
            self._writer.changes.then.append(then)
        await self._writer.written()

    async def begin_alone(self, rows: Collection[int], queue: int) -> None:
        """Have rows of a queue be those that may end the process; those that are are waited for a while."""
        await self._alone.begin(rows, queue)

    def goes_on_alone(self, row: int) -> bool:
        """Return whether one may be handed out now that was taken with others that are."""
        return self._alone.goes_on(row)

    def end_alone(self, rows: Iterable[int]) -> None:
        """Have rows that are not handed out not be those that may end the process."""
        for row in rows:
            self._alone.end(row)

    async def take(self, rows: Collection[int]) -> None:
        """Mark rows as taken, as soon as it can be written; what was let go of is gone then as well.

        It is marked as well whether it is one that may end the process, or several together.

        Raises:
            StoreFailed: the store is closed.
        """
        changes, now = self._writer.changes, self._clock.seconds()
        changes.taken |= dict.fromkeys(rows, now)
        changes.suspected |= dict.fromkeys(rows, ALONE_FROM if len(rows) == 1 else TAKEN_TOGETHER)
        try:
            await self._writer.written()
        except BaseException:
            self.end_alone(rows)
            raise

    def under_way(self, row: int) -> None:
        """Say of a row that is marked as taken that it is going to be handed out."""
        self._writer.under_way.add(row)

    def survived(self, rows: Collection[int]) -> None:
        """Say of rows that they were under way for so long that they will not end the process."""
        for row in rows:
            self._alone.end(row)
        self._writer.under_way.difference_update(rows)
        self._writer.changes.innocent += rows
        self._writer.soon()

    def call_later(self, seconds: float, action: Callable[[], object]) -> asyncio.TimerHandle:
        """Call ``action`` in so many seconds, unless the handle is cancelled before."""
        return self._clock.call_later(seconds, action)

    async def give_back(self, queue: int, left: dict[int, list[Stretch] | None]) -> None:
        """Have rows be under way no more: what is left of each, or all of it where that is None.

        Raises:
            StoreFailed: the store is closed.
        """
        self._writer.under_way -= left.keys()
        for row, runs in left.items():
            if runs is None:
                self._writer.changes.taken[row] = 0
            else:
                self._replace(row, queue, runs)
        await self._writer.written()

    def _replace(self, row: int, queue: int, runs: list[Stretch]) -> None:
        """Put rows of some of its entries in the place of a row."""
        writer = self._writer
        writer.changes.parts[row] = Parts(queue, writer.next_row, runs)
        writer.next_row += len(runs)
