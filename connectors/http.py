"""HTTP: the credential both sides share, the input that is posted to, the output that posts."""

from __future__ import annotations

import asyncio
import hmac
import math
import re
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context, Origin
from headrace.compiler.component.families import Input, Output
from headrace.compiler.delivery import Acknowledgement, Batch, is_large
from headrace.compiler.edges import Arrival, AwaitingSink, Source
from headrace.compiler.errors import BuildRefused, UnresolvedSecret
from headrace.compiler.httpclient import HttpClient
from headrace.compiler.jsontext import Decoding, encode
from headrace.compiler.largejson import DecodedBatch, encode_large
from headrace.compiler.schema.fields import Choice, Integer, Name, Number, SecretText, refused
from headrace.compiler.schema.records import option
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.schema.urls import HttpUrl, ParsedUrl
from headrace.compiler.schema.variants import Tagged, VariantOf
from headrace.compiler.text.diagnostics import Fault, shown

PASSED_ON = ("content-type", "user-agent", "x-request-id", "x-correlation-id", "traceparent")
"""Headers of a post that an envelope shows. A credential may not be one of them."""
_PASSED_ON = frozenset(name.encode() for name in PASSED_ON)
FRAMING = ("connection", "content-length", "content-type", "expect", "host", "transfer-encoding")
"""Headers of a request that the output writes itself."""

CHUNK = 16
"""Posts handed to the pump at once: what has left the queue and is not in the pipeline yet."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of bodies that may wait where the config does not say."""

# Source: RFC 9110, section 5.6.2 (tokens) and 5.5 (field values).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$")


class HeaderName(Name):
    """The name of an HTTP header."""

    expects = "a header name: letters, digits and !#$%&'*+.^_`|~-"

    def read(self, value: Any) -> str:
        """Take a name that HTTP allows."""
        name: str = super().read(value)
        if not _TOKEN.fullmatch(name):
            raise refused(
                "illegal-header",
                f"{shown(name)} cannot be the name of a header",
                found=name,
                expected=self.expects,
            )
        return name


class Auth(Tagged):
    """A credential that is presented in a header."""

    @abstractmethod
    def header(self, ctx: Context) -> tuple[str, str]:
        """Return name and value of the header, with the credential in it.

        Raises:
            BuildRefused: it does not resolve, or to nothing, or to what no header carries.
        """

    @abstractmethod
    def presented(self, value: str) -> str:
        """Return the credential that a received header presents; empty when it presents none."""


class Bearer(Auth, tag="bearer", elsewhere="oauth token"):
    """``Authorization: Bearer <token>``."""

    token: Secret = option(
        SecretText(), "The token, usually a ${NAME} reference.", elsewhere="value"
    )

    def header(self, ctx: Context) -> tuple[str, str]:
        """Return the Authorization header."""
        return "Authorization", "Bearer " + _credential(ctx, self.token, "token")

    def presented(self, value: str) -> str:
        """Return what follows the scheme, which is written in any case."""
        scheme, _, token = value.partition(" ")
        return f"Bearer {token.lstrip(' ')}" if scheme.lower() == "bearer" else ""


class Header(Auth, tag="header", elsewhere="api_key apikey"):
    """A header of your choice with an exact value."""

    name: str = option(
        HeaderName(), "Name of the header; the case does not matter.", elsewhere="header key"
    )
    value: Secret = option(
        SecretText(), "The exact value, usually a ${NAME} reference.", elsewhere="token"
    )

    def header(self, ctx: Context) -> tuple[str, str]:
        """Return the header as configured."""
        return self.name, _credential(ctx, self.value, "value")

    def presented(self, value: str) -> str:
        """Return the whole value."""
        return value


def _credential(ctx: Context, secret: Secret, key: str) -> str:
    """Return the value of a secret of ``auth`` that can stand in a header."""
    path = ("auth", key)
    try:
        value = ctx.resolve(secret)
    except UnresolvedSecret as cause:
        raise UnresolvedSecret(replace(cause.fault, path=path)) from cause
    if not value:
        raise BuildRefused(Fault("empty-credential", f"'{key}' resolves to nothing", path=path))
    if _NOT_IN_A_VALUE.search(value):
        raise BuildRefused(
            Fault(
                "illegal-header",
                f"'{key}' resolves to what no header can carry",
                expected="no line breaks or control characters, and no blanks around it",
                path=path,
            )
        )
    return value


class MostBytes(Integer):
    """A number of bytes, or null for no bound."""

    takes_null = True
    is_null_absent = False
    is_null_told = True

    def __init__(self) -> None:
        super().__init__(min=1)
        self.expects += ", or null"


