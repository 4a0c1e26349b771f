"""One life of a connection to a NATS server: nats-py, with what it leaves open.

Reconnecting is the compiler's, so the client never does it by itself: what it would publish then has
long been reported as lost. A connection that is over is closed; the next life has a client of its own.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Awaitable, Callable, Sequence
from math import ceil
from typing import Any, NamedTuple

from nats import errors
from nats.aio.client import DEFAULT_BUFFER_SIZE, Client
from nats.aio.transport import TcpTransport
from nats.protocol.parser import AWAITING_MSG_PAYLOAD, Parser

from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.compiler.language.context import Context
from headrace.compiler.largejson import in_slices
from headrace.connectors.nats.urls import EXPECTED, Server
from headrace.connectors.refusal import CONNECT_SECONDS, turned_away
from headrace.connectors.tls import handshake_fault

CONFIRM_SECONDS = 10.0
"""How long a server may take to confirm what it was sent."""
PING_SECONDS = 15
"""How often a quiet server is asked for a sign; one that leaves two questions open is gone."""

MOST_BYTES = 64 * 1024 * 1024
"""The largest message that is taken; a server takes none that is larger, unless told to hold more."""
LINE_BYTES = 128 * 1024
"""The longest line between messages: what a large cluster tells of its servers."""

NONSENSE = (ValueError, TypeError)
"""What the driver raises when something else is said to it than servers say."""

_ERRNO = re.compile(r"\[Errno (\d{1,6})\]")
_DENIED = "permissions violation"
_UNKNOWN = "the host name cannot be resolved"


class Message(NamedTuple):
    """What arrived, as it stood on the wire."""

    data: bytes
    subject: bytes
    reply: bytes
    headers: bytes | None


class _NoAgreement(errors.Error):
    """One side wants TLS and the other does not."""


class _BoundedParser(Parser):
    """Ends a connection whose other side never comes to the end of a line or of a message.

    The driver would keep all of it, and look through a line from its beginning with every piece.
    And while there is something to read it would read on, with the rest of the process waiting.
    """

    async def parse(self, data: bytes = b"") -> None:
        await super().parse(data)
        if len(data) >= DEFAULT_BUFFER_SIZE:
            await self.nc.give_way()
        is_message = self.state == AWAITING_MSG_PAYLOAD
        if len(self.buf) > (MOST_BYTES if is_message else LINE_BYTES):
            self.reset()
            raise errors.ProtocolError


class Link(Client):
    """A connection that tells when it is over, and whose confirmations can be relied on.

    It overrides what nats-py 2.16 does internally in four places; each says what is wrong there.
    """

    def __init__(self, server: Server, ctx: Context, news: Callable[[Link], None]) -> None:
        """Take whom to tell that it `is_over`, or that something was `denied`."""
        super().__init__()
        self._ps = _BoundedParser(self)
        self.server = server
        self.denied = ""
        """What the server did not permit, in its words."""
        self.last_words = ""
        """What it said before it hung up; empty if it just did."""
        self.wants_certificate = False
        """Whether the server asks for one of ours."""
        self._ctx, self._news = ctx, news
        self._take: Callable[[Message], None] = lambda _: None
        self._waits: asyncio.Timeout | None = None

    @property
    def is_over(self) -> bool:
        """Whether nobody reads any more what the server sends, or will in a moment."""
        return self.is_closed or self._reading_task is None or self._reading_task.done()

    async def give_way(self) -> None:
        """Let others run."""
        await self._ctx.clock.sleep(0)

    def words(self, cause: object) -> str:
        """Return what the server or its client says, as part of a sentence of ours."""
        return self._ctx.redact(str(cause).removeprefix("nats: ").strip().strip("'"))

    async def open(self, tls: ssl.SSLContext | None, seconds: float) -> None:
        """Connect and sign in.

        Raises:
            errors.Error, OSError: it did not work; what is left of it has to be closed.
        """
        server, ctx, failures = self.server, self._ctx, list[Exception]()

        async def note(cause: Exception) -> None:
            failures.append(cause)

        async def warn() -> None:
            ctx.warn(f"{server.where} is about to shut down and will hang up")

        try:
            await self.connect(
                f"nats://{server.where}",
                name=f"headrace {ctx.pipeline} {ctx.place}",
                user=server.user,
                password=server.password,
                token=server.token,
                tls=tls,
                error_cb=note,  # without one, each failure is logged with a traceback
                lame_duck_mode_cb=warn,
                allow_reconnect=False,
                # Less than 1 would try a port that refuses again without end or pause.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=ceil(seconds),
                ping_interval=PING_SECONDS,
            )
        except errors.NoServersError:
            raise failures[-1] from None
        if not self.is_connected:  # it hung up in the middle, which the client takes for a success
            raise ConnectionResetError
        assert self._reading_task is not None
        self._reading_task.add_done_callback(self._over)

    async def listen(self, subject: str, take: Callable[[Message], None]) -> None:
        """Have every message handed to ``take`` that is published once this has returned.

        Raises:
            Unreachable: the server did not confirm.
            BuildRefused: it does not permit it.
        """
        self._take = take
        await self._confirmed("the subscription", self.subscribe(subject))
        if self.denied:
            raise turned_away(f"{self.server.where} does not permit it: {self.denied}")

    async def send(self, subject: str, bodies: list[bytes]) -> None:
        """Publish messages, and wait until the server has dealt with all of them.

        Raises:
            Unreachable: the server did not confirm: the messages may have been delivered.
            BatchFailed: it does not permit it.
        """
        self.denied = ""
        head = f"PUB {subject} ".encode()

        def lines(bodies: list[bytes]) -> bytes:
            return b"".join([b"%b%d\r\n%b\r\n" % (head, len(body), body) for body in bodies])

        # All at once: `publish` takes longer over a message than everything else together.
        if len(bodies) > LARGE_BATCH:
            sending = self._send_commands(await in_slices(bodies, lines, self._ctx.clock))
        else:
            sending = self._send_command(lines(bodies))
        await self._confirmed("the batch, so some of it may have been delivered", sending)
        if self.denied:
            raise BatchFailed(f"{self.server.where} does not permit it: {self.denied}")

    async def _send_commands(self, commands: Sequence[bytes]) -> None:
        """Send one after the other, as the server takes them: above 2 MiB the client waits for it."""
        for each in commands:
            if self.is_over:
                return
            await self._send_command(each)

    async def end(self) -> None:
        """Close at once, whether or not somebody is there: what counts has been confirmed."""
        transport, self._transport = self._transport, None  # else closing would wait for it
        if isinstance(transport, TcpTransport) and transport._io_writer is not None:
            transport._io_writer.transport.abort()
        await self.close()

    async def _confirmed(self, what: str, sending: Awaitable[Any]) -> None:
        """Await what sends, and then until the server has dealt with it."""
        try:
            with self._ctx.clock.outside():
                # Also ended by `_over`: nats-py leaves whoever waits for a dead server waiting.
                async with self._ctx.clock.timeout(CONFIRM_SECONDS) as self._waits:
                    await sending
                    if self.is_over:
                        raise errors.ConnectionClosedError
                    pong = asyncio.get_running_loop().create_future()
                    await self._send_ping(pong)
                    # Shielded: an answer to a question that was withdrawn would end the reading.
                    await asyncio.shield(pong)
        except (errors.Error, OSError) as cause:
            why = self._end_of_waiting()
            raise Unreachable(f"{self.server.where} did not confirm {what}: {why}") from cause
        finally:
            self._waits = None

    def _end_of_waiting(self) -> str:
        if not self.is_over:
            return f"nothing within {CONFIRM_SECONDS:g} s"
        return self.last_words or "the connection was lost"

    def _connect_command(self) -> bytes:
        """Have the streams know that they use TLS: else the loop warns when the server hangs up.

        Asked for as soon as TLS is there, and before the server may say no.
        """
        if self.server.tls and isinstance(self._transport, TcpTransport):
            writer = self._transport._io_writer
            assert writer is not None
            protocol: Any = writer.transport.get_protocol()
            if protocol is not None:  # it has hung up already
                protocol._over_ssl = True
        return super()._connect_command()

    def _over(self, _: object) -> None:
        if self._waits is not None and not self._waits.expired():
            self._waits.reschedule(0)
        self._news(self)

    async def _send_ping(self, future: asyncio.Future[Any] | None = None) -> None:
        """Ask for a sign, after everything that was published before.

        The client's own question overtakes it, so that its answer would confirm nothing.
        """
        self._pongs.append(future or asyncio.get_running_loop().create_future())
        await self._send_command(b"PING\r\n")
        await self._flush_pending()

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Agree on TLS, before anything is sent: the client would go on without it, credentials and all."""
        if initial_connection:
            offers = bool(info.get("tls_required") or info.get("tls_available"))
            if self.server.tls and not offers:
                raise _NoAgreement(f"{self.server.where} does not speak TLS")
            if info.get("tls_required") and not self.server.tls:
                raise _NoAgreement(
                    f"{self.server.where} asks for TLS, and the connection is without"
                )
            info["tls_required"] = self.server.tls
            self.wants_certificate = bool(info.get("tls_verify"))
        await super()._process_info(info, initial_connection)

    async def _process_err(self, err_msg: str) -> None:
        """Keep what the server says: the end of the connection, right behind it, would replace it."""
        if _DENIED in err_msg:
            self.denied = self.words(err_msg)
            self._news(self)
        else:
            self.last_words = self.words(err_msg)
        await super()._process_err(err_msg)

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None
    ) -> None:
        """Hand on what arrived as it stood on the wire.

        The client would keep one of several headers by one name, end without a word on a subject
        that is not UTF-8, and take half as long again by way of a queue and a task.
        """
        self._take(Message(data, subject, reply, headers))


