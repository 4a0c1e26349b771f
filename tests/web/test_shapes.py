"""The schemas of what is answered, read off the types that are encoded."""

import enum
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count
from headrace.compiler.jsontext import encode
from headrace.web.shapes import JsonObject, Shapes, ref


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Leaf(msgspec.Struct):
    """What a branch
    ends in.
    """

    colour: Colour


class Branch(msgspec.Struct):
    leaves: Annotated[list[Leaf], Meta(description="From the trunk on.")]
    why: list[str] | UnsetType = UNSET


class Grown(msgspec.Struct, tag_field="outcome", tag="grown"):
    size: Count


class Felled(msgspec.Struct, tag_field="outcome", tag="felled"):
    at: str | None


Season = Annotated[
    Literal["wet", "dry"], Meta(title="Season", extra_json_schema={"default": "wet"})
]
Outcome = Annotated[Grown | Felled, Meta(title="Outcome")]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (str | None, {"type": ["string", "null"]}),
        (Count | None, {"type": ["integer", "null"], "minimum": 0}),
        (Leaf | None, {"anyOf": [ref("Leaf"), {"type": "null"}]}),
        (Annotated[Count, Meta(description="D.")], {"type": "integer", "minimum": 0, "description": "D."}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (Literal["b", "a", None], {"enum": ["b", "a", None]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (list[list[Any]], {"type": "array", "items": {"type": "array", "items": {}}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (JsonObject, ref("AnyObject")),
        ("Config", ref("Config")),
    ],
    ids=str,
)  # fmt: skip
def test_a_type_is_described_by_what_it_is(kind: Any, schema: dict[str, Any]) -> None:
    assert Shapes().of(kind) == schema


def test_a_struct_has_a_schema_of_its_own_with_all_that_it_holds() -> None:
    shapes = Shapes()

    assert shapes.of(list[Branch]) == {"type": "array", "items": ref("Branch")}

    assert shapes.named["Branch"] == {
        "type": "object",
        "properties": {
            "leaves": {"type": "array", "items": ref("Leaf"), "description": "From the trunk on."},
            "why": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["leaves"],
    }
    assert shapes.named["Leaf"]["description"] == "What a branch ends in."


def test_a_type_with_a_title_has_a_schema_under_it() -> None:
    shapes = Shapes()

    assert [shapes.of(Season), shapes.of(Season)] == [ref("Season"), ref("Season")]

    assert shapes.named == {"Season": {"type": "string", "enum": ["wet", "dry"], "default": "wet"}}


def test_structs_with_a_tag_are_told_apart_by_it() -> None:
    shapes = Shapes()

    assert shapes.of(Outcome) == ref("Outcome")

    assert shapes.named["Outcome"] == {
        "oneOf": [ref("Grown"), ref("Felled")],
        "discriminator": {
            "propertyName": "outcome",
            "mapping": {
                "grown": "#/components/schemas/Grown",
                "felled": "#/components/schemas/Felled",
            },
        },
    }
    assert shapes.named["Grown"]["properties"]["outcome"] == {"const": "grown"}
    assert shapes.named["Grown"]["required"] == ["outcome", "size"]


@pytest.mark.parametrize("told", [Grown(3), Felled(None), Felled("noon")])
def test_what_is_encoded_is_as_it_is_described(told: msgspec.Struct) -> None:
    shapes = Shapes()
    described = shapes.of(Outcome)

    schema = {**described, "components": {"schemas": shapes.named}}
    jsonschema.Draft202012Validator(schema).validate(msgspec.json.decode(encode(told)))
