"""OPC UA: the connection to a server, and the input that subscribes to variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.durableinput import DurableInput, durably
from headrace.compiler.component.families import Connection
from headrace.compiler.component.promises import TAKEN_IN, InputPromises, MemoryBound, Waiting
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import (
    Choice,
    ConnectionName,
    Integer,
    Name,
    Number,
    SecretText,
    Text,
    refused,
)
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Codes, Fault, shown
from headrace.connectors.disk.paths import FilePath
from headrace.connectors.network.refusal import half_credential, unusable
from headrace.connectors.opcua.nodes import FORMS, Node, NodeKey

if TYPE_CHECKING:
    from headrace.connectors.opcua.connection import Limits
    from headrace.connectors.opcua.login import OpcuaServer

CODES: Codes = {
    "not-a-node": "A node id is not written as OPC UA servers write them.",
}

URL_FORM = "opc.tcp://host:port/path; port 4840 if it is left out"
PORT = 4840

_SCHEME = "opc.tcp://"
_URL = re.compile(
    r"opc\.tcp://(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^:@/?#\[\]\s]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?#\s]*)?"
)

OF_POLICY = ("security_mode", "certificate", "private_key", "application_uri")
"""Options that mean something with a security policy only."""

MOST_MILLISECONDS = 86_400_000
"""A day: longest interval that can be asked for."""
MOST_WAITING = 10_000
"""Changes that may wait to be read into the pipeline."""


class NodeIdText(Text):
    """A node id in the server's own notation."""

    expects = FORMS

    def read(self, value: Any) -> str:
        """Take a node id that can be one."""
        text: str = super().read(value)
        try:
            NodeKey.of(text)
        except ValueError as wrong:
            message = f"{shown(text)} is no node id: {wrong}"
            raise refused("not-a-node", message, found=text, expected=FORMS) from None
        return text


