"""The console, and what `GET /` tells whoever is no browser."""

from __future__ import annotations

import asyncio
import re
from pathlib import PurePath

import falcon
import falcon.asgi

from headrace.web.auth.access import Access
from headrace.web.console import assets
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.service import Service
from headrace.web.shapes import PlainText

# Relative, so that the page also works where a proxy puts the server below a path.
_LEADS = {
    "api/reference": "the API, as a page to read and to try",
    "api/openapi.json": "the same for programs: OpenAPI",
    "api/docs": "every input, transform, output and connection that a config can name",
}
_ROOT_TEXT = "\n".join(
    ["headrace runs data pipelines.", "", *(f"/{at:<18} {what}" for at, what in _LEADS.items()), ""]
).encode()
_LINKS = "\n".join(
    [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>headrace</title>",
        '<link rel="icon" href="data:,">',
        "<p>headrace runs data pipelines.{hint}</p>",
        "<ul>",
        *(f'<li><a href="{at}">/{at}</a>: {what}</li>' for at, what in _LEADS.items()),
        "</ul>",
        "</html>",
        "",
    ]
)
_HINT = " Its console is not built: <code>make console</code> in the checkout builds it."
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
_PLAIN_POLICY = "default-src 'none'; img-src data:; base-uri 'none'; frame-ancestors 'self'"


async def root(service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
    """Answer the console to browsers; to others where to read on."""
    resp.set_header("Vary", "Accept")
    resp.set_header("Content-Security-Policy", _PLAIN_POLICY)
    if falcon.MEDIA_HTML.partition(";")[0] not in req.get_header("Accept", default="").lower():
        resp.data, resp.content_type = _ROOT_TEXT, "text/plain; charset=utf-8"
        return
    resp.content_type, console = falcon.MEDIA_HTML, service.console
    if console.enabled and (page := await asyncio.to_thread(assets.page, console.policy)):
        resp.data = page.html
        resp.set_header("Content-Security-Policy", page.policy)
        resp.set_header("Cache-Control", "no-store")  # a nonce is for one answer
        resp.set_header("Referrer-Policy", "no-referrer")
    else:
        resp.data = _LINKS.format(hint=_HINT if console.enabled else "").encode()


async def console_asset(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, asset: str
) -> None:
    """Answer a file of the console. Its name has a hash of what is in it: it never changes."""
    takes_gzip = _GZIP.search(req.get_header("Accept-Encoding", default="")) is not None
    found = await asyncio.to_thread(assets.asset, asset, compressed=takes_gzip)
    if not (service.console.enabled and found):
        raise falcon.HTTPRouteNotFound
    resp.data, compressed = found
    resp.content_type = assets.MEDIA_TYPES[PurePath(asset).suffix]
    resp.set_header("Cache-Control", "public, max-age=31536000, immutable")
    resp.set_header("Vary", "Accept-Encoding")
    if compressed:
        resp.set_header("Content-Encoding", "gzip")


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/",
        operation="getRoot",
        tag="reference",
        access=Access.PUBLIC,
        summary="Show the console; tell who is no browser where to read on.",
        responses={
            200: Answer("The console for browsers, else lines.", PlainText, media_type="text/plain")
        },
        respond=root,
    ),
    Endpoint(
        method="GET",
        path="/console/{asset}",
        operation="consoleAsset",
        tag="reference",
        access=Access.PUBLIC,
        summary="Fetch a script, a style sheet or a font of the console.",
        responses={
            200: Answer("The file.", PlainText, media_type="text/*"),
            **refusals(_404="No such file."),
        },
        respond=console_asset,
    ),
)
