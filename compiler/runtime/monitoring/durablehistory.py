"""History that goes on after a restart: its counts are written to the store, and read at the next start.

Nothing is written when something is counted. Every 30 seconds, and at the end, what has been counted since
is written: of each pipeline a row of an hour by the minute, and one of five minutes by five seconds, in the
place of those that were there. What a row has is one list as JSON: when the record began, the place of
its first bucket in it, then three numbers a bucket: messages in, messages out, failures. Which failures
those were is not kept.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from typing import NamedTuple, TypeVar

import msgspec

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.pipelinehistory import SLICE, History
from headrace.compiler.runtime.monitoring.pipelinerecord import (
    FINE_SECONDS,
    WIDTHS,
    PipelineRecord,
    Resolution,
)
from headrace.compiler.store import historytable
from headrace.compiler.store.historytable import HistoryRow
from headrace.compiler.store.letterrecords import storable
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storeerrors import StoreFailed
from headrace.compiler.timestamps import rfc3339_of_seconds

T = TypeVar("T")

log = logging.getLogger("headrace.store")

WRITE_SECONDS = 30.0
"""How often what was counted is written: so much of it a kill may cost."""
ROW_SECONDS: dict[Resolution, int] = {"coarse": 3600, "fine": 300}
"""What one row has."""
READ_SECONDS = 10.0
"""How long a start waits for each piece of it: a disk that does not answer is not to keep a server down."""
ROWS_OF_A_COMMIT = 256
"""What else is to be committed waits for so many rows at most."""
AHEAD_SECONDS = 60
"""What was counted so far ahead of the clock is taken on: it was set back a little. More is left out."""

_COUNTS = msgspec.json.Decoder(list[int])
_KINDS = 3


class _Written(NamedTuple):
    """Up to where the record of an id is written."""

    changes: int
    at: float


class DurableHistory:
    """Keeps the counts of a history in a store, from `load` until `close`."""

    def __init__(self, clock: Clock, history: History, store: Store) -> None:
        self._clock, self._history, self._store = clock, history, store
        self._written: dict[str, _Written] = {}
        """By id."""
        self._dropped: set[str] = set()
        """The ids whose records were dropped, and whose rows are to go."""
        self._oldest_kept: dict[Resolution, int] = {}
        """When the first row begins that was not deleted as too old."""
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        history.hear_dropped = self._drop

    async def load(self) -> None:
        """Take on what was counted before this process, before pipelines run.

        Where that cannot be read, history begins anew.
        """
        try:
            await self._read()
        except (StoreFailed, TimeoutError) as cause:
            why = str(cause) or f"the disk has not answered for {READ_SECONDS:g} s"
            log.error("history cannot be read, and begins anew: %s", why)
        for id, record in self._history.records.items():
            self._written[id] = _Written(record.changes, record.was_active_at)

    def begin(self) -> None:
        """Write from now on; the pipelines run that are to run at the start."""
        self._history.settle()
        self._wait()

    async def close(self) -> None:
        """Write what is not written, where the disk takes it in time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        async with self._store.leaving():
            if self._writing is not None:
                await asyncio.wait([self._writing])
            await self.write()

    async def write(self) -> None:
        """Write what was counted since it was written last, and delete what is too old.

        Raises:
            StoreFailed: the disk does not take it; it is written the next time.
        """
        await self._forget()
        rows: list[HistoryRow] = []
        written: dict[str, _Written] = {}
        for id, record in [*self._history.records.items()]:
            known = self._written.get(id)
            if known is not None and known.changes == record.changes:
                continue
            written[id] = _Written(record.changes, record.was_active_at)
            rows += _rows(id, record, known)
            if len(written) % SLICE == 0:
                await self._clock.sleep(0)
            if len(rows) >= ROWS_OF_A_COMMIT:
                await self._commit(rows, written)
                rows, written = [], {}
        await self._commit(rows, written)

    async def _commit(self, rows: list[HistoryRow], written: dict[str, _Written]) -> None:
        for start in range(0, len(rows), ROWS_OF_A_COMMIT):
            some = rows[start : start + ROWS_OF_A_COMMIT]
            size = sum(each.size for each in some)
            await self._store.write_new(partial(historytable.write, rows=some), size)
        self._written |= {id: each for id, each in written.items() if id not in self._dropped}

    async def _forget(self) -> None:
        """Delete what is too old, and what was dropped."""
        now = self._clock.seconds()
        for resolution, width in WIDTHS.items():
            oldest = self._oldest(resolution, now)
            if self._oldest_kept.get(resolution) != oldest:
                old = partial(historytable.forget_before, width=width, start=oldest)
                while await self._store.write(old):
                    pass
                self._oldest_kept[resolution] = oldest
        if dropped := [*self._dropped]:
            of_them = partial(historytable.forget_pipelines, pipelines=[*map(storable, dropped)])
            while await self._store.write(of_them):
                pass
            self._dropped.difference_update(dropped)

    async def _read(self) -> None:
        now = self._clock.seconds()
        end, damaged, ahead = int(now) + AHEAD_SECONDS, 0, 0
        for resolution, width in WIDTHS.items():
            stretch = ROW_SECONDS[resolution]
            for start in range(self._oldest(resolution, now), end, stretch):
                read = partial(historytable.read, width=width, start=start, end=start + stretch)
                rows, wrong = await self._asked(read)
                damaged += wrong
                for row in rows:
                    ahead += self._take(row, resolution, end)
        elsewhere = partial(historytable.elsewhere, widths=[*WIDTHS.values()], end=end)
        ahead += await self._asked(elsewhere)
        if damaged:
            self._store.condition.has_damaged(damaged, f"{damaged:,} rows of history are damaged")
        if ahead:
            log.warning(
                "of history %s rows are of a time after %s, which the clock shows: that is left out",
                f"{ahead:,}",
                rfc3339_of_seconds(int(now)),
            )

    async def _asked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        async with self._clock.timeout(READ_SECONDS):
            return await self._store.read(work)

    def _take(self, row: HistoryRow, resolution: Resolution, end: int) -> bool:
        """Take on a row; return whether some of it is of a time that is yet to come."""
        began, place, *counts = _COUNTS.decode(row.counts)
        number = row.start // row.width + place
        most = _KINDS * max(0, ceil(end / row.width) - number)
        if number * row.width < end:
            record = self._history.record(row.pipeline)
            record.restore(resolution, began, number, counts[:most])
        return any(counts[most:])

    def _oldest(self, resolution: Resolution, now: float) -> int:
        """Return when the first row begins of which something is not too old."""
        seconds, stretch = self._history.seconds, ROW_SECONDS[resolution]
        kept = seconds if resolution == "coarse" else min(FINE_SECONDS, seconds)
        return int((now - kept) // stretch) * stretch

    def _drop(self, id: str) -> None:
        self._dropped.add(id)
        self._written.pop(id, None)

    def _wait(self) -> None:
        self._timer = self._clock.call_later(WRITE_SECONDS, self._due)

    def _due(self) -> None:
        if self._writing is None:  # else the disk takes that long
            self._writing = asyncio.ensure_future(self._write_in_turn())
        self._wait()

    async def _write_in_turn(self) -> None:
        try:
            await self.write()
        except StoreFailed as cause:  # the store has told why
            log.debug("history is not written, and goes on in memory: %s", cause)
        finally:
            self._writing = None


def _rows(id: str, record: PipelineRecord, known: _Written | None) -> Iterator[HistoryRow]:
    """Yield what was counted of an id since that was written, or that it has begun."""
    began = int(record.began_at)
    for resolution, ring in record.rings.items():
        stretch, width = ROW_SECONDS[resolution], ring.width
        since = max(began if known is None else int(known.at), ring.first * width)
        for start in range(since // stretch * stretch, int(record.was_active_at) + 1, stretch):
            first = start // width
            number, counts = ring.counted(first, first + stretch // width - 1)
            if any(counts):
                yield _row(id, width, start, [began, number - first, *counts])
        if not record.was_active_at:
            start = began - began % stretch
            yield _row(id, width, start, [began, (began - start) // width])


def _row(id: str, width: int, start: int, numbers: list[int]) -> HistoryRow:
    return HistoryRow(storable(id), width, start, encode(numbers).decode())
