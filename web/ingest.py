"""`POST /api/pipelines/{pipeline_id}/messages`: the way in for data, ahead of falcon and middleware.

What can be refused without the body is refused before it is read: no such pipeline, no `http`
input, its credential. Then the body is read, at most 16 MiB of it, and only a whole one is queued:
a client that leaves in the middle has posted nothing.

It has to cost little more than decoding does. So what every answer repeats is made once, and nothing
is made for a post that its pipeline does not ask for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from urllib.parse import unquote

from headrace.compiler.errors import UnknownPipeline
from headrace.compiler.jsontext import NotJson
from headrace.compiler.language.context import Ingress
from headrace.web.asgi import Message, Receive, Send, respond, starting
from headrace.web.errors import api_error
from headrace.web.service import Service

LARGEST = 16 * 1024 * 1024
"""Bytes of a body; beyond it the post is refused, read no further."""

Headers = Iterable[tuple[bytes, bytes]]

_ONE = b'{"accepted":1}'
_STARTING_ONE = starting(202, len(_ONE))
_BODY_ONE: Message = {"type": "http.response.body", "body": _ONE}
_CLOSE = (b"connection", b"close")
_SOON = (b"retry-after", b"1")


class Refusal(Exception):
    """A post that is not taken, and how that is answered."""

    def __init__(self, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.status, self.headers = status, headers


class Ingest:
    """Takes posts and queues them."""

    def __init__(self, service: Service) -> None:
        self._ingress = service.engine.ingress

    async def __call__(self, scope: Message, receive: Receive, send: Send, captured: bytes) -> None:
        """Answer one post: 202 when its messages are queued."""
        try:
            count = await self._take(scope, receive, captured.decode("latin-1"))
        except Refusal as cause:
            await respond(send, cause.status, api_error(str(cause)), *cause.headers)
        else:
            if count is not None:
                await _accept(send, count)

    async def _take(self, scope: Message, receive: Receive, id: str) -> int | None:
        """Queue what is posted and return its length; None when the client left before its end."""
        if "%" in id:
            id = unquote(id)
        headers = scope["headers"]
        ingress = self._open(id, headers)
        body = await _body(headers, receive)
        if body is None:
            return None
        try:
            decoded = ingress.decoding.decode(body)
        except NotJson as cause:
            raise Refusal(400, f"the body is not JSON: {cause}") from cause
        batch = decoded if type(decoded) is list else [decoded]
        origin = _origin(scope) if ingress.wants_origin else None
        if batch and not ingress.offer(batch, origin):
            raise Refusal(503, f"pipeline '{id}': the queue is full, nothing was taken", _SOON)
        return len(batch)

    def _open(self, id: str, headers: Headers) -> Ingress:
        """Return the way in, for somebody who may use it."""
        try:
            ingress = self._ingress(id)
        except UnknownPipeline as cause:
            raise Refusal(404, str(cause)) from cause
        if ingress is None:
            raise Refusal(404, f"pipeline '{id}' has no http input")
        if not ingress.admits(partial(header, headers)):
            raise Refusal(401, f"pipeline '{id}': the input's credential is wrong or missing")
        return ingress


def header(headers: Headers, name: str) -> str | None:
    """Return the first value of a header; ``name`` in lower case."""
    wanted = name.encode("latin-1")
    for key, value in headers:
        if key == wanted:
            return value.decode("latin-1")
    return None


async def _body(headers: Headers, receive: Receive) -> bytes | None:
    """Return the whole body, or None if the client left before its end."""
    for key, value in headers:
        if key == b"content-length" and int(value) > LARGEST:
            raise _too_large()
    message = await receive()
    if message["type"] == "http.disconnect":
        return None
    body: bytes = message.get("body", b"")
    return await _rest(body, receive) if message.get("more_body") else body


async def _rest(first: bytes, receive: Receive) -> bytes | None:
    body = bytearray(first)
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > LARGEST:
            raise _too_large()
        more = message.get("more_body", False)
    return bytes(body)


async def _accept(send: Send, count: int) -> None:
    if count == 1:
        await send(_STARTING_ONE)
        await send(_BODY_ONE)
    else:
        await respond(send, 202, b'{"accepted":%d}' % count)


def _too_large() -> Refusal:
    # The connection ends with it, because the rest is not read.
    return Refusal(413, f"the body is larger than {LARGEST} bytes", _CLOSE)


def _origin(scope: Message) -> tuple[str, str | None, Headers]:
    """Return what an envelope may show of a post: method, peer and headers."""
    client = scope.get("client")
    if client is None:
        return scope["method"], None, scope["headers"]
    host, port = client
    peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return scope["method"], peer, scope["headers"]
