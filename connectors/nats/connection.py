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

from nats import errors

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.connectors.nats.nats_driver import Driver, NatsMessage, NoAgreement
from headrace.connectors.nats.nats_urls import EXPECTED, NatsServer
from headrace.connectors.network.portions import portions
from headrace.connectors.network.refusal import CONNECT_SECONDS, turned_away
from headrace.connectors.network.tls import CERTIFICATE, handshake_fault

PING_SECONDS = 15
"""How often a quiet server is asked for a sign; one that leaves two questions open is gone."""
WRITE_BYTES = 64 * 1024
"""Most that is handed to the system at once, unless one message alone is larger."""

NONSENSE = (ValueError, TypeError)
"""What the driver raises when something else is said to it than servers say."""

_ERRNO = re.compile(r"\[Errno (\d{1,6})\]")
_DENIED = "permissions violation"
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
    waiting_messages: int = 65_536
    """Messages that may wait to be read into the pipeline."""
    waiting_bytes: int = 64 * 1024 * 1024
    """What their payloads may come to."""


class NatsClient:
    """A connection that tells when it is over, and whose confirmations can be relied on."""

    def __init__(
        self, server: NatsServer, ctx: Context, limits: Limits, news: Callable[[NatsClient], None]
    ) -> None:
        """Take whom to tell that it `is_over`, or that something was `denied`."""
        self.server = server
        self.is_over = False
        """Whether the server has hung up, or does not answer any more."""
        self.denied = ""
        """What the server did not permit, in its words."""
        self.last_words = ""
        """What it said before it hung up; empty if it just did."""
        self._driver = Driver(server)
        self._failures: list[Exception] = []
        self._ctx, self._limits, self._news = ctx, limits, news
        self._waiting: asyncio.Timeout | None = None

    @property
    def has_begun_tls(self) -> bool:
        """Whether the server has asked for TLS, and may have got it."""
        return self._driver.has_begun_tls

    @property
    def max_payload(self) -> int:
        """Bytes of the largest message that the server takes."""
        return self._driver.max_payload

    def words(self, cause: object) -> str:
        """Return what the server or its client says, as part of a sentence of ours."""
        return self._ctx.redact(str(cause).removeprefix("nats: ").strip().strip("'"))

    async def open(self, tls: ssl.SSLContext | None, seconds: float) -> None:
        """Connect and sign in.

        Raises:
            errors.Error, OSError: it did not work; what is left of it has to be closed.
        """
        server, driver, ctx = self.server, self._driver, self._ctx
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
        if (
            not driver.is_connected
        ):  # it hung up in the middle, which the client takes for a success
            raise ConnectionResetError
        driver.agree()

    async def listen(self, subject: str, take: Callable[[NatsMessage], None]) -> None:
        """Have every message handed to ``take`` that is published once this has returned.

        Raises:
            Unreachable: the server did not confirm.
            BuildRefused: it does not permit it.
        """
        self._driver.take = take
        async with self._confirming("the subscription"):
            await self._driver.subscribe(subject)
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
        async with self._confirming("the batch, so some of it may have been delivered"):
            # A connection that is closed still sends what it has taken: a little at a time, so that
            # the rest of what is given up stays here.
            for portion in portions(bodies, WRITE_BYTES):
                lines = b"".join([b"%b%d\r\n%b\r\n" % (head, len(body), body) for body in portion])
                # Private: `publish` takes three times as long, a fifth of all that is done for a message.
                await self._driver._send_command(lines)
                self._go_on()
        if self.denied:
            raise BatchFailed(f"{self.server.where} does not permit it: {self.denied}")

    async def end(self) -> None:
        """Close at once, whether or not somebody is there: what counts has been confirmed."""
        with suppress(TimeoutError, OSError, errors.Error):
            async with self._ctx.clock.timeout(self._limits.close_seconds):
                await self._driver.close()

    @asynccontextmanager
    async def _confirming(self, what: str) -> AsyncIterator[None]:
        """Send something, and return when the server has dealt with it. Raises Unreachable."""
        try:
            with self._ctx.clock.outside():
                async with self._ctx.clock.timeout(self._limits.confirm_seconds) as self._waiting:
                    yield
                    self._go_on()
                    # Not `flush`, which returns without an answer if nobody reads any more.
                    await self._driver.rtt(ceil(2 * self._limits.confirm_seconds))
        except (errors.Error, OSError) as cause:
            why = f"nothing within {self._limits.confirm_seconds:g} s"
            if self.is_over:
                why = self.last_words or "the connection was lost"
            raise Unreachable(f"{self.server.where} did not confirm {what}: {why}") from cause
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
        if _DENIED in str(cause):
            self.denied = self.words(cause)
            self._news(self)
        elif not self._driver.is_connecting:
            await self._lost()

    async def _lost(self) -> None:
        """Note that the connection is over, and what the server said before."""
        said = self._driver.last_error
        if not self.is_over and type(said) is errors.Error:
            self.last_words = self.words(said)
        self.is_over = True
        # The client leaves whoever waits for a dead server waiting.
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(0)
        self._news(self)

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
        self._servers = servers
        self._tls, self._ctx = tls, ctx
        self._seconds = limits.connect_seconds / len(servers)

    async def connect(self, news: Callable[[NatsClient], None] = lambda _: None) -> NatsClient:
        """Connect to the first server that takes us.

        Raises:
            BuildRefused: none takes us, and one of them says no.
            Unreachable: none answers.
        """
        refusals, silences = list[BuildRefused](), list[Unreachable]()
        for server in self._servers:
            try:
                return await self._connect(NatsClient(server, self._ctx, self.limits, news))
            except BuildRefused as cause:
                refusals.append(cause)
            except Unreachable as cause:
                silences.append(cause)
        if refusals:
            raise refusals[0]
        raise Unreachable("; ".join(map(str, silences)))

    async def _connect(self, client: NatsClient) -> NatsClient:
        try:
            with self._ctx.clock.outside():
                async with self._ctx.clock.timeout(self._seconds):
                    await client.open(self._tls, self._seconds)
        except (errors.Error, OSError, *NONSENSE) as cause:
            await client.end()
            raise self._told(client, cause) from cause
        except BaseException:
            await client.end()
            raise
        return client

    def _told(self, client: NatsClient, cause: Exception) -> Exception:
        """Return what to tell of a server that could not be connected to."""
        where = client.server.where
        if fault := _tls_fault(client, cause):
            return turned_away(fault)
        if type(cause) is UnicodeError:  # from the encoding of names that are too long
            return Unreachable(f"{where} does not answer: {_UNKNOWN}")
        words = client.words(cause)
        if isinstance(cause, NONSENSE) or "INFO" in words:
            return Unreachable(f"{where} does not answer as a NATS server does")
        if isinstance(cause, errors.Error):
            if "auth" in words.lower():
                return turned_away(f"{where} turns the connection away: {words}", EXPECTED)
            return Unreachable(f"{where} does not take the connection: {words}")
        if isinstance(cause, TimeoutError):
            return Unreachable(f"{where} does not answer: nothing within {self._seconds:g} s")
        return Unreachable(f"{where} does not answer: {_reason(cause)}")


def _tls_fault(client: NatsClient, cause: Exception) -> str | None:
    """Return why TLS as configured cannot work with a server; None if it is not to blame."""
    where = client.server.where
    if isinstance(cause, NoAgreement):
        return str(cause)
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        return handshake_fault(where, cause)
    # TLS 1.3 tells a client afterwards, or just hangs up.
    if client.has_begun_tls and isinstance(cause, ssl.SSLEOFError | ConnectionError):
        return f"{where} hangs up after the TLS handshake: {CERTIFICATE}"
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
