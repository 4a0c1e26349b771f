"""How all pipelines that run have failed lately: the distinct failures of their histories, side by side."""

from __future__ import annotations

import falcon.asgi

from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.pipelinehistory import LatestFailures
from headrace.web.auth.access import Access
from headrace.web.endpoint import MALFORMED, Answer, Endpoint
from headrace.web.parameters import WholeNumber
from headrace.web.service import Service

LIMIT = WholeNumber("limit", "How many failures at most.", default=200, least=1, most=1000)


async def list_failures(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the distinct failures that were seen last."""
    resp.data = encode(await service.engine.failures(LIMIT.of(req)))


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/failures",
        operation="listFailures",
        tag="pipelines",
        access=Access.READ,
        summary="List the distinct failures of all pipelines that run, those of each input apart.",
        query=(LIMIT.query,),
        responses={200: Answer("The last seen first.", LatestFailures), **MALFORMED},
        respond=list_failures,
    ),
)
