"""How far each partition has come: what was handed out, what of it is finished, what is committed.

A position may be committed only when everything before it is finished, also while later batches are
finished first. Batches are slices of what was handed out, in its order, so they are kept as ranges, not
record by record. Offsets that hold no message for us (a tombstone, the mark of a transaction, what was
compacted away) are ranges that are finished from the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol


class ConsumedRecord(Protocol):
    """What is known of where a record was."""

    partition: int
    offset: int


class PartitionOffsets:
    """One partition, as long as it is ours."""

    __slots__ = ("_finished", "committed", "done", "next")

    def __init__(self, start: int) -> None:
        self.done = self.next = start
        """Everything before `done` is finished, everything before `next` was handed out."""
        self.committed: int | None = None
        self._finished: dict[int, int] = {}  # first offset to the one after the last

    def hand_out(self, records: Sequence[ConsumedRecord], end: int) -> None:
        """Take note of records in the order of their offsets; up to ``end`` there is nothing else."""
        if end - self.next != len(records):  # something is missing between them
            for record in records:
                self.finish(self.next, record.offset)
                self.next = record.offset + 1
            self.finish(self.next, end)
        self.next = end

    def finish(self, first: int, end: int) -> None:
        """Take note that a range is finished. One of a time before `done` says nothing new."""
        first = max(first, self.done)
        if first >= end:
            return
        self._finished[first] = end
        done: int | None = self.done
        while done is not None:
            self.done = done
            done = self._finished.pop(done, None)


class Offsets:
    """The partitions of a topic that are ours."""

    def __init__(self) -> None:
        self._lines: dict[int, PartitionOffsets] = {}
        self._settled = asyncio.Event()
        self._settled.set()  # while nobody waits, no batch has to look at all partitions

    def assign(self, positions: Mapping[int, int]) -> None:
        """Begin partitions where they are read from; one that began earlier goes on."""
        for partition, position in positions.items():
            line = self._lines.get(partition)
            if line is None or line.done > position:
                self._lines[partition] = PartitionOffsets(position)

    def revoke(self) -> None:
        """Forget all partitions: whoever has them now begins at what is committed."""
        self._lines.clear()
        self._settled.set()

    def hand_out(
        self, partition: int, records: Sequence[ConsumedRecord], start: int, end: int
    ) -> None:
        """Take note of what was fetched from ``start`` to before ``end``, and holds ``records``."""
        line = self._lines.get(partition)
        # One that begins earlier than what it has given already has lost its end, and filled it anew.
        if line is None or start < line.next:
            line = self._lines[partition] = PartitionOffsets(start)
        line.hand_out(records, end)

    def finish(self, records: Sequence[ConsumedRecord]) -> None:
        """Take note that a batch is finished: neighbours of what was handed out."""
        first, last = records[0], records[-1]
        is_one_range = last.offset - first.offset + 1 == len(records)
        if is_one_range and last.partition == first.partition:
            self._finish(first.partition, first.offset, last.offset + 1)
        else:
            for record in records:
                self._finish(record.partition, record.offset, record.offset + 1)
        if not self._settled.is_set() and self.is_settled:
            self._settled.set()

    def _finish(self, partition: int, first: int, end: int) -> None:
        line = self._lines.get(partition)
        # Of a partition that was taken from us: it comes again, to whoever has it.
        if line is not None:
            line.finish(first, end)

    @property
    def is_settled(self) -> bool:
        """Whether all that was handed out is finished."""
        return all(line.done >= line.next for line in self._lines.values())

    async def settle(self) -> None:
        """Wait until all that was handed out is finished. For one at a time."""
        while not self.is_settled:
            self._settled.clear()
            await self._settled.wait()

    def due(self) -> dict[int, int]:
        """Return the positions, by partition, that are not committed yet."""
        return {
            partition: line.done
            for partition, line in self._lines.items()
            if line.done != line.committed
        }

    def commit(self, positions: Mapping[int, int]) -> None:
        """Take note that positions are committed."""
        for partition, position in positions.items():
            if (line := self._lines.get(partition)) is not None:
                line.committed = position
