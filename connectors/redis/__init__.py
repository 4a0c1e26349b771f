"""Redis Pub/Sub: the connection both sides share, the input and the output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import unquote

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
from headrace.compiler.schema.fields import ConnectionName, Identifier, Integer, SecretText
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.diagnostics import Fault
from headrace.connectors.network.messageoutput import MessageOutput
from headrace.connectors.network.refusal import unusable
from headrace.connectors.network.tls import FILES, TlsConnection
from headrace.connectors.redis.redisfailures import FAILURES

if TYPE_CHECKING:
    from headrace.connectors.redis.connection import Limits, RedisServer

URL_FORM = "redis://[user:password@]host[:port][/database], or rediss:// for TLS"
PORT = 6379
READ_BYTES = 256 * 1024
"""Most that is taken from the connection at once."""
SERVER_LIMIT = "`client-output-buffer-limit pubsub` (32 MiB)"
"""What bounds a subscriber that does not read, and Redis' default of it."""

_SCHEME = re.compile(r"rediss?://", re.IGNORECASE)
# As the driver reads it: the first colon ends the user, the last @ the password.
_URL = re.compile(
    r"(?P<scheme>rediss?)://"
    r"(?:(?P<user>[^:/?#\s]*)(?::(?P<password>[^/?#\s]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^:@/?#\[\]\s]+)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/(?P<database>[0-9]{0,9}))?",
    re.IGNORECASE,
)

PATTERN_CHARACTERS = "*?["


@dataclass(frozen=True)
class RedisUrl:
    """What a url says. Its repr is without the credentials."""

    is_tls: bool
    user: str = field(repr=False)
    password: str = field(repr=False)
    host: str
    port: int
    database: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a url.

        Raises: ValueError with what is wrong, without any of the url: it may hold a password.
        """
        parts = _URL.fullmatch(text)
        if not _SCHEME.match(text):
            wrong = "it does not begin with redis:// or rediss://"
        elif parts is None and "?" in text:
            # The driver takes any of its settings from there, and a config is not to reach those.
            wrong = "it holds a '?', and a url sets no options (in a password, write %3F)"
        elif parts is None:
            wrong = (
                "it is of another form (in a user or a password, write %2F for '/', %23 for '#', %40"
                " for '@')"
            )
        elif parts["port"] is not None and not 0 < int(parts["port"]) < 65536:
            wrong = "its port is not a number from 1 to 65535"
        else:
            return cls(
                is_tls=parts["scheme"].lower() == "rediss",
                user=unquote(parts["user"] or ""),
                password=unquote(parts["password"] or ""),
                host=parts["host"].strip("[]"),
                port=int(parts["port"] or PORT),
                database=int(parts["database"] or 0),
            )
        raise ValueError(f"the url is not one of Redis: {wrong}")

    @property
    def where(self) -> str:
        """Host and port: what texts call the server."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class RedisConnection(TlsConnection, kind="redis", listed=8):
    """A Redis server, for its Pub/Sub.

    TLS is `rediss://` or `tls: true`. User and password are those of the server's ACL; a password
    alone (``redis://:password@host``) is that of its default user. A server that listens on a Unix
    socket only cannot be reached. Channels belong to the server and not to one of its databases, so
    the database only matters to a server that admits the user to some of them.
    """

    drivers = ("headrace.connectors.redis.connection",)

    url: Secret = option(
        SecretText(),
        f"The server: {URL_FORM}; port 6379 if it is left out.",
        elsewhere="address host server urls",
    )

    @property
    def wants_tls(self) -> bool | None:
        """Whether it is made over TLS; None when only the resolved url can tell."""
        scheme, found, _ = self.url.template.partition("://")
        if self.tls or (found and scheme.lower() == "rediss"):
            return True
        return None if "${" in scheme else False

    def rules(self) -> Iterator[Fault]:
        """Refuse a url that cannot be one, where nothing of it is left open."""
        yield from super().rules()
        if "${" not in self.url.template:
            try:
                RedisUrl.of(self.url.template)
            except ValueError as wrong:
                yield Fault("not-a-url", str(wrong), None, URL_FORM, path=("url",))

    def server(self, ctx: Context, limits: Limits | None = None) -> RedisServer:
        """Return the server. Opens nothing.

        Raises:
            BuildRefused: the url does not resolve, or to none; a file for TLS cannot be used.
        """
        from headrace.connectors.redis.connection import Limits, RedisServer  # the driver

        try:
            url = RedisUrl.of(ctx.resolve(self.url))
        except ValueError as wrong:
            raise unusable("not-a-url", str(wrong), URL_FORM) from None
        is_tls = self.tls or url.is_tls
        if not is_tls and (name := next((name for name in FILES if getattr(self, name)), None)):
            message = f"'{name}' means nothing without TLS"
            expected = "'tls: true' beside it, or a url that begins with rediss://"
            raise unusable("conflict", message, expected)
        tls = self.tls_context(ctx) if is_tls else None
        return RedisServer(url, tls, ctx, limits or Limits())

    async def reach(self, ctx: Context) -> None:
        """Connect, sign in, and hang up."""
        await (await self.server(ctx).connect()).close()


