"""OpenAPI 3.1 from the table of endpoints and the JSON Schema of the components.

Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from headrace.compiler.language.catalogue import Catalogue
from headrace.compiler.language.connections import Filing
from headrace.compiler.language.diagnostics import Severity
from headrace.compiler.language.schema import OPENAPI, component_schemas
from headrace.web.access import Access
from headrace.web.dryrequests import DryRunRequest, PipelineDryRunRequest
from headrace.web.endpoints import ENDPOINTS, JSON, Answer, Endpoint

Schema = dict[str, Any]

COOKIE = "headrace_session"

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
            "schemas": {**_records(catalogue), **_BODIES},
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
        body = {"required": True, "content": {JSON: {"schema": _ref(endpoint.body)}}}
        operation["requestBody"] = body
    return operation


def _parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _response(answer: Answer) -> Schema:
    if answer.schema is None:
        return {"description": answer.meaning}
    schema = _ref(answer.schema)
    if answer.is_list:
        schema = {"type": "array", "items": schema}
    return {"description": answer.meaning, "content": {answer.media_type: {"schema": schema}}}


def _ref(name: str) -> Schema:
    return {"$ref": OPENAPI + name}


def _object(optional: Sequence[str] = (), **properties: Schema) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}

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


def _outcome(outcome: str, optional: Sequence[str] = (), **properties: Schema) -> Schema:
    return _object(optional, outcome={"const": outcome}, **properties)


_BATCHES = _list(_list({}))
_ORIGINS = {
    **_list(_list(_list(_COUNT))),
    "description": "Per batch and message, the messages of the request that it came from.",
}
_ENTRIES: Schema = {
    "type": "object",
    "description": "Key to values by name, at most 200 keys, the latest first.",
    "additionalProperties": {"type": "object"},
}
_WARNINGS = {**_list(_TEXT), "description": "What a running pipeline would log."}
_NOTES = {**_list(_TEXT), "description": "What is not as one might think."}
_LEFT = _list(_object(message=_COUNT, at=_COUNT, kind=_TEXT, why=_TEXT))

_DRY_RUNS: dict[str, Schema] = {
    "DryRunResponse": {
        "oneOf": [
            _outcome(
                "emitted",
                batches=_BATCHES,
                warnings={**_list(_TEXT), "description": "Different texts, in order."},
                state=_ENTRIES,
                notes=_NOTES,
            ),
            _outcome(
                "failed",
                stage=_ref("DryRunStage"),
                message=_TEXT,
                line=_COUNT_OR_NULL,
                column=_COUNT_OR_NULL,
            ),
        ]
    },
    "PipelineDryRunResponse": {
        "oneOf": [
            _outcome(
                "ran",
                ["left"],
                stages=_list(_ref("PipelineDryRunStage")),
                buckets=_ENTRIES,
                warnings=_WARNINGS,
                notes=_NOTES,
                left=_LEFT,
            ),
            _outcome(
                "failed",
                ["left"],
                at={**_COUNT, "description": "Index of the transform."},
                kind=_TEXT,
                phase={"enum": ["build", "apply"]},
                message=_TEXT,
                diagnostics=_list(_ref("Diagnostic")),
                stages=_list(_ref("PipelineDryRunStage")),
                warnings=_WARNINGS,
                notes=_NOTES,
                left=_LEFT,
            ),
        ]
    },
    "DryRunStage": {"enum": ["compile", "runtime"]},
    "PipelineDryRunStage": _object(
        ["origins", "on_flush_origins"],
        index=_COUNT,
        kind=_TEXT,
        batches={**_BATCHES, "description": "Handed on because messages came."},
        on_flush={**_BATCHES, "description": "Let go of later, and what others made of that."},
        origins=_ORIGINS,
        on_flush_origins=_ORIGINS,
    ),
}

_FIELD = _object(
    name=_TEXT,
    type_name=_TEXT,
    field_type={"type": ["string", "object"], "description": "A word, or an object of one key."},
    description=_TEXT_OR_NULL,
    required={"type": "boolean"},
)

_BODIES: dict[str, Schema] = {
    "ApiError": {
        **_object(["diagnostics"], error=_TEXT, diagnostics=_list(_ref("Diagnostic"))),
        "description": "One line, `context: cause`. A refused document adds what is wrong where.",
    },
    "Diagnostic": _object(
        file=_TEXT_OR_NULL,
        line=_COUNT_OR_NULL,
        column=_COUNT_OR_NULL,
        path=_TEXT,
        severity={"enum": [severity.value for severity in Severity]},
        code=_TEXT,
        message=_TEXT,
        found=_TEXT_OR_NULL,
        expected=_TEXT_OR_NULL,
        suggestion=_TEXT_OR_NULL,
    ),
    "PipelineDto": _object(
        id=_TEXT,
        config=_ref("Config"),
        status={"enum": ["starting", "running", "stopped", "failed"]},
    ),
    "IngestRequest": {"description": "An array is one batch; anything else is one message."},
    "IngestResponse": _object(accepted=_COUNT),
    "BucketSummary": _object(
        name=_TEXT, keys=_COUNT, max_keys=_COUNT, idle_timeout_secs=_COUNT_OR_NULL
    ),
    "BucketContents": _object(
        name=_TEXT,
        keys={**_COUNT, "description": "All that the bucket holds, not the entries listed."},
        truncated={"type": "boolean", "description": "Whether some of them are not listed."},
        entries=_list(_ref("BucketEntry")),
    ),
    "BucketEntry": _object(
        key={**_TEXT, "description": "Empty for what concerns the bucket as a whole."},
        values={"type": "object"},
        updated_at={**_TEXT, "format": "date-time"},
    ),
    **_DRY_RUNS,
    "UiEvent": _object(
        pipeline_id=_TEXT,
        stage={"enum": ["input", "transform", "output"]},
        ts={"type": "integer", "description": "Milliseconds since 1970."},
        seq={"type": "integer", "description": "Per pipeline; a gap is what was missed."},
        component=_COUNT_OR_NULL,
        payload={"oneOf": [_object(batch=_ref("BatchPreview")), _object(error=_TEXT)]},
    ),
    "BatchPreview": _object(messages=_list(_TEXT), total=_COUNT, skipped_messages=_COUNT),
    "ComponentDoc": _object(
        kind=_TEXT,
        family={"enum": ["input", "transform", "output", "connection"]},
        description=_TEXT_OR_NULL,
        fields=_list(_ref("FieldDoc")),
        variants=_list(_object(name=_TEXT, fields=_list(_ref("FieldDoc")))),
        metadata=_list(_object(name=_TEXT, description=_TEXT)),
    ),
    "FieldDoc": _FIELD,
    "Health": _object(status=_TEXT),
    "OpenApi": {"type": "object"},
    "Text": _TEXT,
}
"""The bodies that are no components."""
