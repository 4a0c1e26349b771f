"""A Kafka cluster: where its brokers are, how they are reached, what is missing there, and why.

The driver says of every failed start only that it could not bootstrap. So a broker is asked before
a client is made, over a connection that is closed again, and what went wrong there is known.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import (
    BuildRefused,
    FailureClass,
    HeadraceError,
    Unreachable,
    class_of,
)
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.kafka.metadata import (
    TOPIC_SECONDS,
    Broker,
    Metadata,
    NotThere,
    advertised,
    coordinator,
    metadata_of,
    spelt,
)
from headrace.connectors.network.refusal import CONNECT_SECONDS, turned_away
from headrace.connectors.network.tls import tls_fault

STOP_SECONDS = 0.4
"""How long a client that is stopped is waited for."""

LOOK_SECONDS = 1.0
"""How long a batch waits before the brokers are asked; how long they may take to say."""

MOST_PROBES = 3
"""How many of the brokers that one advertises are tried while a client is made."""

ADVERTISED = (
    "the brokers advertise that address (if it is wrong, change their 'advertised.listeners')"
)

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds, and how large a record may be."""

    answer_seconds: float = 2.0
    """A broker that lets somebody in. With what `tls_fault` takes, less than a build has."""
    connect_seconds: float = CONNECT_SECONDS
    """All of a start."""
    request_seconds: float = 29.0
    """The driver's, for an answer, and for a record to be confirmed, tries of its own included."""
    metadata_seconds: float = 30.0
    """Until new partitions of a topic are noticed."""
    missing_seconds: float = 3.0
    """How long something may be missing, while brokers answer, before that counts as a failure."""
    session_seconds: float = 10.0
    """How long a group waits for a member that is silent."""
    pin_seconds: float = 10.0
    """To learn where new partitions are read from."""
    revoke_seconds: float = 3.0
    """How long partitions that are taken from us are kept, until what is out of them is finished."""
    record_bytes: int = 100_000_000
    """Of one record: brokers hang up on requests of 100 MiB, before they look at them."""


LIMITS = Limits()


