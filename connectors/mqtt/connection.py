"""One connection to an MQTT broker: aiomqtt's session, paho's packets, a transport of the event loop.

paho is made for a thread that blocks on a socket. Here its socket is a `Pipe`, so nothing blocks: the
loop connects and makes TLS, and reading can pause, which is all the back-pressure that QoS 0 has.
PUBACK and PUBREC wait for `Link.acknowledge`. These are means of paho's own, so its version is pinned.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.backoff import LASTING_SECONDS
from headrace.connectors.mqtt.access import (
    CLOSED,
    LIMIT_SECONDS,
    NONSENSE,
    SILENT,
    SLOW,
    Access,
)
from headrace.connectors.mqtt.packets import PROTOCOL, REFUSED, Packets
from headrace.connectors.mqtt.pipe import LONGEST, Pipe
from headrace.connectors.refusal import turned_away

QOS = ("at_most_once", "at_least_once", "exactly_once")
"""Qualities of service: the place of the word is the number on the wire."""

KEEPALIVE_SECONDS = 20
"""Silence after which a broker is asked whether it is there; it has as long again to answer."""
LOOKS = 4
"""How often in that time it is looked at."""
TURN_SECONDS = 0.002
"""How long we work off what a broker sends before others have their turn."""
CLOSE_SECONDS = 1.0
"""How long a broker may take to close after our goodbye."""
IN_FLIGHT = (0, 50, 20)
"""Messages that are published with a QoS and not confirmed yet; further ones wait here. Of those with QoS 2
Mosquitto 2.0.11 takes no more than 20 and answers none of the others, ever."""

TOO_LONG = f"announced a packet of more than {LONGEST >> 20} MiB"

Origin = tuple["Link", int, int, bytes, bool]
"""The connection that a message came over, its packet id, QoS and topic, and whether it was retained."""


class Link:
    """One connection from its beginning to its end; it is never used again.

    ``is_clean``: the broker drops what it kept for this client, and keeps nothing when it is gone.
    ``qos`` is what will be published with.
    """

    def __init__(
        self, access: Access, identifier: str, *, is_clean: bool = True, qos: int = 0
    ) -> None:
        from aiomqtt import Client

        self.is_lost = self.is_paused = False
        self._order: deque[int] = deque()
        self._finished: dict[int, int] = {}
        self._access = access
        self._loop = asyncio.get_running_loop()
        self._receive: Callable[[bytes, Origin], None] = lambda payload, origin: None
        self._on_loss: Callable[[Unreachable], None] = lambda cause: None
        self._unconfirmed: dict[int, bytes] = {}
        self._confirmation: asyncio.Future[None] | None = None
        self._is_open = self._is_closing = self._has_heard = self._answers = False
        self._identifier, self._opened_at = identifier, 0.0
        self._why = CLOSED
        self._timer: asyncio.TimerHandle | None = None
        self._pipe = Pipe(self._read)
        self._client = Client(
            access.host,
            access.port,
            username=access.username,
            password=access.password,
            identifier=identifier,
            clean_session=is_clean,
            keepalive=KEEPALIVE_SECONDS,
            max_inflight_messages=IN_FLIGHT[qos],
        )
        self._paho: Any = self._client._client
        self._take_over()

    def _take_over(self) -> None:
        """Put the pipe in the place of a socket, and our look at packets before paho's."""
        paho = self._paho
        paho.disable_logger()
        paho._create_socket = lambda: self._pipe
        paho._packet_handle = Packets(self._client, self._arrived, self._refused).handle
        paho.on_socket_open = paho.on_socket_close = paho.on_socket_unregister_write = None
        paho.on_socket_register_write = lambda *_: self._loop.call_soon(self._write)
        paho.on_disconnect = self._disconnected
        paho.on_message = paho.on_publish = None

    def on_message(self, receive: Callable[[bytes, Origin], None]) -> None:
        """Have messages handed over as they come, with their origin."""
        self._receive, self._answers = receive, True

    def on_loss(self, action: Callable[[Unreachable], None]) -> None:
        """Have something done when an open connection is lost: it is given why."""
        self._on_loss = action

    async def open(self) -> None:
        """Connect, and return when the broker has let us in.

        Raises:
            BuildRefused: it says no, or TLS as configured cannot work.
            Unreachable: it does not answer.
        """
        access = self._access
        try:
            with access.clock.outside():
                async with access.clock.timeout(LIMIT_SECONDS):
                    await self._connect()
        except OSError as cause:  # a time limit is one, and what is wrong with TLS
            raise await access.fault(cause, self._why) from None
        except UnicodeError:  # a part of the name is empty, or longer than 63
            raise access.outage("does not answer: the host name cannot be resolved") from None
        self._is_open, self._opened_at = True, access.clock.monotonic()
        access.reached()
        self._look()

    @property
    def seconds(self) -> float:
        """How long it has been open."""
        return self._access.clock.monotonic() - self._opened_at

    async def _connect(self) -> None:
        access = self._access
        await self._loop.create_connection(
            lambda: self._pipe, access.host, access.port, ssl=access.tls
        )
        self._client._client_connect()  # only begins it: there is no socket to block on
        self._read()  # who speaks first is no broker
        await self._client._connected

    async def subscribe(self, topic: str, qos: int) -> int:
        """Subscribe, and return the QoS that is granted.

        Raises:
            BuildRefused: the broker says no.
            Unreachable: the connection is lost, or it does not answer.
        """
        from aiomqtt import MqttError

        try:
            with self._access.clock.outside():
                codes: Any = await self._client.subscribe(topic, qos, timeout=LIMIT_SECONDS)
        except MqttError:  # nobody answered in time
            raise self._access.outage(SLOW) from None
        granted: int = codes[0].value
        if granted >= REFUSED:
            raise turned_away(f"{self._access.where} refuses a subscription to '{topic}'")
        return granted

    def acknowledge(self, packet: int, qos: int) -> None:
        """Tell the broker that a message of QoS 1 or 2 need not come again, once all before it need not.

        A client has to acknowledge in order, or else Mosquitto does not keep the order either.

        Source: MQTT 3.1.1, section 4.6.
        """
        order, finished = self._order, self._finished
        finished[packet] = qos
        while order and order[0] in finished:
            self._acknowledged(order.popleft())

    def acknowledge_finished(self) -> int:
        """Acknowledge what is finished although something before it is not; return how many they are."""
        ahead = [packet for packet in self._order if packet in self._finished]
        self._order = deque(packet for packet in self._order if packet not in self._finished)
        for packet in ahead:
            self._acknowledged(packet)
        return len(ahead)

    @property
    def unacknowledged(self) -> int:
        """Messages of QoS 1 and 2 that the broker waits for a word about."""
        return len(self._order)

    def _acknowledged(self, packet: int) -> None:
        qos = self._finished.pop(packet)
        if not self.is_lost:
            (self._paho._send_puback if qos == 1 else self._paho._send_pubrec)(packet)

    def pause(self) -> None:
        """Take nothing more from the broker."""
        self.is_paused = True
        self._pipe.pause()

    def resume(self) -> None:
        """Go on with what has come meanwhile."""
        if self.is_paused:
            self.is_paused = False
            self._pipe.resume()
            self._read()

    @property
    def is_full(self) -> bool:
        """Whether the broker takes less than is published."""
        return self._pipe.is_full

    async def drained(self) -> None:
        """Wait until the broker takes more, or is lost."""
        await self._pipe.drained()

    def publish(self, topic: str, payloads: Sequence[bytes], qos: int, *, retain: bool) -> None:
        """Publish in order. With QoS 0 nobody ever hears of it."""
        self._paho.on_publish = self._confirmed if qos else None
        for payload in payloads:
            packet = self._paho.publish(topic, payload, qos, retain).mid
            if qos:
                self._unconfirmed[packet] = payload

    @property
    def unconfirmed(self) -> list[bytes]:
        """What was published with QoS 1 or 2 and is not confirmed, in order."""
        return [*self._unconfirmed.values()]

    async def confirmed(self) -> None:
        """Wait until everything is confirmed, or the connection is lost."""
        if self._unconfirmed and not self.is_lost:
            self._confirmation = self._loop.create_future()
            await self._confirmation

    def _confirmed(self, client: Any, userdata: Any, packet: int, *_: Any) -> None:
        self._unconfirmed.pop(packet, None)
        if not self._unconfirmed:
            self._settle()

    def _settle(self) -> None:
        """Let whoever waits for confirmations look at them."""
        if self._confirmation is not None and not self._confirmation.done():
            self._confirmation.set_result(None)

    async def close(self) -> None:
        """Say goodbye and let go; the broker then has what it was told before."""
        self._is_closing = True
        try:
            if self._is_open:
                self._paho.disconnect()
                self._write()
                await self._ended()
        finally:
            self._end()
        await self._ended()

    async def _ended(self) -> None:
        """Wait for the end, but not for whoever is not there."""
        clock = self._access.clock
        with suppress(TimeoutError), clock.outside():
            async with clock.timeout(CLOSE_SECONDS):
                await self._pipe.ended()

    def _end(self) -> None:
        self.is_lost, self._is_open = True, False
        if self._timer is not None:
            self._timer.cancel()
        self._pipe.abort()

    def _look(self) -> None:
        """See from time to time whether the broker is still there."""
        if self._has_heard or self.is_paused:
            # Any sign of life will do: the answer to a ping may be behind megabytes of messages, and
            # who does not listen cannot say that it is missing.
            self._paho._ping_t = 0.0
        self._has_heard = False
        self._why = SILENT  # what it is, if that ends it
        self._paho.loop_misc()
        self._why = CLOSED
        if not self.is_lost:
            clock = self._access.clock
            self._timer = clock.call_later(KEEPALIVE_SECONDS / LOOKS, self._look)

    def _read(self) -> None:
        """Work off what has come, packet by packet, until that is enough for now.

        Nothing more is taken from who does not take our answers.
        """
        self._has_heard = True
        paho, pipe, monotonic = self._paho, self._pipe, self._access.clock.monotonic
        ends = monotonic() + TURN_SECONDS
        while pipe.has_news and not self.is_paused and paho.socket() is not None:
            is_held = self._answers and pipe.is_full
            if is_held or monotonic() > ends:
                pipe.pause()
                (pipe.call_drained if is_held else self._loop.call_soon)(self._read_on)
                return
            # Not `loop_read`: with many messages in flight it does not return for as many packets.
            if (code := paho._packet_read()) > 0:
                self._why = self._told(code)
                paho._loop_rc_handle(code)

    def _read_on(self) -> None:
        """Go on when others have had their turn, and there is room for answers."""
        if not (self.is_paused or self.is_lost):
            self._pipe.resume()
            self._read()

    def _told(self, code: int) -> str:
        """Return what the broker did, by what came of reading."""
        if self._pipe.is_overfull:
            return TOO_LONG
        return NONSENSE if code == PROTOCOL else CLOSED

    def _write(self) -> None:
        """Send all the packets that are ready, in one piece."""
        self._paho.loop_write()
        self._pipe.flush()

    def _arrived(self, payload: bytes, packet: int, qos: int, topic: bytes, kept: bool) -> None:
        """Hand a message over."""
        if qos:
            self._order.append(packet)
        self._receive(payload, (self, packet, qos, topic, kept))

    def _refused(self, code: int) -> None:
        """Tell who connects that the broker does not let us in."""
        if not self._client._connected.done():
            self._client._connected.set_exception(self._access.refusal(code))

    def _disconnected(self, *_: Any) -> None:
        """Tell everybody who waits for something, unless we wanted it."""
        if self._is_closing:
            return
        was_open = self._is_open
        self._end()
        client = self._client
        if not client._connected.done():  # `open` finds out why
            client._connected.set_exception(ConnectionResetError(errno.ECONNRESET, CLOSED))
        if was_open:
            self._lost(self._access.outage(self._reason()))

    def _lost(self, cause: Unreachable) -> None:
        """Tell why an open connection has ended."""
        for answer in self._client._pending_subscribes.values():
            if not answer.done():
                answer.set_exception(cause)
        self._settle()
        self._on_loss(cause)

    def _reason(self) -> str:
        """Return how an open connection has ended. Who is cut off at once may have a double."""
        if self._why == CLOSED and self.seconds < LASTING_SECONDS:
            return (
                f"{CLOSED}: another client with the id '{self._identifier}' may have taken it over"
            )
        return self._why
