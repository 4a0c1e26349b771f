"""Whether the process lives, and whether it wants requests."""

from __future__ import annotations

import falcon
import falcon.asgi
import msgspec

from headrace.compiler.jsontext import encode
from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.service import Service


class Health(msgspec.Struct):
    """How it is with the process."""

    status: str


async def live(service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
    """Answer that the process runs and its loop turns."""
    resp.data = encode(Health("live"))


async def ready(service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
    """Answer whether the pipelines of the config run and requests are accepted.

    A store that is full or fails changes nothing about it: pipelines that keep nothing there are not
    harmed, and would get no requests any more.
    """
    if not service.is_ready:
        raise falcon.HTTPServiceUnavailable(description="starting or shutting down")
    resp.data = encode(Health("ready"))


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/livez",
        operation="getLiveness",
        tag="health",
        access=Access.PUBLIC,
        summary="Tell whether the process is alive.",
        responses={200: Answer("It is.", Health)},
        respond=live,
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        operation="getReadiness",
        tag="health",
        access=Access.PUBLIC,
        summary="Tell whether the pipelines are loaded and requests are wanted.",
        responses={
            200: Answer("They are.", Health),
            **refusals(_503="Starting or shutting down."),
        },
        respond=ready,
    ),
)
