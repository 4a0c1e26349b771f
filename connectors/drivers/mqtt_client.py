"""One connection to an MQTT broker: aiomqtt's session, paho's packets, a transport of the event loop.

paho is made for a thread that blocks on a socket. Here its socket is a `Pipe`, so nothing blocks: the
loop connects and makes TLS, and reading can pause, which is all the back-pressure that QoS 0 has.

Two of paho's handlers are replaced, because it cannot hold back an acknowledgement of QoS 2: it sends the
PUBREC by itself and hands a message over only at the PUBREL, when the broker will not send it again.
Here a message is handed over as it comes, PUBACK and PUBREC wait for `Link.acknowledge`, and every
PUBREL is answered at once. These are means of paho's own, so its version is pinned.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Unreachable
from headrace.connectors.drivers.mqtt_pipe import Pipe
from headrace.connectors.refusal import CONNECT_SECONDS, turned_away
from headrace.connectors.tls import PROBE_SECONDS, tls_fault

if TYPE_CHECKING:
    from aiomqtt import MqttCodeError

QOS = ("at_most_once", "at_least_once", "exactly_once")
"""Qualities of service: the place of the word is the number on the wire."""

KEEPALIVE_SECONDS = 20
"""Silence after which a broker is asked whether it is there; it has as long again to answer."""
LOOKS = 4
"""How often in that time it is looked at."""
LIMIT_SECONDS = CONNECT_SECONDS - PROBE_SECONDS
"""How long connecting may take, so that there is time to ask what is wrong with TLS."""
CLOSE_SECONDS = 1.0
"""How long a broker may take to close after our goodbye."""
IN_FLIGHT = (0, 50, 20)
"""Messages that are published with a QoS and not confirmed yet; further ones wait here. Of those with QoS 2
Mosquitto 2.0.11 takes no more than 20 and answers none of the others, ever."""

REFUSED = 128
"""The code of a subscription that is refused; below it is the QoS that is granted."""
UNAVAILABLE = "Server unavailable"
"""Of all refusals of a connection the one that passes."""
PROTOCOL = 2
"""What a handler of paho's answers to nonsense; it then ends the connection."""
GONE = (None, errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE)

Origin = tuple["Link", int, int, bytes, bool]
"""The connection that a message came over, its packet id, QoS and topic, and whether it was retained."""


