"""The filed connections."""

from __future__ import annotations

from headrace.web import examples
from headrace.web.auth.access import Access
from headrace.web.endpoint import BODY, FAILURE, Answer, Endpoint, refusals
from headrace.web.resources import connections

ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/connections",
        operation="listConnections",
        tag="connections",
        access=Access.READ,
        summary="List the connections that a component can name, by name.",
        responses={200: Answer("The connections; secrets as they are written.", "Connections")},
        respond=connections.list_connections,
    ),
    Endpoint(
        method="POST",
        path="/api/connections",
        operation="createConnection",
        tag="connections",
        access=Access.ADMIN,
        summary="File a connection for pipelines that are built later. Nothing is written to disk.",
        body="CreateConnectionRequest",
        example=examples.CONNECTION,
        responses={
            201: Answer("It is filed as it is answered.", "CreateConnectionRequest"),
            **BODY,
            **refusals(
                _409="The name is taken.",
                _422="It is no connection; nothing was filed.",
            ),
        },
        respond=connections.create_connection,
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
        respond=connections.delete_connection,
    ),
)
