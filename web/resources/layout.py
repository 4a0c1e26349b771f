"""The layout: where somebody has put pipelines on a page."""

from __future__ import annotations

import falcon
import falcon.asgi

from headrace.compiler.errors import ChangedMeanwhile
from headrace.compiler.jsontext import encode
from headrace.web.auth.access import Access
from headrace.web.bodies import Request, record_of
from headrace.web.endpoint import BODY, CAPTURED, Answer, Endpoint, refusals
from headrace.web.files.layoutfile import LayoutFile
from headrace.web.preconditions import etag_of, versions_read
from headrace.web.service import Service


async def get_layout(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the layout."""
    resp.data = encode(service.filing.layout.dump())
    resp.etag = etag_of(resp.data)


async def replace_layout(service: Service, req: Request, resp: falcon.asgi.Response) -> None:
    """Take a whole layout in place of the one there is, unless that is another than was read."""
    layout = await record_of(req, LayoutFile, "the layout is as it was", service.reading)
    read = versions_read(req)

    def check(replaced: LayoutFile) -> None:
        if read is not None and _version(replaced) not in read:
            raise ChangedMeanwhile("the layout")

    await service.filing.arrange(layout, check)
    service.changed("layout", None, req.scope)
    resp.status = falcon.HTTP_204
    resp.etag = _version(layout)


def _version(layout: LayoutFile) -> str:
    return etag_of(encode(layout.dump()))


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/layout",
        operation="getLayout",
        tag="layout",
        access=Access.READ,
        summary="Read where somebody has put pipelines on a page.",
        is_versioned=True,
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
        is_versioned=True,
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
                _412="It has changed since it was read; the layout is as it was.",
                _422="It is no layout.",
                _500="It could not be written; the layout is as it was.",
            ),
        },
        respond=replace_layout,
    ),
)
