"""The Kafka output at work: many batches under way, in as few requests as their partitions allow."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from headrace.compiler import jsontext
from headrace.compiler.delivery import Batch, JsonValue, is_large, parts
from headrace.compiler.edges import AwaitingSink, Rest
from headrace.compiler.errors import BatchFailed, BuildRefused, HeadraceError, Unreachable
from headrace.compiler.language.context import Context
from headrace.compiler.largejson import ENCODED_AT_ONCE, SLICE_MESSAGES, LargeList, Turn
from headrace.compiler.lowering.paths import MISSING, DottedPath
from headrace.connectors.kafka.clients import LOOK_SECONDS, Outage, close_producer, said
from headrace.connectors.kafka.cluster import Cluster
from headrace.connectors.kafka.lanes import Lane, Parcel, Record
from headrace.connectors.kafka.places import Places
from headrace.connectors.refusal import CONNECT_SECONDS

WRITE_SECONDS = 30.0
"""How long a batch may wait for its confirmations. The driver gives up a little earlier."""
WIRE_BYTES = 1 << 17
"""Bytes of the records that are sent to a partition together; a larger record goes alone."""
MOST_BYTES = 100_000_000
"""Bytes of one record: brokers hang up on requests of 100 MiB, before they look at them."""

ACKS: Mapping[str, int] = {"all": -1, "leader": 1, "none": 0}


class KafkaSink(AwaitingSink):
    """Writes to one topic."""

    at_once = 256  # the windows of the inputs are the bound; what is under way is sent together

    def __init__(
        self,
        cluster: Cluster,
        ctx: Context,
        *,
        topic: str,
        key: str | None,
        headers: Mapping[str, str],
        compression: str,
        acks: str,
    ) -> None:
        self._cluster = cluster
        self._ctx = ctx
        self._topic = topic
        self._key = None if key is None else DottedPath(key)
        self._headers = [(name, DottedPath(path)) for name, path in headers.items()]
        self._compression = None if compression == "none" else compression
        self._acks = ACKS[acks]
        self._outage = Outage(cluster, topic, ctx)
        self._producer: Any = None
        self._places: Places | None = None
        self._is_broken = False
        self._lanes: dict[int, Lane] = {}
        self._under_way: dict[Parcel, None] = {}
        self._parked: list[Parcel] = []
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._queue: deque[tuple[Batch, asyncio.Future[Parcel]]] = deque()
        self._sending: asyncio.Task[None] | None = None
        """Sends what is in the queue: a large batch, and those that came after it meanwhile."""

    async def start(self) -> None:
        """Reach the brokers, and see that they have the topic."""
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaError

        producer = AIOKafkaProducer(
            **self._cluster.options(),
            bootstrap_servers=await self._cluster.reach(self._topic),
            acks=self._acks,
            compression_type=self._compression,
            max_batch_size=WIRE_BYTES,
        )
        self._producer, self._is_broken = producer, False
        try:
            with self._ctx.clock.outside():
                async with self._ctx.clock.timeout(CONNECT_SECONDS):
                    await producer.start()
                    await producer.partitions_for(self._topic)
        except BaseException as cause:
            await self._close()
            if isinstance(cause, (KafkaError, TimeoutError)):
                what = f"writing to '{self._topic}' could not begin: {said(cause)}"
                raise Unreachable(what) from cause
            raise
        self._places = Places(producer.client.cluster, self._topic)

    async def finish(self) -> None:
        """Close. Whatever is not confirmed by now was given up."""
        tasks = (self._watching, self._starting, self._sending)
        await _end([each for each in tasks if each is not None])
        await self._close()

    async def _close(self) -> None:
        lanes, self._lanes = self._lanes, {}
        await _end([lane.carrying for lane in lanes.values() if lane.carrying is not None])
        producer, self._producer, self._places = self._producer, None, None
        if producer is not None:
            await close_producer(producer, is_idle=not self._under_way)

    async def write(self, batch: Batch) -> None:
        """Send the batch, and wait until all of it is confirmed."""
        await self.begin(batch)()

    def begin(self, batch: Batch) -> Rest:
        """Send the batch with what else waits for its partitions; return what waits for it."""
        if is_large(batch) or self._sending is not None:
            return self._queued(batch)
        parcel = self._parcel(self._records(batch))
        if self._is_able:
            self._post(parcel)
        else:
            self._park(parcel)
        return partial(self._arrive, parcel)

    def _queued(self, batch: Batch) -> Rest:
        """Have a batch sent in turns, and those that come meanwhile behind it."""
        sent: asyncio.Future[Parcel] = asyncio.get_running_loop().create_future()
        self._queue.append((batch, sent))
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_queued())

        async def arrive() -> None:
            await self._arrive(await sent)

        return arrive

    async def _send_queued(self) -> None:
        try:
            while self._queue:
                batch, sent = self._queue.popleft()
                if sent.done():  # who waited for it was cancelled
                    continue
                try:
                    parcel = await self._send(batch)
                except Exception as cause:
                    if not sent.done():
                        sent.set_exception(cause)
                else:
                    if not sent.done():
                        sent.set_result(parcel)
        finally:
            self._sending = None

    async def _send(self, batch: Batch) -> Parcel:
        """Do for a batch of any size what `begin` does for one that is not large."""
        records: list[Record] = LargeList()
        turn = Turn(self._ctx.clock)
        for some in parts(batch, ENCODED_AT_ONCE):
            records += self._records(some)
            await turn.end()
        parcel = self._parcel(records)
        if self._is_able:
            await self._post_in_turns(parcel)
        else:
            self._park(parcel)
        return parcel

    def _parcel(self, records: list[Record]) -> Parcel:
        """Return what is under way from now on."""
        parcel = Parcel(records, self._ctx.clock.monotonic())
        self._under_way[parcel] = None
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        return parcel

    @property
    def _is_able(self) -> bool:
        """Whether what is sent now may go to the partitions."""
        return self._has_topic and not self._is_broken and self._starting is None

    def _park(self, parcel: Parcel) -> None:
        """Keep a batch until what does not work is made anew."""
        self._parked.append(parcel)
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start_again())

    def _records(self, batch: Batch) -> list[Record]:
        millis = self._ctx.clock.millis()
        return [(*self._frame(message), millis) for message in batch]

    def _post(self, parcel: Parcel) -> None:
        """Hand a batch to its partitions: what has no key, all to one."""
        assert self._places  # who posts has looked
        self._put(parcel.records, parcel, self._places.any())

    async def _post_in_turns(self, parcel: Parcel) -> None:
        """The same, slice by slice. Nobody else posts meanwhile, so the order stays."""
        clock, anywhere = self._ctx.clock, -1
        turn = Turn(clock)
        for some in parts(parcel.records, SLICE_MESSAGES):
            if parcel.done.done():  # given up
                return
            if not self._places:  # nor is the rest of it ever confirmed
                parcel.give_up(TimeoutError())
                return
            if anywhere < 0:
                anywhere = self._places.any()
            self._put(some, parcel, anywhere)
            parcel.begun = clock.monotonic()  # so long nobody else has kept it waiting
            await turn.end()
        parcel.records = []  # the partitions have them

    def _put(self, records: list[Record], parcel: Parcel, anywhere: int) -> None:
        places, lanes = self._places, self._lanes
        assert places
        for record in records:
            place = anywhere if record[0] is None else places.of(record[0])
            if place not in lanes:
                lanes[place] = Lane(self._producer, self._topic, place)
            lanes[place].put(record, parcel)

    async def _arrive(self, parcel: Parcel) -> None:
        """Wait until a batch is confirmed; raise why it is not."""
        with self._ctx.clock.outside():
            await parcel.done
        del self._under_way[parcel]  # not when we are cancelled: it is still under way
        if parcel.faults:
            raise self._failure(parcel)
        self._outage.over()

    @property
    def _has_topic(self) -> bool:
        """Whether there is a producer, and it knows the topic: that may have been deleted."""
        return bool(self._places)

    async def _start_again(self) -> None:
        """Make what does not work anew, when nothing is under way with it; send what was parked."""
        try:
            while busy := [each.carrying for each in self._lanes.values() if each.carrying]:
                await asyncio.wait(busy)
            await self._close()
            await self.start()
        except Exception as cause:
            # Nobody is there to be refused; a password may be rotated.
            fault = Unreachable(str(cause)) if isinstance(cause, BuildRefused) else cause
            for parcel in self._unparked():
                parcel.give_up(fault)
        else:
            while self._parked:  # also by who came while a large one was posted
                for parcel in self._unparked():
                    await self._post_in_turns(parcel)
        finally:
            self._starting = None

    def _unparked(self) -> list[Parcel]:
        parked, self._parked = self._parked, []
        return parked

    async def _watch(self) -> None:
        """Look after what is under way, for as long as something is."""
        try:
            while self._under_way:
                await self._ctx.clock.sleep(LOOK_SECONDS)
                if self._under_way:
                    await self._look()
        finally:
            self._watching = None

    async def _look(self) -> None:
        """Tell when the oldest waits for long because nobody answers; give up when it is too long."""
        waited = self._ctx.clock.monotonic() - next(iter(self._under_way)).begun
        if waited >= WRITE_SECONDS:
            await self._give_up()
        elif waited >= LOOK_SECONDS and self._producer is not None:
            await self._outage.look(self._producer.client, self._busy())

    def _busy(self) -> Iterable[Any]:
        """Return the partitions that have not answered, as the driver names them."""
        from aiokafka import TopicPartition

        return [TopicPartition(self._topic, n) for n, lane in self._lanes.items() if lane.carrying]

    async def _give_up(self) -> None:
        """Give up all that is under way: the driver would send it after we have said that it is lost."""
        self._parked.clear()
        for parcel in self._under_way:
            parcel.give_up(TimeoutError())
        await self._close()

    def _failure(self, parcel: Parcel) -> Exception:
        """Return what to say of a batch that did not arrive whole."""
        from aiokafka.errors import BrokerResponseError, KafkaError, MessageSizeTooLargeError

        rest = ""
        if parcel.confirmed:
            rest = "; some records of the batch were confirmed"
            count = f"{parcel.confirmed} of {parcel.count}"
            self._ctx.warn_once(f"of a batch that failed {count} records were confirmed")
        for cause in parcel.faults:
            if isinstance(cause, MessageSizeTooLargeError):
                limit = "'max.message.bytes'"
                return BatchFailed(f"'{self._topic}' takes no record of that size ({limit}){rest}")
            if isinstance(cause, BrokerResponseError) and not cause.retriable:
                return BatchFailed(f"'{self._topic}' refuses records: {said(cause)}{rest}")
        cause = parcel.faults[0]
        if isinstance(cause, HeadraceError):
            return cause
        if not (isinstance(cause, KafkaError) and cause.retriable):
            self._is_broken = True
        what = said(cause) if isinstance(cause, KafkaError) else type(cause).__name__
        # The outage, if there is one, has been told in the same words: it is one failure.
        reason = self._outage.reason or f"'{self._topic}' did not confirm records: {what}"
        return Unreachable(reason + rest)

    def _frame(
        self, message: JsonValue
    ) -> tuple[bytes | None, bytes, list[tuple[str, bytes]] | None]:
        """Return key, value and headers of a message."""
        value = jsontext.encode(message)
        key = None if self._key is None else _text(self._key.read(message))
        headers: list[tuple[str, bytes]] = []
        size = len(value) + len(key or b"")
        for name, path in self._headers:
            if size <= MOST_BYTES and (text := _text(path.read(message))) is not None:
                headers.append((name, text))
                size += len(text)
        if size > MOST_BYTES:
            raise BatchFailed(f"a record for '{self._topic}' has more than {MOST_BYTES:,} bytes")
        return key, value, headers or None  # millions of lists are looked through for cycles


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    ending = [*tasks]
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending)


def _text(value: JsonValue) -> bytes | None:
    """Return a value as a key or a header has it: a string as it is, else JSON; None for nothing."""
    if value is MISSING or value is None:
        return None
    text = value if isinstance(value, str) else jsontext.text(value)
    return text.encode()
