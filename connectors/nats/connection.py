"""One life of a connection to a NATS server, and the servers that are tried for one.

Reconnecting is the compiler's, so the client never does it by itself: what it would publish then has
long been reported as lost. A connection that is over is closed; the next life has a client of its own.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from nats import errors
from nats.aio.client import Client

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import BatchFailed, BuildRefused, FailureClass, Unreachable
from headrace.connectors.nats import EXPECTED, WAITING_BYTES, WAITING_MESSAGES, NatsServer
from headrace.connectors.nats.natsfailures import DENIED, FAILURES, UNCONFIRMED
from headrace.connectors.network.portions import portions
from headrace.connectors.network.refusal import CONNECT_SECONDS, turned_away
from headrace.connectors.network.tls import CERTIFICATE, handshake_fault

PING_SECONDS = 15
"""How often a quiet server is asked for a sign; one that leaves two questions open is gone."""
WRITE_BYTES = 64 * 1024
"""Most that is handed to the system at once, unless one message alone is larger."""

TURN_MESSAGES = 256
"""How many messages are taken in before everybody else on the loop has a turn."""

_ERRNO = re.compile(r"\[Errno (\d{1,6})\]")
_UNKNOWN = "the host name cannot be resolved"


@dataclass(frozen=True)
class Limits:
    """How long a server may take, and how much may wait for the pipeline."""

    connect_seconds: float = CONNECT_SECONDS
    """For connecting to any of the servers."""
    confirm_seconds: float = 10.0
    """For confirming what it was sent."""
    close_seconds: float = 0.2
    """For taking leave: what counts has been confirmed."""
    waiting_messages: int = WAITING_MESSAGES
    waiting_bytes: int = WAITING_BYTES


class NatsMessage(NamedTuple):
    """What arrived, as it stood on the wire."""

    data: bytes
    subject: bytes
    reply: bytes
    headers: bytes | None


class NoAgreement(errors.Error):
    """One side wants TLS and the other does not."""


class Driver(Client):
    """nats-py's, for one connection: agrees on TLS before anything is said, and hands its messages on."""

    def __init__(self, server: NatsServer) -> None:
        super().__init__()
        self.server = server
        self.take: Callable[[NatsMessage], None] = lambda _: None
        self.has_begun_tls = False
        self._until_turn = TURN_MESSAGES

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """What TLS is made with. The client asks for it when the server asks for TLS."""
        if not self.server.tls:
            raise NoAgreement(f"{self.server.where} asks for TLS, and the connection is without")
        self.has_begun_tls = True
        return super().ssl_context

    def shown(self, credential: str | None) -> Callable[[], str] | None:
        """Return what gives a credential when the client signs in; over TLS, if it is to be.

        The client would go on without when the server does not ask for TLS, and say all in clear.
        """
        if credential is None:
            return None

        def show() -> str:
            self.agree()
            return credential

        return show

    def agree(self) -> None:
        """Raise `NoAgreement` if TLS is wanted here and has not begun."""
        if self.server.tls and not self.has_begun_tls:
            raise NoAgreement(
                f"{self.server.where} does not ask for TLS, and the connection is not made without"
            )

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None
    ) -> None:
        """Hand on what arrived.

        Private: a callback gets one of several headers by one name; the client ends without a word on
        a subject that is not UTF-8, and anybody may publish to one; and by way of its queue and a task
        a message takes half as long again.
        """
        self.take(NatsMessage(data, subject, reply, headers))
        self._until_turn -= 1
        if not self._until_turn:
            self._until_turn = TURN_MESSAGES
            await asyncio.sleep(0)


