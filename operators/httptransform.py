"""Replacing a batch by what an HTTP server makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from headrace.compiler.component.branches import FAILED, Branch
from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.failingmessages import FAILS_AS_A_WHOLE
from headrace.compiler.component.failureclasses import FailureClasses, FailureRow
from headrace.compiler.component.families import Transform
from headrace.compiler.component.promises import HOLDS_NOTHING
from headrace.compiler.component.retry import RETRY, Retrying, retry_of
from headrace.compiler.delivery import Batch, JsonValue, is_large
from headrace.compiler.errors import BatchFailed
from headrace.compiler.httpclient import HttpClient
from headrace.compiler.httpfailures import HTTP_FAILURES
from headrace.compiler.jsontext import NotJson, encode
from headrace.compiler.largejson import encode_large
from headrace.compiler.schema.fields import Choice
from headrace.compiler.schema.records import option
from headrace.compiler.schema.templates import Fixed
from headrace.compiler.schema.urls import HttpUrl, ParsedUrl
from headrace.compiler.text.diagnostics import Codes, Fault, Severity

CODES: Codes = {
    "not-honoured": "A setting asks for something that the component never does.",
}

MOST_REPLY_BYTES = 16 * 1024 * 1024
PIPELINES = (
    "give each value a pipeline that reads this one, filters by the field and posts to its own url"
)
"""What to do instead of a template in a url."""
NO_ARRAY = FailureRow(
    "no_array", "invalid", (), "the reply is not a JSON array, or is longer than 16 MiB"
)


class HttpTransform(
    Transform, kind="http", listed=2, elsewhere="enrichment http_client http_request post rest"
):
    """Post each batch to a server and go on with the array that it answers.

    The batch is posted as a JSON array, also when it holds one message; the reply must be a JSON
    array of at most 16 MiB and is one batch, dropped when it is empty. Batches are posted one at a
    time and in order. A batch fails when no answer comes within 30 s, when the answer is not 2xx,
    or when it is not an array.

    User info in the url is sent as Basic authentication; errors, logs and events never show it.

    Shape: n messages in, one batch of as many as the server answers out.
    """

    lacks: ClassVar = FAILS_AS_A_WHOLE

    drivers = ("aiohttp",)
    promises: ClassVar = (HOLDS_NOTHING,)
    failure_classes: ClassVar = FailureClasses(*HTTP_FAILURES.rows, NO_ARRAY)
    is_gathering: ClassVar[bool] = True
    asks: ClassVar[bool] = True
    acts: ClassVar[str] = "posts every batch that reaches it to its url"

    url: ParsedUrl = option(
        HttpUrl(fixed=Fixed(PIPELINES)),
        "Where to post: an absolute http or https url.",
        elsewhere="address endpoint uri",
    )
    verb: str = option(
        Choice("GET", "POST", "PUT", "PATCH", "DELETE"),
        "Required, but not honoured: every request is a POST.",
        elsewhere="http_method method",
    )

    retry: Retrying = option(
        RETRY,
        "A batch that fails because the server is away, or because somebody has to act, is posted again"
        " until it is answered, and what comes behind it waits; true is the same as `{}`. A batch that the"
        " server answers with 500 each time keeps the others waiting for as long as `seconds` says.",
        default=None,
        additive=True,
        elsewhere="retries max_retries retry_policy backoff",
    )

    def examine(self, context: CheckContext) -> Iterator[Fault]:
        """Remark on a verb that is not the one that every request has."""
        if self.verb != "POST":
            yield Fault(
                "not-honoured",
                f"'verb: {self.verb}' is not honoured: every batch is sent as a POST",
                found=self.verb,
                expected="POST",
                path=("verb",),
                severity=Severity.WARNING,
            )

    def branches(self, context: CheckContext) -> Iterator[Branch]:
        """A batch is answered; a batch fails."""
        yield Branch("answered", "no batch was ever answered")
        yield Branch(FAILED, "no batch ever failed")

    def operator(self, ctx: Context, most_reply_bytes: int = MOST_REPLY_BYTES) -> Operator:
        """Return the operator; its session is closed when the pipeline has ended."""
        client = HttpClient(
            self.url, clock=ctx.clock, hide=ctx.hide, redact=ctx.redact, exchange=ctx.exchange
        )
        ctx.on_finish(client.close)

        async def replace(batch: Batch) -> list[Batch]:
            if not batch:
                return []
            is_sliced = is_large(batch)
            body = await encode_large(batch, ctx.clock) if is_sliced else encode(batch)
            reply = await client.ask(body, most_reply_bytes)
            answered = self.batch_of(reply, ctx)
            ctx.took("answered")
            return [answered] if answered else []

        return ctx.lift_awaiting(replace, retry_of(self.retry))

    def reason(self, message: JsonValue, ctx: Context) -> str:
        """Return that the server had nothing to say."""
        return "the server answered an empty array"

    def batch_of(self, reply: bytes, ctx: Context) -> Batch:
        """Return the batch that a reply holds; where it holds none, the log says why.

        Raises:
            BatchFailed: the reply is not a JSON array.
        """
        try:
            batch = ctx.decoding.decode(reply)
        except NotJson as cause:
            said = f"POST {self.url}: the reply is not JSON"
            ctx.warn_once(f"{said}: {cause}")
            raise BatchFailed(said) from cause
        if not isinstance(batch, list):
            raise BatchFailed(f"POST {self.url}: the reply is not an array")
        return batch
