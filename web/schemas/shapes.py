"""The words that schemas are written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.compiler.language.schema import OPENAPI

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    """Return what stands for the schema of that name."""
    return {"$ref": OPENAPI + name}


def object_of(optional: Sequence[str] = (), **properties: Schema) -> Schema:
    """Return the schema of an object; all but what is ``optional`` is always there."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}


def outcome_of(outcome: str, optional: Sequence[str] = (), **properties: Schema) -> Schema:
    """Return the schema of an answer that is told by its ``outcome``."""
    return object_of(optional, outcome={"const": outcome}, **properties)
