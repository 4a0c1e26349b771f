"""NATS: the connection both sides share, the input that subscribes, the output that publishes."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.edges import Arrival, AwaitingSink, Source
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.compiler.jsontext import encode
from headrace.compiler.language.context import Context
from headrace.compiler.language.diagnostics import Fault
from headrace.compiler.language.families import Input, Output
from headrace.compiler.language.fields import ConnectionName, Integer, Name, SecretText, refused
from headrace.compiler.language.records import option
from headrace.compiler.language.secrets import Secret
from headrace.compiler.language.templates import Fixed
from headrace.compiler.largejson import encode_each, in_slices
from headrace.connectors.arrivals import Arrivals
from headrace.connectors.nats.urls import schemes, servers_in
from headrace.connectors.tls import FILES, TlsConnection

if TYPE_CHECKING:
    from headrace.connectors.nats.connection import Dialer, Link, Message

MOST_WAITING = 65_536
"""Messages that may wait to be read into the pipeline."""
MOST_BYTES = 64 * 1024 * 1024
"""What their payloads may come to."""

DROPPED = (
    "dropped a message: they arrive faster than they are worked off, and"
    f" {MOST_WAITING:,} of them or {MOST_BYTES >> 20} MiB wait already"
)

LONGEST_SUBJECT = 1000
"""Characters of a subject. A server takes 4,096 bytes of a whole command unless told otherwise."""

_NOT_IN_A_SUBJECT = re.compile(r"[\s\x00-\x20\x7f]")


class Subject(Name):
    """A NATS subject: tokens joined by dots."""

    def __init__(self, *, takes_wildcards: bool = False, fixed: Fixed | None = None) -> None:
        self.takes_wildcards = takes_wildcards
        super().__init__(fixed=fixed)

    @property
    def expects(self) -> str:
        """A subject."""
        wildcards = (
            "; '*' is any one token, '>' at the end any number" if self.takes_wildcards else ""
        )
        return f"tokens joined by dots, such as plant.press.temp{wildcards}"

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


class NatsConnection(TlsConnection, kind="nats", listed=2):
    """The servers of a NATS system, and who we are to them.

    Of several servers the first that takes us is used; when it is gone, they are tried again. A
    server that asks for TLS gets it from a connection with `tls` or a ``tls://`` url only, and such
    a connection never goes on without.
    """

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

    def dialer(self, ctx: Context) -> Dialer:
        """Return what connects. Opens nothing.

        Raises:
            BuildRefused: the urls are none, a file of TLS cannot be read or would not be.
        """
        from headrace.connectors.nats.connection import Dialer

        servers = servers_in(ctx.resolve(self.urls), tls=self.tls)
        if isinstance(servers, Fault):
            raise BuildRefused(replace(servers, path=("connection",)))
        uses_tls = any(server.tls for server in servers)
        if not uses_tls and any(getattr(self, name) for name in FILES):
            message = "the files for TLS mean nothing to a connection without"
            raise BuildRefused(
                Fault("conflict", message, None, "tls:// urls", path=("connection",))
            )
        return Dialer(servers, self.tls_context(ctx) if uses_tls else None, ctx)


class NatsInput(Input, kind="nats", listed=4):
    """Subscribe to a NATS subject, with or without wildcards.

    This is core NATS: a server sends each message once to whoever is subscribed at that moment and
    keeps none, so what is published while the connection is down does not arrive, and there is
    nothing to acknowledge. No queue group is joined: two servers with one config both get
    everything.

    Messages that come faster than the pipeline takes them wait, up to 65,536 of them or 64 MiB.
    Beyond that each one is dropped and counted as a failure.
    """

    drivers = ("nats.aio.client",)
    unacknowledged: ClassVar[str] = "core NATS sends it once and keeps no copy to send again"
    attaches: ClassVar = {
        "connection": "Name of the connection it was read from.",
        "subject": "Subject it was published to.",
        "reply": "Subject that the publisher wants an answer to, or null.",
        "headers": "Its headers: each name with the list of its values.",
    }

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

    def source(self, ctx: Context) -> Source:
        """Look up the connection; the pump connects."""
        return NatsSource(self, ctx, ctx.connection(NatsConnection, self.connection).dialer(ctx))


class NatsSource(Source):
    """A subscription for as long as its connection lives, and what it brought and nobody has read."""

    connects: ClassVar[bool] = True

    def __init__(self, config: NatsInput, ctx: Context, dialer: Dialer) -> None:
        self.max_batch = config.max_batch
        self._config, self._ctx, self._dialer = config, ctx, dialer
        self._arrivals: Arrivals | None = None
        self._bytes = 0
        self._was_connected = self._is_stopping = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Subscribe, and yield what arrives; when it is to stop, what has arrived by then."""
        arrivals = Arrivals(MOST_WAITING)
        link = await self._subscribed(arrivals)
        try:
            self._arrivals, self._was_connected = arrivals, True
            yield ()
            while len(arrivals) or not self._is_stopping:
                taken = await arrivals.take()
                self._bytes = 0
                yield taken
        finally:
            self._arrivals = None
            await link.end()

    def describe(self, origin: Message) -> dict[str, Any]:
        """Return what an envelope shows of a message."""
        return {
            "connection": self._config.connection,
            "subject": origin.subject.decode(errors="replace"),
            "reply": origin.reply.decode(errors="replace") or None,
            "headers": _headers(origin.headers or b""),
        }

    def stop(self) -> bool:
        """Take no more; what has arrived is read out, because it does not come again."""
        self._is_stopping = True
        if self._arrivals is None:
            return False
        self._arrivals.wake()
        return True

    def close(self) -> int:
        """Return how many batches have arrived that nobody will read."""
        waiting = 0 if self._arrivals is None else len(self._arrivals)
        return -(-waiting // max(self.max_batch, 1))

    async def _subscribed(self, arrivals: Arrivals) -> Link:
        """Return a connection whose messages are put among the arrivals, while there is room."""
        try:
            link = await self._dialer.dial(lambda link: arrivals.break_off(self._broken(link)))
            try:
                await link.listen(self._config.subject, self._taking(arrivals))
            except BaseException:
                await link.end()
                raise
        except Unreachable:
            if self._was_connected:
                raise self._gap() from None
            raise
        return link

    def _taking(self, arrivals: Arrivals) -> Callable[[Message], None]:
        """Return what takes a message, or counts it as dropped."""
        put, fail = arrivals.put, self._ctx.fail
        self._bytes = 0

        def take(message: Message) -> None:
            size = len(message.data)
            if self._is_stopping:
                return
            if self._bytes + size <= MOST_BYTES and put((message.data, message)):
                self._bytes += size
            else:
                fail(DROPPED)

        return take

    def _broken(self, link: Link) -> Exception:
        """Return what ended a life: what the server said, or the gap that comes now."""
        if link.denied:
            return BatchFailed(f"{link.server.where} does not permit it any more: {link.denied}")
        if link.last_words:
            return Unreachable(f"{link.server.where} hung up: {link.last_words}")
        return self._gap()

    def _gap(self) -> Unreachable:
        """Return the one failure of an outage, however it is noticed, and however often."""
        return Unreachable(
            f"lost the connection to {self._dialer.where}: what is published until it is back does"
            " not arrive"
        )


def _headers(raw: bytes) -> dict[str, list[str]]:
    """Return the values of each header; the line before them is a version, perhaps with a status."""
    found: dict[str, list[str]] = {}
    for line in raw.split(b"\r\n")[1:]:
        name, is_header, value = line.decode(errors="replace").partition(":")
        if is_header:
            found.setdefault(name.strip(), []).append(value.strip())
    return found


class NatsOutput(Output, kind="nats", listed=5):
    """Publish each message to a NATS subject.

    A batch is written when the server has confirmed it: that it has taken every message and permits
    it. Who subscribes, or whether anybody does, makes no difference. When the connection is lost
    before, the batch fails, and as the server does not tell, some of it may have been delivered. A
    message larger than the server takes fails its batch, and nothing of that is sent.
    """

    drivers = ("nats.aio.client",)

    connection: str = option(ConnectionName("nats"), "Connection to write to.")
    subject: str = option(
        Subject(fixed=Fixed()), "Subject to publish to.", elsewhere="channel topic"
    )

    def open(self, ctx: Context) -> AwaitingSink:
        """Look up the connection; the start connects."""
        dialer = ctx.connection(NatsConnection, self.connection).dialer(ctx)
        return NatsSink(self.subject, dialer, ctx)


class NatsSink(AwaitingSink):
    """Publishes over one connection, and over a new one when that is over."""

    def __init__(self, subject: str, dialer: Dialer, ctx: Context) -> None:
        self._subject, self._dialer, self._ctx = subject, dialer, ctx
        self._link: Link | None = None

    async def start(self) -> None:
        """Connect, so that a wrong credential is known now."""
        await self._linked()

    async def write(self, batch: Batch) -> None:
        """Publish all messages, then wait for the server's word on them."""
        is_sliced = is_large(batch)
        bodies = await encode_each(batch, self._ctx.clock) if is_sliced else [*map(encode, batch)]
        try:
            link = await self._linked()
        except BuildRefused as cause:  # it let us in before: worth waiting, as for any lost server
            raise Unreachable(str(cause)) from cause
        check = self._checking(len(bodies), link)
        if is_sliced:
            await in_slices(bodies, check, self._ctx.clock)
        else:
            check(bodies)
        try:
            await link.send(self._subject, bodies)
        except Unreachable:
            await self.finish()
            raise

    async def finish(self) -> None:
        """Close the connection."""
        link, self._link = self._link, None
        if link is not None:
            await link.end()

    async def _linked(self) -> Link:
        if self._link is None or self._link.is_over:
            await self.finish()
            self._link = await self._dialer.dial()
        return self._link

    def _checking(self, count: int, link: Link) -> Callable[[list[bytes]], None]:
        """Return what raises `BatchFailed` for a message that the server would hang up on.

        It is handed the messages of one batch in order, so many in all.
        """
        most, places = link.max_payload, itertools.count(1)

        def check(bodies: list[bytes]) -> None:
            for body, place in zip(bodies, places, strict=False):
                if len(body) > most:
                    self._ctx.warn_once(f"message {place} of {count} has {len(body):,} bytes")
                    raise BatchFailed(
                        f"a message is larger than the {most:,} bytes that {link.server.where}"
                        " takes: nothing of the batch was sent"
                    )

        return check
