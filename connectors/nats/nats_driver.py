"""The client of nats-py, with TLS as it was configured and messages as they stand on the wire."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple

from nats import errors
from nats.aio.client import Client

from headrace.connectors.nats.nats_urls import NatsServer

TURN_MESSAGES = 256
"""How many messages are taken in before everybody else on the loop has a turn."""


class NatsMessage(NamedTuple):
    """What arrived, as it stood on the wire."""

    data: bytes
    subject: bytes
    reply: bytes
    headers: bytes | None


class NoAgreement(errors.Error):
    """One side wants TLS and the other does not."""


class Driver(Client):
    """One connection, which agrees on TLS before anything is said, and hands its messages on."""

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
