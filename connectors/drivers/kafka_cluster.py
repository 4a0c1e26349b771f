"""A Kafka cluster: where its brokers are, how they are reached, and why not.

The driver says of every failed start only that it could not bootstrap. So a broker is asked before
a client is made, over a connection that is closed again, and what went wrong there is known.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.compiler.language.context import Context
from headrace.compiler.language.diagnostics import Fault
from headrace.connectors.refusal import turned_away
from headrace.connectors.tls import tls_fault

ANSWER_SECONDS = 2.0
"""How long a broker may take to let somebody in. With what `tls_fault` takes, less than a build has."""
TOPIC_SECONDS = 1.5
"""How long a topic may take to be there that the broker makes when it is asked for."""
ASK_SECONDS = 0.1
"""How often a broker is asked for that topic."""
REQUEST_SECONDS = 29.0
"""How long the driver waits for an answer, and for a record to be confirmed."""
METADATA_SECONDS = 30.0
"""How soon new partitions of a topic are noticed."""

Broker = tuple[str, int]

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/@,\[\]]+)):(?P<port>\d{1,5})")


class NoTopic(Unreachable):
    """The brokers know no topic of that name, and make none."""


def brokers(text: str, template: str) -> list[Broker]:
    """Return the hosts and ports of a list.

    Raises:
        BuildRefused: one is no address. It is shown as the ``template`` of the list spells it, for
            what that resolves to may be a secret.
    """
    entries = [entry.strip() for entry in text.split(",")]
    found = [_broker(entry) for entry in entries]
    if None in found:
        raise _malformed(found.index(None), len(found), template)
    return [broker for broker in found if broker is not None]


def _broker(entry: str) -> Broker | None:
    match = _ADDRESS.fullmatch(entry)
    if match is None or not 0 < int(match["port"]) <= 65535:
        return None
    return match["six"] or match["host"], int(match["port"])


def _malformed(index: int, count: int, template: str) -> BuildRefused:
    spelt = template.split(",")
    bad = spelt[index].strip() if len(spelt) == count else template
    which = f"'{bad}' in 'brokers'" if count == len(spelt) else f"part {index + 1} of '{bad}'"
    return BuildRefused(
        Fault(
            "not-an-address",
            f"{which} is no address of a broker",
            found=bad,
            expected="host:port, several of them parted by commas",
            path=("connection",),
        )
    )


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
    ) -> None:
        self._addresses = addresses
        self._tls = tls
        self._credential = credential
        self._ctx = ctx
        self._client_id = f"headrace-{ctx.pipeline}"

    def options(self) -> dict[str, Any]:
        """Return how every client of the driver is made; the credential is in it."""
        return {
            "client_id": self._client_id,
            "request_timeout_ms": int(REQUEST_SECONDS * 1000),
            "metadata_max_age_ms": int(METADATA_SECONDS * 1000),
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

    async def reach(self, topic: str, seconds: float = ANSWER_SECONDS) -> str:
        """Return the address of a broker that lets us in and knows a topic: whoever is first.

        Raises:
            BuildRefused: none does, and one says no.
            NoTopic: they let us in, and the topic is not there.
            Unreachable: none answers.
        """
        asked = [
            asyncio.ensure_future(self._ask(host, port, topic, seconds))
            for host, port in self._addresses
        ]
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

    async def _ask(self, host: str, port: int, topic: str, seconds: float) -> str:
        """Ask one broker for the topic and return its address."""
        from aiokafka.errors import KafkaError

        where = _where(host, port)
        try:
            async with self._ctx.clock.timeout(seconds + TOPIC_SECONDS):
                await self._over(host, port, seconds, self._seek(where, topic))
        except (OSError, TimeoutError, KafkaError) as cause:
            raise await self._fault(host, port, cause) from cause
        return where

    async def _over(
        self,
        host: str,
        port: int,
        seconds: float,
        talk: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        """Return what is made of a connection of its own."""
        from aiokafka.conn import create_conn

        async with self._ctx.clock.timeout(seconds):
            connection = await create_conn(
                host,
                port,
                client_id=self._client_id,
                request_timeout_ms=int(seconds * 1000),
                **self._security(),
            )
        try:
            return await talk(connection)
        finally:
            if connection.connected():
                # At once: over TLS the other side would be waited for, to say goodbye as well.
                connection._writer.transport.abort()
            await connection.close()

    def _seek(self, where: str, topic: str) -> Callable[[Any], Awaitable[None]]:
        """Return what asks for a topic until it is there: who asks has it made, if that is allowed."""
        clock = self._ctx.clock

        async def seek(connection: Any) -> None:
            from aiokafka.errors import NoError, for_code
            from aiokafka.protocol.metadata import MetadataRequest

            ends = clock.monotonic() + TOPIC_SECONDS - ASK_SECONDS
            while True:
                answer = await connection.send(MetadataRequest([topic]))
                error = for_code(answer.topics[0][0])
                if error is NoError:
                    return
                if not error.retriable:
                    raise turned_away(f"{where} refuses the topic '{topic}': {error.message}")
                if clock.monotonic() > ends:
                    raise NoTopic(f"{where} has no topic '{topic}', and makes none")
                await clock.sleep(ASK_SECONDS)

        return seek

    async def _fault(self, host: str, port: int, cause: Exception) -> Exception:
        """Return why a broker could not be talked to."""
        from aiokafka import errors

        where = _where(host, port)
        match cause:
            case errors.SaslAuthenticationFailed():
                said = self._ctx.redact(str(cause.args[0] or "")) or "wrong user name or password"
                return turned_away(f"{where} refuses the credential: {said}")
            case errors.UnsupportedSaslMechanismError() if self._credential is not None:
                return turned_away(f"{where} does not take {self._credential.mechanism}")
            case errors.IllegalSaslStateError():
                return turned_away(f"{where} takes no credential, and the connection has one")
            case ConnectionRefusedError():
                return Unreachable(f"{where} does not answer: connection refused")
            case socket.gaierror():
                return Unreachable(f"{where} does not answer: there is no such host")
        if fault := await tls_fault(host, port, self._tls, self._ctx.clock):
            return turned_away(fault)
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
            answer = await self._over(host, port, ANSWER_SECONDS / 4, shake)
        except (OSError, TimeoutError, KafkaError):
            return ()
        return sorted(answer.enabled_mechanisms)


def _where(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reason(causes: Collection[BaseException | None]) -> BaseException:
    """Return the one reason of all brokers; that one says no counts for more than silence."""
    found = [cause for cause in causes if cause is not None]
    for kind in (BuildRefused, NoTopic):
        for cause in found:
            if isinstance(cause, kind):
                return cause
    unexpected = [cause for cause in found if not isinstance(cause, Unreachable)]
    return unexpected[0] if unexpected else Unreachable("; ".join(map(str, found)))