INPUT = InputPromises(
    row="input",
    away="what is published meanwhile",
    kill=TAKEN_IN,
    twice="nothing",
    waiting=Waiting(
        row="input",
        # asyncio's reader stops reading when it has twice what is taken at once.
        bounds=(MemoryBound(2 * READ_BYTES, BYTES, "or one message that is larger"),),
        beyond=f"it waits at the server, which hangs up at {SERVER_LIMIT}: a gap, counted as a failure",
    ),
)
DURABLE_INPUT = durably(INPUT)
OUTPUT = OutputPromises(
    row="output",
    written="the server has answered for each message, whether or not anybody subscribes",
    away="batches are lost and counted, and never sent later",
    twice="nothing",
)


class RedisInput(DurableInput, PayloadInput, kind="redis", listed=7, elsewhere="redis_pubsub"):
    """Subscribe to one exact Redis channel.

    Pub/Sub keeps nothing for an absent subscriber: what is published while the connection is down
    is gone, and there is nothing to acknowledge. A lost connection is a failure, counted, and is
    made anew for as long as the pipeline runs.

    While the pipeline does not keep up, messages wait in the buffer that the server has for this
    subscriber. When that is full (``client-output-buffer-limit pubsub``, 32 MiB by default) the
    server ends the connection, which is such a gap.

    Source: https://redis.io/docs/latest/develop/pubsub/
    """

    drivers = ("redis.asyncio",)
    promises: ClassVar = (INPUT, DURABLE_INPUT)
    unacknowledged: ClassVar[str] = "Pub/Sub keeps nothing that it could send again"
    attaches: ClassVar = {
        "connection": "Name of the connection.",
        "channel": "Channel it was published on.",
    }

    connection: str = option(ConnectionName("redis"), "Connection to read from.")
    channel: str = option(
        Identifier(),
        "Exact name of the channel; patterns are not expanded.",
        elsewhere="channels subject subscribe topic",
    )
    max_batch: int = option(
        Integer(),
        "Most messages of a batch: of those that have arrived, none is waited for. 0 is read as 1.",
        default=1,
        elsewhere="batch_size",
    )

    def kept_as(self) -> str:
        """Return the connection and the channel."""
        return f"{self.kind} {self.connection} {self.channel}"

    def source(self, ctx: Context, limits: Limits | None = None) -> Source:
        """Build the subscriber."""
        from headrace.connectors.redis.source import RedisSource

        if found := next((each for each in PATTERN_CHARACTERS if each in self.channel), None):
            ctx.warn(
                f"'{found}' in the channel '{self.channel}' is a character like any other: this is"
                " the name of one channel, not a pattern"
            )
        server = ctx.connection(RedisConnection, self.connection).server(ctx, limits)
        return RedisSource(self, server)


class RedisOutput(MessageOutput, kind="redis", listed=9, elsewhere="redis_pubsub"):
    """Publish each message on one Redis channel.

    A batch is published at once, and is written when the server has answered for each of its
    messages. That nobody is subscribed is no failure. Nothing is published a second time: when the
    connection breaks, the batch that was being published is lost, or part of it.
    """

    drivers = ("redis.asyncio",)
    promises: ClassVar = (OUTPUT,)
    failure_classes: ClassVar = FAILURES
    bisection: ClassVar = TOLD_BY_INDEX

    connection: str = option(ConnectionName("redis"), "Connection to publish to.")
    channel: str = option(
        Identifier(fixed=Fixed()), "Name of the channel.", elsewhere="subject topic"
    )

    def kept_as(self) -> str:
        """Return the connection and the channel."""
        return f"{self.kind} {self.connection} {self.channel}"

    def open(self, ctx: Context, limits: Limits | None = None) -> AwaitingSink:
        """Build the publisher."""
        from headrace.connectors.redis.sink import RedisSink

        server = ctx.connection(RedisConnection, self.connection).server(ctx, limits)
        return RedisSink(server, self.channel, self.bodies(ctx), ctx)
