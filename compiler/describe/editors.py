"""The second rendering of the component classes: JSON Schema as editors can work with it.

An editor that meets `oneOf` can only say that nothing matched, and offers the keys of all. So here a
union is an enum of kinds and, for each kind, what follows from it (`if` and `then`): the words of `type`
are offered, with what they mean, the keys are those of the kind that is there, and an error stands at the
key that is wrong.

A document that satisfies one of the renderings satisfies the other, but that here a YAML null may
stand for the word `null`.

Source: https://json-schema.org/draft/2020-12/json-schema-core (10.2.2, conditional subschemas).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Component
from headrace.compiler.config.program import ProgramShape
from headrace.compiler.describe.reference import prose
from headrace.compiler.describe.schema import (
    OPENAPI,
    Rendering,
    Schema,
    described_by,
    name_of,
    rendered,
)
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.variants import Tagged

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFS = "#/$defs/"


def config_schema(catalogue: Catalogue) -> Schema:
    """Return the JSON Schema of a config file, in both its spellings."""
    said = {wire: known.doc for wire, known in ProgramShape.options().items()}
    pipelines = {"type": "array", "items": {"$ref": f"{OPENAPI}Config"}}
    whole = {
        "pipelines": {"description": said["pipelines"], **pipelines},
        "state": {"description": said["state"], "$ref": f"{OPENAPI}Buckets"},
    }
    root = {
        "title": "headrace config",
        "description": "A list of pipelines, or an object that has it as `pipelines`.",
        "type": ["array", "object"],
        "if": {"type": "array"},
        "then": pipelines,
        "else": {"properties": whole, "required": ["pipelines"], "additionalProperties": False},
    }
    return _document(root, rendered(ForEditors, catalogue=catalogue))


def connections_schema(catalogue: Catalogue) -> Schema:
    """Return the JSON Schema of a connections file."""
    definitions = rendered(ForEditors, catalogue=catalogue)
    root = {"title": "headrace connections", **definitions["Connections"]}
    return _document(root, definitions)


def record_schema(record: type[Record], title: str) -> Schema:
    """Return the JSON Schema of a file that is one record."""
    definitions = rendered(ForEditors, [record])
    return _document({**definitions[name_of(record)], "title": title}, definitions)


class ForEditors(Rendering):
    """The rendering for editors: `if` and `then` in the place of `oneOf`, and a title for everything."""

    def schema2jsonschema(self, schema: Any) -> Schema:
        """Return the schema of a record, with a title."""
        said = super().schema2jsonschema(schema)
        return {"title": _title(schema.record), **said}

    def tagged(self, tag: str) -> Schema:
        """Return the schema of the word that tells a variant; YAML reads an unquoted `null` as null."""
        return {"enum": [tag, None]} if tag == "null" else super().tagged(tag)

    def union(self, name: str, variants: Mapping[str, type[Record]]) -> Schema:
        """Return a reference to a union by `type`, describing it where that has not been done."""
        if self.is_new(name):
            words: dict[str | None, str] = {}
            for tag, variant in variants.items():
                # Its first paragraph, on one line.
                said = " ".join((prose(variant) or "").partition("\n\n")[0].split())
                words |= dict.fromkeys(self.tagged(tag).get("enum", [tag]), said)
            # `enumDescriptions` is no word of JSON Schema, which takes it for a remark; editors show it.
            kinds = {
                "description": f"Which {_words(name)} it is.",
                "enum": [*words],
                "enumDescriptions": [*words.values()],
            }
            union = {
                "type": "object",
                "properties": {"type": kinds},
                "required": ["type"],
                "allOf": [
                    {
                        "if": {"properties": {"type": self.tagged(tag)}, "required": ["type"]},
                        "then": self.record(variant),
                    }
                    for tag, variant in variants.items()
                ],
            }
            self.spec.components.schema(name, union)
        return {"$ref": OPENAPI + name}

    def choice(self, record: Any) -> Schema:
        """Return a reference to a record of which exactly one option out of several is given."""
        name = name_of(record)
        if name not in self.spec.components.schemas:
            whole = self.schema2jsonschema(described_by(record))
            self.spec.components.schema(name, whole | _exactly_one(record.one_of))
        return {"$ref": OPENAPI + name}


def _exactly_one(wires: tuple[str, ...]) -> Schema:
    """Return what holds if exactly one of these keys is given, where null is as good as absent."""
    first, *others = wires
    given = {"required": [first], "properties": {first: {"type": ["object", "array", "string"]}}}
    if not others:
        return given
    none = {"properties": {other: {"type": "null"} for other in others}}
    return {"if": given, "then": none, "else": _exactly_one(tuple(others))}


def _title(record: type[Record]) -> str:
    """Return what a record is called: ``kafka (input)``, ``merge (envelope)``, ``rotation``."""
    if issubclass(record, Component):
        return f"{record.kind} ({record.family})"
    if issubclass(record, Tagged) and record.tag:
        return f"{record.tag} ({_words(record.union().__name__)})"
    return _words(record.__name__.removesuffix("Shape"))


def _words(name: str) -> str:
    """Return the name of a class as words: ``pipeline state``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def _document(root: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return a schema with all it refers to, and nothing else."""
    used: dict[str, Schema] = {}
    missing = [*_referred(root)]
    while missing:
        name = missing.pop(0)
        if name not in used:
            used[name] = definitions[name]
            missing += _referred(definitions[name])
    ordered = {name: each for name, each in definitions.items() if name in used}
    document: Schema = _pointed({"$schema": DIALECT, **root, "$defs": ordered})
    return document


def _referred(schema: Any) -> Iterator[str]:
    """Yield the names that a schema refers to."""
    match schema:
        case {"$ref": str(where)}:
            yield where.removeprefix(OPENAPI)
    if isinstance(schema, dict | list):
        for each in schema.values() if isinstance(schema, dict) else schema:
            yield from _referred(each)


def _pointed(schema: Any) -> Any:
    """Return the schema with its references led to where a document of its own has definitions."""
    match schema:
        case list():
            return [_pointed(each) for each in schema]
        case dict():
            return {key: _pointed(each) for key, each in schema.items()}
        case str() if schema.startswith(OPENAPI):
            return _DEFS + schema.removeprefix(OPENAPI)
    return schema
