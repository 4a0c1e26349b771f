"""OpenAPI 3.1 from the table of endpoints and the JSON Schema of the components.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version

from headrace.compiler.language.catalogue import Catalogue
from headrace.compiler.language.connections import Filing
from headrace.compiler.language.schema import OPENAPI, component_schemas
from headrace.web.access import Access
from headrace.web.dryrequests import DryRunRequest, PipelineDryRunRequest
from headrace.web.endpoints import ENDPOINTS
from headrace.web.endpoints.row import JSON, Answer, Endpoint
from headrace.web.schemas import dryruns, running
from headrace.web.schemas.shapes import Schema, ref

COOKIE = "headrace_session"

BODIES: dict[str, Schema] = {**dryruns.BODIES, **running.BODIES}
"""The bodies that are no components and no records."""

SECURITY_SCHEMES: dict[str, Schema] = {
    "basicAuth": {"type": "http", "scheme": "basic"},
    "cookieAuth": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    "bearerAuth": {"type": "http", "scheme": "bearer"},
}

DENIED = {
    Access.READ: {401: Answer("Nobody is signed in.", "ApiError")},
    Access.ADMIN: {
        401: Answer("Nobody is signed in.", "ApiError"),
        403: Answer("The role is too low.", "ApiError"),
    },
}
"""What a server with accounts answers besides: the table says which level, this says what follows."""


def described(catalogue: Catalogue, table: Sequence[Endpoint] = ENDPOINTS) -> Schema:
    """Return the OpenAPI document of the endpoints in ``table``."""
    paths: dict[str, Schema] = {}
    for endpoint in table:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "headrace",
            "version": version("headrace"),
            "description": "Create, inspect and remove data pipelines.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": tag} for tag in dict.fromkeys(endpoint.tag for endpoint in table)],
        "paths": paths,
        "components": {
            "schemas": {**_records(catalogue), **BODIES},
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _operation(endpoint: Endpoint) -> Schema:
    responses = {**endpoint.responses, **DENIED.get(endpoint.access, {})}
    operation = {
        "operationId": endpoint.operation,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "x-headrace-access": endpoint.access.name.lower(),
        "security": [{name: []} for name in SECURITY_SCHEMES] if endpoint.access else [],
        "responses": {str(status): _response(responses[status]) for status in sorted(responses)},
    }
    if captured := re.findall(r"\{(\w+)\}", endpoint.path):
        operation["parameters"] = [_parameter(name) for name in captured]
    if endpoint.body is not None:
        body = {"required": True, "content": {JSON: {"schema": ref(endpoint.body)}}}
        operation["requestBody"] = body
    return operation


def _parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _response(answer: Answer) -> Schema:
    if answer.schema is None:
        return {"description": answer.meaning}
    schema = ref(answer.schema)
    if answer.is_list:
        schema = {"type": "array", "items": schema}
    return {"description": answer.meaning, "content": {answer.media_type: {"schema": schema}}}


_REQUESTS = (DryRunRequest, PipelineDryRunRequest, Filing)
"""The request bodies that are records, or begin with one."""


def _records(catalogue: Catalogue) -> dict[str, Schema]:
    """Return the schemas of components and of requests."""
    schemas = component_schemas(catalogue, _REQUESTS)
    filing = schemas.pop(Filing.__name__)
    kinds = [schemas[each["$ref"].removeprefix(OPENAPI)] for each in schemas["Connection"]["oneOf"]]
    schemas["CreateConnectionRequest"] = {"oneOf": [_both(filing, kind) for kind in kinds]}
    return schemas


def _both(first: Schema, second: Schema) -> Schema:
    """Return the schema of an object with the keys of two."""
    properties = first["properties"] | second["properties"]
    required = [*first["required"], *second["required"]]
    return {**second, "properties": properties, "required": required}
