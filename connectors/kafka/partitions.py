"""Records on their way to the partitions of a topic: what waits for a partition is sent together.

Record batches are made here and handed to the driver whole (`create_batch`, `send_batch`): its `send`
gathers records as well, but looks the topic up and makes a future for each of them, and takes three
times as long (`docs/decisions/kafka.md`).

One record batch of a partition is under way at a time, as Kafka keeps order by that. Meanwhile whatever
else goes there is gathered, whichever batches of ours it is of; so small batches cost no request each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

ProducedRecord = tuple[bytes | None, bytes, list[tuple[str, bytes]] | None, int]
"""Key, value, headers, and when it was made, in milliseconds."""

IsHalved = Callable[[Exception], bool]

TURNS = 3
"""Turns of the loop from a confirmation to the next record batch: whoever waits, its input, and what that
reads are here. They go along with what waits already: else every other batch would be a request late."""


class Pending:
    """A batch of ours under way. ``done`` when each of its records is confirmed, or never will be.

    Which of them are is found out only when the batch has failed: a record is known by what it is, as
    carrying a number would cost each of them.
    """

    def __init__(self, count: int, begun: float) -> None:
        self.count, self.begun = count, begun
        self.confirmed = 0
        self._confirmed: list[Sequence[ProducedRecord]] = []
        self.records: Sequence[ProducedRecord] = ()
        """Those of the batch, in order, once they are made."""
        self.faults: list[Exception] = []
        self.alone: list[tuple[ProducedRecord, Exception]] = []
        """The records that were not taken when no other was sent with them."""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left = count

    def settle(self, records: Sequence[ProducedRecord], fault: Exception | None) -> None:
        """Take note that some of its records are confirmed, or not taken."""
        if fault is None:
            self.confirmed += len(records)
            self._confirmed.append(records)
        else:
            self.faults.append(fault)
        self._left -= len(records)
        if not self._left:
            self._end()

    def written(self) -> list[int]:
        """Return the indices of the records that are confirmed."""
        if not self._confirmed:
            return []
        confirmed = {id(record) for some in self._confirmed for record in some}
        return [index for index, record in enumerate(self.records) if id(record) in confirmed]

    def refused(self) -> dict[int, Exception]:
        """Return the indices of the records that were not taken when no other was sent with them."""
        causes = {id(record): cause for record, cause in self.alone}
        if not causes:
            return {}
        places = ((index, causes.get(id(record))) for index, record in enumerate(self.records))
        return {index: cause for index, cause in places if cause is not None}

    def fail(self, fault: Exception) -> None:
        """Expect nothing more."""
        self.faults.append(fault)
        self._end()

    def _end(self) -> None:
        if not self.done.done():  # who waited for it may have been cancelled
            self.done.set_result(None)


class RecordBatch:
    """What is sent to a partition at once: records of one batch of ours or several, in order."""

    def __init__(self, producer: Any) -> None:
        self.builder = producer.create_batch()
        # Two lists, not one of pairs: millions of those would wait here for the search for cycles.
        self.records: list[ProducedRecord] = []
        self.of: list[Pending] = []

    def append(self, record: ProducedRecord, pending: Pending) -> bool:
        """Add a record; False when there is no room for it. There always is for the first."""
        key, value, headers, millis = record
        if self.builder.append(timestamp=millis, key=key, value=value, headers=headers) is None:
            return False
        self.records.append(record)
        self.of.append(pending)
        return True

    def settle(self, fault: Exception | None) -> None:
        """Tell each batch of ours what became of its records."""
        if fault is not None and len(self.records) == 1:
            self.of[0].alone.append((self.records[0], fault))
        end = 0
        for pending, some in groupby(self.of):
            start, end = end, end + len([*some])
            pending.settle(self.records[start:end], fault)


class Partition:
    """What is under way to one partition, and what waits for it."""

    def __init__(self, producer: Any, topic: str, number: int, is_halved: IsHalved) -> None:
        self._producer, self._topic, self._number = producer, topic, number
        self._is_halved = is_halved
        self._waiting: deque[RecordBatch] = deque()
        self.sending: asyncio.Task[None] | None = None
        """Runs while something is under way."""

    def put(self, record: ProducedRecord, pending: Pending) -> None:
        """Send a record, with what else goes there."""
        if not self._waiting or not self._waiting[-1].append(record, pending):
            self._waiting.append(RecordBatch(self._producer))
            self._waiting[-1].append(record, pending)
        if self.sending is None:
            self.sending = asyncio.ensure_future(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send(self._waiting.popleft())
                for _ in range(TURNS):
                    await asyncio.sleep(0)
        finally:
            self.sending = None

    async def _send(self, some: RecordBatch) -> None:
        try:
            sent = await self._producer.send_batch(
                some.builder, self._topic, partition=self._number
            )
            await sent
        except Exception as cause:
            if (half := len(some.records) // 2) and self._is_halved(cause):
                first, second = RecordBatch(self._producer), RecordBatch(self._producer)
                for place, (record, pending) in enumerate(zip(some.records, some.of, strict=True)):
                    (first if place < half else second).append(record, pending)
                self._waiting.extendleft((second, first))
                return
            some.settle(cause)
            if not is_refusal(cause):
                # Nobody has answered for as long as a batch waits: neither is there time for the rest.
                while self._waiting:
                    self._waiting.popleft().settle(cause)
        else:
            some.settle(None)


class TopicPartitions:
    """The partitions of a topic, as the brokers tell of them from time to time."""

    def __init__(self, producer: Any, name: str, is_halved: IsHalved) -> None:
        """Take what makes record batches, and of which failures of one its halves are sent again."""
        from aiokafka.partitioner import DefaultPartitioner

        self._producer, self._name, self._is_halved = producer, name, is_halved
        self._partition_of: Callable[..., int] = DefaultPartitioner()
        self._all: Sequence[int] = ()
        self._led: Sequence[int] = ()
        self._partitions: dict[int, Partition] = {}
        cluster = producer.client.cluster
        self._learn(cluster)
        cluster.add_listener(self._learn)

    def _learn(self, cluster: Any) -> None:
        self._all = sorted(cluster.partitions_for_topic(self._name) or ())
        self._led = sorted(cluster.available_partitions_for_topic(self._name) or ())

    def __bool__(self) -> bool:
        """Whether it has partitions: it may have been deleted."""
        return bool(self._all)

    def any(self) -> int:
        """Return a partition that somebody leads, if one is."""
        number = self._all[0]
        return number if len(self._all) == 1 else self._partition_of(None, self._all, self._led)

    def put(self, records: Iterable[ProducedRecord], pending: Pending, anywhere: int) -> None:
        """Send records: those with a key where every client sends them, the others to ``anywhere``."""
        partitions = self._partitions
        for record in records:
            key = record[0]
            number = anywhere if key is None else self._partition_of(key, self._all, self._all)
            if number not in partitions:
                partitions[number] = Partition(self._producer, self._name, number, self._is_halved)
            partitions[number].put(record, pending)

    async def close(self) -> None:
        """Hand nothing more to the driver."""
        sending = [each.sending for each in self._partitions.values() if each.sending is not None]
        self._partitions = {}
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)


def is_refusal(cause: BaseException) -> bool:
    """Return whether a broker has answered that it does not take something, now or later."""
    from aiokafka.errors import BrokerResponseError

    return isinstance(cause, BrokerResponseError) and not cause.retriable
