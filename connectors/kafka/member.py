"""A member of a consumer group, with the positions that it commits."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from headrace.compiler.component.buildcontext import Context
from headrace.connectors.kafka.connection import Cluster, said, stop
from headrace.connectors.kafka.offsets import Offsets

POLL_SECONDS = 0.25
"""How long a reader waits for records before it looks around."""
MOST_RECORDS = 1000
"""Records that are taken from the driver at once: what is decoded and not in the pipeline yet."""
SILENT_SECONDS = 1.5
"""How long a broker may say nothing: the driver asks for records again when there are none for 0.5 s."""
COMMIT_SECONDS = 1.0
"""How often positions are committed at most."""
LAST_COMMIT_SECONDS = 0.5
"""How long a commit may take that everybody waits for, and one before it."""

RELEASE_SECONDS = 0.5
"""How often what is held is let go of before partitions go: what was on its way may be held by then."""

SETTLING_TURNS = 50
"""Turns of the loop in which the driver lets go of what it fetches, one broker after the other."""

TOMBSTONE = "skipped a tombstone: a record without a value holds no message"


class Answers:
    """Whether the brokers that lead the partitions of a consumer say something when they are asked."""

    def __init__(self, consumer: Any, ctx: Context) -> None:
        self._consumer, self._ctx = consumer, ctx
        self._seen: dict[Any, tuple[int | None, float]] = {}

    @property
    def are_coming(self) -> bool:
        """Whether each of them has answered lately; False also when there is none.

        Only for whoever waits for records: those that wait themselves are not asked for again.
        """
        # The driver's own time of an answer is only compared: its clock is not ours.
        now = self._ctx.clock.monotonic()
        seen, self._seen = self._seen, {}
        for each in self._consumer.assignment():
            answered = self._consumer.last_poll_timestamp(each)
            last = seen.get(each)
            self._seen[each] = (answered, now) if last is None or last[0] != answered else last
        heard = [at for _, at in self._seen.values()]
        return bool(heard) and now - min(heard) <= SILENT_SECONDS


class Member:
    """Joins, hands out records, commits what is finished, leaves.

    The driver asks it when partitions come and go (`on_partitions_assigned`, `on_partitions_revoked`).
    Others of the group wait meanwhile.
    """

    def __init__(
        self, consumer: Any, cluster: Cluster, topic: str, known: frozenset[int] | None
    ) -> None:
        """Take a consumer that is not started.

        ``known`` are the partitions that there were when we began to watch the topic: others are new,
        so all that is in them is new as well. None: those that there are now.
        """
        self.known = known
        self.offsets = Offsets()
        self._consumer, self._topic = consumer, topic
        self._ctx, self._limits = cluster.ctx, cluster.limits
        self._answers = Answers(consumer, cluster.ctx)
        self._pinned = asyncio.Event()
        self._fault: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._committing: asyncio.Task[None] | None = None
        self._commits_since = 0.0
        self._joining = asyncio.ensure_future(self._join())

    @property
    def is_answered(self) -> bool:
        """Whether the brokers that lead our partitions say something, and take what we commit."""
        is_committing = self._committing is not None and not self._committing.done()
        waited = self._ctx.clock.monotonic() - self._commits_since
        return self._answers.are_coming and not (is_committing and waited > SILENT_SECONDS)

    async def joined(self, seconds: float) -> bool:
        """Wait until it is fixed from where on records arrive; False when that takes longer.

        Raises:
            KafkaError: the group does not take us.
        """
        await asyncio.wait([self._joining], timeout=seconds)
        if is_done := self._joining.done():
            self._joining.result()
        return is_done

    async def _join(self) -> None:
        from aiokafka.abc import ConsumerRebalanceListener

        ConsumerRebalanceListener.register(Member)
        self._consumer.subscribe([self._topic], listener=self)
        await self._consumer.start()
        await self._pinned.wait()

    async def fetch(self) -> Sequence[Any]:
        """Return what has arrived; nothing, if nothing does in a moment."""
        if self._joining.done():
            self._joining.result()
        elif not await self.joined(POLL_SECONDS):
            return ()
        if self._fault is not None:
            raise self._fault
        try:
            # While partitions are divided anew, the driver waits for that, however long it takes.
            async with self._ctx.clock.timeout(2 * POLL_SECONDS):
                fetched = await self._consumer.getmany(
                    timeout_ms=int(POLL_SECONDS * 1000), max_records=MOST_RECORDS
                )
        except TimeoutError:
            return ()
        return [each for records in fetched.values() for each in self._handed_out(records)]

    def _handed_out(self, records: Sequence[Any]) -> Sequence[Any]:
        """Return those records of one partition that hold a message."""
        kept = [record for record in records if record.value is not None]
        first, last = records[0], records[-1]
        self.offsets.hand_out(first.partition, kept, first.offset, last.offset + 1)
        for _ in range(len(records) - len(kept)):
            self._ctx.skip(TOMBSTONE)
            self._commit_later()
        return kept

    def finish(self, records: Sequence[Any]) -> None:
        """Take note that a batch is finished."""
        self.offsets.finish(records)
        self._commit_later()

    def _commit_later(self) -> None:
        if self._timer is None:
            self._timer = self._ctx.clock.call_later(COMMIT_SECONDS, self._commit_now)

    def _commit_now(self) -> None:
        self._timer = None
        if self._committing is None or self._committing.done():
            self._committing = asyncio.ensure_future(self._commit())
            self._commits_since = self._ctx.clock.monotonic()
        else:
            self._commit_later()  # the last one still waits for the broker

    async def _commit(self) -> None:
        """Commit what is finished. What cannot be committed comes again."""
        from aiokafka import TopicPartition
        from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

        due = self.offsets.due()
        if not due:
            return
        try:
            await self._consumer.commit(
                {TopicPartition(self._topic, each): position for each, position in due.items()}
            )
        except (CommitFailedError, IllegalStateError):
            pass  # the partitions are divided anew
        except KafkaError as cause:
            self._ctx.fail(f"positions could not be committed: {said(cause)}")
        else:
            self.offsets.commit(due)

    async def _commit_at_last(self) -> None:
        """Commit for the last time before partitions go, if that is possible in time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._committing is not None:
            # It may be of earlier positions. It is not cancelled: the driver would go on with it.
            await asyncio.wait([self._committing], timeout=LAST_COMMIT_SECONDS)
        if self._committing is None or self._committing.done():
            self._committing = asyncio.ensure_future(self._commit())
            await asyncio.wait([self._committing], timeout=LAST_COMMIT_SECONDS)

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        """Finish what is out, for a while, and commit it before somebody else begins there.

        What is held on purpose is let go of: its time would not be over by then, and all of it would come
        to somebody else as well.
        """
        if not revoked:
            return
        with suppress(TimeoutError):
            async with self._ctx.clock.timeout(self._limits.revoke_seconds):
                while not self.offsets.is_settled:
                    self._ctx.release()
                    with suppress(TimeoutError):
                        async with self._ctx.clock.timeout(RELEASE_SECONDS):
                            await self.offsets.settle()
        await self._commit_at_last()
        self.offsets.revoke()

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        """Fix where each partition is read from, and commit it.

        So nothing is lost either when we or our successor begin again before the first message.
        """
        try:
            async with self._ctx.clock.timeout(self._limits.pin_seconds):
                await self._pin(assigned)
                await self._commit()
        except Exception as cause:  # the driver would only log it
            self._fault = cause
        self._pinned.set()

    async def _pin(self, assigned: Collection[Any]) -> None:
        consumer = self._consumer
        if self.known is None:
            self.known = frozenset(consumer.partitions_for_topic(self._topic) or ())
        positions = {}
        for each in assigned:
            # First, as the driver may be looking for it: what it finds would undo a `seek`.
            positions[each.partition] = await consumer.position(each)
            if each.partition not in self.known and await consumer.committed(each) is None:
                first = (await consumer.beginning_offsets([each]))[each]
                consumer.seek(each, first)
                positions[each.partition] = first
        self.offsets.assign(positions)

    async def leave(self) -> None:
        """Commit what is finished, leave the group, close; within a second, also without a broker."""
        try:
            if self._pinned.is_set():
                await self._commit_at_last()
        finally:
            self.offsets.revoke()
            self._joining.cancel()
            # What is wrong with it was told, or nobody waits for it any more.
            await asyncio.gather(self._joining, return_exceptions=True)
            await leave(self._consumer)
            if self._committing is not None:
                self._committing.cancel()
                await asyncio.wait([self._committing])


async def leave(consumer: Any) -> None:
    """Stop a consumer, and let others have its partitions."""
    if consumer.assignment():
        # `stop` ends half way, with the client left running, if it meets a fetch that waits to be tried
        # again. Without a subscription there is none.
        consumer.unsubscribe()
        for _ in range(SETTLING_TURNS):
            await asyncio.sleep(0)
    await stop(consumer)