@dataclass(frozen=True)
class Access:
    """How to get into a broker: what a connection says, its secrets resolved."""

    host: str
    port: int
    username: str | None
    password: str | None = field(repr=False)
    tls: ssl.SSLContext | None
    clock: Clock

    @property
    def where(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    def unreachable(self, why: str = "connection refused or lost") -> Unreachable:
        """Return the error of a broker that is not there.

        A connection that is lost and the ones that are refused then say the same: an outage is one
        failure, counted.
        """
        return Unreachable(f"{self.where} does not answer: {why}")


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
        self.unacknowledged = 0
        self._access = access
        self._loop = asyncio.get_running_loop()
        self._receive: Callable[[bytes, Origin], None] = lambda payload, origin: None
        self._on_loss: Callable[[], None] = lambda: None
        self._unconfirmed: dict[int, bytes] = {}
        self._confirmation: asyncio.Future[None] | None = None
        self._is_open = self._is_closing = self._has_heard = False
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
        """Put the pipe in the place of a socket, and ourselves where messages would be queued."""
        paho = self._paho
        paho.disable_logger()
        paho._create_socket = lambda: self._pipe
        paho._handle_publish, paho._handle_pubrel = self._arrived, self._released
        paho.on_socket_open = paho.on_socket_close = paho.on_socket_unregister_write = None
        paho.on_socket_register_write = lambda *_: self._loop.call_soon(self._write)
        paho.on_disconnect = self._disconnected
        paho.on_message = paho.on_publish = None

    def on_message(self, receive: Callable[[bytes, Origin], None]) -> None:
        """Have messages handed over as they come, with their origin."""
        self._receive = receive

    def on_loss(self, action: Callable[[], None]) -> None:
        """Have something done when an open connection is lost."""
        self._on_loss = action

    async def open(self) -> None:
        """Connect, and return when the broker has let us in.

        Raises:
            BuildRefused: it says no, or TLS as configured cannot work.
            Unreachable: it does not answer.
        """
        from aiomqtt import MqttCodeError

        clock = self._access.clock
        try:
            with clock.outside():
                async with clock.timeout(LIMIT_SECONDS):
                    await self._connect()
        except MqttCodeError as cause:
            raise self._refusal(cause) from None
        except OSError as cause:  # a time limit is one, and what is wrong with TLS
            raise await self._fault(cause) from None
        self._is_open = True
        self._look()

    async def _connect(self) -> None:
        access = self._access
        await self._loop.create_connection(
            lambda: self._pipe, access.host, access.port, ssl=access.tls
        )
        self._client._client_connect()  # only begins it: there is no socket to block on
        self._read()  # who speaks first is no broker
        await self._client._connected

    def _refusal(self, cause: MqttCodeError) -> Exception:
        """Return the error that stands for a CONNACK."""
        said = str(cause.rc)
        if said == UNAVAILABLE:
            return self._access.unreachable(said.lower())
        return turned_away(f"{self._access.where} does not let the client in: {said.lower()}")

    async def _fault(self, cause: OSError) -> Exception:
        """Return why the broker was not reached; unless that is plain, by asking about TLS."""
        access = self._access
        if isinstance(cause, socket.gaierror):
            return access.unreachable(f"there is no host '{access.host}'")
        if not isinstance(cause, ConnectionRefusedError):
            said = await tls_fault(access.host, access.port, access.tls, access.clock)
            if said is not None:
                return turned_away(said)
        if isinstance(cause, TimeoutError):
            return access.unreachable(f"nothing came within {LIMIT_SECONDS:g} s")
        if cause.errno in GONE or isinstance(cause, ssl.SSLError):
            return access.unreachable()
        return access.unreachable(os.strerror(cause.errno or 0).lower())

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
        except (MqttError, ConnectionResetError):
            raise self._access.unreachable() from None
        granted: int = codes[0].value
        if granted >= REFUSED:
            raise turned_away(f"{self._access.where} refuses a subscription to '{topic}'")
        return granted

    def acknowledge(self, packet: int, qos: int) -> None:
        """Tell the broker that a message of QoS 1 or 2 need not come again."""
        if not self.is_lost:
            self.unacknowledged -= 1
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
        self._paho.loop_misc()
        if not self.is_lost:
            clock = self._access.clock
            self._timer = clock.call_later(KEEPALIVE_SECONDS / LOOKS, self._look)

    def _read(self) -> None:
        """Have paho work off what has come, packet by packet, until that is enough for now."""
        self._has_heard = True
        paho, pipe = self._paho, self._pipe
        while pipe.has_news and not self.is_paused and paho.socket() is not None:
            paho.loop_read()

    def _write(self) -> None:
        """Send all the packets that are ready, in one piece."""
        self._paho.loop_write()
        self._pipe.flush()

    def _arrived(self) -> int:
        """Hand a message over (PUBLISH)."""
        command, body = self._paho._in_packet["command"], self._paho._in_packet["packet"]
        qos, packet = command >> 1 & 3, 0
        try:
            start = 2 + (body[0] << 8 | body[1])
            topic = bytes(body[2:start])
            if qos:
                packet = body[start] << 8 | body[start + 1]
                start += 2
        except IndexError:
            return PROTOCOL
        if qos:
            self.unacknowledged += 1
        payload = bytes(memoryview(body)[start:])
        self._receive(payload, (self, packet, qos, topic, bool(command & 1)))
        return 0

    def _released(self) -> int:
        """Let the broker forget a message of QoS 2 (PUBREL)."""
        body = self._paho._in_packet["packet"]
        self._paho._send_pubcomp(body[0] << 8 | body[1])
        return 0

    def _disconnected(self, *_: Any) -> None:
        """Tell everybody who waits for something, unless we wanted it."""
        if self._is_closing:
            return
        was_open = self._is_open
        self._end()
        client = self._client
        answers: list[asyncio.Future[Any]] = [client._connected]
        answers += client._pending_subscribes.values()
        for answer in answers:
            if not answer.done():
                answer.set_exception(ConnectionResetError(errno.ECONNRESET, "the broker hung up"))
        self._settle()
        if was_open:  # else `open` tells
            self._on_loss()
