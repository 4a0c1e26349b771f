"""What an `mqtt` output writes to: one topic, over a connection that is made again when it is lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.delivery import Batch, parts
from headrace.compiler.edges import AwaitingSink, Rest
from headrace.compiler.errors import (
    BatchFailed,
    BuildRefused,
    FailureClass,
    Unreachable,
    class_of,
)
from headrace.compiler.largejson import SLICE_MESSAGES, WritingTurn
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.mqtt import packets
from headrace.connectors.mqtt.connection import (
    CLOSED,
    LIMITS,
    QOS,
    BrokerAccess,
    Client,
    Limits,
    PacketHandler,
)
from headrace.connectors.mqtt.lonepublishing import LonePublishing
from headrace.connectors.mqtt.mqttfailures import CUT_OFF, FAILURES, HUNG_UP_ON, UNCONFIRMED
from headrace.connectors.mqtt.unconfirmedbatch import UnconfirmedBatch

if TYPE_CHECKING:
    from headrace.connectors.mqtt import MqttOutput

MOST_PUBLISHING = (0, 50, 20)
"""Messages of each QoS that are on their way and not confirmed yet; further ones wait here. Of those with
QoS 2 Mosquitto 2.0.11 takes no more than 20 and answers none of the others, ever."""


class Publisher(Client):
    """Publishes to one topic, and keeps what is not confirmed."""

    def __init__(self, *arguments: Any, topic: str, qos: int, retain: bool, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._topic, self._qos, self._retain = topic.encode(), qos, retain
        self._last_packet = 0
        self._before = self._count = 0
        """The packet before the first of what was published last, and how many messages that were."""
        self._unconfirmed: dict[int, bytes] = {}
        self._waiting: deque[bytes] = deque()
        self._confirmation = asyncio.Event()
        self.has_taken = False
        """Whether the broker has said that it has a message of QoS 2, of what was published last."""

    def handlers(self) -> dict[int, PacketHandler]:
        """Return what is done with what is answered to who publishes."""
        return super().handlers() | {
            packets.PUBACK: self._confirmed,
            packets.PUBREC: self._received,
            packets.PUBCOMP: self._confirmed,
        }

    def publish(self, payloads: Sequence[bytes]) -> None:
        """Publish in order. With QoS 0 nobody ever hears of it."""
        topic, qos, retain = self._topic, self._qos, self._retain
        if not qos:
            for payload in payloads:
                self.send(packets.publish(topic, payload, 0, retain=retain, packet=0))
            return
        self._before, self._count = self._last_packet, len(payloads)
        self.has_taken = False
        for payload in payloads:
            packet = self._last_packet = self._last_packet % packets.PACKET_IDS + 1
            self._unconfirmed[packet] = payload
            self._waiting.append(packets.publish(topic, payload, qos, retain=retain, packet=packet))
        self._publish_waiting()

    def _publish_waiting(self) -> None:
        """Publish what may be on its way together."""
        most = MOST_PUBLISHING[self._qos]
        while self._waiting and self.sent < most:
            self.send(self._waiting.popleft())

    @property
    def unconfirmed(self) -> list[int]:
        """Which of the messages that were published last are not confirmed, by place, in order."""
        first = self._before + 1
        places = ((packet - first) % packets.PACKET_IDS for packet in self._unconfirmed)
        return [place for place in places if place < self._count]

    @property
    def sent(self) -> int:
        """How many messages were sent and are not confirmed."""
        return len(self._unconfirmed) - len(self._waiting)

    async def confirmed(self) -> None:
        """Wait until everything is confirmed, or the connection is lost. For one at a time."""
        if self._unconfirmed and not self.is_lost:
            self._confirmation.clear()
            await self._confirmation.wait()

    def lost(self, cause: Unreachable) -> None:
        """Let whoever waits for confirmations look at what there is."""
        self._confirmation.set()

    def _received(self, _: int, body: memoryview) -> None:
        """Have the broker hand on a message of QoS 2 that it has."""
        self.has_taken = True
        self.send(packets.confirm(packets.PUBREL, packets.number(body)))

    def _confirmed(self, _: int, body: memoryview) -> None:
        """Go on when a message is confirmed."""
        self._unconfirmed.pop(packets.number(body), None)
        self._publish_waiting()
        if not self._unconfirmed:
            self._confirmation.set()


class MqttSink(AwaitingSink):
    """Publishes to one topic."""

    def __init__(
        self,
        config: MqttOutput,
        access: BrokerAccess,
        identifier: str,
        ctx: Context,
        limits: Limits = LIMITS,
    ) -> None:
        self._topic, self._qos, self._retain = config.topic, QOS.index(config.qos), config.retain
        self._access, self._identifier, self._ctx = access, identifier, ctx
        self._tells_apart = config.retrying() is not None
        """Whether it finds out on which message the broker hangs up."""
        self.where, self.absences = access.where, 0
        self._bodies, self._limits = config.bodies(ctx), limits
        self._client: Publisher | None = None
        self._backoff, self._not_before = Backoff(), 0.0
        self._failure: FailureClass = "unavailable"
        self._why = ""
        """Why there was no connection last."""

    def tell_apart(self) -> None:
        """Find out on which message the broker hangs up."""
        self._tells_apart = True

    async def start(self) -> None:
        """Connect."""
        await self._connect()

    async def finish(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> Publisher:
        """Make a connection, as soon as that may be."""
        clock = self._ctx.clock
        if (seconds := self._not_before - clock.monotonic()) > 0:
            await clock.sleep(seconds)
        client = Publisher(
            self._access,
            self._identifier,
            topic=self._topic,
            qos=self._qos,
            retain=self._retain,
            on_loss=self._lost,
            limits=self._limits,
        )
        try:
            await client.open()
        except BaseException:
            await client.close()
            raise
        self._client = client
        return client

    def _lost(self, cause: Unreachable) -> None:
        """Count a connection that broke; the next batch makes a new one.

        Soon, but not at once if it did not last: somebody may want it as we do.
        """
        client, self._client, self._failure = self._client, None, "unavailable"
        if client is not None and not self._backoff.ended(client.seconds):
            self._not_before = self._ctx.clock.monotonic() + self._backoff.next()
        self._ctx.disconnected(str(cause))

    def begin(self, batch: Batch) -> Rest | None:
        """Publish with QoS 0 at once, while the broker takes what it is sent; not many messages."""
        client = self._client
        if self._qos or client is None or client.is_full or len(batch) > self._limits.at_once:
            return partial(self.write, batch)
        client.publish(self._bodies(batch))
        return None

    async def write(self, batch: Batch) -> None:
        """Publish the batch in order; with QoS 1 and 2 until all of it is confirmed."""
        payloads = await self._bodies.of_any(batch)
        await (self._deliver(payloads) if self._qos else self._send(payloads))

    async def _send(self, payloads: list[bytes]) -> None:
        try:
            client = self._client or await self._connect()
        except BuildRefused as cause:  # it has let us in before, and may again
            raise Unreachable(str(cause), class_of(cause)) from None
        if len(payloads) <= self._limits.at_once:
            await self._publish(client, payloads)
            return
        turn = WritingTurn(self._ctx.clock)
        for some in parts(payloads, SLICE_MESSAGES):
            await self._publish(client, some)
            await turn.end()

    async def _publish(self, client: Publisher, payloads: list[bytes]) -> None:
        await client.drained()
        if client.is_lost:
            raise self._access.outage.of(CLOSED)
        client.publish(payloads)

    async def _deliver(self, payloads: list[bytes]) -> None:
        batch = UnconfirmedBatch(payloads)
        try:
            async with self._ctx.clock.timeout(self._limits.write_seconds):
                while batch.is_left:
                    client = await self.connected()
                    client.publish(batch.taken(self._limits.at_once))
                    try:
                        await client.confirmed()
                    finally:
                        batch.note(client.unconfirmed, client.sent)
                    if batch.cut_off and self._tells_apart:
                        await LonePublishing(batch, self, self._ctx.clock).publish()
        except TimeoutError:
            raise await self._given_up(batch) from None
        finally:
            self._warn_of(batch)
        if batch.refused:
            raise BatchFailed(
                next(iter(batch.refused.values())),
                FAILURES.of(HUNG_UP_ON),
                done=batch.done(),
                refused=batch.refused,
                is_answered=True,
            )

    def _warn_of(self, batch: UnconfirmedBatch) -> None:
        """Tell how large the first message is that is at fault."""
        for index in islice(batch.refused, 1):
            number, size = index + 1, len(batch.payloads[index])
            self._ctx.warn_once(f"message {number} of {len(batch.payloads)} has {size:,} bytes")

    async def connected(self) -> Publisher:
        """Return an open connection, however long that takes."""
        return self._client or await self._reconnect()

    async def _reconnect(self) -> Publisher:
        """Try until the broker has let us in; every failure counts, and nothing is lost by it yet."""
        while True:
            try:
                client = await self._connect()
            except (BuildRefused, Unreachable) as cause:
                self.absences += 1
                pause, self._failure = self._backoff.next(), class_of(cause)
                self._why = str(cause)
                self._ctx.disconnected(self._why, pause, self._failure)
                self._not_before = self._ctx.clock.monotonic() + pause
            else:
                self._ctx.reconnected("connected again")
                return client

    async def _given_up(self, batch: UnconfirmedBatch) -> Unreachable:
        """Return why a batch is not written, and end what is left of it with the connection."""
        text, failure = str(self._access.outage.of(CLOSED)), self._failure
        if failure == "misconfigured":  # somebody has to know what to do
            text = self._why
        elif batch.cut_off and self._tells_apart:
            failure = FAILURES.of(CUT_OFF)
        client = self._client
        if client is not None and client.sent:
            self._client = None
            await client.close()
            failure = FAILURES.of(UNCONFIRMED)
            text = f"{self._access.where} does not confirm what is published"
        if done := batch.done():
            text += "; some messages of the batch are confirmed"
            count = len(batch.payloads)
            self._ctx.warn(
                f"of a batch that is given up {len(done)} of {count} messages are confirmed"
            )
        return Unreachable(text, failure, done=done, refused=batch.refused)