@dataclass(eq=False)
class Cluster:
    """The brokers of a connection, as one component reaches them."""

    addresses: Collection[Broker] = field(repr=False)
    """Where to begin; what they come from may be a secret."""
    access: Callable[[], dict[str, Any]]
    """Returns how the driver gets in, the credential and all."""
    ctx: Context
    limits: Limits
    makes_topics: bool = True
    """Whether a topic that is not there may be made for who asks for it."""

    def options(self) -> dict[str, Any]:
        """Return how every client of the driver is made; the credential is in it."""
        return {
            "request_timeout_ms": int(self.limits.request_seconds * 1000),
            "metadata_max_age_ms": int(self.limits.metadata_seconds * 1000),
            **self.access(),
        }

    async def reach(self, topic: str) -> tuple[str, Collection[int]]:
        """Return the address of a broker that lets us in and knows a topic, and the topic's partitions.

        Whoever is first. The brokers that it knows of are where it says, or one of them is: a client
        goes there.

        Raises:
            BuildRefused: none does, and one says no.
            NotThere: they let us in, and the topic is not there (`NoTopic`), or nobody leads it.
            Unreachable: none answers.
        """
        broker, metadata = await self._ask(topic, self.limits.answer_seconds)
        return spelt(*broker), metadata.leaders.keys()

    async def sign_in(self) -> None:
        """Have one of the brokers let us in, whoever is first, and ask it for no topic.

        Raises:
            BuildRefused: none does, and one says no.
            Unreachable: none answers.
        """
        from aiokafka.protocol.metadata import MetadataRequest

        async def asked(broker: Broker) -> None:
            async with self._talking(broker, self.limits.answer_seconds) as connection:
                await connection.send(MetadataRequest([], False))

        await self._first(map(asked, self.addresses))

    async def examine(self, topic: str, group: str | None, seconds: float) -> None:
        """Look whether all that a client needs is there: who leads the topic, who looks after a group.

        Raises:
            as `reach` does, and Missing also for each that does not answer where it is said to be.
        """
        broker, metadata = await self._ask(topic, seconds)
        with self.ctx.clock.outside():
            if not {*metadata.leaders.values()} <= metadata.brokers.keys():
                raise NotThere(f"a partition of '{topic}' has no leader")
            needed = {*metadata.places}
            try:
                if group is not None:
                    async with self._talking(broker, seconds) as connection:
                        needed.add(await coordinator(connection, group))
                # One after the other: the first that is missing is told, always the same.
                for each in sorted(needed - {broker}):
                    await self._probe(each, seconds)
            except (BuildRefused, Unreachable) as cause:
                raise NotThere(str(cause), class_of(cause)) from cause

    async def _ask(self, topic: str, seconds: float) -> tuple[Broker, Metadata]:
        return await self._first(self._ask_one(each, topic, seconds) for each in self.addresses)

    async def _first(self, asking: Iterable[Coroutine[Any, Any, T]]) -> T:
        """Return what comes first of some attempts; raise the reason when none comes to anything."""
        asked = [asyncio.ensure_future(each) for each in asking]
        try:
            with self.ctx.clock.outside():
                for each in asyncio.as_completed(asked):
                    try:
                        return await each
                    except (BuildRefused, Unreachable):
                        continue  # looked at below, in the order of the list
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        raise _reason([task.exception() for task in asked])

    async def _ask_one(self, broker: Broker, topic: str, seconds: float) -> tuple[Broker, Metadata]:
        """Ask one broker for the topic, and see that others are where it says."""
        async with self._talking(broker, seconds, TOPIC_SECONDS) as connection:
            metadata = await metadata_of(
                connection, spelt(*broker), topic, self.ctx.clock, makes=self.makes_topics
            )
        others = [*dict.fromkeys(metadata.brokers.values())]
        if broker not in others:
            await self._first(self._probe(each, seconds) for each in others[:MOST_PROBES])
        return broker, metadata

    async def _probe(self, broker: Broker, seconds: float) -> None:
        """See that a broker is where the brokers say."""
        try:
            async with self._talking(advertised(broker), seconds):
                pass  # that there is a connection is enough
        except NotThere:
            raise
        except Unreachable as cause:
            raise Unreachable(f"{cause}; {ADVERTISED}") from cause

    @asynccontextmanager
    async def _talking(
        self, broker: Broker, seconds: float, more: float = 0.0
    ) -> AsyncIterator[Any]:
        """Give a connection to a broker.

        Raises:
            BuildRefused: it says no.
            Unreachable: it does not answer, or nothing that the driver can read.
        """
        try:
            async with (
                self.ctx.clock.timeout(seconds + more),
                self._connected(broker, seconds) as connection,
            ):
                yield connection
        except (BuildRefused, Unreachable):
            raise
        except Exception as cause:
            raise await self._fault(*broker, cause) from cause

    @asynccontextmanager
    async def _connected(self, broker: Broker, seconds: float) -> AsyncIterator[Any]:
        """Give a connection, and close it."""
        from aiokafka.conn import AIOKafkaConnection

        connection = AIOKafkaConnection(
            *broker, request_timeout_ms=int(seconds * 1000), **self.access()
        )
        async with self.ctx.clock.timeout(seconds):
            _, writer = await connection.connect()
        try:
            yield connection
        finally:
            connection.close()
            writer.transport.abort()  # over TLS the other side would have to say goodbye as well

    async def _fault(self, host: str, port: int, cause: Exception) -> Exception:
        """Return why a broker could not be talked to."""
        from aiokafka import errors

        where, mechanism = spelt(host, port), self.access().get("sasl_mechanism")
        match cause:
            case errors.SaslAuthenticationFailed():
                told = self.ctx.redact(str(cause.args[0] or "")) or "wrong user name or password"
                return turned_away(f"{where} refuses the credential: {told}")
            case errors.UnsupportedSaslMechanismError() if mechanism is not None:
                return turned_away(f"{where} does not take {mechanism}")
            case errors.IllegalSaslStateError():
                return turned_away(f"{where} takes no credential, and the connection has one")
            case ConnectionRefusedError():
                return Unreachable(f"{where} does not answer: connection refused")
            case socket.gaierror():
                return Unreachable(f"{where} does not answer: the host name cannot be resolved")
        if fault := await tls_fault(host, port, self.access()["ssl_context"], self.ctx.clock):
            return turned_away(fault)
        if not isinstance(cause, (OSError, TimeoutError, errors.KafkaError)):
            return Unreachable(f"{where} answers, and not as Kafka does")
        if mechanism is None and (wanted := await self._wanted(host, port)):
            mechanisms = ", ".join(wanted)
            return turned_away(f"{where} asks for a credential: {mechanisms}", "'sasl_mechanism'")
        return Unreachable(f"{where} does not answer")

    async def _wanted(self, host: str, port: int) -> Collection[str]:
        """Return the mechanisms by which a broker lets clients in; none if it asks for nothing."""
        from aiokafka.errors import KafkaError
        from aiokafka.protocol.admin import SaslHandShakeRequest

        try:
            async with self._connected((host, port), self.limits.answer_seconds / 4) as connection:
                answer = await connection.send(SaslHandShakeRequest("PLAIN"))
        except (OSError, TimeoutError, KafkaError):
            return ()
        return sorted(answer.enabled_mechanisms)


