"""Redis Pub/Sub: the connection both sides share, the input and the output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Input, Output
from headrace.compiler.edges import AwaitingSink, Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.schema.fields import ConnectionName, Identifier, Integer, SecretText
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.text.diagnostics import Fault, Path
from headrace.connectors.network.tls import FILES, TlsConnection
from headrace.connectors.redis.redis_url import URL_FORM, RedisUrl, objection

if TYPE_CHECKING:
    from headrace.connectors.redis.connection import Limits, RedisServer

PATTERN_CHARACTERS = "*?["


class RedisConnection(TlsConnection, kind="redis", listed=8):
    """A Redis server, for its Pub/Sub.

    TLS is `rediss://` or `tls: true`. User and password are those of the server's ACL; a password
    alone (``redis://:password@host``) is that of its default user. A server that listens on a Unix
    socket only cannot be reached. Channels belong to the server and not to one of its databases, so
    the database only matters to a server that admits the user to some of them.
    """

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
        if "${" not in self.url.template and (wrong := objection(self.url.template)):
            yield _not_a_url(wrong, ("url",))

    def server(self, ctx: Context, limits: Limits | None = None) -> RedisServer:
        """Return the server. Opens nothing.

        Raises:
            BuildRefused: the url does not resolve, or to none; a file for TLS cannot be used.
        """
        from headrace.connectors.redis.connection import Limits, RedisServer  # the driver

        text = ctx.resolve(self.url)
        if wrong := objection(text):
            raise BuildRefused(_not_a_url(wrong, ("connection",)))
        url = RedisUrl.of(text)
        is_tls = self.tls or url.is_tls
        if not is_tls and (name := next((name for name in FILES if getattr(self, name)), None)):
            message = f"'{name}' means nothing without TLS"
            expected = "'tls: true' beside it, or a url that begins with rediss://"
            raise BuildRefused(Fault("conflict", message, None, expected, path=("connection",)))
        tls = self.tls_context(ctx) if is_tls else None
        return RedisServer(url, tls, ctx, limits or Limits())


def _not_a_url(wrong: str, path: Path) -> Fault:
    return Fault("not-a-url", f"the url is not one of Redis: {wrong}", None, URL_FORM, path=path)


class RedisInput(Input, kind="redis", listed=7, elsewhere="redis_pubsub"):
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

    def source(self, ctx: Context, limits: Limits | None = None) -> Source:
        """Build the subscriber."""
        from headrace.connectors.redis.source import RedisSource

        if found := next((each for each in PATTERN_CHARACTERS if each in self.channel), None):
            ctx.warn(
                f"'{found}' in the channel '{self.channel}' is a character like any other: this is"
                " the name of one channel, not a pattern"
            )
        server = ctx.connection(RedisConnection, self.connection).server(ctx, limits)
        return RedisSource(server, self.connection, self.channel, self.max_batch)


class RedisOutput(Output, kind="redis", listed=9, elsewhere="redis_pubsub"):
    """Publish each message on one Redis channel.

    A batch is published at once, and is written when the server has answered for each of its
    messages. That nobody is subscribed is no failure. Nothing is published a second time: when the
    connection breaks, the batch that was being published is lost, or part of it.
    """

    drivers = ("redis.asyncio",)

    connection: str = option(ConnectionName("redis"), "Connection to publish to.")
    channel: str = option(
        Identifier(fixed=Fixed()), "Name of the channel.", elsewhere="subject topic"
    )

    def open(self, ctx: Context, limits: Limits | None = None) -> AwaitingSink:
        """Build the publisher."""
        from headrace.connectors.redis.sink import RedisSink

        server = ctx.connection(RedisConnection, self.connection).server(ctx, limits)
        return RedisSink(server, self.channel, ctx)
