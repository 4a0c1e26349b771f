"""The Kafka output at work: many batches under way, in as few requests as their partitions allow."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.compiler import jsontext
from headrace.compiler.delivery import Batch, JsonValue, is_large, parts
from headrace.compiler.dottedpaths import MISSING, DottedPath
from headrace.compiler.edges import AwaitingSink, Rest
from headrace.compiler.errors import BatchFailed, BuildRefused, FailureClass, Unreachable, class_of
from headrace.compiler.largejson import ENCODED_AT_ONCE, SLICE_MESSAGES, LargeList, WritingTurn
from headrace.connectors.kafka.connection import LOOK_SECONDS, Cluster, HealthCheck, said, stop
from headrace.connectors.kafka.kafkafailures import FAILURES, RETRIABLE
from headrace.connectors.kafka.partitions import (
    Pending,
    ProducedRecord,
    TopicPartitions,
    is_refusal,
)

if TYPE_CHECKING:
    from headrace.connectors.kafka import KafkaOutput

REQUEST_BYTES = 1 << 17
"""Bytes of the records that are sent to a partition together; a larger record goes alone."""

ACKS: Mapping[str, int] = {"all": -1, "leader": 1, "none": 0}


class KafkaSink(AwaitingSink):
    """Writes to one topic."""

    at_once = 256  # the windows of the inputs are the bound; what is under way is sent together

    def __init__(self, config: KafkaOutput, cluster: Cluster) -> None:
        self._config, self._cluster, self._ctx = config, cluster, cluster.ctx
        self._name = config.topic
        self._key = None if config.key is None else DottedPath(config.key)
        self._bodies = config.bodies(cluster.ctx)
        self._headers = [(name, DottedPath(path)) for name, path in (config.headers or {}).items()]
        self._health = HealthCheck(cluster, config.topic)
        self._producer: Any = None
        self._topic: TopicPartitions | None = None
        self._has_ended = self._tells_apart = False
        self._under_way: dict[Pending, None] = {}
        self._watching: asyncio.Task[None] | None = None
        self._queue: deque[tuple[Batch, Pending]] = deque()
        self._sending: asyncio.Task[None] | None = None
        """Sends what is in the queue: what takes a while, and what came after it meanwhile."""

    def tell_apart(self) -> None:
        """Send halves of each record batch that is refused for what is in it, not only of one too large."""
        self._tells_apart = True

    async def start(self) -> None:
        """Reach the brokers, and see that they have the topic."""
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaError

        address, _ = await self._cluster.reach(self._name)
        compression = self._config.compression
        producer = AIOKafkaProducer(
            **self._cluster.options(),
            bootstrap_servers=address,
            acks=ACKS[self._config.acks],
            compression_type=None if compression == "none" else compression,
            max_batch_size=REQUEST_BYTES,
        )
        self._producer, self._has_ended = producer, False
        try:
            async with self._ctx.clock.within(self._cluster.limits.connect_seconds):
                await producer.start()
                await producer.partitions_for(self._name)
        except BaseException as cause:
            await self._close()
            if isinstance(cause, (KafkaError, TimeoutError)):
                what = f"writing to '{self._name}' could not begin: {said(cause)}"
                raise Unreachable(what, _class(cause)) from cause
            raise
        self._topic = TopicPartitions(producer, self._name, self._is_halved)

    async def finish(self) -> None:
        """Close. Whatever is not confirmed by now was given up."""
        tasks = [each for each in (self._watching, self._sending) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._close()

    async def _close(self) -> None:
        topic, self._topic = self._topic, None
        if topic is not None:
            await topic.close()
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop(producer)

    async def write(self, batch: Batch) -> None:
        """Send the batch, and wait until all of it is confirmed."""
        await self.begin(batch)()

    def begin(self, batch: Batch) -> Rest:
        """Send the batch with what else waits for its partitions; return what waits for it."""
        topic = self._topic
        if is_large(batch) or self._sending is not None or self._has_ended or not topic:
            # It is sent when that can be, in turns, and those that come meanwhile behind it.
            pending = self._pending(len(batch))
            self._queue.append((batch, pending))
            if self._sending is None:
                self._sending = asyncio.ensure_future(self._send_queued())
            return partial(self._confirmed, pending)
        records = self._records(batch)
        pending = self._pending(len(records))
        pending.records = records
        topic.put(records, pending, topic.any())
        return partial(self._confirmed, pending)

    async def _send_queued(self) -> None:
        try:
            while self._queue:
                batch, pending = self._queue.popleft()
                if pending.done.done():  # who waited for it was cancelled
                    continue
                try:
                    await self._send(batch, pending)
                except Exception as cause:
                    pending.fail(cause)
        finally:
            self._sending = None

    async def _send(self, batch: Batch, pending: Pending) -> None:
        """Do for a batch of any size, at any time, what `begin` does for one that is not large."""
        records: list[ProducedRecord] = LargeList()
        turn = WritingTurn(self._ctx.clock)
        for some in parts(batch, ENCODED_AT_ONCE):
            records += self._records(some, len(records))
            await turn.end()
        pending.records = records
        anywhere = (await self._writable()).any()
        for some in parts(records, SLICE_MESSAGES):
            if pending.done.done():  # given up
                return
            # It may have been deleted since.
            (await self._writable()).put(some, pending, anywhere)
            await turn.end()

    async def _writable(self) -> TopicPartitions:
        """Return the topic when there is a producer that works, and it knows partitions.

        Raises:
            what says why there is none; no more than that is waited for by those in the queue.
        """
        try:
            if self._has_ended or self._topic is None:
                await self._close()
                await self.start()
            elif not self._topic:
                await self._producer.partitions_for(self._name)  # it was deleted, and may come back
        except Exception as cause:
            while self._queue:
                self._queue.popleft()[1].fail(cause)
            raise
        assert self._topic  # the driver has told so
        return self._topic

    def _pending(self, count: int) -> Pending:
        """Return what is under way from now on."""
        pending = Pending(count, self._ctx.clock.monotonic())
        self._under_way[pending] = None
        pending.done.add_done_callback(lambda _: self._under_way.pop(pending))
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        return pending

    def _records(self, batch: Batch, first: int = 0) -> list[ProducedRecord]:
        """Return the records of messages, of which the ``first`` has that index in its batch."""
        millis = self._ctx.clock.millis()
        bodies = self._bodies(batch)
        try:
            return [
                (*self._frame(message, body), millis)
                for message, body in zip(batch, bodies, strict=True)
            ]
        except BatchFailed as cause:
            faults = enumerate(map(self._fault, batch, bodies), first)
            refused = {index: said for index, said in faults if said is not None}
            raise BatchFailed(str(cause), cause.failure, refused=refused) from None

    def _fault(self, message: JsonValue, body: bytes) -> str | None:
        """Return what is said of a message that is too large; None of any other."""
        try:
            self._frame(message, body)
        except BatchFailed as cause:
            return str(cause)
        except UnicodeEncodeError:
            return None  # not told of: the batch fails for one that comes before it
        return None

    async def _watch(self) -> None:
        """Have the brokers asked when the oldest batch waits for long, as long as one is under way."""
        try:
            while self._under_way:
                await self._ctx.clock.sleep(LOOK_SECONDS)
                oldest = next(iter(self._under_way), None)
                if oldest and self._ctx.clock.monotonic() - oldest.begun >= LOOK_SECONDS:
                    await self._health.look()
        finally:
            self._watching = None

    async def _confirmed(self, pending: Pending) -> None:
        """Wait until a batch is confirmed; raise why it is not."""
        with self._ctx.clock.outside():
            await pending.done
        if pending.faults:
            raise self._failure(pending)
        self._health.over()

    def _failure(self, pending: Pending) -> Exception:
        """Return what to say of a batch that did not arrive whole."""
        from aiokafka.errors import KafkaError

        rest, done = "", pending.written()
        if pending.confirmed:
            rest = "; some records of the batch were confirmed"
            self._ctx.warn_once(
                f"of a batch that failed {pending.confirmed} of {pending.count} records were confirmed"
            )
        refusals = [each for each in pending.faults if is_refusal(each)]
        others = [each for each in pending.faults if not is_refusal(each)]
        refused = self._refused(pending) if refusals else {}
        if refusals and not (others and self._tells_apart):
            text = self._refusal(refusals[0]) + rest
            return BatchFailed(text, _class(refusals[0]), done=done, refused=refused)
        cause = others[0]
        if isinstance(cause, BuildRefused | Unreachable):
            # Of the former nobody is there to be refused; a password may be rotated.
            return Unreachable(str(cause), class_of(cause), done=done, refused=refused)
        if not isinstance(cause, KafkaError):
            return cause
        if not cause.retriable:
            # The driver has, of an error of its own: it sends nothing any more.
            self._has_ended = True
        # The outage, if there is one, has been told in the same words: it is one failure.
        if self._health.reason is not None:
            return Unreachable(
                self._health.reason + rest, self._health.failure, done=done, refused=refused
            )
        reason = f"'{self._name}' did not confirm records: {said(cause)}"
        return Unreachable(reason + rest, _class(cause), done=done, refused=refused)

    def _is_halved(self, cause: Exception) -> bool:
        """Return whether a record batch that failed is sent again in halves: nothing of it was taken."""
        from aiokafka.errors import MessageSizeTooLargeError

        # The topic may take less at once than we send: only a record alone is really too large.
        if isinstance(cause, MessageSizeTooLargeError):
            return True
        return self._tells_apart and is_refusal(cause) and _class(cause) == "invalid"

    def _refusal(self, cause: Exception) -> str:
        """Return what to say of records that a broker does not take."""
        from aiokafka.errors import MessageSizeTooLargeError

        if isinstance(cause, MessageSizeTooLargeError):
            return f"'{self._name}' takes no record of that size ('max.message.bytes')"
        return f"'{self._name}' refuses records: {said(cause)}"

    def _refused(self, pending: Pending) -> dict[int, str]:
        """Return the records that are at fault, as far as they were sent alone."""
        return {
            index: self._refusal(cause)
            for index, cause in pending.refused().items()
            if is_refusal(cause) and _class(cause) == "invalid"
        }

    def _frame(
        self, message: JsonValue, value: bytes
    ) -> tuple[bytes | None, bytes, list[tuple[str, bytes]] | None]:
        """Return key, value and headers of a message."""
        most = self._cluster.limits.record_bytes
        key = None if self._key is None else _text(self._key.read(message))
        headers: list[tuple[str, bytes]] = []
        size = len(value) + len(key or b"")
        for name, path in self._headers:
            if size <= most and (text := _text(path.read(message))) is not None:
                headers.append((name, text))
                size += len(text)
        if size > most:
            raise BatchFailed(f"a record for '{self._name}' has more than {most:,} bytes")
        return key, value, headers or None  # millions of lists are looked through for cycles


def _class(cause: BaseException) -> FailureClass:
    """Return the class of what a broker answers, or of what the driver meets."""
    return FAILURES.of(said(cause), None if is_refusal(cause) else RETRIABLE)


def _text(value: JsonValue) -> bytes | None:
    """Return a value as a key or a header has it: a string as it is, else JSON; None for nothing."""
    if value is MISSING or value is None:
        return None
    return (value if isinstance(value, str) else jsontext.text(value)).encode()
