"""What an `mqtt` input reads: one subscription, connection after connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.edges import Arrival, Source
from headrace.compiler.language.context import Context
from headrace.connectors.arrivals import Arrivals
from headrace.connectors.mqtt.access import Access
from headrace.connectors.mqtt.connection import QOS, Link, Origin
from headrace.connectors.mqtt.starvation import Starvation
from headrace.connectors.refusal import turned_away

if TYPE_CHECKING:
    from headrace.connectors.mqtt import MqttInput

MOST_WAITING = 256
MOST_BYTES = 1 << 20
"""What may wait unread, and the message that reaches the one or the other; then nothing more is read."""
MOST_KEPT = 65_535
"""What may wait before the subscription is confirmed, which comes behind it: one for each packet id."""
IN_FLIGHT = 20
"""Messages that a broker lets a client hold unacknowledged, if nobody set it (Mosquitto, VerneMQ).
It tells nobody, and what it once let us hold is no promise: Mosquitto 2.0.11 sends everything that it has
queued at the first acknowledgement, and stops at its window the next time. Nor can we ask for more:
a client can since MQTT 5 (receive maximum), and we speak 3.1.1."""
STALL_SECONDS = 1.0
"""How long nothing comes from a broker that we owe so many acknowledgements."""

LET_GO = (
    "nothing came for a second, and the broker may wait for acknowledgements: buffers that have a size"
    " alone handed on what they held"
)
REMEDIES = (
    "let the broker have more in flight, in Mosquitto with max_inflight_messages, and say so with"
    " 'in_flight', or acknowledge on_receipt"
)
"""What to do about a broker that waits for what is held, the best first."""


def starved(in_flight: int) -> str:
    """Return the warning that what buffers hand on may be less than was published.

    Not that it is: Mosquitto 2.0.11, with 50 messages a second and windows of ten, sent 20 for the first,
    and 400 and 601 for the next two, what it had queued along.
    """
    return (
        "the broker sends nothing until messages are acknowledged that buffers of the pipeline hold: what"
        f" they hand on may get no more than it lets us hold ('in_flight', {in_flight}): {REMEDIES}"
    )


FLOODED = "lost a message: the broker sent too many before it confirmed the subscription"


class MqttSource(Source):
    """Reads one topic. Every message of QoS 1 and 2 is acknowledged when the pump says so, and over the
    connection that it came from: packet ids are used again on the next."""

    connects: ClassVar[bool] = True

    def __init__(self, config: MqttInput, access: Access, identifier: str, ctx: Context) -> None:
        self.max_batch = config.max_batch
        self._connection, self._topic = config.connection, config.topic
        self._qos = QOS.index(config.qos)
        self._keeps = config.ack == "on_delivery"
        self._in_flight = config.in_flight
        self._starvation = Starvation(ctx.clock)
        self._has_let_go = False
        self._access, self._identifier, self._ctx = access, identifier, ctx
        self._arrivals = Arrivals(MOST_KEPT)
        self._bytes = 0
        self._is_subscribed = self._is_stopping = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Connect, subscribe, yield what comes."""
        self._arrivals, self._bytes = Arrivals(MOST_KEPT), 0
        self._is_subscribed = False
        self._starvation.begin()
        link = self._linked()
        try:
            await link.open()
            await self._subscribe(link)
            self._is_subscribed = True
            self._hold_up(link)
            yield ()
            while not self._is_stopping:
                yield await self._next(link)
        finally:
            link.acknowledge_finished()
            await link.close()

    def _linked(self) -> Link:
        link, arrivals = (
            Link(self._access, self._identifier, is_clean=not self._keeps),
            self._arrivals,
        )

        def receive(payload: bytes, origin: Origin) -> None:
            if not arrivals.put((payload, origin)):
                self._ctx.fail(FLOODED)
            self._bytes += len(payload)
            self._hold_up(link)

        link.on_message(receive)
        link.on_loss(arrivals.break_off)
        return link

    def _hold_up(self, link: Link) -> None:
        """Read no more when enough waits, but the confirmation of the subscription in any case.

        It comes behind what the broker has kept for us.
        """
        is_enough = self._bytes >= MOST_BYTES or len(self._arrivals) >= MOST_WAITING
        if self._is_subscribed and is_enough:
            link.pause()

    async def _subscribe(self, link: Link) -> None:
        granted = await link.subscribe(self._topic, self._qos)
        if granted < self._qos:
            said = f"{self._access.where} grants '{self._topic}' with {QOS[granted]} at most"
            if self._keeps and not granted:
                raise turned_away(f"{said}, so there is nothing to acknowledge on_delivery")
            self._ctx.warn_once(said)

    async def _next(self, link: Link) -> Sequence[Arrival]:
        """Return what has come. Where the broker may wait for what buffers hold, have them let go."""
        while True:
            owed = link.unacknowledged
            is_blocked = self._keeps and owed >= self._in_flight
            try:
                async with self._ctx.clock.timeout(STALL_SECONDS if is_blocked else None):
                    taken = await self._arrivals.take()
            except TimeoutError:
                if link.unacknowledged == owed and not link.acknowledge_finished():
                    self._stalled()
            else:
                if taken and self._starvation.came():
                    self._ctx.warn_once(starved(self._in_flight))
                self._bytes = 0
                link.resume()
                return taken

    def _stalled(self) -> None:
        """Have buffers let go that would wait for ever; a time that others have ends their wait."""
        if self._ctx.held():  # else an output has them
            self._starvation.stalled()
        if self._ctx.release() and not self._has_let_go:
            self._has_let_go = True
            self._ctx.note(LET_GO)

    def acknowledge(self, origins: Sequence[Origin]) -> None:
        """Acknowledge those that are acknowledged at all."""
        for link, packet, qos, _, _ in origins:
            if qos:
                link.acknowledge(packet, qos)
        self._starvation.acknowledged()

    def describe(self, origin: Origin) -> dict[str, Any]:
        """Return what an envelope shows of a message."""
        _, _, qos, topic, retain = origin
        return {
            "connection": self._connection,
            "topic": topic.decode("utf-8", "replace"),
            "qos": QOS[qos],
            "retain": retain,
        }

    def stop(self) -> bool:
        """Have what has come handed out; the connection is needed until it is acknowledged."""
        self._is_stopping = True
        self._arrivals.wake()
        return False

    async def forget(self) -> None:
        """Connect once more, with a clean session: that has the broker drop the one it keeps."""
        if self._keeps:
            link = Link(self._access, self._identifier)
            try:
                await link.open()
            finally:
                await link.close()
