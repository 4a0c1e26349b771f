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
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.compiler.clock import Clock
from headrace.compiler.edges import Arrival
from headrace.compiler.errors import Unreachable
from headrace.compiler.language.context import Context
from headrace.connectors.redis.urls import RedisUrl
from headrace.connectors.refusal import CONNECT_SECONDS, Outage, quoted, turned_away, unanswered
from headrace.connectors.tls import PROBE_SECONDS, handshake_fault, tls_fault

if TYPE_CHECKING:
    from hiredis import Reader
    from redis.asyncio import Connection

    from headrace.connectors.redis.frames import BoundedReader

QUIET_SECONDS = 5.0
"""A server that says nothing for so long is asked whether it is there, and may take as long again."""
ANSWER_SECONDS = 10.0
"""How long a server may take over one answer, or over one portion of a batch."""
READ_BYTES = 256 * 1024
"""Most that is taken from the connection at once."""

REACH_SECONDS = CONNECT_SECONDS - 1.25 * PROBE_SECONDS
"""Limit for connecting; what is left of the time is for asking what is wrong."""

NOT_REDIS = "answers, and not as Redis does"

PASSING = (
    "LOADING ",
    "BUSY ",
    "MASTERDOWN ",
    "TRYAGAIN ",
    "CLUSTERDOWN ",
    "ERR max number of clients",
)
"""How answers begin that will be others in a while."""


class ErrorReply(str):
    """An error that the server answers with, in its own words: ``NOPERM ...``."""

    __slots__ = ()

    @property
    def is_passing(self) -> bool:
        """Whether the answer will be another one in a while."""
        return self.startswith(PASSING)