class NatsClient:
    """A connection that tells when it is over, and whose confirmations can be relied on."""

    def __init__(self, server: NatsServer, ctx: Context, limits: Limits) -> None:
        self.server = server
        self.news: Callable[[NatsClient], None] = lambda _: None
        """Whom to tell that it `is_over`, or that something was `denied`."""
        self.is_over = False
        """Whether the server has hung up, or does not answer any more."""
        self.denied = ""
        """What the server did not permit, in its words."""
        self.last_words = ""
        """What it said before it hung up; empty if it just did."""
        self.driver = Driver(server)
        self._failures: list[Exception] = []
        self._ctx, self._limits = ctx, limits
        self._waiting: asyncio.Timeout | None = None

    def words(self, cause: object) -> str:
        """Return what the server or its client says, as part of a sentence of ours."""
        return self._ctx.redact(str(cause).removeprefix("nats: ").strip().strip("'"))

    async def open(self, tls: ssl.SSLContext | None, seconds: float) -> None:
        """Connect and sign in.

        Raises:
            errors.Error, OSError: it did not work; what is left of it has to be closed.
        """
        server, driver, ctx = self.server, self.driver, self._ctx
        try:
            await driver.connect(
                f"nats://{server.where}",
                name=f"headrace {ctx.pipeline} {ctx.place}",
                user=driver.shown(server.user),
                password=driver.shown(server.password),
                # A server takes an empty token for none.
                token=driver.shown(server.token or ("" if server.user is None else None)),
                tls=tls if server.tls else None,
                error_cb=self._failed,  # without one, each failure is logged with a traceback
                disconnected_cb=self._lost,
                lame_duck_mode_cb=self._warned,
                allow_reconnect=False,
                # Less than 1 would try a port that refuses again without end or pause.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=ceil(seconds),
                ping_interval=PING_SECONDS,
                # What is sent is handed to the system before anything else is: a question would
                # overtake it, and the answer confirm nothing.
                pending_size=1,
            )
        except errors.NoServersError:
            raise self._failures[-1] from None
        # It may have hung up in the middle, which the client takes for a success.
        if not driver.is_connected:
            raise ConnectionResetError
        driver.agree()

    async def listen(self, subject: str, take: Callable[[NatsMessage], None]) -> None:
        """Have every message handed to ``take`` that is published once this has returned.

        Raises:
            Unreachable: the server did not confirm.
            BuildRefused: it does not permit it.
        """
        self.driver.take = take
        async with self._confirming("the subscription"):
            await self.driver.subscribe(subject)
        if self.denied:
            raise turned_away(f"{self.server.where} does not permit it: {self.denied}")

    async def send(self, subject: str, bodies: Sequence[bytes]) -> None:
        """Publish messages, and wait until the server has dealt with all of them.

        Raises:
            Unreachable: the server did not confirm: the messages may have been delivered.
            BatchFailed: it does not permit it.
        """
        self.denied = ""
        head = f"PUB {subject} ".encode()
        what = "the batch, so some of it may have been delivered"
        async with self._confirming(what, FAILURES.of(UNCONFIRMED)):
            # A connection that is closed still sends what it has taken: a little at a time, so that
            # the rest of what is given up stays here.
            for portion in portions(bodies, WRITE_BYTES):
                lines = b"".join([b"%b%d\r\n%b\r\n" % (head, len(body), body) for body in portion])
                # Private: `publish` takes three times as long, a fifth of all that is done for a message.
                await self.driver._send_command(lines)
                self._go_on()
        if self.denied:
            said = f"{self.server.where} does not permit it: {self.denied}"
            raise BatchFailed(said, FAILURES.of(DENIED))

    async def end(self) -> None:
        """Close at once, whether or not somebody is there: what counts has been confirmed."""
        with suppress(TimeoutError, OSError, errors.Error):
            async with self._ctx.clock.timeout(self._limits.close_seconds):
                await self.driver.close()

    @asynccontextmanager
    async def _confirming(
        self, what: str, failure: FailureClass = "unavailable"
    ) -> AsyncIterator[None]:
        """Send something, and return when the server has dealt with it. Raises Unreachable."""
        try:
            async with self._ctx.clock.within(self._limits.confirm_seconds) as self._waiting:
                yield
                self._go_on()
                # Not `flush`, which returns without an answer if nobody reads any more.
                await self.driver.rtt(ceil(2 * self._limits.confirm_seconds))
        except (errors.Error, OSError) as cause:
            silence = f"nothing within {self._limits.confirm_seconds:g} s"
            why = (self.last_words or "the connection was lost") if self.is_over else silence
            said = f"{self.server.where} did not confirm {what}: {why}"
            raise Unreachable(said, failure) from cause
        finally:
            self._waiting = None

    def _go_on(self) -> None:
        """Raise what ends the sending: the client swallows that it is cancelled while it sends."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        if self.is_over:
            raise errors.ConnectionClosedError

    async def _failed(self, cause: Exception) -> None:
        """Take what goes wrong, and what the server says without hanging up."""
        self._failures.append(cause)
        if DENIED.lower() in str(cause).lower():
            self.denied = self.words(cause)
            self.news(self)
        elif not self.driver.is_connecting:
            await self._lost()

    async def _lost(self) -> None:
        """Note that the connection is over, and what the server said before."""
        said = self.driver.last_error
        if not self.is_over and type(said) is errors.Error:
            self.last_words = self.words(said)
        self.is_over = True
        # The client leaves whoever waits for a dead server waiting.
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(0)
        self.news(self)

    async def _warned(self) -> None:
        self._ctx.warn(f"{self.server.where} is about to shut down and will hang up")


class NatsServers:
    """The servers of a connection; the first that takes us is connected to."""

    def __init__(
        self,
        servers: Sequence[NatsServer],
        tls: ssl.SSLContext | None,
        ctx: Context,
        limits: Limits,
    ) -> None:
        self.where = ", ".join(server.where for server in servers)
        self.limits = limits
        self._servers, self._tls, self._ctx = servers, tls, ctx
        self._seconds = limits.connect_seconds / len(servers)

    async def connect(self, news: Callable[[NatsClient], None] = lambda _: None) -> NatsClient:
        """Connect to the first server that takes us; of that one alone ``news`` is told.

        Raises:
            BuildRefused: none takes us, and one of them says no.
            Unreachable: none answers.
        """
        refusals, silences = list[BuildRefused](), list[Unreachable]()
        for server in self._servers:
            client = NatsClient(server, self._ctx, self.limits)
            try:
                async with self._ctx.clock.within(self._seconds):
                    await client.open(self._tls, self._seconds)
            except BaseException as cause:
                await client.end()
                match self._told(client, cause):
                    case BuildRefused() as refusal:
                        refusals.append(refusal)
                    case Unreachable() as silence:
                        silences.append(silence)
                    case _:
                        raise
            else:
                client.news = news
                return client
        raise refusals[0] if refusals else Unreachable("; ".join(map(str, silences)))

    def _told(self, client: NatsClient, cause: BaseException) -> Exception | None:
        """Return what to tell of a server that could not be connected to; None: it is not the server."""
        where, words = client.server.where, client.words(cause)
        if fault := _tls_fault(client, cause):
            return turned_away(fault)
        match cause:
            # A part of the name is empty, or longer than 63. What cannot be decoded the server has said.
            case UnicodeError() if not isinstance(cause, UnicodeDecodeError):
                why = _UNKNOWN
            case ValueError() | TypeError():
                return Unreachable(f"{where} does not answer as a NATS server does")
            case errors.Error() | OSError() if "INFO" in words:
                return Unreachable(f"{where} does not answer as a NATS server does")
            case errors.Error() if "auth" in words.lower():
                return turned_away(f"{where} turns the connection away: {words}", EXPECTED)
            case errors.Error():
                return Unreachable(f"{where} does not take the connection: {words}")
            case TimeoutError():
                why = f"nothing within {self._seconds:g} s"
            case OSError():
                why = _reason(cause)
            case _:
                return None
        return Unreachable(f"{where} does not answer: {why}")


def _tls_fault(client: NatsClient, cause: BaseException) -> str | None:
    """Return why TLS as configured cannot work with a server; None if it is not to blame."""
    where = client.server.where
    match cause:
        case NoAgreement():
            return str(cause)
        case ssl.SSLEOFError() | ConnectionError() if client.driver.has_begun_tls:
            # TLS 1.3 tells a client afterwards, or just hangs up.
            return f"{where} hangs up after the TLS handshake: {CERTIFICATE}"
        case ssl.SSLError() if not isinstance(cause, ssl.SSLEOFError):
            return handshake_fault(where, cause)
    return None


def _reason(cause: OSError) -> str:
    """Return why there is no connection: in the system's words, without those of a library."""
    if isinstance(cause, ConnectionResetError | ssl.SSLEOFError):
        return "it hung up"
    number = cause.errno
    if number is None and (found := _ERRNO.search(str(cause))):  # several addresses, several faults
        number = int(found[1])
    if number is None:
        return str(cause.strerror or cause).lower()
    return _UNKNOWN if number < 0 else os.strerror(number).lower()  # names have numbers below 0
