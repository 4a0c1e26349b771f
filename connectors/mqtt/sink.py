"""What an `mqtt` output writes to: one topic, over a connection that is made again when it is lost."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.compiler.delivery import Batch, is_large, parts
from headrace.compiler.edges import AwaitingSink, Rest
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.jsontext import encode
from headrace.compiler.language.context import Context
from headrace.compiler.largejson import SLICE_MESSAGES, Turn, encode_each
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.mqtt.access import CLOSED, Access
from headrace.connectors.mqtt.connection import QOS, Link

if TYPE_CHECKING:
    from headrace.connectors.mqtt import MqttOutput

WRITE_SECONDS = 30.0
"""How long a batch of QoS 1 or 2 may take, over lost connections as well."""
AT_ONCE = 400
"""Messages handed to the client at once: it takes 25 µs for each, and it takes longer to confirm those that
are published in several turns. Packet ids are used again after 65,535."""


class MqttSink(AwaitingSink):
    """Publishes to one topic."""

    def __init__(self, config: MqttOutput, access: Access, identifier: str, ctx: Context) -> None:
        self._topic, self._qos, self._retain = config.topic, QOS.index(config.qos), config.retain
        self._access, self._identifier, self._ctx = access, identifier, ctx
        self._link: Link | None = None
        self._backoff, self._not_before = Backoff(), 0.0

    async def start(self) -> None:
        """Connect."""
        await self._connect()

    async def finish(self) -> None:
        """Close the connection."""
        if self._link is not None:
            await self._link.close()

    async def _connect(self) -> Link:
        """Make a connection, as soon as that may be."""
        clock = self._ctx.clock
        if (seconds := self._not_before - clock.monotonic()) > 0:
            await clock.sleep(seconds)
        link = Link(self._access, self._identifier, qos=self._qos)
        link.on_loss(self._lost)
        try:
            await link.open()
        except BaseException:
            await link.close()
            raise
        self._link = link
        return link

    def _lost(self, cause: Unreachable) -> None:
        """Count a connection that broke; the next batch makes a new one.

        Soon, but not at once if it did not last: somebody may want it as we do.
        """
        link, self._link = self._link, None
        if link is not None and not self._backoff.ended(link.seconds):
            self._wait()
        self._ctx.fail(str(cause))

    def _wait(self) -> None:
        """Have the next attempt to connect wait."""
        self._not_before = self._ctx.clock.monotonic() + self._backoff.next()

    def begin(self, batch: Batch) -> Rest | None:
        """Publish with QoS 0 at once, while the broker takes what it is sent; not many messages."""
        link = self._link
        if self._qos or link is None or link.is_full or len(batch) > AT_ONCE:
            return partial(self.write, batch)
        self._publish(link, [encode(message) for message in batch])
        return None

    def _publish(self, link: Link, payloads: list[bytes]) -> None:
        link.publish(self._topic, payloads, self._qos, retain=self._retain)

    async def write(self, batch: Batch) -> None:
        """Publish the batch in order; with QoS 1 and 2 until all of it is confirmed."""
        if is_large(batch):
            payloads = await encode_each(batch, self._ctx.clock)
        else:
            payloads = [encode(message) for message in batch]
        await (self._deliver(payloads) if self._qos else self._send(payloads))

    async def _send(self, payloads: list[bytes]) -> None:
        try:
            link = self._link or await self._connect()
        except BuildRefused as cause:  # it has let us in before, and may again
            raise Unreachable(str(cause)) from None
        await link.drained()
        if link.is_lost:
            raise self._access.outage(CLOSED)
        if len(payloads) <= AT_ONCE:
            self._publish(link, payloads)
            return
        turn = Turn(self._ctx.clock)
        for some in parts(payloads, SLICE_MESSAGES):
            await link.drained()
            if link.is_lost:
                raise self._access.outage(CLOSED)
            self._publish(link, some)
            await turn.end()

    async def _deliver(self, payloads: list[bytes]) -> None:
        left: list[bytes] = []
        at, count = 0, len(payloads)
        try:
            async with self._ctx.clock.timeout(WRITE_SECONDS):
                while left or at < count:
                    link = self._link or await self._reconnect()
                    before, at = at, min(at + AT_ONCE - len(left), count)
                    left += payloads[before:at]
                    self._publish(link, left)
                    left = []
                    try:
                        await link.confirmed()
                    finally:
                        left = link.unconfirmed
        except TimeoutError:
            raise await self._given_up(count, len(left) + count - at) from None

    async def _reconnect(self) -> Link:
        """Try until the broker has let us in; every failure counts, and nothing is lost by it yet."""
        while True:
            try:
                link = await self._connect()
            except (BuildRefused, Unreachable) as cause:
                self._ctx.fail(str(cause))
                self._wait()
            else:
                self._ctx.note("connected again")
                return link

    async def _given_up(self, count: int, left: int) -> Unreachable:
        """Return why a batch is not written, and end what is left of it with the connection."""
        text, link = str(self._access.outage(CLOSED)), self._link
        if link is not None:
            self._link = None
            await link.close()
            text = f"{self._access.where} does not confirm what is published"
        if left < count:
            text += "; some messages of the batch are confirmed"
            confirmed = f"{count - left} of {count}"
            self._ctx.warn(f"of a batch that is given up {confirmed} messages are confirmed")
        return Unreachable(text)
