"""The table of endpoints folded into one ASGI application, and whether a caller may have one of them.

ingest, events      answered ahead, from the raw path
everything else     falcon: routes, HEAD, OPTIONS, 404, 405
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import falcon
import falcon.asgi

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.jsontext import encode
from headrace.web import statuses
from headrace.web.apierror import api_error
from headrace.web.asgi import CLOSE, AsgiMessage, Receive, Send, respond
from headrace.web.auth.access import (
    Access,
    Authenticator,
    Caller,
    Forbidden,
    NotSignedIn,
    TurnedAway,
    let_in,
)
from headrace.web.bodies import Request
from headrace.web.endpoint import CAPTURE, Endpoint, pattern
from headrace.web.ignoring import HEADER, ignored, naming
from headrace.web.resources import ENDPOINTS
from headrace.web.service import Service

_SPOKEN = ("1.1", "1.0")  # 0.9 has no status and no headers: nobody can be answered so


class Application:
    """An ASGI application that serves a table of endpoints."""

    def __init__(self, service: Service, table: Sequence[Endpoint] = ENDPOINTS) -> None:
        for endpoint in table:
            if not isinstance(endpoint.access, Access):
                raise TypeError(f"{endpoint.operation} has no access level: anybody could call it")
        service.describe = cache(partial(_description, service.catalogue, table))
        self._doors = service.authenticator
        self._routed = _routed(service, table)
        self._ahead = [
            (pattern(endpoint.path), endpoint, endpoint.ahead(service))
            for endpoint in table
            if endpoint.ahead
        ]

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            if scope["http_version"] not in _SPOKEN:
                return await respond(send, 400, api_error("the request is not HTTP/1"), CLOSE)
            raw: bytes = scope["raw_path"]
            for path, endpoint, application in self._ahead:
                if (match := path.fullmatch(raw)) and scope["method"] == endpoint.method:
                    if names := _ignored(endpoint, scope):
                        send = naming(send, names)
                    try:
                        if endpoint.access:
                            await admitted(endpoint, self._doors, scope)
                        return await application(scope, receive, send, *match.groups())
                    except Exception as cause:
                        return await respond(send, *statuses.answer(cause, endpoint.operation))
            # As it came, so that `a%2Fb` stays one segment; what a path captures is decoded later.
            scope["path"] = raw.decode("latin-1")
        await self._routed(scope, receive, send)


def _description(catalogue: Catalogue, table: Sequence[Endpoint]) -> bytes:
    """Return the description of the served routes, as `GET /api/openapi.json` answers it."""
    # When it is asked for: what writes it takes a tenth of a second to load.
    from headrace.web.openapi import described

    return encode(described(catalogue, table))


def _routed(service: Service, table: Iterable[Endpoint]) -> falcon.asgi.App[Any, Any]:
    """Return the routes as falcon wants them: of a path, an ``on_`` responder for every method."""
    app = falcon.asgi.App(middleware=Middleware(), request_type=Request)
    statuses.install(app)
    in_order = sorted(table, key=lambda endpoint: endpoint.path)
    for path, endpoints in groupby(in_order, key=lambda endpoint: endpoint.path):
        covering = [(each, match) for each in in_order if (match := _covers(each, path))]
        # Each comes with what it captures of the path; of several with one method the last counts.
        responders = {
            f"on_{endpoint.method.lower()}": _responder(service, endpoint, captured)
            for endpoint, captured in [*covering, *((each, {}) for each in endpoints)]
        }
        if "on_get" in responders:
            responders["on_head"] = responders["on_get"]  # falcon leaves the body out
        app.add_route(path, SimpleNamespace(**responders))
    return app


def _covers(endpoint: Endpoint, path: str) -> dict[str, str]:
    """Return what the path of an endpoint captures of another one: nothing, unless it covers that.

    ``/api/pipelines/dry-run`` is also the place of a pipeline that is called like this.
    """
    named = CAPTURE.sub(lambda name: f"(?P<{name[0][1:-1]}>[^/{{}}]+)", endpoint.path)
    match = re.fullmatch(named, path)
    return match.groupdict() if match else {}


def _responder(service: Service, endpoint: Endpoint, fixed: Mapping[str, str]) -> Any:
    async def on_method(
        req: falcon.asgi.Request, resp: falcon.asgi.Response, **captured: str
    ) -> None:
        if names := _ignored(endpoint, req.scope):
            resp.set_header(HEADER, names)
        if endpoint.access:
            await admitted(endpoint, service.authenticator, req.scope)
        if endpoint.respond is None:  # answered ahead: here the path has its 405, OPTIONS and HEAD
            resp.content_type = endpoint.responses[200].media_type
            resp.stream = _endless()
            return
        decoded = {name: unquote(value) for name, value in captured.items()}
        await endpoint.respond(service, req, resp, **fixed, **decoded)

    return on_method


async def admitted(endpoint: Endpoint, authenticator: Authenticator, scope: dict[str, Any]) -> None:
    """Let whoever sent a request through to an endpoint; `caller_of` then tells who it is.

    Raises:
        NotSignedIn: the table asks for somebody who is signed in.
        Forbidden: the table asks for more than they may.
        TurnedAway: see `Authenticator`.
    """
    if endpoint.access and not endpoint.takes_anybody:
        try:
            caller = await authenticator.caller(scope)
        except TurnedAway as cause:
            raise cause.during(endpoint.operation) from cause
        let_in(scope, caller)
        authorize(endpoint, caller)


def authorize(endpoint: Endpoint, caller: Caller) -> None:
    """Let a caller through.

    Raises:
        NotSignedIn: the table asks for somebody who is signed in.
        Forbidden: the table asks for more than they may.
    """
    if caller.access >= endpoint.access:
        return
    if not caller.access:
        raise NotSignedIn(
            f"{endpoint.operation}: nobody is signed in, or the credential is not valid"
        )
    needed, has = endpoint.access.name.lower(), caller.access.name.lower()
    raise Forbidden(f"{endpoint.operation}: needs '{needed}', '{caller.username}' has '{has}'")


def _ignored(endpoint: Endpoint, scope: AsgiMessage) -> str | None:
    """Return what a request asks for that its endpoint does not know; None: nothing."""
    query: bytes = scope["query_string"]
    return ignored(query, {each.name: each.words for each in endpoint.query}) if query else None


async def _endless() -> AsyncIterator[bytes]:
    """Stand for the body of a stream: falcon then states no length, and HEAD reads nothing of it."""
    yield b""


class Middleware:
    """What falcon is to do with every request and every answer besides."""

    async def process_request(self, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
        """Know no path with nothing between two slashes, or behind the last, whatever the method.

        falcon takes most of them for names that are empty, and the rules of a proxy may not.
        """
        if "//" in req.path or (req.path.endswith("/") and req.path != "/"):
            raise falcon.HTTPRouteNotFound

    async def process_response(
        self, req: Any, resp: falcon.asgi.Response, resource: Any, req_succeeded: bool
    ) -> None:
        """Have browsers take every answer for what it says it is."""
        resp.set_header("X-Content-Type-Options", "nosniff")
