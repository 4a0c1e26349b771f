"""A Kafka cluster: where its brokers are, how they are reached, what is missing there, and why.

The driver says of every failed start only that it could not bootstrap. So a broker is asked before
a client is made, over a connection that is closed again, and what went wrong there is known.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.kafka.addresses import Broker, spelt
from headrace.connectors.kafka.metadata import (
    TOPIC_SECONDS,
    Metadata,
    NotThere,
    advertised,
    coordinator,
    metadata_of,
)
from headrace.connectors.network.refusal import CONNECT_SECONDS, turned_away
from headrace.connectors.network.tls import tls_fault

STOP_SECONDS = 0.4
"""How long a client that is stopped is waited for."""

MOST_PROBES = 3
"""How many of the brokers that one advertises are tried while a client is made."""

ADVERTISED = (
    "the brokers advertise that address (if it is wrong, change their 'advertised.listeners')"
)

T = TypeVar("T")
Talk = Callable[[Any], Awaitable[T]]
"""Makes something of a connection."""


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


@dataclass(frozen=True)
class Credential:
    """What a connection presents over SASL."""

    mechanism: str
    username: str = field(repr=False)
    password: str = field(repr=False)


class Cluster:
    """The brokers of a connection, as one component reaches them."""

    def __init__(
        self,
        addresses: Collection[Broker],
        tls: ssl.SSLContext | None,
        credential: Credential | None,
        ctx: Context,
        limits: Limits,
        *,
        makes_topics: bool = True,
    ) -> None:
        """Take where to begin, and whether a topic that is not there may be made for who asks for it."""
        self.limits = limits
        self._addresses = addresses
        self._tls = tls
        self._credential = credential
        self._ctx = ctx
        self._makes_topics = makes_topics
        self._client_id = f"headrace-{ctx.pipeline}"

    def options(self) -> dict[str, Any]:
        """Return how every client of the driver is made; the credential is in it."""
        return {
            "client_id": self._client_id,
            "request_timeout_ms": int(self.limits.request_seconds * 1000),
            "metadata_max_age_ms": int(self.limits.metadata_seconds * 1000),
            **self._security(),
        }

    def _security(self) -> dict[str, Any]:
        layer = "PLAINTEXT" if self._tls is None else "SSL"
        if self._credential is None:
            return {"security_protocol": layer, "ssl_context": self._tls}
        return {
            "security_protocol": f"SASL_{layer}",
            "ssl_context": self._tls,
            "sasl_mechanism": self._credential.mechanism,
            "sasl_plain_username": self._credential.username,
            "sasl_plain_password": self._credential.password,
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

    async def examine(self, topic: str, group: str | None, seconds: float) -> None:
        """Look whether all that a client needs is there: who leads the topic, who looks after a group.

        Raises:
            as `reach` does, and Missing also for each that does not answer where it is said to be.
        """
        broker, metadata = await self._ask(topic, seconds)
        with self._ctx.clock.outside():
            if not {*metadata.leaders.values()} <= metadata.brokers.keys():
                raise NotThere(f"a partition of '{topic}' has no leader")
            needed = {*metadata.places}
            try:
                if group is not None:
                    needed.add(await self._talk(broker, seconds, lambda it: coordinator(it, group)))
                # One after the other: the first that is missing is told, always the same.
                for each in sorted(needed - {broker}):
                    await self._probe(each, seconds)
            except (BuildRefused, Unreachable) as cause:
                raise NotThere(str(cause)) from cause

    async def _ask(self, topic: str, seconds: float) -> tuple[Broker, Metadata]:
        return await self._first(self._ask_one(each, topic, seconds) for each in self._addresses)

    async def _first(self, asking: Iterable[Coroutine[Any, Any, T]]) -> T:
        """Return what comes first of some attempts; raise the reason when none comes to anything."""
        asked = [asyncio.ensure_future(each) for each in asking]
        try:
            with self._ctx.clock.outside():
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
        where, clock, makes = spelt(*broker), self._ctx.clock, self._makes_topics
        metadata = await self._talk(
            broker,
            seconds,
            lambda it: metadata_of(it, where, topic, clock, makes=makes),
            TOPIC_SECONDS,
        )
        others = [*dict.fromkeys(metadata.brokers.values())]
        if broker not in others:
            await self._first(self._probe(each, seconds) for each in others[:MOST_PROBES])
        return broker, metadata

    async def _probe(self, broker: Broker, seconds: float) -> None:
        """See that a broker is where the brokers say."""
        try:
            await self._talk(advertised(broker), seconds, _nothing)
        except NotThere:
            raise
        except Unreachable as cause:
            raise Unreachable(f"{cause}; {ADVERTISED}") from cause

    async def _talk(self, broker: Broker, seconds: float, talk: Talk[T], more: float = 0.0) -> T:
        """Return what is made of a connection to a broker.

        Raises:
            BuildRefused: it says no.
            Unreachable: it does not answer, or nothing that the driver can read.
        """
        try:
            async with self._ctx.clock.timeout(seconds + more):
                return await self._over(broker, seconds, talk)
        except (BuildRefused, Unreachable):
            raise
        except Exception as cause:
            raise await self._fault(*broker, cause) from cause

    async def _over(self, broker: Broker, seconds: float, talk: Talk[T]) -> T:
        """Return what is made of a connection of its own."""
        from aiokafka.conn import AIOKafkaConnection

        connection = AIOKafkaConnection(
            *broker,
            client_id=self._client_id,
            request_timeout_ms=int(seconds * 1000),
            **self._security(),
        )
        async with self._ctx.clock.timeout(seconds):
            _, writer = await connection.connect()
        try:
            return await talk(connection)
        finally:
            connection.close()
            writer.transport.abort()  # over TLS the other side would have to say goodbye as well

    async def _fault(self, host: str, port: int, cause: Exception) -> Exception:
        """Return why a broker could not be talked to."""
        from aiokafka import errors

        where = spelt(host, port)
        match cause:
            case errors.SaslAuthenticationFailed():
                told = self._ctx.redact(str(cause.args[0] or "")) or "wrong user name or password"
                return turned_away(f"{where} refuses the credential: {told}")
            case errors.UnsupportedSaslMechanismError() if self._credential is not None:
                return turned_away(f"{where} does not take {self._credential.mechanism}")
            case errors.IllegalSaslStateError():
                return turned_away(f"{where} takes no credential, and the connection has one")
            case ConnectionRefusedError():
                return Unreachable(f"{where} does not answer: connection refused")
            case socket.gaierror():
                return Unreachable(f"{where} does not answer: the host name cannot be resolved")
        if fault := await tls_fault(host, port, self._tls, self._ctx.clock):
            return turned_away(fault)
        if not isinstance(cause, (OSError, TimeoutError, errors.KafkaError)):
            return Unreachable(f"{where} answers, and not as Kafka does")
        if self._credential is None and (wanted := await self._wanted(host, port)):
            mechanisms = ", ".join(wanted)
            return turned_away(f"{where} asks for a credential: {mechanisms}", "'sasl_mechanism'")
        return Unreachable(f"{where} does not answer")

    async def _wanted(self, host: str, port: int) -> Collection[str]:
        """Return the mechanisms by which a broker lets clients in; none if it asks for nothing."""
        from aiokafka.errors import KafkaError
        from aiokafka.protocol.admin import SaslHandShakeRequest

        def shake(connection: Any) -> Awaitable[Any]:
            answer: Awaitable[Any] = connection.send(SaslHandShakeRequest("PLAIN"))
            return answer

        try:
            answer = await self._over((host, port), self.limits.answer_seconds / 4, shake)
        except (OSError, TimeoutError, KafkaError):
            return ()
        return sorted(answer.enabled_mechanisms)


async def _nothing(connection: Any) -> None:
    """Make nothing of a connection: that there is one is enough."""


def _reason(causes: Collection[BaseException | None]) -> BaseException:
    """Return the one reason of all brokers; that one says no counts for more than silence."""
    found = [cause for cause in causes if cause is not None]
    for kind in (BuildRefused, NotThere):
        for cause in found:
            if isinstance(cause, kind):
                return cause
    unexpected = [cause for cause in found if not isinstance(cause, Unreachable)]
    return unexpected[0] if unexpected else Unreachable("; ".join(dict.fromkeys(map(str, found))))


_stopping: set[asyncio.Task[None]] = set()


async def stop(client: Any) -> None:
    """Stop a consumer or a producer of the driver.

    One whose broker is silent takes as long as a request may take. It is not waited for: it stops when
    the broker answers, or time is up.
    """
    task: asyncio.Task[None] = asyncio.ensure_future(client.stop())
    _stopping.add(task)  # the loop itself would forget it
    task.add_done_callback(_stopped)
    await asyncio.wait([task], timeout=STOP_SECONDS)


def _stopped(task: asyncio.Task[None]) -> None:
    _stopping.discard(task)
    if not task.cancelled():
        task.exception()  # looked at: who is let go of need not say why


def said(cause: BaseException) -> str:
    """Return what an error of the driver says, by Kafka's own name for it if there is one."""
    return str(getattr(cause, "message", None) or type(cause).__name__)