def _reason(causes: Iterable[BaseException | None]) -> BaseException:
    """Return the one reason of all brokers; that one says no counts for more than silence."""
    found = [cause for cause in causes if cause is not None]
    telling: list[BaseException] = [cause for cause in found if isinstance(cause, BuildRefused)]
    telling += [cause for cause in found if isinstance(cause, NotThere)]
    telling += [cause for cause in found if not isinstance(cause, Unreachable)]
    return telling[0] if telling else Unreachable("; ".join(dict.fromkeys(map(str, found))))


_stopping: set[asyncio.Future[Any]] = set()


async def stop(client: Any) -> None:
    """Stop a consumer or a producer of the driver.

    One whose broker is silent takes as long as a request may take. It is not waited for: it stops when
    the broker answers, or time is up.
    """
    # Who is let go of need not say why.
    stopping = asyncio.gather(client.stop(), return_exceptions=True)
    _stopping.add(stopping)  # the loop itself would forget it
    stopping.add_done_callback(_stopping.discard)
    await asyncio.wait([stopping], timeout=STOP_SECONDS)


def said(cause: BaseException) -> str:
    """Return what an error of the driver says, by Kafka's own name for it if there is one."""
    return str(getattr(cause, "message", None) or type(cause).__name__)


class HealthCheck:
    """Counts it as a failure when the brokers that a component needs do not answer, and notes their return.

    They are asked when nothing comes or nothing is confirmed. The driver connects again by itself and
    keeps to itself that it has to. A consumer so stays the member of its group that it was, and goes on
    as soon as the broker is back; a new one would have to wait until the group has given up the old one.

    With a ``group``, the broker that looks after it is one of them.
    """

    def __init__(self, cluster: Cluster, topic: str, group: str | None = None) -> None:
        self._cluster, self._ctx = cluster, cluster.ctx
        self._topic, self._group = topic, group
        self._backoff = Backoff()
        self._next = 0.0
        self._missing_since: float | None = None
        self.reason: str | None = None
        """What was told last; None when nothing is wrong."""
        self.failure: FailureClass = "unavailable"
        """Of what class that is."""

    async def look(self) -> None:
        """Ask the brokers, if it is time to: each try that goes wrong is a failure.

        We try on the backoff; the driver does by itself, several times a second.
        """
        monotonic = self._ctx.clock.monotonic
        if monotonic() >= self._next:
            cause, pause = await self._ask(), self._backoff.next()
            if cause is not None:
                self.reason, self.failure = str(cause), class_of(cause)
                self._ctx.disconnected(self.reason, pause, self.failure)
            self._next = monotonic() + pause

    def over(self) -> None:
        """Take note that the brokers answer the driver."""
        if self._next:
            self._next, self._missing_since = 0.0, None
            self._backoff.reset()
        self._answered()

    def _answered(self) -> None:
        if self.reason is not None:
            self.reason = None
            self._ctx.reconnected("connected again")

    async def _ask(self) -> HeadraceError | None:
        """Return what is wrong, as the brokers say; None when that may be over in a moment."""
        try:
            await self._cluster.examine(self._topic, self._group, LOOK_SECONDS)
        except NotThere as cause:
            now = self._ctx.clock.monotonic()
            if self._missing_since is None:
                self._missing_since = now
            is_lasting = now - self._missing_since >= self._cluster.limits.missing_seconds
            return cause if is_lasting else None
        except (BuildRefused, Unreachable) as cause:
            self._missing_since = None
            return cause
        self._missing_since = None
        self._answered()
        return None
