"""A connection to a Redis server over the driver: made, asked, listened to, and its failures in words.

One connection of the driver and nothing around it: its pool would open more of them, its retries
would publish twice, and its subscriptions come back by themselves, so that nobody knew of the gap.

RESP2 is spoken, which every version and every proxy understands; Pub/Sub lacks nothing in it.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
import ssl
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from hiredis import pack_command
from redis.asyncio import Connection, SSLConnection
from redis.exceptions import InvalidResponse, RedisError, ResponseError

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.edges import Arrival
from headrace.compiler.errors import FailureClass, Unreachable
from headrace.connectors.network.refusal import (
    CONNECT_SECONDS,
    Outage,
    quoted,
    turned_away,
    unanswered,
)
from headrace.connectors.network.tls import PROBE_SECONDS, handshake_fault, tls_fault
from headrace.connectors.redis import READ_BYTES, RedisUrl
from headrace.connectors.redis.redisfailures import FAILURES, PASSING, SIGN_IN, code_of

WRITE_BYTES = 64 * 1024
"""Most that is given to the connection at once."""

NOT_REDIS = "answers, and not as Redis does"


@dataclass(frozen=True)
class Limits:
    """How long a server may take."""

    reach_seconds: float = CONNECT_SECONDS - 1.25 * PROBE_SECONDS
    """For connecting; what is left of the time is for asking what is wrong."""
    answer_seconds: float = 10.0
    """Over one answer, or over one portion of a batch."""
    quiet_seconds: float = 5.0
    """Who says nothing for so long is asked whether it is there, and may take as long again."""
    close_seconds: float = 1.0
    """Over the end of a connection."""
    questions_in_a_message: int = 11
    """How many may be open when a message has begun to arrive: it has a minute for all of it."""


class ErrorReply(str):
    """An error that the server answers with, in its own words: ``NOPERM ...``."""

    __slots__ = ()

    @property
    def is_passing(self) -> bool:
        """Whether the answer will be another one in a while."""
        return code_of(self) in PASSING

    @property
    def failure(self) -> FailureClass:
        """The class of what failed by it."""
        return FAILURES.of(code_of(self))


class RedisServer:
    """The server that a connection names, as one component meets it."""

    def __init__(
        self, url: RedisUrl, tls: ssl.SSLContext | None, ctx: Context, limits: Limits
    ) -> None:
        self._url, self._tls, self._limits = url, tls, limits
        self._clock, self._redact = ctx.clock, ctx.redact
        # A name in Redis is of visible characters.
        self._name = re.sub(r"[^!-~]", "_", f"headrace-{ctx.pipeline}")
        self.outage = Outage(url.where)
        """Over when there is a connection again."""

    async def connect(self) -> RedisClient:
        """Return a new connection, signed in.

        Raises:
            BuildRefused: the server says no, or TLS as configured cannot work.
            Unreachable: it does not answer, or not now.
        """
        client = RedisClient(self._made(), self, self._clock, self._limits)
        try:
            async with self._clock.within(self._limits.reach_seconds):
                await client.open(self._name)
        except BaseException as cause:
            await client.close()
            if isinstance(cause, (RedisError, OSError)):  # a time limit is one of the latter
                raise await self._not_connected(cause) from None
            raise
        self.outage.over()
        return client

    def refusal(self, reply: ErrorReply) -> Exception:
        """Return what to raise for an error that stands in the way of everything else."""
        if reply.is_passing:
            return self.outage.of(f"says '{quoted(reply, self._redact)}'")
        return turned_away(self.words(reply))

    def lost(self, cause: Exception) -> Unreachable:
        """Return what to raise when a connection has broken."""
        if isinstance(cause, InvalidResponse):
            return self.outage.of(NOT_REDIS)
        is_silent = isinstance(cause, TimeoutError)
        return self.outage.of("does not answer any more" if is_silent else "closed the connection")

    def words(self, reply: ErrorReply) -> str:
        """Return what the server says, for a text: without secrets, and no more than people read."""
        return f"{self._url.where} says '{quoted(reply, self._redact)}'"

    def _made(self) -> Connection:
        """Return the driver's connection, which is not connected yet."""
        url = self._url
        options: dict[str, Any] = {
            "host": url.host,
            "port": url.port,
            "username": url.user or None,
            "password": url.password or None,
            "db": url.database,
            "protocol": 2,
            "socket_read_size": READ_BYTES,
            # The limits are ours, and so is what a server may forbid: to be told who we are.
            "socket_timeout": None,
            "socket_connect_timeout": None,
            "driver_info": None,
        }
        if self._tls is None:
            return Connection(**options)
        secured = SSLConnection(**options)
        secured.ssl_context.context = self._tls
        return secured

    async def _not_connected(self, cause: Exception) -> Exception:
        """Return what to raise for a connection that did not come about."""
        if (reply := error_reply(cause)) is not None:
            return self.refusal(reply)
        if isinstance(cause.__context__, UnicodeError):  # it is longer than a name can be
            return self.outage.of("does not answer: the host name cannot be resolved")
        system = cause.__context__ if isinstance(cause.__context__, OSError) else None
        if isinstance(system, ConnectionRefusedError | socket.gaierror):
            return self.outage.of(f"does not answer: {unanswered(system)}")
        fault = await self._tls_fault(cause, system)
        if fault is None and isinstance(cause, InvalidResponse):
            fault = f"{self._url.where} {NOT_REDIS}"
        if fault is not None:
            return turned_away(fault)
        return self.outage.of(f"does not answer{f': {unanswered(system)}' if system else ''}")

    async def _tls_fault(self, cause: Exception, system: OSError | None) -> str | None:
        """Return why TLS as configured cannot work, if that is certain.

        Whoever only hangs up, or says nothing, may be a server in trouble, or what stands before it.
        """
        url, is_silent = self._url, isinstance(cause, TimeoutError)
        if self._tls is None:
            return None if is_silent else await tls_fault(url.host, url.port, None, self._clock)
        try:
            if isinstance(system, ssl.SSLError):
                raise system
            if is_silent:
                # A server without TLS waits for the end of a line; one that hangs, for ever.
                is_plain = await self._first_byte(b"PING\r\n", None) in (b"+", b"-")
                return f"{url.where} does not speak TLS" if is_plain else None
            # It says what is wrong with a certificate, but not to who goes on talking to it.
            await self._first_byte(b"", self._tls)
        except OSError as told:
            if isinstance(told, ssl.SSLError) and not isinstance(told, ssl.SSLEOFError):
                return handshake_fault(url.where, told)
        return None

    async def _first_byte(self, said: bytes, tls: ssl.SSLContext | None) -> bytes:
        """Say something over a connection of its own and return how the answer begins."""
        async with self._clock.within(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(self._url.host, self._url.port, ssl=tls)
            try:
                writer.write(said)
                return await reader.read(1)
            finally:
                writer.transport.abort()


class RedisClient:
    """One connection, until it is lost. `RedisServer.connect` gives an open one."""

    def __init__(
        self, connection: Connection, server: RedisServer, clock: Clock, limits: Limits
    ) -> None:
        self._connection, self._server = connection, server
        self._clock, self._limits = clock, limits
        self._patience: asyncio.Timeout | None = None
        self._is_woken = False

    async def open(self, name: str) -> None:
        """Connect, sign in, and tell the server who is there. Raises what the driver does."""
        await self._connection.connect()  # type: ignore[no-untyped-call]
        await self._connection.send_command("CLIENT", "SETNAME", name)
        named = await self._reply()
        # The name is a favour to operators, and may be forbidden; so is everything to a stranger, and
        # for a while to all.
        if isinstance(named, ErrorReply) and (named.is_passing or code_of(named) == SIGN_IN):
            raise self._server.refusal(named)

    async def ask(self, *command: str | bytes) -> Any:
        """Send a command and return what is answered; an `ErrorReply` is an answer like any other.

        Raises:
            Unreachable: the connection is lost.
        """
        with self._losing():
            async with self._clock.within(self._limits.answer_seconds):
                await self._connection.send_command(*command)
                return await self._reply()

    async def publish(self, channel: str, bodies: Sequence[bytes], replies: list[Any]) -> None:
        """Publish all of them at once; add an answer for each to ``replies``, as they come.

        Raises:
            Unreachable: the connection is lost; of what has no answer nobody knows what became of it.
        """
        connection = self._connection
        # That of the driver's parser: the connection's own takes six times as long.
        packed = b"".join(
            [pack_command((b"PUBLISH", channel, body)) for body in bodies]  # type: ignore[arg-type]
        )
        with self._losing():
            async with self._clock.within(self._limits.answer_seconds):
                # A connection that is closed still sends what it has taken: a little at a time, so
                # that the rest of what is given up stays here.
                for start in range(0, len(packed), WRITE_BYTES):
                    await connection.send_packed_command(packed[start : start + WRITE_BYTES])
                await self._read(replies, len(bodies))

    async def arrivals(self) -> list[Arrival]:
        """Return the messages that have arrived, as soon as one has; none when it is woken.

        Raises:
            Unreachable: the connection is lost.
        """
        while not self._is_woken:
            said = [await self._next(), *await self._at_hand()]
            try:
                found = [(each[2], None) for each in said if each and each[0] == b"message"]
            except (IndexError, TypeError):
                raise self._server.outage.of(NOT_REDIS) from None
            if found:
                return found
        return []

    def wake(self) -> None:
        """Have `arrivals` return."""
        self._is_woken = True
        if self._patience is not None:
            self._patience.reschedule(0)

    async def is_spent(self) -> bool:
        """Return whether the server has hung up, or said something, while nobody asked it."""
        return await self._connection.can_read()

    async def close(self) -> None:
        """Hang up, whatever the server does: nothing is on its way that anybody waits for."""
        # A plain connection is closed at once; TLS ends when the server answers close_notify.
        with suppress(TimeoutError):
            async with self._clock.within(self._limits.close_seconds):
                await self._connection.disconnect()

    async def _next(self) -> list[Any] | None:
        """Return the next thing that the server says by itself; None when it is woken."""
        asked = 0
        while not self._is_woken:
            reply = await self._within_patience()
            if reply is not None:
                return reply if isinstance(reply, list) else []
            with self._losing():
                # Its answer comes behind a message that has begun, and a large one takes its time.
                has_begun = await self._connection.can_read()
                if asked >= (self._limits.questions_in_a_message if has_begun else 1):
                    raise TimeoutError
                await self._connection.send_command("PING")
            asked += 1
        return None

    async def _at_hand(self) -> list[Any]:
        """Return what the server has said besides; nothing of it is waited for."""
        found: list[Any] = []
        # Whoever has hung up or talks nonsense does so again when the next one is read.
        with suppress(TimeoutError, RedisError):
            async with self._clock.timeout(0):
                await self._read(found, sys.maxsize)
        return found

    async def _within_patience(self) -> Any:
        """Return the next answer, or None if none comes for a while."""
        with self._losing():
            try:
                async with self._clock.timeout(self._limits.quiet_seconds) as self._patience:
                    return await self._reply()
            except TimeoutError:
                return None
            finally:
                self._patience = None

    async def _reply(self) -> Any:
        """Return the next answer. Raises what the driver does when there is none."""
        replies: list[Any] = []
        await self._read(replies, 1)
        return replies[0]

    async def _read(self, replies: list[Any], count: int) -> None:
        """Add so many answers. Raises what the driver does when there are no more."""
        read = self._connection.read_response
        for _ in range(count):
            try:
                replies.append(await read(timeout=math.inf, disconnect_on_error=False))
            except RedisError as cause:
                if (reply := error_reply(cause)) is None:
                    raise
                replies.append(reply)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Tell in our words that the connection breaks."""
        try:
            yield
        except (RedisError, OSError, TimeoutError) as cause:
            raise self._server.lost(cause) from None


def error_reply(cause: Exception) -> ErrorReply | None:
    """Return what the server said, if that is what the driver has made an error of."""
    code = getattr(cause, "status_code", None)  # cut off from the text, if the driver knows it
    if code is not None:
        return ErrorReply(f"{code} {cause}")
    return ErrorReply(cause) if isinstance(cause, ResponseError) else None