class OpcuaConnection(Connection, kind="opcua", listed=9, elsewhere="opc opc_ua"):
    """An OPC UA server, who we are to it, and how what is said is secured.

    Without a security policy everything is readable on its way, values and all; a password is
    encrypted nevertheless if the server offers that. With one, we show our certificate, which the
    server has to be told to trust, and the server shows its own: which that may be is said by
    `server_certificate`, without which any is taken.
    """

    drivers = ("headrace.connectors.opcua.connection",)

    endpoint: Secret = option(
        SecretText(),
        f"Url of the server: {URL_FORM}. It is dialled as it is written.",
        elsewhere="address host server url",
    )
    username: Secret | None = option(
        SecretText(),
        "User name; goes with a password. Without both: anonymous.",
        default=None,
        elsewhere="login user",
    )
    password: Secret | None = option(
        SecretText(), "Password of the user.", default=None, elsewhere="pass"
    )
    security_policy: str = option(
        Choice("None", "Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"),
        "How messages are secured, of what the server offers.",
        default="None",
        additive=True,
    )
    security_mode: str | None = option(
        Choice("Sign", "SignAndEncrypt"),
        "Whether messages are signed only, or encrypted as well; `SignAndEncrypt` if it is left out.",
        default=None,
        additive=True,
    )
    certificate: str | None = option(
        FilePath(),
        "PEM or DER file with our certificate; a relative path starts at the directory of the config.",
        default=None,
        additive=True,
        elsewhere="cert cert_file",
    )
    private_key: str | None = option(
        FilePath(),
        "PEM or DER file with its RSA key, without a password.",
        default=None,
        additive=True,
        elsewhere="key key_file",
    )
    application_uri: str | None = option(
        Name(),
        "Name of our application, one of the URIs in the certificate; the first if it is left out.",
        default=None,
        additive=True,
    )
    server_certificate: str | None = option(
        FilePath(),
        "PEM or DER file with the only certificate that the server may show.",
        default=None,
        additive=True,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse an endpoint that cannot be one, and options that miss others."""
        if "${" not in self.endpoint.template:
            try:
                dialled(self.endpoint.template)
            except ValueError as wrong:
                yield Fault("not-a-url", str(wrong), None, URL_FORM, path=("endpoint",))
        if self.security_policy == "None":
            besides = "a 'security_policy' beside it"
            for name in OF_POLICY:
                if getattr(self, name) is not None:
                    message = f"'{name}' means nothing without a security policy"
                    yield Fault("conflict", message, None, besides, path=(name,))
            if self.server_certificate is not None and self.username is None:
                message = (
                    "'server_certificate' protects nothing: there is neither a security policy nor"
                    " a password"
                )
                yield Fault("conflict", message, None, besides, path=("server_certificate",))
            return
        for name in ("certificate", "private_key"):
            if getattr(self, name) is None:
                message = f"the security policy {self.security_policy} needs a '{name}'"
                yield Fault(
                    "conflict",
                    message,
                    None,
                    "'certificate' and 'private_key' beside it",
                    path=("security_policy",),
                )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Tell of half a credential."""
        yield from half_credential(self)

    def server(self, ctx: Context) -> OpcuaServer:
        """Return the server, with the secrets resolved and the files read.

        Raises:
            BuildRefused: a secret does not resolve, a file is unusable, or half a credential is given.
        """
        from headrace.connectors.opcua.login import OpcuaServer, pinned, security

        for fault in half_credential(self, at="connection"):
            raise BuildRefused(fault)
        try:
            url, where = dialled(ctx.resolve(self.endpoint))
        except ValueError as wrong:
            raise unusable("not-a-url", str(wrong), URL_FORM) from None
        file = self.server_certificate
        for each in filter(None, (file, self.certificate, self.private_key)):
            ctx.reads(each)
        secured = security(self, ctx)
        if secured is not None and file is None:
            ctx.warn(
                f"the certificate of {where} is not verified: name it as 'server_certificate' in the"
                " connection, so that nobody else can pass for it"
            )
        return OpcuaServer(
            url,
            where,
            ctx,
            username=None if self.username is None else ctx.resolve(self.username),
            password=None if self.password is None else ctx.resolve(self.password),
            security=secured,
            certificate=None if file is None else pinned(file, ctx),
        )

    async def reach(self, ctx: Context) -> None:
        """Open a session, and close it."""
        from headrace.connectors.opcua.connection import Limits, sign_in

        await sign_in(self.server(ctx), Limits())


def dialled(text: str) -> tuple[str, str]:
    """Return a url with its port, and its host and port.

    Raises: ValueError with what is wrong, without any of the url: it may hold a secret.
    """
    parts = _URL.fullmatch(text)
    if not text.startswith(_SCHEME):
        wrong = f"it does not begin with {_SCHEME}"
    elif parts is None and "@" in text:
        wrong = "it holds an '@': the user and the password are keys of their own"
    elif parts is None:
        wrong = "its host or its port is malformed, or something else than a path follows"
    elif parts["port"] is not None and not 0 < int(parts["port"]) < 65536:
        wrong = "its port is not a number from 1 to 65535"
    else:
        where = f"{parts['host']}:{parts['port'] or PORT}"
        return f"{_SCHEME}{where}{parts['path'] or ''}", where
    raise ValueError(f"this is no url of an OPC UA server: {wrong}")


class ListedNode(Record):
    """A variable to subscribe to."""

    node_id: str = option(
        NodeIdText(), f"Node id as the server writes it: {FORMS}.", elsewhere="id node"
    )
    name: str | None = option(
        Text(),
        "What its messages call it; the node id if it is left out.",
        default=None,
        elsewhere="alias as label",
    )


class Browsing(Record):
    """Where to look for variables."""

    root: str = option(
        NodeIdText(),
        "Node to begin at, such as `i=85`, the folder of all objects.",
        elsewhere="from node node_id start",
    )
    depth: int = option(
        Integer(min=1),
        "How many references away from it a variable may be.",
        default=3,
        elsewhere="levels max_depth",
    )


INPUT = InputPromises(
    row="input",
    away="what changes meanwhile (every node says in a message that the connection is lost)",
    kill=TAKEN_IN,
    twice="the current value of every node, with each new connection",
    waiting=Waiting(
        row="input",
        bounds=(MemoryBound(MOST_WAITING, "changes"),),
        beyond="the oldest are dropped, each one counted as skipped and as lost; the newest of every node"
        " arrives",
    ),
)
DURABLE_INPUT = durably(INPUT)


class OpcuaInput(DurableInput, kind="opcua", listed=8, elsewhere="opc opc_ua"):
    """Subscribe to variables of an OPC UA server: a message for every change of a value.

    The first message of a node is its current value. A node that fails says so in a message with a
    bad `status` and a null `value`; so does every node when the connection is lost, and again its
    current value when it is back. What changes meanwhile does not arrive, and there is nothing to
    acknowledge.

    Nodes are listed, or found by browsing, which is done anew with every connection; a node that is
    both keeps its listed name. A node that the server refuses is reported, and the others go on.

    Changes that come faster than the pipeline takes them wait, up to 10,000 of them. Beyond that the
    oldest are dropped, with a warning, and counted as skipped and as lost.

    Source: https://reference.opcfoundation.org/Core/Part4/v105/docs/5.13
    """

    drivers = ("asyncua",)
    promises: ClassVar = (INPUT, DURABLE_INPUT)
    unacknowledged: ClassVar[str] = "a server forgets a value when the next one is there"
    is_raw: ClassVar[bool] = False
    attaches: ClassVar = {"connection": "Name of the connection it was read from."}

    connection: str = option(ConnectionName("opcua"), "Connection to read from.")
    nodes: tuple[ListedNode, ...] = option(
        ListOf(RecordOf(ListedNode), noun="opcua node"),
        "Variables to subscribe to. One that is there twice is subscribed to once, under its first name.",
        default=(),
        elsewhere="node node_ids tags variables",
    )
    browse: Browsing | None = option(
        RecordOf(Browsing),
        "Subscribe to every variable under a node as well, through folders, objects and variables.",
        default=None,
    )
    deadband: float | None = option(
        Number(min=0, max=1e300),
        "How far a number has to move from the one reported before, in its own unit; the server"
        " compares. Nodes that hold no number always report.",
        default=None,
    )
    max_batch: int = option(
        Integer(),
        "Most messages of a batch, of those that have arrived; it never waits for more. 0 is read"
        " as 1.",
        default=1,
        elsewhere="batch_size",
    )
    publish_interval_ms: int = option(
        Integer(max=MOST_MILLISECONDS),
        "How often the server may send, in milliseconds; 0: as often as it can.",
        default=1000,
        elsewhere="interval interval_ms publishing_interval",
    )
    queue_size: int = option(
        Integer(max=2**32 - 1),
        "Most values of a node that the server keeps until it sends: the newest. 0 is read as 1.",
        default=1,
    )
    sampling_interval_ms: int | None = option(
        Integer(max=MOST_MILLISECONDS),
        "How often the server looks at a node, in milliseconds; if it is left out, as often as it"
        " sends.",
        default=None,
        elsewhere="sampling_interval",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse an input that would read nothing."""
        if not self.nodes and self.browse is None:
            yield Fault("missing-key", "this reads no node", expected="'nodes', 'browse', or both")

    def kept_as(self) -> str:
        """Return the connection."""
        return f"{self.kind} {self.connection}"

    def hands_on(self) -> Iterator[str]:
        """Return the fields of every message."""
        yield from ("node", "name", "value", "status", "source_timestamp", "server_timestamp")

    def source(self, ctx: Context, limits: Limits | None = None) -> Source:
        """Look up the connection, with its files; the pump connects."""
        from headrace.connectors.opcua.connection import Limits
        from headrace.connectors.opcua.source import OpcuaSource

        server = ctx.connection(OpcuaConnection, self.connection).server(ctx)
        return OpcuaSource(self, server, ctx, limits or Limits())

    def listed_nodes(self) -> list[Node]:
        """Return the listed nodes, each once."""
        found: dict[NodeKey, Node] = {}
        for each in self.nodes:
            key = NodeKey.of(each.node_id)
            name = each.node_id if each.name is None else each.name
            found.setdefault(key, Node(key, key.text, name))
        return list(found.values())
