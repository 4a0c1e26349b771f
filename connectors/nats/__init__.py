"""NATS: the connection both sides share, the input that subscribes, the output that publishes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

from headrace.compiler.component.bisection import TOLD_BY_INDEX
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.durableinput import DurableInput, durably
from headrace.compiler.component.payloadinput import PayloadInput
from headrace.compiler.component.promises import (
    BYTES,
    TAKEN_IN,
    InputPromises,
    MemoryBound,
    OutputPromises,
    Waiting,
)
from headrace.compiler.edges import AwaitingSink, Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import ConnectionName, Integer, Name, SecretText, refused
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.nats.natsfailures import FAILURES
from headrace.connectors.network.messageoutput import MessageOutput
from headrace.connectors.network.refusal import unusable
from headrace.connectors.network.tls import FILES, TlsConnection

if TYPE_CHECKING:
    from headrace.connectors.nats.connection import Limits, NatsServers

LONGEST_SUBJECT = 1000
"""Characters of a subject. A server takes 4,096 bytes of a whole command unless told otherwise."""

PORT = 4222
WAITING_MESSAGES = 65_536
"""Messages that may wait to be read into the pipeline."""
WAITING_BYTES = 64 * 1024 * 1024
"""What their payloads may come to."""
EXPECTED = "nats://host:port or tls://host:port, with user:password@ or token@ before the host"

_NOT_IN_A_HOST = re.compile(r"[\x00-\x20\x7f\"#%/<>?\\^`{|}]")
_NOT_IN_A_SUBJECT = re.compile(r"[\s\x00-\x20\x7f]")


class Subject(Name):
    """A NATS subject: tokens joined by dots."""

    def __init__(self, *, takes_wildcards: bool = False, fixed: Fixed | None = None) -> None:
        self.takes_wildcards = takes_wildcards
        wildcards = "; '*' is any one token, '>' at the end any number" if takes_wildcards else ""
        self.expects = f"tokens joined by dots, such as plant.press.temp{wildcards}"
        super().__init__(fixed=fixed)

    def read(self, value: Any) -> str:
        """Take a subject that a server takes."""
        subject: str = super().read(value)
        if objection := self._objection(subject):
            hint = self.instead(subject)
            raise refused(
                "not-a-subject", objection, found=subject, expected=self.expects, hint=hint
            )
        return subject

    def _objection(self, subject: str) -> str | None:
        tokens = subject.split(".")
        wild = [token for token in tokens if "*" in token or ">" in token]
        if _NOT_IN_A_SUBJECT.search(subject):
            return "a subject holds no blanks and no control characters"
        if len(subject) > LONGEST_SUBJECT:
            return (
                f"a subject of {len(subject):,} characters is too long: at most {LONGEST_SUBJECT:,}"
            )
        if "" in tokens:
            return "a token of the subject is empty"
        if wild and not self.takes_wildcards:
            return "messages are published to one subject, so it holds no '*' and no '>'"
        if any(token not in ("*", ">") for token in wild):
            return "'*' and '>' are wildcards only as whole tokens"
        return "'>' can only be the last token" if ">" in tokens[:-1] else None


@dataclass(frozen=True)
class NatsServer:
    """One server, and the credentials to present there. A token excludes the other two."""

    host: str
    port: int
    tls: bool
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """Host and port, as people write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def schemes(urls: str) -> Iterator[str]:
    """Yield what stands before the host of each url: its scheme, ``nats`` where there is none."""
    for url in urls.split(","):
        scheme, is_given, _ = url.strip().partition("://")
        yield scheme.lower() if is_given else "nats"


def servers_in(urls: str, *, tls: bool) -> list[NatsServer] | Fault:
    """Return the servers that comma separated urls name; or what is wrong, without quoting them.

    ``tls`` has all of them use TLS; otherwise those with the scheme ``tls://`` do.
    """
    found = []
    for place, url in enumerate(urls.split(","), 1):
        server = _server(url.strip(), tls)
        if isinstance(server, str):
            which = "this" if "," not in urls else f"url {place} of {urls.count(',') + 1}"
            return Fault(
                "not-a-url", f"{which} is no url of a NATS server: {server}", None, EXPECTED
            )
        found.append(server)
    return found