class RedisServer:
    """The server that a connection names, as one component meets it."""

    def __init__(self, url: RedisUrl, tls: ssl.SSLContext | None, ctx: Context) -> None:
        self._url, self._tls = url, tls
        self._clock, self._redact = ctx.clock, ctx.redact
        # A name in Redis is of visible characters.
        self._name = re.sub(r"[^!-~]", "_", f"headrace-{ctx.pipeline}")
        self._outage = Outage(url.where)

    async def connect(self) -> RedisLink:
        """Return a new connection, signed in.

        Raises:
            BuildRefused: the server says no, or TLS as configured cannot work.
            Unreachable: it does not answer, or not now.
        """
        from redis.exceptions import RedisError

        link = RedisLink(self._made(), self, self._clock)
        try:
            with self._clock.outside():
                async with self._clock.timeout(REACH_SECONDS):
                    await link.open(self._name)
        except (RedisError, OSError, TimeoutError) as cause:
            await link.close()
            raise await self._not_connected(cause) from None
        except BaseException:
            await link.close()
            raise
        self._outage.over()
        return link

    def refusal(self, reply: ErrorReply) -> Exception:
        """Return what to raise for an error that stands in the way of everything else."""
        if reply.is_passing:
            return self.outage(f"says '{self._quoted(reply)}'")
        return turned_away(self.words(reply))

    def lost(self, cause: Exception) -> Unreachable:
        """Return what to raise when a connection has broken."""
        from redis.exceptions import InvalidResponse

        if isinstance(cause, InvalidResponse):
            return self._nonsense(cause)
        is_silent = isinstance(cause, TimeoutError)
        return self.outage("does not answer any more" if is_silent else "closed the connection")

    def _nonsense(self, cause: Exception) -> Unreachable:
        """Return what to raise for what no command is answered with."""
        from headrace.connectors.redis.frames import TooLarge

        return self.outage(str(cause) if isinstance(cause, TooLarge) else NOT_REDIS)

    def outage(self, what: str) -> Unreachable:
        """Return what to raise while nobody can be reached.

        The same text until there is a connection again: an outage is one failure, counted.
        """
        return self._outage.of(what)

    def words(self, reply: ErrorReply) -> str:
        """Return what the server says, for a text."""
        return f"{self._url.where} says '{self._quoted(reply)}'"

    def _quoted(self, reply: ErrorReply) -> str:
        """Return what the server says without secrets, and no more of it than people read."""
        return quoted(reply, self._redact)

    def _made(self) -> Connection:
        """Return the driver's connection, which is not connected yet."""
        from redis.asyncio import Connection, SSLConnection

        from headrace.connectors.redis.frames import BoundedParser

        url = self._url
        options: dict[str, Any] = {
            "host": url.host,
            "port": url.port,
            "username": url.user or None,
            "password": url.password or None,
            "db": url.database,
            "protocol": 2,
            "socket_read_size": READ_BYTES,
            "parser_class": BoundedParser,
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
        from redis.exceptions import InvalidResponse

        from headrace.connectors.redis.frames import TooLarge

        if (reply := error_reply(cause)) is not None:
            return self.refusal(reply)
        if isinstance(cause.__context__, UnicodeError):  # it is longer than a name can be
            return self.outage("does not answer: the host name cannot be resolved")
        system = cause.__context__ if isinstance(cause.__context__, OSError) else None
        if isinstance(system, ConnectionRefusedError | socket.gaierror):
            return self.outage(f"does not answer: {unanswered(system)}")
        with self._clock.outside():
            fault = await self._tls_fault(cause, system)
        if fault is None and isinstance(cause, InvalidResponse):
            if isinstance(cause, TooLarge):
                return self.outage(str(cause))
            fault = f"{self._url.where} {NOT_REDIS}"
        if fault is not None:
            return turned_away(fault)
        return self.outage(f"does not answer{f': {unanswered(system)}' if system else ''}")

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
        except ssl.SSLError as told:
            is_told = not isinstance(told, ssl.SSLEOFError)
            return handshake_fault(url.where, told) if is_told else None
        except (OSError, TimeoutError):
            pass
        return None

    async def _first_byte(self, said: bytes, tls: ssl.SSLContext | None) -> bytes:
        """Say something over a connection of its own and return how the answer begins."""
        async with self._clock.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(self._url.host, self._url.port, ssl=tls)
            try:
                writer.write(said)
                return await reader.read(1)
            finally:
                writer.transport.abort()


class RedisLink:
    """One connection, until it is lost. `RedisServer.connect` gives an open one."""

    def __init__(self, connection: Connection, server: RedisServer, clock: Clock) -> None:
        self._connection = connection
        self._server = server
        self._clock = clock
        self._transport: asyncio.WriteTransport | None = None
        self._patience: asyncio.Timeout | None = None
        self._is_woken = False

    async def open(self, name: str) -> None:
        """Connect, sign in, and tell the server who is there. Raises what the driver does."""
        await self._connection.connect()  # type: ignore[no-untyped-call]
        writer = self._connection._writer
        self._transport = None if writer is None else writer.transport
        await self._connection.send_command("CLIENT", "SETNAME", name)
        named = await self._reply()
        # The name is a favour to operators, and may be forbidden; so is everything to a stranger, and
        # for a while to all.
        if isinstance(named, ErrorReply) and (named.is_passing or named.startswith("NOAUTH")):
            raise self._server.refusal(named)

    async def ask(self, *command: str | bytes) -> Any:
        """Send a command and return what is answered; an `ErrorReply` is an answer like any other.

        Raises:
            Unreachable: the connection is lost.
        """
        with self._losing(), self._clock.outside():
            async with self._clock.timeout(ANSWER_SECONDS):
                await self._connection.send_command(*command)
                return await self._reply()

    async def publish(self, channel: str, bodies: Sequence[bytes], replies: list[Any]) -> None:
        """Publish all of them at once; add an answer for each to ``replies``, as they come.

        Raises:
            Unreachable: the connection is lost; of what has no answer nobody knows what became of it.
        """
        connection, wanted = self._connection, len(replies) + len(bodies)
        with self._losing(), self._clock.outside():
            async with self._clock.timeout(ANSWER_SECONDS):
                commands = [("PUBLISH", channel, body) for body in bodies]
                await connection.send_packed_command(connection.pack_commands(commands))
                while len(replies) < wanted:
                    replies.append(await self._reply())
                    replies += self._waiting(wanted - len(replies))

    async def arrivals(self) -> list[Arrival]:
        """Return the messages that have arrived, as soon as one has; none when it is woken.

        Raises:
            Unreachable: the connection is lost.
        """
        while not self._is_woken:
            said = [await self._next(), *self._waiting()]
            try:
                found = [(each[2], None) for each in said if each and each[0] == b"message"]
            except (IndexError, TypeError):
                raise self._server.outage(NOT_REDIS) from None
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
        if self._transport is not None:
            self._transport.abort()
        await self._connection.disconnect(nowait=True)
        if self._bounded is not None:
            self._bounded.let_go()

    async def _next(self) -> list[Any] | None:
        """Return the next thing that the server says by itself; None when it is woken."""
        held = -1
        while not self._is_woken:
            reply = await self._within_patience()
            if reply is not None:
                return reply if isinstance(reply, list) else []
            # A large message takes its time: as long as it grows, somebody is there.
            before, held = held, self._reader.len()
            if held == before:
                raise self._server.lost(TimeoutError())
            with self._losing():
                await self._connection.send_command("PING")
        return None

    async def _within_patience(self) -> Any:
        """Return the next answer, or None if none comes for a while."""
        with self._losing():
            try:
                async with self._clock.timeout(QUIET_SECONDS) as self._patience:
                    return await self._reply()
            except TimeoutError:
                return None
            finally:
                self._patience = None

    async def _reply(self) -> Any:
        """Return the next answer. Raises what the driver does when there is none."""
        from redis.exceptions import RedisError

        try:
            return await self._connection.read_response(timeout=math.inf, disconnect_on_error=False)
        except RedisError as cause:
            if (reply := error_reply(cause)) is None:
                raise
            return reply

    def _waiting(self, most: int = sys.maxsize) -> Iterator[Any]:
        """Yield the answers that have been read already.

        The driver would look at the time and suspend for each, which takes eight times as long.
        """
        next_reply = self._reader.gets
        while most > 0 and type(reply := next_reply()) is not object:  # which says: no more yet
            yield error_reply(reply) if isinstance(reply, Exception) else reply
            most -= 1

    @property
    def _reader(self) -> Reader:
        """What cuts the bytes that have been read into answers."""
        assert self._bounded is not None
        return self._bounded.reader

    @property
    def _bounded(self) -> BoundedReader | None:
        """What feeds that; None when there never was a connection."""
        bounded: BoundedReader | None = self._connection._parser._reader  # type: ignore[attr-defined]
        return bounded

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Tell in our words that the connection breaks."""
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError, TimeoutError) as cause:
            raise self._server.lost(cause) from None


def error_reply(cause: Exception) -> ErrorReply | None:
    """Return what the server said, if that is what the driver has made an error of."""
    from redis.exceptions import ResponseError

    code = getattr(cause, "status_code", None)  # cut off from the text, if the driver knows it
    if code is not None:
        return ErrorReply(f"{code} {cause}")
    return ErrorReply(cause) if isinstance(cause, ResponseError) else None
