"""JSON Schema of what is answered, read off the types that are encoded.

An answer is a `msgspec.Struct`: its fields in their order, of which those that may be left out (`UNSET`)
are not required, each with what `msgspec.Meta` says of it. A type that `Meta` gives a title has a schema of
its own under that name, as a Struct has under its own. A text stands for the schema of that name: that of a
config, or of a component.

msgspec writes schemas itself, and sorts the words of a `Literal`; here they stay in the order in which
they are declared, which is the order in which they are shown.
"""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from headrace.compiler.annotated import DescribedAs
from headrace.compiler.describe.schema import Schema
from headrace.compiler.schema.records import Record
from headrace.compiler.schema.structures import AnyObject

SCHEMAS = "#/components/schemas/"
"""Where a description has its schemas. Source: https://spec.openapis.org/oas/v3.1.0"""

_PLAIN: Mapping[Any, Schema] = types.MappingProxyType(
    {
        Any: {},
        msgspec.Raw: {},
        str: {"type": "string"},
        int: {"type": "integer"},
        float: {"type": "number"},
        bool: {"type": "boolean"},
    }
)


def ref(name: str) -> Schema:
    """Return what stands for the schema of that name."""
    return {"$ref": SCHEMAS + name}


JsonObject = Annotated[Mapping[str, Any], DescribedAs(AnyObject.__name__)]
PlainText = Annotated[str, msgspec.Meta(title="Text")]


class Shapes:
    """Describes types, and collects what has a name on the way."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type."""
        if isinstance(kind, str):
            return ref(kind)
        if isinstance(kind, type) and issubclass(kind, Record):
            return ref(kind.__name__)  # described with the components
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._struct(kind)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _words([each.value for each in kind])
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._said(*arguments)
        if origin is Literal:
            return _words(arguments)
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin in (list, tuple, Sequence):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        return dict(_PLAIN[kind])

    def _said(self, kind: Any, *further: msgspec.Meta | DescribedAs) -> Schema:
        """Return the schema of a type with what is said of it."""
        said = [each for each in further if isinstance(each, msgspec.Meta)]
        kind = next((each.kind for each in further if isinstance(each, DescribedAs)), kind)
        title = next((each.title for each in said if each.title), None)
        if title in self.named:
            return ref(title)
        schema = self.of(kind)
        for each in said:
            told = {"minimum": each.ge, "description": each.description}
            schema |= each.extra_json_schema or {}
            schema |= {key: value for key, value in told.items() if value is not None}
        if title is None:
            return schema
        self.named[title] = schema
        return ref(title)

    def _struct(self, kind: type[msgspec.Struct]) -> Schema:
        name = kind.__name__
        if name not in self.named:
            schema = self.named[name] = Schema()  # it may hold itself
            config, fields = kind.__struct_config__, msgspec.structs.fields(kind)
            tagged = {config.tag_field: {"const": config.tag}} if config.tag_field else {}
            told = {each.encode_name: self.of(each.type) for each in fields}
            required = [each.encode_name for each in fields if each.required]
            schema |= {
                "type": "object",
                "properties": {**tagged, **told},
                "required": [*tagged, *required],
            }
            if kind.__doc__:
                schema["description"] = " ".join(inspect.cleandoc(kind.__doc__).split())
        return ref(name)

    def _union(self, kinds: Sequence[Any]) -> Schema:
        """Return the schema of what may be left out, of one type or null, or of several Structs."""
        *others, last = (each for each in kinds if each not in (types.NoneType, msgspec.UnsetType))
        if not others:
            schema = self.of(last)
            if types.NoneType not in kinds:
                return schema
            if "type" not in schema:
                return {"anyOf": [schema, {"type": "null"}]}
            return {**schema, "type": [schema["type"], "null"]}
        variants = [self.of(each) for each in (*others, last)]
        if (key := last.__struct_config__.tag_field) is None:
            return {"oneOf": variants}
        return one_of(key, {each.__struct_config__.tag: each.__name__ for each in (*others, last)})


def _words(words: Sequence[Any]) -> Schema:
    """Return the schema of one of some words, or numbers; where null is one of them, without a type."""
    kinds = {type(each) for each in words}
    return {**(_PLAIN[kinds.pop()] if len(kinds) == 1 else {}), "enum": [*words]}


def one_of(key: str, names: Mapping[str, str]) -> Schema:
    """Return the schema of what the word under ``key`` tells apart: ``names`` of schemas by word."""
    return {
        "oneOf": [ref(name) for name in names.values()],
        "discriminator": {
            "propertyName": key,
            "mapping": {word: SCHEMAS + name for word, name in names.items()},
        },
    }
