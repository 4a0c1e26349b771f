"""JSON Schema from the component classes, as OpenAPI has it. `editors` renders the same for editors.

A schema says what one value may be. Rules between values (two inputs that exclude each other, a
pipeline that does not exist) are the loader's, so a document that satisfies the schema may still be
refused; one that loads always satisfies it.

Source: https://apispec.readthedocs.io/ (its marshmallow plugin walks the schemas), JSON Schema 2020-12.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import marshmallow
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import FAMILIES, Component
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.program import ProgramShape
from headrace.compiler.describe.reference import prose
from headrace.compiler.schema import fields, structures, variants
from headrace.compiler.schema.fields import SOMETHING_SEEN
from headrace.compiler.schema.records import Record, RecordSchema, dumped
from headrace.compiler.schema.urls import HttpUrl

Schema = dict[str, Any]

OPENAPI = "#/components/schemas/"
ANY_OBJECT = "AnyObject"
"""Name of the schema of an object that may hold anything."""


def component_schemas(
    catalogue: Catalogue, further: Iterable[type[Record]] = ()
) -> dict[str, Schema]:
    """Return the schema of everything a config may hold, by name, each referring to `OPENAPI` names.

    ``further`` records are described as well, and so is what they hold.
    """
    return rendered(Rendering, further, catalogue)


def rendered(
    rendering: type[Rendering],
    records: Iterable[type[Record]] = (),
    catalogue: Catalogue | None = None,
) -> dict[str, Schema]:
    """Return what `component_schemas` does, in another rendering, or of some records alone."""
    made: Any = type("Plugin", (MarshmallowPlugin,), {"Converter": rendering})
    plugin = made(schema_name_resolver=lambda schema: name_of(schema.record))
    spec = APISpec("headrace", "", "3.1.0", plugins=[plugin])
    describing = plugin.converter  # a `Rendering`, now that there is a `spec`
    if catalogue is not None:
        for family in FAMILIES:
            describing.union(family.capitalize(), catalogue.family(family))
        spec.components.schema("Config", schema=described_by(PipelineConfig))
        spec.components.schema("Buckets", describing.takes(ProgramShape.options()["state"].field))
        connections = {
            "type": "object",
            "description": "Named credentials: connection name to connection.",
            "additionalProperties": {"$ref": f"{OPENAPI}Connection"},
        }
        spec.components.schema("Connections", connections)
    for record in records:
        describing.record(record)
    schemas: dict[str, Schema] = spec.components.schemas
    return schemas


class Rendering(OpenAPIConverter):
    """Teaches apispec what our fields and records say beyond marshmallow's own, as OpenAPI has it."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # In place of apispec's own, which ask validators and mappings that strict fields do not use.
        self.attribute_functions = [self.metadata2properties, self.strict]
        self._unions: set[str] = set()

    def schema2jsonschema(self, schema: Any) -> Schema:
        """Return the schema of a record, with its prose, its defaults and, in a union, its tag.

        The tag stands in each variant: outside, no instance could satisfy a variant that allows no
        further keys.
        """
        record: type[Record] = schema.record
        said: Schema = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]
        for option in record.options().values():
            if option.default not in (None, ()):
                said["properties"][option.wire]["default"] = dumped(option.default)
        if tag := getattr(record, "kind", "") or getattr(record, "tag", ""):
            said["properties"] = {"type": self.tagged(tag), **said["properties"]}
            said["required"] = ["type", *said.get("required", [])]
        return said | ({"description": text} if (text := prose(record)) else {})

    def tagged(self, tag: str) -> Schema:
        """Return the schema of the word that tells a variant."""
        return {"const": tag}

    def record(self, record: type[Record]) -> Schema:
        """Return a reference to a record, describing it where that has not been done."""
        if getattr(record, "one_of", ()):
            return self.choice(record)
        reference: Schema = self.resolve_nested_schema(described_by(record))  # type: ignore[no-untyped-call]
        return reference

    def choice(self, record: Any) -> Schema:
        """Return a reference to a record of which exactly one option out of several is given.

        It is a union of records with a name each, because a generator of clients makes one class of
        each name, and guesses names for what has none.
        """
        name = name_of(record)
        if name not in self.spec.components.schemas:
            whole = self.schema2jsonschema(described_by(record))
            named = {wire: wire[0].upper() + wire[1:] + name for wire in record.one_of}
            for wire, variant in named.items():
                self.spec.components.schema(variant, _with_only(wire, record, whole))
            # The tag once more: a discriminator may only lead to what is an object by itself.
            shared = {"type": "object", "properties": {"type": whole["properties"]["type"]}}
            union = [{"$ref": OPENAPI + variant} for variant in named.values()]
            told = {"required": ["type"], "oneOf": union, "description": whole["description"]}
            self.spec.components.schema(name, shared | told)
        return {"$ref": OPENAPI + name}

    def union(self, name: str, variants: Any) -> Schema:
        """Return a reference to a union by `type`, describing it where that has not been done."""
        if self.is_new(name):
            references = {tag: self.record(variant) for tag, variant in variants.items()}
            mapping = {tag: reference["$ref"] for tag, reference in references.items()}
            discriminator = {"propertyName": "type", "mapping": mapping}
            union = {"oneOf": [*references.values()], "discriminator": discriminator}
            self.spec.components.schema(name, union)
        return {"$ref": OPENAPI + name}

    def is_new(self, union: str) -> bool:
        """Return whether nobody has begun to describe a union: inside itself it is referred to."""
        if union in self._unions:
            return False
        self._unions.add(union)
        return True

    def strict(self, field: fields.Strict, ret: Schema) -> Schema:
        """Return what a field takes: apispec's hook, called for each."""
        takes = self.takes(field)
        is_same_as_absent = not field.required and field.is_null_absent and takes
        return self.or_null(takes) if is_same_as_absent or field.is_null_told else takes

    def item(self, field: fields.Strict) -> Schema:
        """Return what an item of a list may be."""
        takes = self.takes(field)
        return self.or_null(takes) if field.is_null_told else takes

    def or_null(self, takes: Schema) -> Schema:
        """Return the schema of what may be null as well."""
        if "enum" in takes:  # without a type: of a list of types a generator makes a class for each
            return {"enum": [*takes["enum"], None]}
        if "type" in takes:
            return takes | {"type": [takes["type"], "null"]}
        return {"anyOf": [takes, {"type": "null"}]}

    def takes(self, field: fields.Strict) -> Schema:
        """Return the schema of one field's values: of any JSON, if nothing here knows better."""
        match field:
            case fields.Boolean():
                return {"type": "boolean"}
            case fields.Integer():
                return {"type": "integer", **_bounds(field)}
            case fields.Number():
                return {"type": "number", **_bounds(field)}
            case fields.Scalar():
                return {"type": ["string", "number", "boolean"]}
            case HttpUrl():
                return {"type": "string", "pattern": r"^\s*[Hh][Tt][Tt][Pp][Ss]?://"}
            case fields.Identifier():
                return {"type": "string", "pattern": SOMETHING_SEEN, "maxLength": field.longest}
            case fields.Name():
                return {"type": "string", "pattern": SOMETHING_SEEN}
            case fields.Text():
                return {"type": "string"}
            case fields.Choice():
                words: Schema = {"type": "string", "enum": [*field.words]}
                # An unquoted null of YAML is read as the word.
                return self.or_null(words) if field.null_word else words
            case structures.ListOf():
                least = {"minItems": field.at_least} if field.at_least else {}
                most = {} if field.at_most is None else {"maxItems": field.at_most}
                return {"type": "array", "items": self.item(field.inner), **least, **most}
            case structures.OneOrListOf():
                return {"anyOf": [self.takes(field.inner), self.takes(field.listed)]}
            case structures.ObjectOf():
                # No name can be anything but a string, and a validator need not be told so again.
                names = {
                    word: said for word, said in self.takes(field.names).items() if word != "type"
                }
                values = self.takes(field.inner)
                words = {
                    word: {"description": doc, **self.takes(inner)}
                    for word, (inner, doc) in field.words.items()
                }
                told = {"properties": words} if words else {}
                shape = {"type": "object", "propertyNames": names, **told}
                return {**shape, "additionalProperties": values}
            case structures.WordOr():
                word = {"type": "string", "const": field.word}
                return {"anyOf": [self.takes(field.inner), word]}
            case structures.AnyObject():
                # With a name, and with its keys said aloud: generators of clients make a class of the one,
                # and take an object that says nothing of its keys for one that has none.
                if ANY_OBJECT not in self.spec.components.schemas:
                    said = {"type": "object", "additionalProperties": True}
                    self.spec.components.schema(ANY_OBJECT, {"description": field.__doc__, **said})
                return {"$ref": OPENAPI + ANY_OBJECT}
            case structures.TrueOr():
                return {"anyOf": [self.record(field.record), {"type": "boolean", "const": True}]}
            case structures.RecordOf():
                return self.record(field.record)
            case variants.VariantOf():
                return self.union(field.union.__name__, field.union.variants)
            case structures.ComponentOf():
                return {"$ref": OPENAPI + field.family.capitalize()}
        return {}


