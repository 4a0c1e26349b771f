"""What describes the server."""

from __future__ import annotations

from headrace.web.auth.access import Access
from headrace.web.endpoint import Answer, Endpoint, refusals
from headrace.web.resources import reference

ROWS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path="/api/docs",
        operation="listComponents",
        tag="reference",
        access=Access.PUBLIC,
        summary="List every input, transform, output and connection that can be built.",
        responses={200: Answer("The components.", "ComponentDoc", is_list=True)},
        respond=reference.list_components,
    ),
    Endpoint(
        method="GET",
        path="/api/openapi.json",
        operation="getOpenApi",
        tag="reference",
        access=Access.PUBLIC,
        summary="Describe the served routes.",
        responses={200: Answer("An OpenAPI 3.1 document.", "OpenApi")},
        respond=reference.get_openapi,
    ),
    Endpoint(
        method="GET",
        path="/api/reference",
        operation="apiReference",
        tag="reference",
        access=Access.PUBLIC,
        summary="Show the description as a page.",
        responses={200: Answer("The page.", "Text", media_type="text/html")},
        respond=reference.api_reference,
    ),
    Endpoint(
        method="GET",
        path="/api/reference/{asset}",
        operation="referenceAsset",
        tag="reference",
        access=Access.PUBLIC,
        summary="Fetch a script or a style sheet of the page.",
        responses={
            200: Answer("The file.", "Text", media_type="text/*"),
            **refusals(_404="No such file."),
        },
        respond=reference.reference_asset,
    ),
    Endpoint(
        method="GET",
        path="/",
        operation="getRoot",
        tag="reference",
        access=Access.PUBLIC,
        summary="Tell where to read on.",
        responses={
            200: Answer("A page for browsers, else lines.", "Text", media_type="text/plain")
        },
        respond=reference.root,
    ),
)
