"""What the server says of itself: its components, its API, and a page that renders the latter.

The page is Swagger UI from its package. It asks no other host: the scripts are served here, the
content security policy allows nothing else, and the online validator is switched off.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import falcon
import falcon.asgi
import msgspec
from msgspec import Meta

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import FAMILIES
from headrace.compiler.errors import FailureClass
from headrace.compiler.jsontext import encode
from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.service import Service
from headrace.web.shapes import JsonObject, PlainText


class FieldDoc(msgspec.Struct):
    """A key of a component, and what it takes."""

    name: str
    type_name: str
    field_type: Annotated[
        Any,
        Meta(
            description="A word, or an object of one key.",
            extra_json_schema={"type": ["string", "object"]},
        ),
    ]
    description: str | None
    required: bool


class VariantDoc(msgspec.Struct):
    """One of several keys of which exactly one is given, and what it holds."""

    name: str
    fields: list[FieldDoc]


class MetadataDoc(msgspec.Struct):
    """What an envelope attaches to a message."""

    name: str
    description: str


class PromiseDoc(msgspec.Struct):
    """What a component promises about delivery: what of its messages is lost, waits, or comes twice.

    ``name`` is that of the page about delivery, ``when`` the options with which it counts, ``about`` what
    it is about (`away`, `kill`, `twice`, `waits`, `beyond`, `written`, `held`, `holds`).
    """

    name: str
    when: str
    about: str
    text: str


class FailureDoc(msgspec.Struct, rename={"failure": "class"}):
    """Failures of one cause: their class, and the codes by which they are known.

    ``name`` is that of the page about delivery; ``mark`` is `tried` where a test holds it against the other
    side, and `documented` where ``source`` says so.
    """

    name: str
    failure: FailureClass
    codes: list[str]
    text: str
    mark: str
    source: str | None


class ComponentDoc(msgspec.Struct):
    """A component that a config can name."""

    kind: str
    family: Annotated[str, Meta(extra_json_schema={"enum": [*FAMILIES]})]
    description: str | None
    fields: list[FieldDoc]
    variants: list[VariantDoc]
    metadata: list[MetadataDoc]
    promises: list[PromiseDoc]
    failures: list[FailureDoc]


OpenApi = Annotated[JsonObject, Meta(title="OpenApi")]

# Swagger UI writes style attributes, hence 'unsafe-inline' for styles alone; its icons are data urls.
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    ]
)

# Relative, so that the page also works where a proxy puts the server below a path.
_PAGE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>headrace API</title>
<link rel="stylesheet" href="reference/swagger-ui.css">
<link rel="icon" href="data:,">
<body style="margin: 0">
<div id="reference"></div>
<script src="reference/swagger-ui-bundle.js"></script>
<script src="reference/start.js"></script>
</body>
</html>
"""
_START = b"""SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
});
"""

_JAVASCRIPT = "text/javascript; charset=utf-8"


ASSETS: Mapping[str, str] = MappingProxyType(
    {
        "start.js": _JAVASCRIPT,
        "swagger-ui-bundle.js": _JAVASCRIPT,
        "swagger-ui.css": "text/css; charset=utf-8",
    }
)
"""What the page loads: name to media type. All but the start comes with Swagger UI."""


def _content(asset: str) -> bytes:
    if asset == "start.js":
        return _START
    from swagger_ui_bundle import swagger_ui_path  # which a start does not need

    return Path(str(swagger_ui_path), asset).read_bytes()


@lru_cache(1)
def _component_docs(catalogue: Catalogue) -> bytes:
    from headrace.compiler.describe.reference import component_docs  # which a start does not need

    return encode(msgspec.convert(component_docs(catalogue), list[ComponentDoc]))


async def list_components(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer every component the server can build."""
    resp.data = _component_docs(service.catalogue)


async def get_openapi(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the description of the served routes."""
    resp.data = service.describe()


async def api_reference(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response
) -> None:
    """Answer the page."""
    resp.data = _PAGE
    resp.content_type = falcon.MEDIA_HTML
    resp.set_header("Content-Security-Policy", _POLICY)


async def reference_asset(
    service: Service, req: falcon.asgi.Request, resp: falcon.asgi.Response, *, asset: str
) -> None:
    """Answer a file of the page. Names are looked up, never joined to a path as they come."""
    if asset not in ASSETS:
        raise falcon.HTTPRouteNotFound
    resp.content_type = ASSETS[asset]
    resp.data = _content(asset)
    resp.cache_control = ["max-age=600"]


ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/docs",
        operation="listComponents",
        tag="reference",
        access=Access.PUBLIC,
        summary="List every input, transform, output and connection that can be built.",
        responses={200: Answer("The components.", list[ComponentDoc])},
        respond=list_components,
    ),
    Endpoint(
        method="GET",
        path="/api/openapi.json",
        operation="getOpenApi",
        tag="reference",
        access=Access.PUBLIC,
        summary="Describe the served routes.",
        responses={200: Answer("An OpenAPI 3.1 document.", OpenApi)},
        respond=get_openapi,
    ),
    Endpoint(
        method="GET",
        path="/api/reference",
        operation="apiReference",
        tag="reference",
        access=Access.PUBLIC,
        summary="Show the description as a page.",
        responses={200: Answer("The page.", PlainText, media_type="text/html")},
        respond=api_reference,
    ),
    Endpoint(
        method="GET",
        path="/api/reference/{asset}",
        operation="referenceAsset",
        tag="reference",
        access=Access.PUBLIC,
        summary="Fetch a script or a style sheet of the page.",
        responses={
            200: Answer("The file.", PlainText, media_type="text/*"),
            **refusals(_404="No such file."),
        },
        respond=reference_asset,
    ),
)