def described_by(record: type[Record]) -> RecordSchema:
    """Return a record's schema as apispec is to see it: unknown keys are refused."""
    made: Any = type(record.schema())
    schema: RecordSchema = made(unknown=marshmallow.RAISE)
    schema.record = record
    return schema


def name_of(record: type[Record]) -> str:
    """Return the schema name of a record: `KafkaInput`, `StaticInputBuffer`, `Aggregation`."""
    if issubclass(record, Component):
        return record.kind.capitalize() + record.family.capitalize()
    if issubclass(record, variants.Tagged) and record.tag:
        return record.tag.title().replace("_", "") + record.union().__name__
    return record.__name__


def _with_only(wire: str, record: Any, whole: Schema) -> Schema:
    """Return a record's schema if it has this option, and none of those that exclude it but as null."""
    properties = dict(whole["properties"])
    for other in record.one_of:
        doc = {"description": record.options()[other].doc}
        or_null = properties[other].get("anyOf")
        if other == wire:
            properties[other] = doc | (or_null[0] if or_null else properties[other])
        elif or_null:
            properties[other] = doc | {"type": "null"}
        else:  # where null is none of its values, it may not be there at all
            del properties[other]
    required = [*whole["required"], wire]
    return whole | {
        "properties": properties,
        "required": required,
        "description": record.options()[wire].doc,
    }


def _bounds(field: fields.Number) -> Schema:
    bounds = {"minimum": field.min, "maximum": field.max, "exclusiveMinimum": field.above}
    return {word: bound for word, bound in bounds.items() if bound is not None}