def _server(url: str, tls: bool) -> NatsServer | str:
    """Return the server of one url, or what is wrong with that."""
    [scheme] = schemes(url)
    if scheme not in ("nats", "tls"):
        return "its scheme is neither nats nor tls"
    # The last @: a password may hold one that should have been encoded.
    credentials, _, place = url.rpartition("://")[2].rpartition("@")
    try:
        parts = urlsplit(f"//{place.removesuffix('/')}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return "its host or its port is malformed"
    if not host:
        return "it names no host"
    if parts.path or parts.query or parts.fragment:
        return "nothing may follow the port"
    if port == 0:
        return "its port is not a number from 1 to 65535"
    if _NOT_IN_A_HOST.search(host):
        return "its host or its port is malformed"
    user, has_password, password = credentials.partition(":")
    return NatsServer(
        host=host,
        port=PORT if port is None else port,
        tls=tls or scheme == "tls",
        user=unquote(user) if has_password else None,
        password=unquote(password) if has_password else None,
        token=unquote(user) if user and not has_password else None,
    )


class NatsConnection(TlsConnection, kind="nats", listed=2):
    """The servers of a NATS system, and who we are to them.

    Of several servers the first that takes us is used; when it is gone, they are tried again. A
    server that asks for TLS gets it from a connection with `tls` or a ``tls://`` url only, and such
    a connection never goes on without.
    """

    drivers = ("headrace.connectors.nats.connection",)

    urls: Secret = option(
        SecretText(),
        "Urls of the servers, separated by commas: `nats://host:4222`, or `tls://` for TLS; with"
        " `user:password@` or `token@` before the host, percent-encoded.",
        elsewhere="address host server servers url",
    )

    @property
    def wants_tls(self) -> bool | None:
        """Whether it is made over TLS; None when only the value of a reference can tell."""
        found = {"tls" if self.tls else scheme for scheme in schemes(self.urls.template)}
        if "tls" in found:
            return True
        # A scheme is in sight where something stands before `://`, be it followed by references.
        texts = [url.partition("://") for url in self.urls.template.split(",")]
        return None if any("${" in before for before, _, _ in texts) else False

    def rules(self) -> Iterator[Fault]:
        """Refuse urls that name no servers, as far as they can be read."""
        yield from super().rules()
        if not self.urls.names():
            found = servers_in(self.urls.template, tls=self.tls)
            if isinstance(found, Fault):
                yield replace(found, path=("urls",))

    def servers(self, ctx: Context, limits: Limits | None = None) -> NatsServers:
        """Return the servers. Opens nothing.

        Raises:
            BuildRefused: the urls are none, a file of TLS cannot be read or would not be.
        """
        from headrace.connectors.nats.connection import Limits, NatsServers  # the driver

        servers = servers_in(ctx.resolve(self.urls), tls=self.tls)
        if isinstance(servers, Fault):
            raise BuildRefused(replace(servers, path=("connection",)))
        uses_tls = any(server.tls for server in servers)
        if not uses_tls and any(getattr(self, name) for name in FILES):
            raise unusable(
                "conflict", "the files for TLS mean nothing to a connection without", "tls:// urls"
            )
        tls = self.tls_context(ctx) if uses_tls else None
        return NatsServers(servers, tls, ctx, limits or Limits())

    async def reach(self, ctx: Context) -> None:
        """Connect to the first server that takes us, and hang up."""
        await (await self.servers(ctx).connect()).end()


INPUT = InputPromises(
    row="input",
    away="what is published meanwhile",
    kill=TAKEN_IN,
    twice="nothing",
    waiting=Waiting(
        row="input",
        bounds=(MemoryBound(WAITING_MESSAGES, "messages"), MemoryBound(WAITING_BYTES, BYTES)),
        joined="or",
        more=", and as much on its way in",
        beyond="messages are dropped here, each one counted as a failure and as lost",
    ),
)
DURABLE_INPUT = durably(INPUT)
OUTPUT = OutputPromises(
    row="output",
    written="the server has answered a ping behind it",
    away="batches are lost and counted, and never sent later",
    twice="nothing",
)


class NatsInput(DurableInput, PayloadInput, kind="nats", listed=4):
    """Subscribe to a NATS subject, with or without wildcards.

    This is core NATS: a server sends each message once to whoever is subscribed at that moment and
    keeps none, so what is published while the connection is down does not arrive, and there is
    nothing to acknowledge. No queue group is joined: two servers with one config both get
    everything.

    Messages that come faster than the pipeline takes them wait, up to 65,536 of them or 64 MiB.
    Beyond that each one is dropped and counted, as a failure and as lost.
    """

    drivers = ("nats.aio.client",)
    promises: ClassVar = (INPUT, DURABLE_INPUT)
    unacknowledged: ClassVar[str] = "core NATS sends it once and keeps no copy to send again"
    attaches: ClassVar = {
        "connection": "Name of the connection it was read from.",
        "subject": "Subject it was published to.",
        "reply": "Subject that the publisher wants an answer to, or null.",
        "headers": "Its headers: each name with the list of its values.",
    }
    usual: ClassVar = {"headers": {}}

    connection: str = option(ConnectionName("nats"), "Connection to read from.")
    subject: str = option(
        Subject(takes_wildcards=True),
        "Subject to subscribe to.",
        elsewhere="channel subjects subscribe topic topics",
    )
    max_batch: int = option(
        Integer(min=0),
        "Most messages of a batch, of those that have arrived; it never waits for more. 0 is read"
        " as 1.",
        default=1,
        elsewhere="batch_size",
    )

    def kept_as(self) -> str:
        """Return the connection and the subject."""
        return f"{self.kind} {self.connection} {self.subject}"

    def source(self, ctx: Context, limits: Limits | None = None) -> Source:
        """Look up the connection; the pump connects."""
        from headrace.connectors.nats.source import NatsSource

        servers = ctx.connection(NatsConnection, self.connection).servers(ctx, limits)
        return NatsSource(self, servers, ctx)


class NatsOutput(MessageOutput, kind="nats", listed=5):
    """Publish each message to a NATS subject.

    A batch is written when the server has confirmed it: that it has taken every message and permits
    it. Who subscribes, or whether anybody does, makes no difference. When the connection is lost
    before, the batch fails, and as the server does not tell, some of it may have been delivered. A
    message larger than the server takes fails its batch, and nothing of that is sent.
    """

    drivers = ("nats.aio.client",)
    promises: ClassVar = (OUTPUT,)
    failure_classes: ClassVar = FAILURES
    bisection: ClassVar = TOLD_BY_INDEX

    connection: str = option(ConnectionName("nats"), "Connection to write to.")
    subject: str = option(
        Subject(fixed=Fixed()), "Subject to publish to.", elsewhere="channel topic"
    )

    def kept_as(self) -> str:
        """Return the connection and the subject."""
        return f"{self.kind} {self.connection} {self.subject}"

    def open(self, ctx: Context, limits: Limits | None = None) -> AwaitingSink:
        """Look up the connection; the start connects."""
        from headrace.connectors.nats.sink import NatsSink

        servers = ctx.connection(NatsConnection, self.connection).servers(ctx, limits)
        return NatsSink(self.subject, servers, self.bodies(ctx), ctx)
