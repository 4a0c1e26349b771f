"""One connection to an MQTT broker, from its beginning to its end: a protocol of the event loop."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.backoff import LASTING_SECONDS
from headrace.connectors.mqtt import packets
from headrace.connectors.mqtt.mqttfailures import FAILURES, connack
from headrace.connectors.network.refusal import CONNECT_SECONDS, Outage, turned_away, unanswered
from headrace.connectors.network.tls import PROBE_SECONDS, tls_fault

QOS = ("at_most_once", "at_least_once", "exactly_once")
"""Qualities of service: the place of the word is the number on the wire."""

LIMIT_SECONDS = CONNECT_SECONDS - PROBE_SECONDS
"""How long connecting may take, so that there is time to ask what is wrong with TLS."""

CLOSED = "closed the connection"
SILENT = "does not answer any more"
NONSENSE = "sent what is not MQTT 3.1.1"
TOO_LONG = f"announced a packet of more than {packets.LONGEST >> 20} MiB"
SLOW = f"does not answer: nothing came within {LIMIT_SECONDS:g} s"

REFUSALS = {
    1: "unsupported protocol version",
    2: "client identifier not valid",
    3: "server unavailable",
    4: "bad user name or password",
    5: "not authorized",
}
"""Why a broker lets nobody in, by the code of its CONNACK."""

HUNG_UP = (errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE)

LOOKS = 4
"""How often a broker is looked at in the time that it may be silent."""
TURN_SECONDS = 0.002
"""How long we work off what a broker sends before others have their turn."""
CLOSE_SECONDS = 1.0
"""How long a broker may take to close after our goodbye."""

QUICKACK = getattr(socket, "TCP_QUICKACK", None)


@dataclass(frozen=True)
class Limits:
    """What may wait, and for how long."""

    keepalive_seconds: int = 20
    """Silence after which a broker is asked whether it is there; it has as long again to answer."""
    most_waiting: int = 256
    most_bytes: int = 1 << 20
    """What may wait unread, and the message that reaches either; then nothing more is read."""
    most_kept: int = packets.PACKET_IDS
    """What may wait before a subscription is confirmed, which comes behind it."""
    write_seconds: float = 30.0
    """How long a batch of QoS 1 or 2 may take to be confirmed, over lost connections as well."""
    at_once: int = 400
    """Messages that are published together: those that leave in several turns are confirmed later."""


LIMITS = Limits()

PacketHandler = Callable[[int, memoryview], None]
"""Takes a packet: the flags of its first byte, and its body."""


@dataclass
class BrokerAccess:
    """How one component gets into a broker: what a connection says, its secrets resolved."""

    host: str
    port: int
    username: str | None
    password: str | None = field(repr=False)
    tls: ssl.SSLContext | None
    clock: Clock

    def __post_init__(self) -> None:
        self.where = f"{self.host}:{self.port}"
        self.outage = Outage(self.where)
        """Over when the broker has let us in."""

    async def fault(self, cause: OSError, sent: str) -> Exception:
        """Return what to raise for a connection that did not come about.

        Unless that is plain, by asking about TLS. ``sent`` is what the broker did before it was over.
        """
        is_slow = isinstance(cause, TimeoutError)
        if isinstance(cause, socket.gaierror | ConnectionRefusedError):
            return self.outage.of(f"does not answer: {unanswered(cause)}")
        if is_slow and self.tls is not None:
            return self.outage.of(SLOW)  # a broker without TLS hangs up at once, so this one hangs
        said = await tls_fault(self.host, self.port, self.tls, self.clock)
        if said is not None:
            return turned_away(said)
        if is_slow:
            return self.outage.of(SLOW)
        if cause.errno in (None, *HUNG_UP) or isinstance(cause, ssl.SSLError):
            return self.outage.of(sent)
        return self.outage.of(f"does not answer: {unanswered(cause)}")


class Client(asyncio.Protocol):
    """Connects once, and is never used again. Whoever subscribes or publishes is one of these.

    ``is_clean``: the broker drops what it kept for this client, and keeps nothing when it is gone.
    ``on_loss`` is given why an open connection has ended.
    """

    def __init__(
        self,
        access: BrokerAccess,
        identifier: str,
        *,
        is_clean: bool = True,
        on_loss: Callable[[Unreachable], None] | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.is_lost = self.is_paused = self.is_full = False
        self.is_hung_up = False
        """Whether it is lost because the broker has ended it, as far as the system knows."""
        self.access, self.limits = access, limits
        self._identifier, self._is_clean, self._on_loss = identifier, is_clean, on_loss
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._is_open = self._is_closing = False
        self._let_in: asyncio.Future[None] = self._loop.create_future()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._why, self._opened_at = CLOSED, 0.0
        self._packets = packets.Packets()
        self._handlers: dict[int, PacketHandler] = {packets.CONNACK: self._connected}
        self._unsent: list[bytes] = []
        self._room = asyncio.Event()
        self._has_heard, self._silent, self._unheard = True, 0, 0
        self._timer: asyncio.TimerHandle | None = None

    def handlers(self) -> dict[int, PacketHandler]:
        """Return what is done with packets of each kind once the broker has let us in."""
        return {packets.PINGRESP: lambda flags, body: None}

    def lost(self, cause: Unreachable) -> None:
        """Tell whoever waits for an answer that none will come."""

    # From the beginning to the end.

    async def open(self) -> None:
        """Connect, and return when the broker has let us in.

        Raises:
            BuildRefused: it says no, or TLS as configured cannot work.
            Unreachable: it does not answer.
        """
        access = self.access
        try:
            async with access.clock.within(LIMIT_SECONDS):
                await self._loop.create_connection(
                    lambda: self, access.host, access.port, ssl=access.tls
                )
                keepalive, is_clean = self.limits.keepalive_seconds, self._is_clean
                user, password = access.username, access.password
                self.send(
                    packets.connect(
                        self._identifier, user, password, is_clean=is_clean, keepalive=keepalive
                    )
                )
                await self._let_in
        except OSError as cause:  # a time limit is one, and what is wrong with TLS
            raise await access.fault(cause, self._why) from None
        except UnicodeError:  # a part of the name is empty, or longer than 63
            raise access.outage.of("does not answer: the host name cannot be resolved") from None
        self._is_open, self._opened_at = True, access.clock.monotonic()
        access.outage.over()
        self._look_later()

    def _connected(self, _: int, body: memoryview) -> None:
        """Learn whether the broker lets us in."""
        code = packets.number(body) & 255
        if len(body) != 2 or (code and code not in REFUSALS):
            raise packets.MalformedPacket
        self._handlers = self.handlers()
        if not self._let_in.done():
            said = REFUSALS.get(code)
            if code and FAILURES.of(connack(code)) == "unavailable":
                self._let_in.set_exception(self.access.outage.of(f"does not answer: {said}"))
            elif code:
                refusal = turned_away(f"{self.access.where} does not let the client in: {said}")
                self._let_in.set_exception(refusal)
            else:
                self._let_in.set_result(None)

    @property
    def seconds(self) -> float:
        """How long it has been open."""
        return self.access.clock.monotonic() - self._opened_at

    async def close(self) -> None:
        """Say goodbye and let go; the broker then has what it was told before.

        What it sends until it closes is thrown away. Were it left unread, the system would reset the
        connection, and what we sent last might never be looked at.
        """
        self._is_closing = True
        try:
            if self._is_open:
                self.send(packets.GOODBYE)
                self._flush()
                self._resume_reading()
                await self._closed()
        finally:
            self._end()
        await self._closed()

    async def _closed(self) -> None:
        """Wait until the connection is closed, if there is one, but not for whoever is not there."""
        if self._transport is not None:
            with suppress(TimeoutError):
                async with self.access.clock.within(CLOSE_SECONDS):
                    await asyncio.shield(self._over)

    def _end(self) -> None:
        self.is_lost, self._is_open = True, False
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _lose(self, why: str) -> None:
        """End what the broker, or its silence, has ended, and tell everybody who waits for something."""
        if self._is_closing or self.is_lost:
            return
        was_open = self._is_open
        self.is_hung_up = self.is_hung_up and why == CLOSED
        self._end()
        if not self._let_in.done():  # `open` finds out why
            self._why = why
            self._let_in.set_exception(ConnectionResetError(errno.ECONNRESET, why))
        if was_open:
            if why == CLOSED and self.seconds < LASTING_SECONDS:
                why += f": another client with the id '{self._identifier}' may have taken it over"
            cause = self.access.outage.of(why)
            self.lost(cause)
            if self._on_loss is not None:
                self._on_loss(cause)

    # Whether the other side is there.

    def _look_later(self) -> None:
        self._timer = self.access.clock.call_later(
            self.limits.keepalive_seconds / LOOKS, self._look
        )

    def _look(self) -> None:
        """See from time to time whether the broker is still there, and have it know that we are.

        Any sign of life will do: the answer to a ping may be behind megabytes of messages, and who does not
        listen cannot say that it is missing.
        """
        self._silent = 0 if self._has_heard or self.is_paused else self._silent + 1
        self._unheard += 1
        self._has_heard = False
        if self._silent >= 2 * LOOKS:
            self._lose(SILENT)
            return
        if self._silent == LOOKS or self._unheard >= LOOKS:
            self.send(packets.PING)
        self._look_later()

    # What is sent.

    def send(self, packet: bytes) -> None:
        """Send a packet, in one piece with all that are ready in this turn of the loop."""
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(packet)

    def _flush(self) -> None:
        if self._unsent and (transport := self._open_transport()):
            transport.write(b"".join(self._unsent))
            self._unheard = 0
        self._unsent.clear()

    async def drained(self) -> None:
        """Wait until the broker takes more, or is lost. For one at a time."""
        if self.is_full:
            self._room.clear()
            await self._room.wait()

    # What is read.

    def pause(self) -> None:
        """Take nothing more from the broker: it has to keep what it has, or to drop it."""
        self.is_paused = True
        self._pause_reading()

    def resume(self) -> None:
        """Go on with what has come meanwhile."""
        if self.is_paused:
            self.is_paused = False
            self._read_on()

    def _read(self) -> None:
        """Work off what has come, packet by packet, until that is enough for now."""
        monotonic = self.access.clock.monotonic
        ends = monotonic() + TURN_SECONDS
        try:
            while not self.is_paused and (packet := self._packets.next()) is not None:
                first, body = packet
                if (handler := self._handlers.get(first >> 4)) is None:
                    raise packets.MalformedPacket
                handler(first & 15, body)
                if monotonic() > ends:
                    self._pause_reading()
                    self._loop.call_soon(self._read_on)
                    return
        except packets.MalformedPacket:
            self._lose(NONSENSE)
        except packets.PacketTooLong:
            self._lose(TOO_LONG)
        if self._over.done() and not self.is_paused:
            self._lose(CLOSED)

    def _read_on(self) -> None:
        """Go on when others have had their turn."""
        if not (self.is_paused or self.is_lost):
            self._resume_reading()
            self._read()

    def _open_transport(self) -> asyncio.Transport | None:
        """Return the transport while it is there: uvloop's may not be asked for anything later."""
        transport = self._transport
        return None if transport is None or transport.is_closing() else transport

    def _pause_reading(self) -> None:
        if transport := self._open_transport():
            transport.pause_reading()

    def _resume_reading(self) -> None:
        if transport := self._open_transport():
            transport.resume_reading()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # Not asserted: those of uvloop are transports in all but their class.
        self._transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")

    def data_received(self, data: bytes) -> None:
        """Work off what came, behind what is there.

        The system is to confirm it at once. It would wait for 40 ms for something to send along, and
        Mosquitto, whose sockets wait for that before they send the next small packet, would confirm one
        message in each 40 ms. Linux forgets it with what comes next, so it is asked every time. Other
        systems do not have it.
        """
        if QUICKACK is not None and self._socket is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, QUICKACK, 1)
        self._has_heard = True
        if not (self._is_closing or self.is_lost):
            self._packets.add(data)
            self._read()

    def connection_lost(self, cause: Exception | None) -> None:
        """Work off what is left, and tell of the end."""
        self.resume_writing()
        self._over.set_result(None)
        if not self.is_lost:
            is_plain = cause is None or isinstance(cause, ssl.SSLError)
            self.is_hung_up = is_plain or getattr(cause, "errno", None) in HUNG_UP
            self._read()

    def pause_writing(self) -> None:
        """Note that the broker takes less than is sent: have `drained` wait."""
        self.is_full = True

    def resume_writing(self) -> None:
        """Let whoever waits go on."""
        self.is_full = False
        self._room.set()
