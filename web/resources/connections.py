"""The filed connections over the API: what components can name. Nothing is written to disk.

What is filed is judged as a file of connections is, so a save of it loads. Whether secrets resolve and
anybody answers shows when a component that names the connection is built.
"""

from __future__ import annotations

import logging
from functools import partial

import falcon
import falcon.asgi

from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.config.connectionsfile import load_connection
from headrace.compiler.jsontext import encode
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, created, read_json_body
from headrace.web.endpoint import BODY, CAPTURED, FAILURE, Answer, Endpoint, refusals
from headrace.web.service import Service

log = logging.getLogger("headrace.web")


async def list_connections(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the connections in the order of their names, their secrets as templates."""
    resp.data = encode({name: each.dump() for name, each in service.engine.connections.items()})


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
    resp.status = falcon.HTTP_201
    resp.data = encode({"id": name, **connection.dump()})


async def delete_connection(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, connection_id: str
) -> None:
    """Remove one connection, unless a pipeline names it."""
    service.engine.connections.remove(connection_id)
    resp.status = falcon.HTTP_204


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/connections",
        operation="listConnections",
        tag="connections",
        access=Access.READ,
        summary="List the connections that a component can name, by name.",
        responses={200: Answer("The connections; secrets as they are written.", "Connections")},
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
