"""`POST /api/pipelines/{pipeline_id}/messages`: the way in for data, ahead of falcon and middleware.

Where it can, `web/process/posts.py` answers it in the protocol, with the same steps: what is here as an
application of ASGI answers what is unusual.

What can be refused without the body is refused before it is read: no such pipeline, no `http`
input, its credential. Then the body is read, at most 16 MiB of it, and only a whole one is queued:
a client that leaves in the middle has posted nothing.

It has to cost little more than decoding does. So what every answer repeats is made once, and nothing
is made for a post that its pipeline does not ask for.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.component.buildcontext import Headers, Origin
from headrace.compiler.contentcodings import CODINGS, OTHER_NAMES, NotUnpacked, UnpacksToMore
from headrace.compiler.errors import UnknownPipeline
from headrace.compiler.formats import FormatMisfit, TooManyInPayload
from headrace.compiler.jsontext import NotJson, encode
from headrace.compiler.runtime.wayin import BEGINNING, NoRoom, PackedJson, PostBody, TooLargeToKeep
from headrace.compiler.text.diagnostics import shown
from headrace.web.apierror import api_error
from headrace.web.asgi import CLOSE, AsgiMessage, Receive, Send, respond, unless_gone
from headrace.web.auth.access import Access
from headrace.web.endpoint import FAILURE, Answer, Endpoint, refusals
from headrace.web.engineprotocol import PostTaker, WayIn
from headrace.web.service import Service

PATH = "/api/pipelines/{pipeline_id}/messages"
OPERATION = "ingestMessages"
LARGEST = 16 * 1024 * 1024
"""Bytes of a body; beyond it the post is refused, read no further."""


class IngestResponse(msgspec.Struct):
    """How many messages were queued."""

    accepted: Count


IngestRequest = Annotated[
    Any,
    Meta(
        title="IngestRequest",
        description="An array is one batch; anything else is one message.",
    ),
]

_PLAIN = (b"", b"identity")
_CODINGS = {name.encode(): OTHER_NAMES.get(name, name) for name in (*CODINGS, *OTHER_NAMES)}
_ACCEPTED = (b"accept-encoding", ", ".join(CODINGS).encode())
_SOON = (b"retry-after", b"1")


class PostRefused(Exception):
    """A post that is not taken, and how that is answered."""

    def __init__(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.status, self.headers = status, headers


class Ingest:
    """Takes posts and queues them: what their heads say first, their bodies then."""

    def __init__(self, service: Service) -> None:
        self._way_in = service.engine.way_in

    def admitted(self, id: str, headers: Headers, *, is_plain: bool = False) -> PostTaker:
        """Return the way in for a post, of which there is the head.

        ``id`` is as it stands in the path, percent-encoded; ``is_plain``: whoever read the head knows that
        it says no more of the body than that it is not large.

        Raises:
            PostRefused: it is not taken, whatever its body is.
        """
        if "%" in id:
            id = unquote(id)
        try:
            way_in = self._way_in(id)
        except UnknownPipeline as cause:
            raise PostRefused(404, str(cause)) from cause
        if way_in is None:
            raise PostRefused(404, f"pipeline '{id}' has no http input")
        if way_in.admits is not None and not way_in.admits(partial(header, headers)):
            raise PostRefused(401, f"pipeline '{id}': the input's credential is wrong or missing")
        return way_in if is_plain else _as_told(way_in, headers)

    async def __call__(
        self, scope: AsgiMessage, receive: Receive, send: Send, captured: bytes
    ) -> None:
        """Answer one post: 202 when its messages are queued; nobody when the client left before."""
        headers = scope["headers"]
        try:
            way_in = self.admitted(captured.decode("latin-1"), headers)
            body = await _body(receive)
            if body is None:
                return
            origin = origin_of(scope["method"], scope.get("client"), headers)
            try:
                taken = way_in.take(body, origin if way_in.wants_origin else None)
                count = taken if isinstance(taken, int) else await unless_gone(receive, taken)
            except REFUSALS as cause:
                raise refusal_of(body, cause) from cause
        except PostRefused as cause:
            return await respond(send, cause.status, api_error(str(cause)), *cause.headers)
        if count is not None:
            await respond(send, 202, encode(IngestResponse(count)))


def header(headers: Headers, name: str) -> str | None:
    """Return the value of a header that a post has once; ``name`` in lower case.

    Of several nobody can tell which one a proxy has gone by: that is as if there were none.
    """
    wanted = name.encode("latin-1")
    values = [value for key, value in headers if key == wanted]
    return values[0].decode("latin-1") if len(values) == 1 else None


async def _body(receive: Receive) -> PostBody | None:
    """Return the whole body, or None if the client left before its end."""
    body = bytearray()
    is_whole = False
    while not is_whole:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST:
            raise too_large()
        is_whole = not message.get("more_body")
    return None if message["type"] == "http.disconnect" else body


def _as_told(way_in: WayIn, headers: Headers) -> PostTaker:
    """Return the way in for a body of which a head tells more: how long it is, or how it is coded.

    Raises:
        PostRefused: it is too large, or in a coding that is not taken, or in several.
    """
    codings = []
    for key, value in headers:
        if key == b"content-length":
            if int(value) > LARGEST:
                raise too_large()
        elif key == b"content-encoding":
            codings += [each.strip().lower() for each in value.split(b",")]
    coded = [each for each in codings if each not in _PLAIN]
    if not coded:
        return way_in
    coding = _CODINGS.get(coded[0])
    if coding is None or len(coded) > 1:
        named = shown(b", ".join(coded).decode("latin-1"))
        text = (
            f"a body in the content encoding {named} is not taken: send it in one of "
            + ", ".join(CODINGS)
        )
        # Source: RFC 9110, section 15.5.16.
        raise PostRefused(415, f"{text}, or as it is", _ACCEPTED)
    return way_in.unpacking(coding, LARGEST)


REFUSALS = (NotJson, NoRoom, FormatMisfit, NotUnpacked, UnpacksToMore, TooLargeToKeep)
"""What is raised of a post that is not taken, for its body or for want of room."""


def refusal_of(body: PostBody, cause: Exception) -> PostRefused:
    """Return the refusal of a body that does not fit, or for which there is no room."""
    match cause:
        case PackedJson():
            return PostRefused(
                400, f"the body is not JSON: {cause}{instead(cause.beginning, cause)}"
            )
        case NotJson():
            return PostRefused(400, f"the body is not JSON: {cause}{instead(body, cause)}")
        case NoRoom():
            return PostRefused(503, str(cause), _SOON)
        case TooManyInPayload() | UnpacksToMore() | TooLargeToKeep():
            return PostRefused(413, str(cause))
    return PostRefused(400, str(cause))


def instead(body: PostBody, cause: NotJson) -> str:
    """Return which `format` of an input takes such a body: lines, a table, or what is no JSON at all."""
    beginning = bytes(body[:BEGINNING]).lstrip()
    is_json = beginning[:1] in (b"{", b"[", b'"')
    if is_json and "trailing characters" not in str(cause):
        return ""
    first = beginning.partition(b"\n")[0]
    if beginning[:1] in (b"{", b"["):
        fits = "'format: ndjson' takes lines of JSON"
    elif any(each in first for each in (b",", b";", b"\t")):
        fits = "'format: csv' takes a table"
    elif is_json or beginning[:1].isdigit():
        fits = "'format: ndjson' takes lines of JSON"
    else:
        fits = "'format: text' or 'lines' takes text"
    return f"; what is taken is one JSON message, or an array of them; on the input, {fits}"


def too_large() -> PostRefused:
    """Return the refusal of a body that is larger than `LARGEST`."""
    # The connection ends with it, because the rest is not read.
    return PostRefused(413, f"the body is larger than {LARGEST} bytes", CLOSE)


def origin_of(method: str, client: tuple[str, int] | None, headers: Headers) -> Origin:
    """Return what an envelope may show of a post: method, peer and headers."""
    if client is None:
        return method, None, headers
    host, port = client
    peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return method, peer, headers


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path=PATH,
        operation=OPERATION,
        tag="pipelines",
        access=Access.PUBLIC,
        summary="Post one message, or an array of messages as one batch, to an http input.",
        body=IngestRequest,
        example=[{"machine": "press", "celsius": 81.5}, {"machine": "oven", "celsius": 20}],
        responses={
            202: Answer("Queued, not yet processed.", IngestResponse),
            **refusals(
                _400="The body is not JSON, or not what the `format` of the input asks for.",
                _401="The input's own credential was not presented.",
                _404="No pipeline under that id, or it has no http input, or it has failed and its input is"
                " not `durable`.",
                _413="The body is larger than 16 MiB, packed or unpacked, or has more messages, cells or"
                " characters than a `format` other than JSON may; or it is larger than all that is kept of"
                " a `durable` input.",
                _415="The body has a content encoding other than one of gzip, zstd and deflate.",
                _500=FAILURE,
                _503="There is no room for it in the queue, or, where the input is `durable`, on the disk;"
                " or that pipeline has failed. Nothing was taken, so send it again.",
            ),
        },
        ahead=Ingest,
    ),
)
