"""One life of a connection to an OPC UA server: asyncua's client, with what it leaves open.

The client's own supervisor, watchdogs, loop of publish requests and reconnecting are not used: a
life that is over is closed, and the next has a client of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from asyncua import ua
from asyncua.client.client import Client
from asyncua.client.ua_client import UaClient, UASocketProtocol
from asyncua.client.ua_session import UaSession
from asyncua.common.utils import Buffer
from asyncua.ua.attribute_ids import AttributeIds
from asyncua.ua.object_ids import ObjectIds
from asyncua.ua.uaerrors import BadTooManyOperations, UaError

from headrace.connectors.opcua.access import Access, Shortfall
from headrace.connectors.opcua.nodes import NodeKey
from headrace.connectors.opcua.wire import Wire

_T = TypeVar("_T")
_R = TypeVar("_R")

DIAL_SECONDS = 4.0
"""How long a server may take over the first words of a connection. Soon tried again: a host that is
just coming back hears nothing of an old try."""
REQUEST_SECONDS = 10.0
"""How long a server may take to answer a request."""
PULSE_SECONDS = 5.0
"""How often a server is asked for a sign of life, and how long it may take to give one."""
GOODBYE_SECONDS = 0.5
"""How long the end of a session may take."""
SESSION_SECONDS = 60
"""How long a server keeps the session of a client that is gone without a word."""

CHANNEL_SECONDS = 3600
"""How long the keys of a channel are used."""

PORTION = 500
"""Nodes of one request."""

OURS = "urn:headrace"
"""What we are called when no certificate says otherwise."""


KINDS = {
    "i": ua.NodeIdType.Numeric,
    "s": ua.NodeIdType.String,
    "g": ua.NodeIdType.Guid,
    "b": ua.NodeIdType.ByteString,
}


def node_id(key: NodeKey) -> ua.NodeId:
    """Return a node id as the client library has it."""
    identifier: Any = key.identifier
    return ua.NodeId(identifier, ua.Int16(key.namespace), KINDS[key.kind])


_STATE = node_id(NodeKey(0, "i", ObjectIds.Server_ServerStatus_State))


class _Session(UaSession):
    """The session, whose publish requests are ours."""

    def ensure_publish_loop(self) -> None:
        """Leave it: the library's loop logs what it meets and goes on."""

    async def publish_raw(self, done: Sequence[ua.SubscriptionAcknowledgement]) -> Buffer:
        """Return what a server answers to a publish request, whenever it does."""
        request = ua.PublishRequest()
        request.Parameters.SubscriptionAcknowledgements = list(done)
        return await self._send_request(request, timeout=0)

    async def republish_raw(self, subscription: int, number: int) -> Buffer:
        """Return a notification once more, if the server still has it."""
        request = ua.RepublishRequest()
        request.Parameters.SubscriptionId = subscription
        request.Parameters.RetransmitSequenceNumber = number
        return await self._send_request(request)


class _Transport(UaClient):
    """The services, with the name that is ours for the session."""

    def __init__(self, name: str) -> None:
        super().__init__(REQUEST_SECONDS)
        self._name = name
        self.session: _Session = _Session(self)

    def _make_protocol(self) -> UASocketProtocol:
        self.protocol = Wire(self._timeout, self.security_policy)
        self.protocol.on_connection_lost = self._on_transport_lost
        self.protocol.is_session_closing = self._is_session_closing
        return self.protocol

    async def create_session(
        self, parameters: ua.CreateSessionParameters
    ) -> ua.CreateSessionResult:
        """Create it under our name."""
        parameters.SessionName = self._name
        return await super().create_session(parameters)


