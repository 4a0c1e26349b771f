"""What paho takes for its socket: bytes in and out of a transport of the event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import cast

LONGEST = 64 << 20
"""Bytes of a packet, at most; MQTT has it announced, and would allow four times as much."""

QUICKACK = getattr(socket, "TCP_QUICKACK", None)


class Pipe(asyncio.Protocol):
    """Keeps what comes until it is read, and tells ``read``; what is sent, `flush` sends in one piece."""

    def __init__(self, read: Callable[[], None]) -> None:
        self._read = read
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._news = b""
        self._at = 0
        self._unsent: list[bytes] = []
        self._room: asyncio.Future[None] | None = None
        self._is_over = self._is_closing = self.is_overfull = False
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def has_news(self) -> bool:
        """Whether `recv` would return something, be it the end."""
        return self._at < len(self._news) or self._is_over

    @property
    def is_full(self) -> bool:
        """Whether the other side takes less than it is sent."""
        return self._room is not None

    async def drained(self) -> None:
        """Wait until more may be sent, or nobody is there to send it to."""
        if self._room is not None:
            await asyncio.shield(self._room)

    def call_drained(self, action: Callable[[], None]) -> None:
        """Have something done when the other side, which is full, takes more or is gone."""
        if self._room is not None:
            self._room.add_done_callback(lambda _: action())

    def flush(self) -> None:
        """Send what was given to `send`."""
        if self._unsent and (transport := self._open_transport()):
            transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def pause(self) -> None:
        """Read no more: the other side has to keep what it has, or to drop it."""
        if transport := self._open_transport():
            transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if transport := self._open_transport():
            transport.resume_reading()

    def _open_transport(self) -> asyncio.Transport | None:
        """Return the transport while it is there: uvloop's may not be asked for anything later."""
        transport = self._transport
        return None if transport is None or transport.is_closing() else transport

    def abort(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    async def ended(self) -> None:
        """Wait until the connection is closed, if there ever was one."""
        if self._transport is not None:
            await asyncio.shield(self._over)

    # What paho calls.

    def recv(self, size: int) -> bytes:
        """Return what has come, at most so much; nothing at the end.

        Raises:
            OSError: it is the rest of a packet that is too long.
        """
        if size > LONGEST:
            self.is_overfull = True
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        taken = self._news[self._at : self._at + size]
        if not taken and not self._is_over:
            raise BlockingIOError
        self._at += len(taken)
        return taken

    def send(self, packet: bytes) -> int:
        """Take all of it."""
        self._unsent.append(packet)
        return len(packet)

    def setblocking(self, _: bool) -> None:
        """Never block."""

    def close(self) -> None:
        """Send what is left and wait for the other side to close.

        What it sends until then is thrown away. Were it left unread, the system would reset the
        connection, and what we sent last might never be looked at.
        """
        self._is_closing = True
        self.flush()
        self.resume()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # Not asserted: those of uvloop are transports in all but their class.
        self._transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")

    def data_received(self, data: bytes) -> None:
        """Keep what came, behind what is there."""
        self._say_so()
        if not self._is_closing:
            self._news = self._news[self._at :] + data if self._at < len(self._news) else data
            self._at = 0
            self._read()

    def _say_so(self) -> None:
        """Have the system confirm at once what came.

        It would wait for 40 ms for something to send along, and Mosquitto, whose sockets wait for that
        before they send the next small packet, would confirm one message in each 40 ms.
        Linux forgets it with what comes next, so it is asked every time. Other systems do not have it.
        """
        if QUICKACK is not None and self._socket is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, QUICKACK, 1)

    def connection_lost(self, _: Exception | None) -> None:
        """Let the end be read."""
        self._is_over = True
        self.resume_writing()
        self._over.set_result(None)
        if not self._is_closing:
            self._read()

    def pause_writing(self) -> None:
        """Have `drained` wait."""
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Let whoever waits go on."""
        room, self._room = self._room, None
        if room is not None:
            room.set_result(None)