class HttpInput(
    Input, kind="http", listed=2, elsewhere="http_listener http_server post rest webhook"
):
    """Accept messages posted to ``/api/pipelines/{id}/messages``.

    The body is one JSON message, or an array of messages that travel as one batch. An accepted
    post (202) is queued, not yet processed. When the queue is full nothing is taken, the answer
    is 503, and the post should be sent again. Without ``auth`` whatever reaches the endpoint may
    post. A pipeline has at most one input of this kind.

    What waits is bounded by posts (``capacity``) and by the bytes of their bodies (``max_queued_bytes``); a
    body of 256 KiB and more counts until its messages have left the pipeline.
    """

    is_only = True
    unsampled: ClassVar[str] = (
        "it reads nothing by itself: messages are posted to the pipeline that has it"
    )
    attaches: ClassVar = {
        "method": "HTTP method of the post.",
        "remote_addr": "Address and port it came from, or null.",
        "headers": "Those of " + ", ".join(PASSED_ON) + " that the post had.",
    }

    auth: Auth | None = option(
        VariantOf(Auth),
        "What a post has to present; absent, everybody may post.",
        default=None,
        elsewhere="authentication authorization credentials",
    )
    capacity: int = option(
        Integer(min=1),
        "Posts that may wait; further ones are answered with 503.",
        default=1024,
        elsewhere="limit max_queue queue_size",
    )
    max_queued_bytes: int | None = option(
        MostBytes(),
        "Bytes of their bodies, together; further ones are answered with 503, but for one that is alone. "
        "null: no bound.",
        default=MOST_BYTES,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a credential that an envelope would show."""
        if isinstance(self.auth, Header) and self.auth.name.lower() in PASSED_ON:
            yield Fault(
                "conflict",
                f"an envelope shows the header '{self.auth.name}', so it cannot carry a credential",
                found=shown(self.auth.name),
                expected="a header other than " + ", ".join(PASSED_ON),
                path=("auth", "name"),
            )

    def source(self, ctx: Context) -> Source:
        """Open the pipeline's way in; posts are taken from now on."""
        posts = Posts(
            self.capacity,
            self.max_queued_bytes,
            _admits(self.auth, ctx),
            ctx.decoding,
            wants_origin=self.envelope is not None,
        )
        ctx.admit(posts)
        return posts

    def is_batching(self) -> bool:
        """Return True: an array is one batch."""
        return True


Admits = Callable[[Callable[[str], str | None]], bool]
"""Says whether somebody may post; is given what looks a header up."""


def _admits(auth: Auth | None, ctx: Context) -> Admits:
    """Return what checks the credential. It takes as long for a wrong one as for a missing one."""
    if auth is None:
        return lambda headers: True
    name, value = auth.header(ctx)
    # A client writes UTF-8, and a server reads the octets of a header as Latin-1.
    name, wanted = name.lower(), value.encode().decode("latin-1").encode()

    def admits(headers: Callable[[str], str | None]) -> bool:
        # Blanks around a value are not part of it. Source: RFC 9110, section 5.5.
        presented = auth.presented((headers(name) or "").strip(" \t"))
        return hmac.compare_digest(presented.encode("utf-8", "surrogatepass"), wanted)

    return admits


class Posts(Source):
    """The queue between the endpoint and the pump: a source, and the pipeline's `Ingress`.

    It is bounded by ``capacity`` posts. The pump takes up to 16 at once and works them off one by
    one, so at most ``capacity`` + 16 are accepted and not yet in the pipeline.

    It is bounded by the bytes of their bodies as well. Those of a large body count until the pipeline
    has let go of it: a few of them would otherwise be on their way beside all that wait.
    """

    is_raw: ClassVar[bool] = False

    def __init__(
        self,
        capacity: int,
        most_bytes: int | None,
        admits: Admits,
        decoding: Decoding,
        *,
        wants_origin: bool,
    ) -> None:
        self.admits = admits
        self.decoding = decoding
        self.wants_origin = wants_origin
        self._room = capacity
        """Posts that may wait; none when it is stopped."""
        self._most_bytes = math.inf if most_bytes is None else most_bytes
        self._bytes = self._large = 0
        self._queue: deque[Arrival] = deque()
        self._sizes: deque[int] = deque()
        self._posted = asyncio.Event()

    def has_room_for(self, size: int) -> bool:
        """Return whether a body of so many bytes may wait beside the others; alone any may."""
        return not self._bytes or self._bytes + size <= self._most_bytes

    def offer(self, batch: Batch, origin: Any, size: int = 0) -> bool:
        """Queue one post; False when there is no room or the pipeline is ending."""
        queue = self._queue
        if len(queue) >= self._room or (
            self._bytes + size > self._most_bytes and not self.has_room_for(size)
        ):
            return False
        self._bytes += size
        if isinstance(batch, DecodedBatch):
            self._large += 1
            batch.there.debt = Acknowledgement(partial(self._let_go, size))
            size = 0
        queue.append((batch, origin))
        self._sizes.append(size)
        self._posted.set()
        return True

    def _let_go(self, size: int) -> None:
        """Count a large post no more: nothing is left of it."""
        self._large -= 1
        self._bytes -= size

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Yield what is queued, a few posts at a time; return when stopped and empty."""
        queue, sizes = self._queue, self._sizes
        while queue or self._room:
            if queue:
                # One by one where some are large: what is handed on together is let go together.
                posts = 1 if self._large else min(len(queue), CHUNK)
                yield [queue.popleft() for _ in range(posts)]
                self._bytes -= sum([sizes.popleft() for _ in range(posts)])
            else:
                self._posted.clear()
                await self._posted.wait()

    def describe(self, origin: Origin) -> dict[str, Any]:
        """Return what an envelope shows of a post."""
        method, remote_addr, headers = origin
        return {
            "method": method,
            "remote_addr": remote_addr,
            "headers": {
                name.decode(): _text(value) for name, value in headers if name in _PASSED_ON
            },
        }

    def stop(self) -> bool:
        """Refuse posts from now on; what was accepted is read out, because it was answered 202."""
        self._room = 0
        self._posted.set()
        return True

    def close(self) -> int:
        """Refuse posts, and forget those that nobody will read."""
        self.stop()
        lost = len(self._queue)
        self._queue.clear()
        return lost


def _text(value: bytes) -> str:
    """Return a header value; empty when it is no text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ""


class Verb(Choice):
    """A method whose request has a body."""

    def read(self, value: Any) -> str:
        """Take a method; tell why the others will not do."""
        if value in ("GET", "DELETE"):
            raise refused(
                "not-a-choice",
                f"a {value} request has no body to put the messages in",
                found=value,
                expected=self.expects,
            )
        return super().read(value)


class HttpOutput(Output, kind="http", listed=10, elsewhere="http_client post rest webhook"):
    """Send each batch, or each message, to an HTTP server as JSON.

    Any answer but 2xx fails the batch; the reply is discarded. After a failed connection, a
    timeout, a 429 or a 5xx the next try waits: 250 ms at first, longer each time, at most
    30 s; batches that arrive meanwhile fail. Any other refusal costs only its own batch. A 307 or
    308 within the same server is followed; every other redirect is a failure.

    User info in the url is sent as Basic authentication; errors, logs and events never show it.
    """

    drivers = ("aiohttp",)

    url: ParsedUrl = option(
        HttpUrl(fixed=Fixed()),
        "Where to send: an absolute http or https url.",
        elsewhere="address endpoint uri",
    )
    auth: Auth | None = option(
        VariantOf(Auth),
        "Credential to present.",
        default=None,
        elsewhere="authentication authorization credentials",
    )
    body: str = option(
        Choice(
            "batch", "message", elsewhere={"batch": "all array list", "message": "each one single"}
        ),
        "One request per batch, an array; or one per message, in order, up to the first failure.",
        default="batch",
        elsewhere="batching",
    )
    timeout_seconds: float = option(
        Number(above=0, max=86400),
        "Seconds that one request may take.",
        default=30,
        elsewhere="timeout timeout_secs",
    )
    verb: str = option(
        Verb("POST", "PUT", "PATCH"), "HTTP method.", default="POST", elsewhere="http_method method"
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse headers that would be sent twice."""
        name = self.auth.name.lower() if isinstance(self.auth, Header) else "authorization"
        if name in FRAMING:
            yield Fault(
                "conflict",
                f"every request already has a '{name}' header",
                found=shown(name),
                expected="a header other than " + ", ".join(FRAMING),
                path=("auth", "name"),
            )
        if self.auth and self.url.user is not None and name == "authorization":
            yield Fault(
                "conflict",
                "'auth' and the user info in 'url' would both be the Authorization header",
                expected="one of them",
                path=("auth",),
            )

    def open(self, ctx: Context) -> AwaitingSink:
        """Resolve the credential. The first batch connects."""
        return HttpSink(
            HttpClient(
                self.url,
                headers=dict([self.auth.header(ctx)] if self.auth else []),
                clock=ctx.clock,
                hide=ctx.hide,
                redact=ctx.redact,
                verb=self.verb,
                timeout_seconds=self.timeout_seconds,
            ),
            ctx.clock,
            is_single=self.body == "message",
        )


class HttpSink(AwaitingSink):
    """Sends batches one after the other over one session."""

    def __init__(self, client: HttpClient, clock: Clock, *, is_single: bool) -> None:
        self._client, self._clock = client, clock
        self._is_single = is_single

    async def write(self, batch: Batch) -> None:
        """Send the batch, or its messages in order until one is refused."""
        if is_large(batch) and not self._is_single:
            await self._client.send(await encode_large(batch, self._clock))
        else:
            for body in batch if self._is_single else [batch]:
                await self._client.send(encode(body))

    async def finish(self) -> None:
        """Close the session."""
        await self._client.close()
