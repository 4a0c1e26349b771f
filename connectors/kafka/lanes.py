"""Records on their way to the partitions of a topic: what waits for a partition is sent together.

One record batch per partition is under way, as Kafka keeps order by that. Meanwhile whatever else is
written there is gathered, whichever batches of ours it comes from; so small batches cost no request each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Any

Record = tuple[bytes | None, bytes, list[tuple[str, bytes]] | None, int]
"""Key, value, headers, and when it was made, in milliseconds."""

TURNS = 3
"""Turns of the loop from a confirmation to the next batches: whoever waits, its input, and they are here.
They go along with what waits for the partition already: else every other batch would be a request late."""


class Parcel:
    """A batch under way. ``done`` when each of its records is confirmed, or never will be."""

    def __init__(self, records: list[Record], begun: float) -> None:
        self.records = records
        """Empty once they are with their partitions, if they are many."""
        self.count = len(records)
        self.begun = begun
        self.confirmed = 0
        self.faults: list[Exception] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way = self.count

    def settle(self, count: int, fault: Exception | None) -> None:
        """Take note that so many of its records are confirmed, or refused."""
        if fault is None:
            self.confirmed += count
        else:
            self.faults.append(fault)
        self._under_way -= count
        if not self._under_way:
            self._end()

    def give_up(self, fault: Exception) -> None:
        """Expect nothing more."""
        self.faults.append(fault)
        self._end()

    def _end(self) -> None:
        if not self.done.done():  # who waited for it may have been cancelled
            self.done.set_result(None)


class Wire:
    """What is sent to a partition at once: records of one batch or several, in order."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        # Two lists, not one of pairs: millions of those would wait here for the search for cycles.
        self.records: list[Record] = []
        self.parcels: list[Parcel] = []

    def append(self, record: Record, parcel: Parcel) -> bool:
        """Add a record; False when there is no room for it. There always is for the first."""
        key, value, headers, millis = record
        if self.builder.append(timestamp=millis, key=key, value=value, headers=headers) is None:
            return False
        self.records.append(record)
        self.parcels.append(parcel)
        return True

    def settle(self, fault: Exception | None) -> None:
        """Tell each batch what became of its records."""
        for parcel, some in groupby(self.parcels):
            parcel.settle(sum(1 for _ in some), fault)


class Lane:
    """The way to one partition."""

    def __init__(self, producer: Any, topic: str, partition: int) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._waiting: deque[Wire] = deque()
        self.carrying: asyncio.Task[None] | None = None
        """Runs while something is under way."""

    def put(self, record: Record, parcel: Parcel) -> None:
        """Send a record, with what else goes there."""
        if not self._waiting or not self._waiting[-1].append(record, parcel):
            self._waiting.append(self._wire((record,), (parcel,)))
        if self.carrying is None:
            self.carrying = asyncio.ensure_future(self._carry())

    def _wire(self, records: Sequence[Record], parcels: Sequence[Parcel]) -> Wire:
        wire = Wire(self._producer.create_batch())
        for record, parcel in zip(records, parcels, strict=True):
            wire.append(record, parcel)
        return wire

    async def _carry(self) -> None:
        try:
            while self._waiting:
                await self._send(self._waiting.popleft())
                for _ in range(TURNS):
                    await asyncio.sleep(0)
        finally:
            self.carrying = None

    async def _send(self, wire: Wire) -> None:
        from aiokafka.errors import MessageSizeTooLargeError

        fault = None
        try:
            sent = await self._producer.send_batch(
                wire.builder, self._topic, partition=self._partition
            )
            await sent
        except MessageSizeTooLargeError as cause:
            # The topic may take less at once than we send: only a record alone is really too large.
            if half := len(wire.records) // 2:
                halves = [
                    self._wire(wire.records[some], wire.parcels[some])
                    for some in (slice(half), slice(half, None))
                ]
                self._waiting.extendleft(reversed(halves))
                return
            fault = cause
        except Exception as cause:
            fault = cause
        wire.settle(fault)
