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
from headrace.compiler.errors import UnknownPipeline
from headrace.compiler.jsontext import NotJson, encode
from headrace.compiler.runtime.wayin import NoRoom, PostBody
from headrace.compiler.text.diagnostics import shown
from headrace.web.apierror import api_error
from headrace.web.asgi import CLOSE, AsgiMessage, Receive, Send, respond, unless_gone
from headrace.web.auth.access import Access
from headrace.web.endpoint import FAILURE, Answer, Endpoint, refusals
from headrace.web.engineprotocol import WayIn
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

    def admitted(self, id: str, headers: Headers, *, is_plain: bool = False) -> WayIn:
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
        for key, value in () if is_plain else headers:
            if key == b"content-length":
                if int(value) > LARGEST:
                    raise too_large()
            elif key == b"content-encoding" and value.strip().lower() not in _PLAIN:
                named = shown(value.strip().decode("latin-1"))
                text = (
                    f"a body in the content encoding {named} is not taken: send the JSON as it is"
                )
                # Source: RFC 9110, section 15.5.16.
                raise PostRefused(415, text, (b"accept-encoding", b"identity"))
        return way_in

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
            except (NotJson, NoRoom) as cause:
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


def refusal_of(body: PostBody, cause: NotJson | NoRoom) -> PostRefused:
    """Return the refusal of a body that is no JSON, or for which there is no room."""
    if isinstance(cause, NotJson):
        return PostRefused(400, f"the body is not JSON: {cause}{_instead(body, cause)}")
    return PostRefused(503, str(cause), _SOON)


def _instead(body: PostBody, cause: NotJson) -> str:
    """Return what is taken, for who sends lines, a table or no JSON at all."""
    begins = bytes(body[:64]).lstrip()[:1]
    if begins in (b"{", b"[", b'"') and "trailing characters" not in str(cause):
        return ""
    return "; what is taken is one JSON message, or an array of them, not lines (NDJSON) or CSV"


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
                _400="The body is not JSON.",
                _401="The input's own credential was not presented.",
                _404="No pipeline under that id, or it has no http input.",
                _413="The body is larger than 16 MiB.",
                _415="The body has a content encoding, such as gzip.",
                _500=FAILURE,
                _503="There is no room for it in the queue; nothing was taken, so send it again.",
            ),
        },
        ahead=Ingest,
    ),
)
