"""A connection with a session at an OPC UA server: asyncua's client, opened once and closed once.

The client opens the channel and the session, renews the keys and asks for signs of life. Its loop of
publish requests and its reconnecting are not used: what they meet they log, and go on where the
connection has to end, so that the gap can be marked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from asyncua import ua
from asyncua.client.client import Client
from asyncua.client.ua_client import UaClient, UASocketProtocol
from asyncua.client.ua_session import UaSession
from asyncua.common.connection import TransportLimits
from asyncua.common.shortcuts import Shortcuts
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import nodeid_from_binary, struct_from_binary
from asyncua.ua.uaerrors import BadSecurityChecksFailed, BadTooManyOperations, UaError

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.network.refusal import CONNECT_SECONDS
from headrace.connectors.opcua.login import OpcuaServer, Shortfall, reason

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Limits:
    """What a server may take and send. Times are in seconds."""

    dial_seconds: float = 4
    """For the socket, for Hello, and for the channel. Soon tried again: a host that is just coming back
    hears nothing of an old try."""
    request_seconds: float = 10
    """For the answer to a request."""
    probe_seconds: float = 5
    """How often a server is asked for a sign of life, and how long it may take to give one."""
    keep_alive_seconds: float = 5
    """How much later than announced a subscription may give its sign of life."""
    close_seconds: float = 0.5
    """For the end of a session."""
    explain_seconds: float = 0.9
    """For telling what it offers, when something else did not work."""
    session_seconds: int = 60
    """How long a server keeps the session of a client that is gone without a word."""
    channel_seconds: float = 3600
    """How long the keys of a channel are used."""
    message_bytes: int = 16 * 1024 * 1024
    """Size of a message."""
    references: int = 100
    """Of a node in an answer to browsing. The client takes 30 microseconds for each, and nothing else
    happens meanwhile; the others are asked for after them."""


PORTION = 500
"""Nodes of one request."""
APPLICATION = "urn:headrace"
"""What we are called when no certificate says otherwise."""
_CHUNK_BYTES = 65_535


class _Sizes(TransportLimits):
    """What may be sent at once. The client would hold a server to what that server takes itself."""

    def update_client_limits(self, msg: ua.Acknowledge) -> None:
        """Keep to what the server takes; some say 0."""
        self.max_send_buffer = msg.ReceiveBufferSize or _CHUNK_BYTES


class _Transport(UaClient):
    """The services, with our bounds on what comes and our name for the session."""

    def __init__(self, name: str, limits: Limits, clock: Clock) -> None:
        super().__init__(limits.dial_seconds)
        self.session_name, self.limits, self.clock = name, limits, clock
        self.dialled: UASocketProtocol | None = None

    async def connect_socket(self, host: str, port: int) -> None:
        """Connect, with bounds of ours."""
        limits = self.limits

        def protocol() -> UASocketProtocol:
            most = _Sizes(2**31 - 1, _CHUNK_BYTES, 0, limits.message_bytes)
            made = UASocketProtocol(limits.dial_seconds, self.security_policy, most)
            self.protocol = self.dialled = made
            return made

        async with self.clock.timeout(limits.dial_seconds):
            await asyncio.get_running_loop().create_connection(protocol, host, port)

    async def create_session(
        self, parameters: ua.CreateSessionParameters
    ) -> ua.CreateSessionResult:
        """Create it under our name; from now on a server may have work to do."""
        assert self.protocol is not None
        self.protocol.timeout = self.limits.request_seconds
        parameters.SessionName = self.session_name
        return await super().create_session(parameters)

    def abort(self) -> None:
        """Close the socket, whatever is still to be sent."""
        if self.dialled is not None and self.dialled.transport is not None:
            self.dialled.transport.abort()


class OpcuaClient(Client):
    """A connection with a session, as long as both live."""

    uaclient: _Transport
    security_policy: Any

    def __init__(self, server: OpcuaServer, limits: Limits) -> None:
        super().__init__(server.url, limits.dial_seconds, watchdog_intervall=limits.probe_seconds)
        self.login, self.clock, self.limits = server, server.ctx.clock, limits
        self.uaclient = _Transport(f"headrace-{server.ctx.pipeline}", limits, self.clock)
        self.nodes = Shortcuts(self.uaclient.session)
        self.name = self.description = "headrace"
        self.application_uri = self.product_uri = APPLICATION
        self.session_timeout = limits.session_seconds * 1000
        self.secure_channel_timeout = int(limits.channel_seconds * 1000)
        self.max_messagesize = limits.message_bytes
        self.identities: Sequence[ua.UserTokenPolicy] = ()
        self.most_at_once = PORTION

    @property
    def session(self) -> UaSession:
        """The services of the session."""
        return self.uaclient.session

    async def open(self, lost: Callable[[Exception], None]) -> None:
        """Connect and sign in; have it told when the server gives no sign of life any more.

        Raises:
            BuildRefused: what is asked of the server, or what it asks, cannot be.
            Exception: whatever else; what is left of it has to be ended.
        """

        async def gone(cause: Exception) -> None:
            lost(cause)

        self.connection_lost_callback = gone
        if (security := self.login.security) is not None:
            shown = self.login.endpoint(await self.endpoints()).ServerCertificate
            if not shown:
                raise Shortfall("shows no certificate")
            self.application_uri = security.application_uri
            self.security_policy = security.channel(shown)
            self.uaclient.set_security(self.security_policy)
            self.login.check_server(self.security_policy.peer_certificate)
        await self.connect()

    async def endpoints(self) -> list[ua.EndpointDescription]:
        """Return what the server offers: it tells everybody, over a channel for that alone."""
        try:
            return await self.connect_and_get_server_endpoints()
        finally:
            self.uaclient.abort()

    async def open_secure_channel(self, renew: bool = False) -> None:
        """Open the channel.

        The client does not say with which fault a server refuses that, only that the answer was none.
        """
        try:
            await super().open_secure_channel(renew)
        except (AssertionError, AttributeError):
            raise BadSecurityChecksFailed from None

    async def create_session(self) -> ua.CreateSessionResult:
        """Create the session, and see to it that this is the server and that it lets us in."""
        created = await super().create_session()
        channel = self.security_policy
        self.login.check_server(channel.peer_certificate)
        endpoint = self.find_endpoint(created.ServerEndpoints, channel.Mode, channel.URI)
        self.identities = endpoint.UserIdentityTokens or ()
        self.login.check_credential(self.identities)
        if self.login.username is not None and self.login.password is not None:
            self.set_user(self.login.username)
            self.set_password(self.login.password)
        return created

    def server_policy(self, token_type: ua.UserTokenType) -> ua.UserTokenPolicy:
        """Return how an identity is told, encrypted if the server can do so in any way."""
        channel = self.security_policy
        return self.login.token_policy(
            self.identities, token_type, channel.URI, channel.peer_certificate
        )

    async def ask(self, request: Any, seconds: float | None = None) -> Buffer:
        """Return what an answer holds behind its header, not read yet; 0 seconds are no limit.

        Raises:
            UaStatusCodeError: the server says that it cannot.
        """
        if self.uaclient.protocol is None:
            raise ConnectionResetError
        answer = await self.uaclient.protocol.send_request(request, seconds)
        nodeid_from_binary(answer)
        struct_from_binary(ua.ResponseHeader, answer).ServiceResult.check()
        return answer

    async def in_portions(
        self,
        things: Sequence[_T],
        ask: Callable[[Sequence[_T]], Awaitable[Sequence[_R]]],
        most: int = PORTION,
    ) -> list[_R]:
        """Ask about many things, up to so many at a time as the server takes; return all its answers."""
        found = list[_R]()
        while len(found) < len(things):
            some = things[len(found) : len(found) + min(most, self.most_at_once)]
            try:
                answers = await ask(some)
            except BadTooManyOperations:
                if len(some) == 1:
                    raise
                self.most_at_once = len(some) // 2
            else:
                if len(answers) != len(some):
                    raise UaError("not as many answers as questions")
                found += answers
        return found

    async def end(self) -> None:
        """Close the session, with its subscription, and the connection: politely, but soon."""
        try:
            with suppress(Exception):
                async with self.clock.timeout(self.limits.close_seconds):
                    await self.disconnect()
        finally:
            self.uaclient.abort()


async def explained(server: OpcuaServer, limits: Limits, cause: Exception) -> BuildRefused | None:
    """Ask a server that just hung up, or said nothing clear, whether it has what we want."""
    if isinstance(cause, OSError) and not isinstance(cause, ConnectionError):
        return None
    try:
        async with server.ctx.clock.within(limits.explain_seconds):
            server.endpoint(await OpcuaClient(server, limits).endpoints())
    except BuildRefused as refused:
        return refused
    except Exception:  # it tells nothing: what it did before is what is known
        return None
    return None


async def sign_in(server: OpcuaServer, limits: Limits) -> None:
    """Open a session, and close it.

    Raises:
        BuildRefused: the server says no.
        Unreachable: it does not answer, or not so that it could be read.
    """
    client = OpcuaClient(server, limits)
    try:
        async with server.ctx.clock.within(CONNECT_SECONDS):
            await client.open(lambda _: None)
    except BuildRefused:
        raise
    except Exception as cause:
        refusal = server.refusal(cause) or await explained(server, limits, cause)
        raise refusal or Unreachable(f"{server.where} {reason(cause)}") from None
    finally:
        await client.end()
