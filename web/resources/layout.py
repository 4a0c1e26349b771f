"""The layout: where somebody has put pipelines on a page."""

from __future__ import annotations

import falcon
import falcon.asgi

from headrace.compiler.jsontext import encode
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, record_of
from headrace.web.endpoint import BODY, CAPTURED, Answer, Endpoint, refusals
from headrace.web.files.layoutfile import LayoutFile
from headrace.web.service import Service


async def get_layout(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the layout."""
    resp.data = encode(service.filing.layout.dump())


async def replace_layout(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Take a whole layout in place of the one there is."""
    layout = await record_of(req, LayoutFile, "the layout is as it was", service.reading)
    await service.filing.arrange(layout)
    resp.status = falcon.HTTP_204


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/layout",
        operation="getLayout",
        tag="layout",
        access=Access.READ,
        summary="Read where somebody has put pipelines on a page.",
        responses={200: Answer("The layout.", LayoutFile)},
        respond=get_layout,
    ),
    Endpoint(
        method="PUT",
        path="/api/layout",
        operation="replaceLayout",
        tag="layout",
        access=Access.ADMIN,
        summary="Replace the whole layout; an empty one leaves all to automatic layout.",
        body=LayoutFile,
        example={
            "version": 1,
            "pipelines": {CAPTURED["pipeline_id"]: {"x": 40, "y": 80}},
            "edges": [{"from": CAPTURED["pipeline_id"], "to": "alarms"}],
        },
        responses={
            204: Answer("It is kept, and written if there is a config file."),
            **BODY,
            **refusals(
                _422="It is no layout.",
                _500="It could not be written; the layout is as it was.",
            ),
        },
        respond=replace_layout,
    ),
)
