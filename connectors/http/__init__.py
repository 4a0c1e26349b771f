"""HTTP: the credential both sides share, the input that is posted to, the output that posts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from headrace.compiler.component.bisection import Bisection, HowToldApart
from headrace.compiler.component.buildcontext import Context, KeepBounds
from headrace.compiler.component.durable import durable_of
from headrace.compiler.component.durableinput import STORED, TWICE_AFTER_A_KILL, DurableInput
from headrace.compiler.component.families import FedBy
from headrace.compiler.component.payloadinput import PayloadInput
from headrace.compiler.component.promises import (
    BYTES,
    NOTHING_LOST,
    InputPromises,
    Lost,
    MemoryBound,
    OutputPromises,
    Waiting,
)
from headrace.compiler.edges import AwaitingSink, Source
from headrace.compiler.httpclient import HttpClient
from headrace.compiler.httpexchange import JSON
from headrace.compiler.httpfailures import HTTP_FAILURES
from headrace.compiler.schema.fields import Boolean, Choice, Integer, Number, refused
from headrace.compiler.schema.records import option
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.schema.urls import HttpUrl, ParsedUrl
from headrace.compiler.schema.variants import VariantOf
from headrace.compiler.text.diagnostics import Fault, shown
from headrace.connectors.http.credential import Auth, Header
from headrace.connectors.http.keptposts import KeptPosts
from headrace.connectors.http.sink import HttpSink
from headrace.connectors.http.source import CHUNK, PASSED_ON, Posts, admits
from headrace.connectors.network.messageoutput import MessageOutput

TEXT = "text/plain; charset=utf-8"

FRAMING = ("connection", "content-length", "content-type", "expect", "host", "transfer-encoding")
"""Headers of a request that the output writes itself."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of bodies that may wait where the config does not say."""

INPUT = InputPromises(
    row="input",
    away="",
    kill=Lost("what was answered 202 and had not left the outputs", waiting=True),
    twice="what a client posts again",
    waiting=Waiting(
        row="input",
        bounds=(
            MemoryBound("capacity", "posts"),
            MemoryBound("max_queued_bytes", BYTES, "of their bodies", is_inside=True),
        ),
        beyond="posts are answered 503",
        taken=CHUNK,
    ),
)
DURABLE_INPUT = InputPromises(
    row="durable",
    when=", `durable`",
    away="",
    kill=NOTHING_LOST,
    twice=TWICE_AFTER_A_KILL,
    waiting=Waiting(
        row="durable",
        bounds=(
            MemoryBound("capacity", "posts", "that are being stored"),
            MemoryBound("max_queued_bytes", BYTES, "of their bodies", is_inside=True),
        ),
        stored=STORED,
        beyond="posts are answered 503",
    ),
)
OUTPUT = OutputPromises(
    row="output",
    written="the answer is a 2xx",
    away="batches are lost and counted",
    twice="nothing (it is not sent again, not even when the answer got lost)",
)


class MostBytes(Integer):
    """A number of bytes, or null for no bound."""

    takes_null = True
    is_null_absent = False
    is_null_told = True

    def __init__(self) -> None:
        super().__init__(min=1)
        self.expects += ", or null"


class HttpInput(
    DurableInput,
    PayloadInput,
    kind="http",
    listed=2,
    elsewhere="http_listener http_server post rest webhook",
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
    promises: ClassVar = (INPUT, DURABLE_INPUT)
    fed_by: ClassVar[FedBy] = "posts"
    is_raw: ClassVar[bool] = False
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
        "Bytes of their bodies, together, where each message counts as 32 at least and each "
        "cell of a table as 8 more; further ones are answered with 503, but for one that is alone. null: "
        "no bound.",
        default=MOST_BYTES,
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse a credential that an envelope would show."""
        yield from super().rules()
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
        if (durable := durable_of(self.durable)) is not None:
            bounds = KeepBounds(durable.max_bytes, self.capacity, self.max_queued_bytes)
            kept = ctx.keep(self.kept_as(), bounds, self.payload_format())
            ctx.admit(
                KeptPosts(
                    kept,
                    admits(self.auth, ctx),
                    ctx.decoding,
                    self.payload_format(),
                    wants_origin=self.envelope is not None,
                )
            )
            return kept
        posts = Posts(
            self.capacity,
            self.max_queued_bytes,
            admits(self.auth, ctx),
            ctx.decoding,
            wants_origin=self.envelope is not None,
            format=self.payload_format(),
        )
        ctx.admit(posts)
        return posts

    def kept_as(self) -> str:
        """Return its kind: there is one at most."""
        return self.kind

    def is_batching(self) -> bool:
        """Return True: an array is one batch."""
        return True


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


class HttpOutput(MessageOutput, kind="http", listed=10, elsewhere="http_client post rest webhook"):
    """Send each batch, or each message, to an HTTP server as JSON, or each message as text.

    Any answer but 2xx fails the batch; the reply is discarded. After a failed connection, a
    timeout, a 429 or a 5xx the next try waits: 250 ms at first, longer each time, at most
    30 s; batches that arrive meanwhile fail. Any other refusal costs only its own batch. A 307 or
    308 within the same server is followed; every other redirect is a failure.

    User info in the url is sent as Basic authentication; errors, logs and events never show it.
    """

    drivers = ("aiohttp",)
    promises: ClassVar = (OUTPUT,)
    failure_classes: ClassVar = HTTP_FAILURES
    bisection: ClassVar = Bisection(
        "halves",
        "where the answer is 413, and with `bisect: true` any other 4xx; not needed with `body: message`",
    )

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

    bisect: bool = option(
        Boolean(),
        "A 4xx means that nothing of the body was taken. Where the pipeline has `dead_letters`, halves of a"
        " batch that is refused are sent then, down to the messages at fault. For a 413 that is so anyway.",
        default=False,
        additive=True,
        elsewhere="split split_batch",
    )

    def rules(self) -> Iterator[Fault]:
        """Refuse headers that would be sent twice, and what a body of one message, or of many, has not."""
        if self.bisect and self.body == "message":
            yield Fault(
                "conflict",
                "a request has one message, of which there are no halves",
                expected="'bisect: true' without 'body: message'",
                path=("bisect",),
                on_key=True,
            )
        if self.template is not None and self.body != "message":
            yield Fault(
                "conflict",
                "a template is filled in with one message, and a request has a batch",
                expected="'body: message' beside it",
                path=("template",),
                on_key=True,
            )
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

    def told_apart(self) -> HowToldApart:
        """Return what its bodies, and what a 4xx means, come to."""
        if self.body == "message":
            return "index"
        return "halves" if self.bisect else "never"

    def kept_as(self) -> str:
        """Return the url, without what may be secret of it."""
        return f"{self.kind} {self.url.location.partition('?')[0]}"

    def open(self, ctx: Context) -> AwaitingSink:
        """Resolve the credential. The first batch connects."""
        return HttpSink(
            HttpClient(
                self.url,
                headers=dict([self.auth.header(ctx)] if self.auth else []),
                media_type=JSON if self.template is None else TEXT,
                clock=ctx.clock,
                hide=ctx.hide,
                redact=ctx.redact,
                verb=self.verb,
                timeout_seconds=self.timeout_seconds,
                refuses_whole=self.bisect,
            ),
            ctx.clock,
            is_single=self.body == "message",
            bodies=None if self.template is None else self.bodies(ctx),
        )
