"""What an `mqtt` input reads: one subscription, connection after connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Arrival, QueueFill, Source
from headrace.compiler.errors import Unreachable
from headrace.connectors.mqtt import packets
from headrace.connectors.mqtt.connection import (
    LIMIT_SECONDS,
    LIMITS,
    QOS,
    SLOW,
    BrokerAccess,
    Client,
    Limits,
    PacketHandler,
)
from headrace.connectors.network.arrivals import Arrivals
from headrace.connectors.network.refusal import turned_away

if TYPE_CHECKING:
    from headrace.connectors.mqtt import MqttInput

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


AT_ONCE_SECONDS = 0.1
"""How soon a broker that only waited for an acknowledgement sends on."""
ENOUGH = 2
"""How often in a row that has to be seen: once, it may be chance."""
WORD_SECONDS = 0.25
"""How long nothing comes to a sample from a broker that waits for a word about what it has sent."""

Receipt = tuple["Subscriber", int, int, bytes, bool]
"""The connection that a message came over, its packet id, QoS and topic, and whether it was retained."""


class Subscriber(Client):
    """Reads one subscription, and acknowledges what it is told to.

    ``receive`` is given each message as it comes, with its origin. PUBACK and PUBREC are the
    acknowledgement, over the connection that a message came from: the next uses packet ids again.
    """

    def __init__(
        self, *arguments: Any, receive: Callable[[bytes, Receipt], None], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._receive = receive
        self._granted: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._order: deque[int] = deque()
        self._finished: dict[int, int] = {}

    def handlers(self) -> dict[int, PacketHandler]:
        """Return what is done with what is sent to who subscribes."""
        return super().handlers() | {
            packets.SUBACK: self._subscribed,
            packets.PUBLISH: self._published,
            packets.PUBREL: self._released,
        }

    async def subscribe(self, topic: str, qos: int) -> int:
        """Subscribe, once, and return the QoS that is granted.

        Raises:
            BuildRefused: the broker says no.
            Unreachable: the connection is lost, or it does not answer.
        """
        self.send(packets.subscribe(1, topic, qos))
        try:
            async with self.access.clock.within(LIMIT_SECONDS):
                granted = await self._granted
        except TimeoutError:
            raise self.access.outage.of(SLOW) from None
        if granted >= packets.REFUSED:
            raise turned_away(f"{self.access.where} refuses a subscription to '{topic}'")
        return granted

    def lost(self, cause: Unreachable) -> None:
        """Tell who subscribes that nobody answers."""
        if not self._granted.done():
            self._granted.set_exception(cause)

    def acknowledge(self, packet: int, qos: int) -> None:
        """Tell the broker that a message of QoS 1 or 2 need not come again, once all before it need not.

        A client has to acknowledge in order, or else Mosquitto does not keep the order either.

        Source: MQTT 3.1.1, section 4.6.
        """
        self._finished[packet] = qos
        while self._order and self._order[0] in self._finished:
            self._acknowledge(self._order.popleft())

    def acknowledge_finished(self) -> int:
        """Acknowledge what is finished although something before it is not; return how many they are."""
        ahead = [packet for packet in self._order if packet in self._finished]
        self._order = deque(packet for packet in self._order if packet not in self._finished)
        for packet in ahead:
            self._acknowledge(packet)
        return len(ahead)

    @property
    def unacknowledged(self) -> int:
        """Messages of QoS 1 and 2 that the broker waits for a word about."""
        return len(self._order)

    def _acknowledge(self, packet: int) -> None:
        kind = packets.PUBACK if self._finished.pop(packet) == 1 else packets.PUBREC
        self.send(packets.confirm(kind, packet))

    def _subscribed(self, _: int, body: memoryview) -> None:
        """Learn what became of the subscription, which is always one topic."""
        if len(body) != 3:
            raise packets.MalformedPacket
        if not self._granted.done():
            self._granted.set_result(body[2])

    def _published(self, flags: int, body: memoryview) -> None:
        """Hand a message over."""
        payload, packet, qos, topic, kept = packets.published(flags, body)
        if qos:
            self._order.append(packet)
        self._receive(payload, (self, packet, qos, topic, kept))

    def _released(self, _: int, body: memoryview) -> None:
        """Let the broker forget a message of QoS 2, also one that an earlier connection had."""
        self.send(packets.confirm(packets.PUBCOMP, packets.number(body)))


class Starvation:
    """Counts how often in a row a broker sent nothing until we acknowledged, and something then at once.

    A source that is merely quiet looks the same for as long as nothing is acknowledged, and says
    nothing when something is.
    """

    __slots__ = ("_acknowledged_at", "_clock", "_is_stalled", "_times")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_stalled = False
        self._acknowledged_at: float | None = None
        self._times = 0

    def stalled(self) -> None:
        """Note that nothing came for a while, and that we owe all that the broker lets us owe."""
        if self._acknowledged_at is not None:  # and nothing came of it
            self._settle(is_evidence=False)
        self._is_stalled = True

    def acknowledged(self) -> None:
        """Note that we owe less."""
        if self._is_stalled:
            self._acknowledged_at = self._clock.monotonic()

    def came(self) -> bool:
        """Note that messages came; return whether enough has been seen by now."""
        if self._is_stalled:
            at = self._acknowledged_at
            self._settle(at is not None and self._clock.monotonic() - at <= AT_ONCE_SECONDS)
        return self._times >= ENOUGH

    def begin(self) -> None:
        """Note that there is another connection: nothing is owed over it yet."""
        self._is_stalled, self._acknowledged_at = False, None

    def _settle(self, is_evidence: bool) -> None:
        self._times = self._times + 1 if is_evidence else 0
        self.begin()


class MqttSource(Source):
    """Reads one topic. Every message of QoS 1 and 2 is acknowledged when the pump says so."""

    connects: ClassVar[bool] = True

    def __init__(
        self,
        config: MqttInput,
        access: BrokerAccess,
        identifier: str,
        ctx: Context,
        limits: Limits = LIMITS,
    ) -> None:
        self.max_batch, self._limits, self._config = config.max_batch, limits, config
        self._qos = QOS.index(config.qos)
        self._keeps = config.keeps_session
        self._waits_for_buffers = config.ack == "on_delivery"
        self._starvation = Starvation(ctx.clock)
        self._has_let_go = False
        self._access, self._identifier, self._ctx = access, identifier, ctx
        self._arrivals = Arrivals[Arrival](limits.most_kept)
        self._bytes = 0
        self._is_subscribed = self._is_stopping = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Connect, subscribe, yield what comes."""
        self._arrivals, self._bytes = Arrivals[Arrival](self._limits.most_kept), 0
        self._is_subscribed = False
        self._starvation.begin()
        client = self._client()
        try:
            await client.open()
            await self._subscribe(client)
            self._is_subscribed = True
            self._hold_up(client)
            yield ()
            while not self._is_stopping:
                yield await self.next(client)
        finally:
            client.acknowledge_finished()
            await client.close()

    def _client(self) -> Subscriber:
        arrivals = self._arrivals

        def receive(payload: bytes, origin: Receipt) -> None:
            if not arrivals.put((payload, origin)):
                self._ctx.fail(FLOODED)
            self._bytes += len(payload)
            self._hold_up(origin[0])

        return Subscriber(
            self._access,
            self._identifier,
            is_clean=not self._keeps,
            receive=receive,
            on_loss=arrivals.break_off,
            limits=self._limits,
        )

    def _hold_up(self, client: Subscriber) -> None:
        """Read no more when enough waits, but the confirmation of the subscription in any case.

        It comes behind what the broker has kept for us.
        """
        limits = self._limits
        is_enough = self._bytes >= limits.most_bytes or len(self._arrivals) >= limits.most_waiting
        if self._is_subscribed and is_enough:
            client.pause()

    async def _subscribe(self, client: Subscriber) -> None:
        granted = await client.subscribe(self._config.topic, self._qos)
        if granted < self._qos:
            said = f"{self._access.where} grants '{self._config.topic}' with {QOS[granted]} at most"
            if self._keeps and not granted:
                raise turned_away(f"{said}, so there is nothing to acknowledge later")
            self._ctx.warn_once(said)

    async def next(self, client: Subscriber) -> Sequence[Arrival]:
        """Return what has come. Where the broker may wait for what buffers hold, have them let go."""
        while True:
            owed = client.unacknowledged
            is_blocked = self._waits_for_buffers and owed >= self._config.in_flight
            try:
                async with self._ctx.clock.timeout(STALL_SECONDS if is_blocked else None):
                    taken = await self._arrivals.take()
            except TimeoutError:
                if client.unacknowledged == owed and not client.acknowledge_finished():
                    self._stalled()
            else:
                if taken and self._starvation.came():
                    self._ctx.warn_once(starved(self._config.in_flight))
                self._bytes = 0
                client.resume()
                return taken

    def _stalled(self) -> None:
        """Have buffers let go that would wait for ever; a time that others have ends their wait."""
        if self._ctx.held():  # else an output has them
            self._starvation.stalled()
        if self._ctx.release() and not self._has_let_go:
            self._has_let_go = True
            self._ctx.note(LET_GO)

    def queue(self) -> QueueFill:
        """Return how many messages are here."""
        return self._arrivals.fill()

    def acknowledge(self, origins: Sequence[Receipt]) -> None:
        """Acknowledge those that are acknowledged at all."""
        for client, packet, qos, _, _ in origins:
            if qos:
                client.acknowledge(packet, qos)
        self._starvation.acknowledged()

    def describe(self, origin: Receipt) -> dict[str, Any]:
        """Return what an envelope shows of a message."""
        _, _, qos, topic, retain = origin
        return {
            "connection": self._config.connection,
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
            client = Client(self._access, self._identifier)
            try:
                await client.open()
            finally:
                await client.close()


class MqttSample(MqttSource):
    """Reads one topic, and acknowledges nothing that the broker does not wait for.

    A broker lets a client hold only so many messages unacknowledged, and does not tell how many. What is
    acknowledged then is a copy that was made for this session: nobody else gets or loses any.
    """

    _owed: Sequence[Receipt] = ()

    async def next(self, client: Subscriber) -> Sequence[Arrival]:
        """Return what has come, and have the broker go on where it waits for us."""
        while True:
            try:
                async with self._ctx.clock.timeout(WORD_SECONDS if self._owed else None):
                    taken = await super().next(client)
            except TimeoutError:
                self.acknowledge(self._owed)
                self._owed = ()
            else:
                self._owed = [*self._owed, *(origin for _, origin in taken)]
                return taken
