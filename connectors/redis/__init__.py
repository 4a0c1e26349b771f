"""Redis Pub/Sub: the connection both sides share, the input and the output."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import Arrival, AwaitingSink, Source
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.compiler.jsontext import encode
from headrace.compiler.language.context import Context
from headrace.compiler.language.diagnostics import Fault, Path
from headrace.compiler.language.families import Input, Output
from headrace.compiler.language.fields import ConnectionName, Identifier, Integer, SecretText
from headrace.compiler.language.records import option
from headrace.compiler.language.secrets import Secret
from headrace.compiler.language.templates import Fixed
from headrace.compiler.largejson import encode_each
from headrace.connectors.redis.connection import ErrorReply, RedisLink, RedisServer
from headrace.connectors.redis.urls import URL_FORM, RedisUrl, objection
from headrace.connectors.tls import FILES, TlsConnection

PATTERN_CHARACTERS = "*?["

PORTION_MESSAGES = 1000
PORTION_BYTES = 1024 * 1024
"""Most that is published at once; then the answers are awaited."""


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

    def server(self, ctx: Context) -> RedisServer:
        """Return the server.

        Raises:
            BuildRefused: the url does not resolve, or to none; a file for TLS cannot be used.
        """
        text = ctx.resolve(self.url)
        if wrong := objection(text):
            raise BuildRefused(_not_a_url(wrong, ("connection",)))
        url = RedisUrl.of(text)
        is_tls = self.tls or url.is_tls
        if not is_tls and (name := next((name for name in FILES if getattr(self, name)), None)):
            message = f"'{name}' means nothing without TLS"
            expected = "'tls: true' beside it, or a url that begins with rediss://"
            raise BuildRefused(Fault("conflict", message, None, expected, path=("connection",)))
        return RedisServer(url, self.tls_context(ctx) if is_tls else None, ctx)


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

    def source(self, ctx: Context) -> Source:
        """Build the subscriber."""
        if found := next((each for each in PATTERN_CHARACTERS if each in self.channel), None):
            ctx.warn(
                f"'{found}' in the channel '{self.channel}' is a character like any other: this is"
                " the name of one channel, not a pattern"
            )
        return RedisSource(ctx.connection(RedisConnection, self.connection).server(ctx), self)


class RedisSource(Source):
    """A subscription, as long as its connection lives."""

    connects = True

    def __init__(self, server: RedisServer, options: RedisInput) -> None:
        self.max_batch = options.max_batch
        self._server = server
        self._channel = options.channel
        self._metadata = {"connection": options.connection, "channel": options.channel}
        self._link: RedisLink | None = None
        self._is_stopping = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Subscribe, then yield what has arrived until the connection is lost.

        What is not asked for stays at the server.
        """
        link = self._link = await self._server.connect()
        try:
            confirmed = await link.ask("SUBSCRIBE", self._channel)
            if isinstance(confirmed, ErrorReply):
                raise self._server.refusal(confirmed)
            yield ()
            while True:
                yield () if self._is_stopping else await link.arrivals()
        finally:
            self._link = None
            await link.close()

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where it came from."""
        return dict(self._metadata)

    def stop(self) -> bool:
        """Hand out nothing more."""
        self._is_stopping = True
        if self._link is not None:
            self._link.wake()
        return False


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

    def open(self, ctx: Context) -> AwaitingSink:
        """Build the publisher."""
        server = ctx.connection(RedisConnection, self.connection).server(ctx)
        return RedisSink(server, self.channel, ctx)


class RedisSink(AwaitingSink):
    """Publishes over one connection, which is made again when it is lost."""

    def __init__(self, server: RedisServer, channel: str, ctx: Context) -> None:
        self._server = server
        self._channel = channel
        self._ctx = ctx
        self._link: RedisLink | None = None

    async def start(self) -> None:
        """Connect, and learn whether this user may publish on the channel.

        Redis looks at that when it queues a command of a transaction, and the transaction is
        discarded: nobody sees a message. A user who may use no transactions learns it later.
        """
        try:
            refusal = await self._rehearsed(await self._connected())
            if refusal is not None:
                raise self._server.refusal(refusal)
        except BaseException:
            await self.finish()
            raise

    async def write(self, batch: Batch) -> None:
        """Publish the messages of a batch in order.

        Raises:
            Unreachable: the server does not answer, or not now.
            BatchFailed: it refuses one of the messages.
        """
        if is_large(batch):
            bodies = await encode_each(batch, self._ctx.clock)
        else:
            bodies = [encode(message) for message in batch]
        replies: list[Any] = []
        try:
            await self._publish(bodies, replies)
        except Unreachable:
            await self.finish()
            if _refusal(replies) is None:
                self._tell_of_the_rest(len(replies), len(batch))
                raise
        except BuildRefused as refused:  # since it was built: not for every batch anew
            raise Unreachable(str(refused)) from None
        if (refusal := _refusal(replies)) is not None:
            await self._fail(refusal, replies, len(batch))

    async def finish(self) -> None:
        """Hang up."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _rehearsed(self, link: RedisLink) -> ErrorReply | None:
        """Return what Redis has against publishing on the channel, if it tells."""
        if isinstance(await link.ask("MULTI"), ErrorReply):
            return None
        queued = await link.ask("PUBLISH", self._channel, b"")
        if isinstance(await link.ask("DISCARD"), ErrorReply):
            await self.finish()  # the transaction goes with its connection
        return queued if isinstance(queued, ErrorReply) else None

    async def _publish(self, bodies: Sequence[bytes], replies: list[Any]) -> None:
        link = await self._connected()
        for portion in portions(bodies):
            await link.publish(self._channel, portion, replies)
            if _refusal(replies) is not None:
                return

    async def _connected(self) -> RedisLink:
        """Return the connection; a new one if the server has hung up meanwhile."""
        if self._link is not None and await self._link.is_spent():
            await self.finish()
        if self._link is None:
            self._link = await self._server.connect()
        return self._link

    def _tell_of_the_rest(self, answered: int, of: int) -> None:
        if answered:
            self._ctx.warn(
                f"of a batch of {of} messages {answered} were published before the connection was"
                " lost; of the others nobody knows"
            )

    async def _fail(self, refusal: ErrorReply, replies: Sequence[Any], of: int) -> NoReturn:
        if refusal.is_passing:
            await self.finish()
            raise self._server.refusal(refusal)
        said = self._server.words(refusal)
        if published := sum(type(reply) is int for reply in replies):
            self._ctx.warn_once(f"of a batch of {of} messages {published} were published: {said}")
            raise BatchFailed(f"published in part: {said}")
        raise BatchFailed(said)


def _refusal(replies: Sequence[Any]) -> ErrorReply | None:
    """Return the first refusal: it is among the answers to the last portion, if there is one."""
    last = replies[-PORTION_MESSAGES:]
    return next((reply for reply in last if type(reply) is ErrorReply), None)


def portions(bodies: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the bodies in order, as many at a time as are published at once."""
    start = size = 0
    for end, body in enumerate(bodies):
        if end - start == PORTION_MESSAGES or (size and size + len(body) > PORTION_BYTES):
            yield bodies[start:end]
            start, size = end, 0
        size += len(body)
    yield bodies[start:]