class Link(Client):
    """A connection with a session, as long as both live."""

    uaclient: _Transport
    security_policy: Any

    def __init__(self, access: Access) -> None:
        super().__init__(access.server.url, timeout=REQUEST_SECONDS)
        self.uaclient = _Transport(f"headrace-{access.ctx.pipeline}")
        self.name = self.description = "headrace"
        self.application_uri = self.product_uri = OURS
        self.session_timeout = SESSION_SECONDS * 1000
        self.secure_channel_timeout = int(CHANNEL_SECONDS * 1000)
        self.access, self._clock = access, access.ctx.clock
        self._tasks = list[asyncio.Task[None]]()
        self._most_at_once = PORTION

    @property
    def session(self) -> _Session:
        """The services of the session."""
        return self.uaclient.session

    async def open(self) -> None:
        """Connect and sign in.

        Raises:
            BuildRefused: what is asked of the server, or what it asks, cannot be.
            Exception: whatever else; what is left of it has to be ended.
        """
        await self.secure()
        await self.dial()
        await self.open_secure_channel()
        await self.create_session()
        self.access.check_server(self.security_policy.peer_certificate)
        await self.activate_session(*self.access.credential(self._policy_ids))

    async def secure(self) -> None:
        """Have the channel secured as the connection says; for that the server's certificate is needed."""
        security = self.access.server.security
        if security is None:
            return
        shown = self.access.endpoint(await self.endpoints()).ServerCertificate
        if not shown:
            raise Shortfall("shows no certificate")
        self.application_uri = security.application_uri
        self.security_policy = self.access.policy(shown)
        self.uaclient.set_security(self.security_policy)
        self.access.check_server(self.security_policy.peer_certificate)

    async def endpoints(self) -> list[ua.EndpointDescription]:
        """Return what the server offers: it tells everybody, over a connection of its own."""
        asking = Link(self.access)
        try:
            await asking.dial()
            await asking.open_secure_channel()
            return await asking.get_endpoints()
        finally:
            await asking.end()

    async def dial(self) -> None:
        """Say the first words."""
        async with self._clock.timeout(DIAL_SECONDS):
            await self.connect_socket()
            await self.send_hello()

    def server_policy(self, token_type: ua.UserTokenType) -> ua.UserTokenPolicy:
        """Return how an identity is told, encrypted if the server can do so in any way."""
        channel = self.security_policy
        return self.access.token_policy(
            self._policy_ids, token_type, channel.URI, channel.peer_certificate
        )

    def keep(self, over: Callable[[Exception], None]) -> None:
        """Keep the session and the channel alive; have it told once when it cannot be done."""
        self.attend(self._pulse, over)
        self.attend(self._renewing, over)

    def attend(
        self, work: Callable[[], Awaitable[None]], over: Callable[[Exception], None]
    ) -> None:
        """Have something done until the end; have it told if it fails."""

        async def attended() -> None:
            try:
                await work()
            except Exception as cause:
                over(cause)

        self._tasks.append(asyncio.create_task(attended()))

    async def _pulse(self) -> None:
        """Ask for a sign of life, again and again: a frozen server says nothing of it."""
        while True:
            await self._clock.sleep(PULSE_SECONDS)
            async with self._clock.timeout(PULSE_SECONDS):
                await self.session.read_attributes([_STATE], AttributeIds.Value)

    async def _renewing(self) -> None:
        """Renew the keys of the channel when three quarters of their time are over."""
        while True:
            await self._clock.sleep(self.secure_channel_timeout * 0.75 / 1000)
            await self.open_secure_channel(renew=True)
            self.uaclient.revolve_security_token()

    async def in_portions(
        self,
        things: Sequence[_T],
        ask: Callable[[Sequence[_T]], Awaitable[Sequence[_R]]],
        most: int = PORTION,
    ) -> list[_R]:
        """Ask about many things, up to so many at a time as the server takes; return all its answers."""
        found = list[_R]()
        while len(found) < len(things):
            some = things[len(found) : len(found) + min(most, self._most_at_once)]
            try:
                answers = await ask(some)
            except BadTooManyOperations:
                if len(some) == 1:
                    raise
                self._most_at_once = len(some) // 2
            else:
                if len(answers) != len(some):
                    raise UaError("not as many answers as questions")
                found += answers
        return found

    async def end(self) -> None:
        """Close the session, with its subscription, and the connection: politely, but soon."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        protocol = self.uaclient.protocol
        if protocol is None or protocol.transport is None:
            return
        with suppress(Exception):
            async with self._clock.timeout(GOODBYE_SECONDS):
                await self.session.close_session(delete_subscriptions=True)
        with suppress(Exception):
            await protocol.close_secure_channel()
        if protocol.transport is not None:
            protocol.transport.abort()  # what it does not take is not waited for
