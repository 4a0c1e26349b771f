"""The filed connections over the API: what components can name. Nothing is written to disk.

What is filed is judged as a file of connections is, so a save of it loads. Whether secrets resolve and
anybody answers shows when a component that names the connection is built.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Literal

import falcon
import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.config.connectionsfile import load_connection, load_unfiled
from headrace.compiler.jsontext import encode
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, created, read_json_body
from headrace.web.endpoint import (
    BODY,
    CAPTURED,
    FAILURE,
    MALFORMED,
    Answer,
    Endpoint,
    refusals,
)
from headrace.web.parameters import Word
from headrace.web.service import Service

log = logging.getLogger("headrace.web")

SLICE = 50
"""Pipelines that are asked for their connections before messages have a turn."""

USED_BY: Word[Literal["true", "false"]] = Word(
    "used_by",
    "Whether each connection has `used_by`, the ids of the pipelines that name it. A connection with that"
    " cannot be filed as it is.",
    ("true", "false"),
    "false",
    Annotated[
        Literal["true", "false"], Meta(title="UsedBy", extra_json_schema={"default": "false"})
    ],
)


class ConnectionTest(msgspec.Struct):
    """What came of trying a connection."""

    outcome: Literal["ok", "failed"]
    why: Annotated[str | None, Meta(description="Why it failed; null: it did not.")]
    ms: Annotated[Count, Meta(description="How long that took, in milliseconds.")]


async def list_connections(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the connections in the order of their names, their secrets as templates."""
    is_told = USED_BY.of(req) == "true"
    filed = {name: each.dump() for name, each in service.engine.connections.items()}
    if is_told:
        for name, users in (await _users(service, filed)).items():
            filed[name]["used_by"] = users
    resp.data = encode(filed)


async def _users(service: Service, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the pipelines that name each connection, in order; some pipelines are asked at a time."""
    users: dict[str, list[str]] = {name: [] for name in names}
    for count, (id, config) in enumerate(sorted(service.engine.configs().items()), start=1):
        for name in config.connections & users.keys():
            users[name].append(id)
        if count % SLICE == 0:
            await service.clock.sleep(0)
    return users


async def test_connection(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Try one connection for real. Nothing is filed."""
    body, engine = await read_json_body(req), service.engine
    context = CheckContext(data_dir=engine.data_dir)
    load = partial(load_unfiled, catalogue=service.catalogue, context=context)
    connection, _ = await req.in_turn(
        service.reading, created, body, load, "connection", "cannot be tried"
    )
    tried = await req.unless_gone(engine.test(connection))
    if tried is not None:  # else nobody waits for the answer any more
        outcome: Literal["ok", "failed"] = "ok" if tried.why is None else "failed"
        resp.data = encode(ConnectionTest(outcome, tried.why, round(tried.seconds * 1000)))


async def create_connection(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """File one connection; what is refused changes nothing."""
    body = await read_json_body(req)
    engine = service.engine
    load = partial(
        load_connection,
        catalogue=service.catalogue,
        secrets=engine.secrets,
        context=CheckContext(data_dir=engine.data_dir),
    )
    # In a thread, as a pipeline is read: a body made for it takes seconds.
    (name, connection), diagnostics = await req.in_turn(
        service.reading, created, body, load, "connection", "could not be filed"
    )
    engine.connections.file(name, connection)
    for diagnostic in diagnostics:
        log.warning("connection '%s' %s: %s", name, diagnostic.path, diagnostic.message)
    service.changed("connections", name, req.scope)
    resp.status = falcon.HTTP_201
    resp.data = encode({"id": name, **connection.dump()})


async def delete_connection(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, connection_id: str
) -> None:
    """Remove one connection, unless a pipeline names it."""
    service.engine.connections.remove(connection_id)
    service.changed("connections", connection_id, req.scope)
    resp.status = falcon.HTTP_204


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/connections",
        operation="listConnections",
        tag="connections",
        access=Access.READ,
        summary="List the connections that a component can name, by name.",
        query=(USED_BY.query,),
        responses={
            200: Answer("The connections; secrets as they are written.", "Connections"),
            **MALFORMED,
        },
        respond=list_connections,
    ),
    Endpoint(
        method="POST",
        path="/api/connections",
        operation="createConnection",
        tag="connections",
        access=Access.ADMIN,
        summary="File a connection for pipelines that are built later. Nothing is written to disk.",
        body="CreateConnectionRequest",
        example={"id": CAPTURED["connection_id"], "type": "file", "root": "data"},
        responses={
            201: Answer("It is filed as it is answered.", "CreateConnectionRequest"),
            **BODY,
            **refusals(
                _409="The name is taken.",
                _422="It is no connection; nothing was filed.",
            ),
        },
        respond=create_connection,
    ),
    Endpoint(
        method="POST",
        path="/api/connections/test",
        operation="testConnection",
        tag="connections",
        access=Access.ADMIN,
        summary="Try a connection: connect, sign in and hang up. Nothing is filed, nothing is written.",
        body="Connection",
        example={"type": "file", "root": "data"},
        responses={
            200: Answer("What came of it, within some seconds.", ConnectionTest),
            **BODY,
            **refusals(
                _422="It is no connection; nothing was tried.",
                _503="Too many wait to be tried, or to be read; try again later.",
            ),
        },
        respond=test_connection,
    ),
    Endpoint(
        method="DELETE",
        path="/api/connections/{connection_id}",
        operation="deleteConnection",
        tag="connections",
        access=Access.ADMIN,
        summary="Remove a connection that no pipeline names.",
        responses={
            204: Answer("It is gone."),
            **refusals(
                _404="No connection of that name.",
                _409="Pipelines name it, and the answer names them.",
                _500=FAILURE,
            ),
        },
        respond=delete_connection,
    ),
)