class Dialer:
    """Connects to the servers of a connection, the first that takes us."""

    def __init__(self, servers: Sequence[Server], tls: ssl.SSLContext | None, ctx: Context) -> None:
        self.where = ", ".join(server.where for server in servers)
        self._servers = servers
        self._tls, self._ctx = tls, ctx
        self._seconds = CONNECT_SECONDS / len(servers)

    async def dial(self, news: Callable[[Link], None] = lambda _: None) -> Link:
        """Connect to the first server that takes us.

        Raises:
            BuildRefused: none takes us, and one of them says no.
            Unreachable: none answers.
        """
        refusals, silences = list[BuildRefused](), list[Unreachable]()
        for server in self._servers:
            try:
                return await self._connect(Link(server, self._ctx, news))
            except BuildRefused as cause:
                refusals.append(cause)
            except Unreachable as cause:
                silences.append(cause)
        if refusals:
            raise refusals[0]
        raise Unreachable("; ".join(map(str, silences)))

    async def _connect(self, link: Link) -> Link:
        try:
            with self._ctx.clock.outside():
                async with self._ctx.clock.timeout(self._seconds):
                    await link.open(self._tls, self._seconds)
        except (errors.Error, OSError, *NONSENSE) as cause:
            await link.end()
            raise self._told(link, cause) from cause
        except BaseException:
            await link.end()
            raise
        return link

    def _told(self, link: Link, cause: Exception) -> Exception:
        """Return what to tell of a server that could not be connected to."""
        where = link.server.where
        if fault := _tls_fault(link, cause):
            return turned_away(fault)
        if type(cause) is UnicodeError:  # from the encoding of names that are too long
            return Unreachable(f"{where} does not answer: {_UNKNOWN}")
        words = link.words(cause)
        if isinstance(cause, NONSENSE) or "INFO" in words:
            return Unreachable(f"{where} does not answer as a NATS server does")
        if isinstance(cause, errors.Error):
            if "auth" in words.lower():
                return turned_away(f"{where} turns the connection away: {words}", EXPECTED)
            return Unreachable(f"{where} does not take the connection: {words}")
        if isinstance(cause, TimeoutError):
            return Unreachable(f"{where} does not answer: nothing within {self._seconds:g} s")
        return Unreachable(f"{where} does not answer: {_reason(cause)}")


def _tls_fault(link: Link, cause: Exception) -> str | None:
    """Return why TLS as configured cannot work with a server; None if it is not to blame."""
    where = link.server.where
    if isinstance(cause, _NoAgreement):
        return str(cause)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return handshake_fault(where, cause)
    # TLS 1.3 tells a client afterwards, or just hangs up.
    if link.wants_certificate and isinstance(cause, ssl.SSLError | ConnectionError):
        return f"{where} asks for a certificate that it trusts"
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        return handshake_fault(where, cause)
    return None


def _reason(cause: Exception) -> str:
    """Return why there is no connection: in the system's words, without those of a library."""
    number = cause.errno if isinstance(cause, OSError) else None
    if isinstance(cause, ConnectionResetError | ssl.SSLEOFError):
        return "it hung up"
    if number is None and (found := _ERRNO.search(str(cause))):  # several addresses, several faults
        number = int(found[1])
    if number is not None and number < 0:  # so are those of name resolution
        return _UNKNOWN
    if number is None:
        return str(getattr(cause, "strerror", None) or cause).lower()
    return os.strerror(number).lower()
