"""The words that schemas are written in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.compiler.language.schema import ANY_OBJECT, OPENAPI

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


def word_of(*words: str) -> Schema:
    """Return the schema of one of these words."""
    return {"type": "string", "enum": [*words]}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
OBJECT = ref(ANY_OBJECT)


def one_of(key: str, names: Mapping[str, str]) -> Schema:
    """Return the schema of what the word under ``key`` tells apart: ``names`` of schemas by word."""
    mapping = {word: OPENAPI + name for word, name in names.items()}
    return {
        "oneOf": [ref(name) for name in names.values()],
        "discriminator": {"propertyName": key, "mapping": mapping},
    }


def outcomes_of(stem: str, **variants: Schema) -> dict[str, Schema]:
    """Return the schemas of an answer that is told by its ``outcome``: of it, and of each outcome.

    Each has a name of its own: ``DryRunEmitted`` and ``DryRunFailed`` beside ``DryRunResponse``.
    """
    names = {outcome: stem + outcome.capitalize() for outcome in variants}
    return {
        f"{stem}Response": one_of("outcome", names),
        **{name: _told_by(outcome, variants[outcome]) for outcome, name in names.items()},
    }


def _told_by(outcome: str, variant: Schema) -> Schema:
    return {
        **variant,
        "properties": {"outcome": {"const": outcome}, **variant["properties"]},
        "required": ["outcome", *variant["required"]],
    }
