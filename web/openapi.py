"""OpenAPI 3.1 from the table of endpoints and the JSON Schema of the components.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from importlib.metadata import version

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.connectionsfile import Filing
from headrace.compiler.describe.schema import OPENAPI, Schema, component_schemas
from headrace.compiler.schema.records import Record
from headrace.web import ignoring
from headrace.web.auth import sessions
from headrace.web.auth.access import Access
from headrace.web.endpoint import CAPTURED, JSON, Answer, Endpoint, refusals
from headrace.web.resources import ENDPOINTS
from headrace.web.shapes import Shapes, one_of

SECURITY_SCHEMES: dict[str, Schema] = {
    "basicAuth": {"type": "http", "scheme": "basic"},
    "cookieAuth": {"type": "apiKey", "in": "cookie", "name": sessions.COOKIE},
    "bearerAuth": {"type": "http", "scheme": "bearer"},
}

IGNORED: Schema = {
    "description": "What the endpoint does not know of the query and ignored, percent-encoded and parted by"
    " commas: parameters by their names, and as `named=pong` the words of a parameter that takes words."
    " Absent, there was nothing.",
    "schema": {"type": "string"},
}

ETAG: Schema = {
    "description": "The version of what is there now, for `If-Match`.",
    "schema": {"type": "string"},
}

_SIGNED_OUT = refusals(
    _401="Nobody is signed in.", _503="Too many wait to sign in; try again later."
)
DENIED = {
    Access.READ: _SIGNED_OUT,
    Access.ADMIN: {
        **_SIGNED_OUT,
        **refusals(_403="The role is too low, or a page of another site asks."),
    },
}
"""What a server with accounts answers besides: the table says which level, this says what follows."""


def described(catalogue: Catalogue, table: Sequence[Endpoint] = ENDPOINTS) -> Schema:
    """Return the OpenAPI document of the endpoints in ``table``."""
    shapes = Shapes()
    paths: dict[str, Schema] = {}
    for endpoint in table:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, shapes)
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
            "schemas": {**_records(catalogue, table), **shapes.named},
            "headers": {ignoring.HEADER: IGNORED, "ETag": ETAG},
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _operation(endpoint: Endpoint, shapes: Shapes) -> Schema:
    responses = _responses(endpoint)
    ways: list[Schema] = [{name: []} for name in SECURITY_SCHEMES] if endpoint.access else []
    if endpoint.takes_anybody:
        ways.append({})  # the way of who has none
    operation = {
        "operationId": endpoint.operation,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "x-headrace-access": endpoint.access.name.lower(),
        "security": ways,
        "responses": {
            str(status): _response(endpoint, status, responses[status], shapes)
            for status in sorted(responses)
        },
    }
    captured: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        | ({"example": CAPTURED[name]} if name in CAPTURED else {})
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    asked: list[Schema] = [
        {
            "name": query.name,
            "in": "query",
            "description": query.meaning,
            "schema": shapes.of(query.schema),
        }
        for query in endpoint.query
    ]
    conditions = [_if_match(endpoint)] if endpoint.is_versioned and endpoint.body else []
    if parameters := [*captured, *asked, *conditions]:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        body = {"schema": shapes.of(endpoint.body), "example": endpoint.example}
        operation["requestBody"] = {"required": True, "content": {JSON: body}}
    return operation


def _responses(endpoint: Endpoint) -> dict[int, Answer]:
    """Return all answers: those of the table, and those to whoever is not let in."""
    responses = dict(endpoint.responses)
    denied = {} if endpoint.takes_anybody else DENIED.get(endpoint.access, {})
    for status, answer in denied.items():
        meanings = (each.meaning for each in (responses.get(status), answer) if each)
        responses[status] = replace(answer, meaning=" ".join(meanings))
    return responses


def _if_match(endpoint: Endpoint) -> Schema:
    is_required = HTTPStatus.PRECONDITION_REQUIRED in endpoint.responses
    said = "The `ETag` of what was read, or `*`: another version is not replaced."
    return {
        "name": "If-Match",
        "in": "header",
        "required": is_required,
        "description": said if is_required else f"{said} Absent, any is.",
        "schema": {"type": "string"},
        "example": "*",
    }


def _response(endpoint: Endpoint, status: int, answer: Answer, shapes: Shapes) -> Schema:
    response: Schema = {"description": answer.meaning}
    if answer.schema is not None:
        schema = shapes.of(answer.schema)
        content: Schema = {"schema": schema}
        if named := {name: shapes.of(data) for name, data in answer.named.items()}:
            # Which of them is which OpenAPI 3.1 has no word for.
            content = {"schema": {"anyOf": [schema, *named.values()]}, "x-headrace-events": named}
        response["content"] = {answer.media_type: content}
    if status < HTTPStatus.BAD_REQUEST:
        names = [ignoring.HEADER, *(["ETag"] if endpoint.is_versioned else [])]
        response["headers"] = {each: {"$ref": f"#/components/headers/{each}"} for each in names}
    return response


def _records(catalogue: Catalogue, table: Sequence[Endpoint]) -> dict[str, Schema]:
    """Return the schemas of components, and of the requests that are records or begin with one."""
    bodies = [each.body for each in table]
    requests = [each for each in bodies if isinstance(each, type) and issubclass(each, Record)]
    schemas = component_schemas(catalogue, [*requests, Filing])
    filing = schemas.pop(Filing.__name__)
    names = {
        kind: where.removeprefix(OPENAPI)
        for kind, where in schemas["Connection"]["discriminator"]["mapping"].items()
    }
    for name in names.values():  # an object with the keys of two
        connection = schemas[name]
        schemas[f"Create{name}Request"] = connection | {
            "properties": filing["properties"] | connection["properties"],
            "required": [*filing["required"], *connection["required"]],
        }
    schemas["CreateConnectionRequest"] = one_of(
        "type", {kind: f"Create{name}Request" for kind, name in names.items()}
    )
    return schemas
