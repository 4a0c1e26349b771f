"""How to get into an MQTT broker, and in words why somebody did not, or is out again."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from dataclasses import dataclass, field

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Unreachable
from headrace.connectors.mqtt.packets import LONGEST
from headrace.connectors.network.refusal import CONNECT_SECONDS, Outage, turned_away
from headrace.connectors.network.tls import PROBE_SECONDS, tls_fault

LIMIT_SECONDS = CONNECT_SECONDS - PROBE_SECONDS
"""How long connecting may take, so that there is time to ask what is wrong with TLS."""

CLOSED = "closed the connection"
SILENT = "does not answer any more"
NONSENSE = "sent what is not MQTT 3.1.1"
TOO_LONG = f"announced a packet of more than {LONGEST >> 20} MiB"
SLOW = f"does not answer: nothing came within {LIMIT_SECONDS:g} s"

UNAVAILABLE = 3
"""Of all refusals of a connection the one that passes."""
REFUSALS = {
    1: "unsupported protocol version",
    2: "client identifier not valid",
    UNAVAILABLE: "server unavailable",
    4: "bad user name or password",
    5: "not authorized",
}
"""Why a broker lets nobody in, by the code of its CONNACK."""

HUNG_UP = (errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE)


@dataclass
class BrokerAccess:
    """How one component gets into a broker: what a connection says, its secrets resolved."""

    host: str
    port: int
    username: str | None
    password: str | None = field(repr=False)
    tls: ssl.SSLContext | None
    clock: Clock

    def __post_init__(self) -> None:
        self._outage = Outage(self.where)

    @property
    def where(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    def outage(self, what: str) -> Unreachable:
        """Return what to raise while the broker cannot be reached.

        The same text until it is `reached` again: an outage is one failure, counted.
        """
        return self._outage.of(what)

    def reached(self) -> None:
        """Note that the broker has let us in: what comes then is another outage."""
        self._outage.over()

    def refusal(self, code: int) -> Exception:
        """Return what to raise when the broker lets nobody in, by the code of its CONNACK."""
        if code == UNAVAILABLE:
            return self.outage(f"does not answer: {REFUSALS[code]}")
        return turned_away(f"{self.where} does not let the client in: {REFUSALS[code]}")

    async def fault(self, cause: OSError, sent: str) -> Exception:
        """Return what to raise for a connection that did not come about.

        Unless that is plain, by asking about TLS. ``sent`` is what the broker did before it was over.
        """
        if isinstance(cause, socket.gaierror):
            return self.outage("does not answer: the host name cannot be resolved")
        if isinstance(cause, ConnectionRefusedError):
            return self.outage("does not answer: connection refused")
        if isinstance(cause, TimeoutError) and self.tls is not None:
            return self.outage(SLOW)  # a broker without TLS hangs up at once, so this one hangs
        said = await tls_fault(self.host, self.port, self.tls, self.clock)
        if said is not None:
            return turned_away(said)
        if isinstance(cause, TimeoutError):
            return self.outage(SLOW)
        if cause.errno in (None, *HUNG_UP) or isinstance(cause, ssl.SSLError):
            return self.outage(sent)
        return self.outage(f"does not answer: {os.strerror(cause.errno).lower()}")
