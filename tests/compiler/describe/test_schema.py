"""JSON Schema, for OpenAPI and for editors: what loads satisfies it, what is wrong by itself does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.language.testfile import TestFileShape
from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.program import load_program
from headrace.compiler.describe.editors import config_schema, connections_schema, record_schema
from headrace.compiler.describe.schema import OPENAPI, component_schemas
from headrace.compiler.jsontext import encode
from headrace.compiler.text.documents import read, read_file
from tests.examples import examples

SPECS = Path(__file__).parents[3] / "specs"
CATALOGUE = scan("headrace.operators", "headrace.connectors")
PIPELINES = {"type": "array", "items": {"$ref": f"{OPENAPI}Config"}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "openapi": {
        "anyOf": [
            PIPELINES,
            {
                "type": "object",
                "properties": {"pipelines": PIPELINES, "state": {"$ref": f"{OPENAPI}Buckets"}},
                "required": ["pipelines"],
                "additionalProperties": False,
            },
        ],
        "components": {"schemas": component_schemas(CATALOGUE)},
    },
    "editors": config_schema(CATALOGUE),
}
CONNECTIONS = {
    "openapi": {**SCHEMAS["openapi"], "anyOf": [{"$ref": f"{OPENAPI}Connections"}]},
    "editors": connections_schema(CATALOGUE),
}
TESTS = record_schema(TestFileShape, "headrace tests")
Validator = jsonschema.Draft202012Validator
VALIDATORS = {name: Validator(schema) for name, schema in SCHEMAS.items()}

DUMMY = {"type": "dummy", "duration": 1}

every_rendering = pytest.mark.parametrize("rendering", SCHEMAS)


def pipeline(**parts: Any) -> list[dict[str, Any]]:
    return [{"id": "p", "inputs": [DUMMY], **parts}]


def is_loaded(value: Any) -> bool:
    program, _ = load_program(read(encode(value), None, "json"), CATALOGUE)
    return program is not None


@every_rendering
def test_the_schema_is_one(rendering: str) -> None:
    Validator.check_schema(SCHEMAS[rendering])
    Validator.check_schema(CONNECTIONS[rendering])


@every_rendering
@pytest.mark.parametrize(
    "file", sorted(SPECS.glob("*/config.*")), ids=lambda file: f"{file.parent.name}/{file.name}"
)
def test_an_example_satisfies_the_schema(file: Path, rendering: str) -> None:
    if ".connections." in file.name:
        Validator(CONNECTIONS[rendering]).validate(read_file(file).value)
    elif ".tests." in file.name:
        Validator(TESTS).validate(read_file(file).value)
    else:
        VALIDATORS[rendering].validate(read_file(file).value)


LOADED = [
    pipeline(),
    {"pipelines": pipeline()},
    pipeline(id=None),
    pipeline(transforms=[], outputs=[]),
    pipeline(inputs=[{**DUMMY, "envelope": None, "buffer": None, "payload": "text"}]),
    pipeline(inputs=[{**DUMMY, "envelope": {"type": "wrap", "meta": None}, "amplitude": 8}]),
    pipeline(inputs=[{**DUMMY, "buffer": {"type": "batch", "size": 3, "window_seconds": 5}}]),
    pipeline(inputs=[{"type": "http", "auth": {"type": "bearer", "token": "${T}"}}]),
    pipeline(
        transforms=[
            {"type": "filter", "Numeric": {"field": "a", "operator": "less_than", "value": 1}},
            {
                "type": "filter",
                "Numeric": None,
                "String": {"field": "a", "operator": "contains", "value": ""},
            },
            {"type": "buffer", "size": 3},
            {"type": "splitter", "out_size": 2},
            {
                "type": "map",
                "on_missing": None,
                "mappings": [
                    {"type": "copy", "from": "a", "default": {"type": "null"}},
                    {"type": "constant", "value": {"type": "number", "value": 1}, "as": "b"},
                    {"type": "drop", "from": ["c"]},
                    {"type": "time", "from": "t", "format": "%s", "to_zone": "UTC", "zone": None},
                    {"type": "time", "from": "u", "format": ["%s", "%Y%j%z"], "truncate": "day"},
                    {"type": "time", "from": "v", "format": None, "plus": None},
                ],
            },
            {
                "type": "reducer",
                "group_by": ["a"],
                "aggregations": [{"function": "count", "as": "n"}],
            },
        ]
    ),
    pipeline(
        outputs=[{"type": "stdout"}, {"type": "http", "url": "http://127.0.0.1/", "verb": "PUT"}]
    ),
    pipeline(
        outputs=[{"type": "file", "connection": "disk", "path": "a", "rotate": {"max_rows": 1}}]
    ),
    pipeline(state=None),
    {"pipelines": [], "state": {}},
    {"pipelines": pipeline(state={"bucket": "b"}), "state": {"b": {}}},
    {
        "pipelines": pipeline(state={"bucket": "b c", "key": "a.b"}),
        "state": {"b c": {"max_keys": 0, "idle_timeout_secs": 60}, "d": {"max_keys": None}},
    },
]


@every_rendering
@pytest.mark.parametrize("config", LOADED)
def test_what_loads_satisfies_the_schema(config: Any, rendering: str) -> None:
    assert is_loaded(config)

    VALIDATORS[rendering].validate(config)


NUMERIC = {"field": "a", "operator": "less_than", "value": 1}
STRING = {"field": "a", "operator": "contains", "value": "1"}
REFUSED = [
    {},
    42,
    [{"id": "p"}],
    [{"id": "p", "inputs": []}],
    [{"id": " ", "inputs": [DUMMY]}],
    pipeline(inputs=[{"type": "nix"}]),
    pipeline(inputs=[{"duration": 1}]),
    pipeline(inputs=[{"type": "dummy"}]),
    pipeline(inputs=[{**DUMMY, "duratoin": 1}]),
    pipeline(inputs=[{**DUMMY, "duration": "1"}]),
    pipeline(inputs=[{**DUMMY, "duration": 0}]),
    pipeline(inputs=[{**DUMMY, "payload": "Text"}]),
    pipeline(inputs=[{**DUMMY, "buffer": {"type": "static"}}]),
    pipeline(transforms=None),
    pipeline(transforms=[{"type": "filter"}]),
    pipeline(transforms=[{"type": "filter", "Numeric": None, "String": None}]),
    pipeline(transforms=[{"type": "filter", "Numeric": NUMERIC, "String": STRING}]),
    pipeline(outputs=[{"type": "http", "url": "ftp://x", "verb": "PUT"}]),
    {"pipelines": pipeline(), "pipeline": []},
    {"pipelines": [], "state": None},
    {"pipelines": [], "state": []},
    {"pipelines": [], "state": {"b": None}},
    {"pipelines": [], "state": {" ": {}}},
    {"pipelines": [], "state": {"b" * 1001: {}}},
    {"pipelines": [], "state": {"b": {"max_keys": -1}}},
    {"pipelines": [], "state": {"b": {"idle_timeout_secs": "60"}}},
    {"pipelines": [], "state": {"b": {"maxkeys": 1}}},
    {"pipelines": pipeline(state={}), "state": {"b": {}}},
    {"pipelines": pipeline(state={"bucket": ""}), "state": {"b": {}}},
    {"pipelines": pipeline(state={"bucket": "b", "key": ""}), "state": {"b": {}}},
    {"pipelines": pipeline(state={"bucket": "b", "keys": "a"}), "state": {"b": {}}},
]


@every_rendering
@pytest.mark.parametrize("config", REFUSED)
def test_what_is_wrong_by_itself_does_not(config: Any, rendering: str) -> None:
    assert not is_loaded(config)
    assert not VALIDATORS[rendering].is_valid(config)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["", "a", "dummy", "merge"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "size", "meta", "a"]), inner, max_size=3)
    ),
    max_leaves=4,
)
KEYS = sorted({*CATALOGUE.family("input")["dummy"].options(), "nope"})


@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4))
@examples(200)
def test_whatever_loads_satisfies_the_schema(options: dict[str, Any]) -> None:
    config = pipeline(inputs=[{"duration": 1, **options, "type": "dummy"}])

    if is_loaded(config):
        for validator in VALIDATORS.values():
            validator.validate(config)


def test_buckets_are_described_with_their_defaults() -> None:
    schemas = component_schemas(CATALOGUE)

    assert schemas["Buckets"]["additionalProperties"] == {
        "$ref": "#/components/schemas/BucketDeclaration"
    }
    assert schemas["BucketDeclaration"]["properties"]["max_keys"]["default"] == 10_000
    assert schemas["PipelineState"]["required"] == ["bucket"]


def test_a_union_names_its_variants_by_tag() -> None:
    schemas = component_schemas(CATALOGUE)

    union = schemas["Envelope"]
    assert union["discriminator"] == {
        "propertyName": "type",
        "mapping": {
            "merge": "#/components/schemas/MergeEnvelope",
            "wrap": "#/components/schemas/WrapEnvelope",
        },
    }
    assert list(schemas["MergeEnvelope"]["properties"]) == ["type", "meta"]
    assert schemas["MergeEnvelope"]["properties"]["type"] == {"const": "merge"}
    assert schemas["MergeEnvelope"]["properties"]["meta"]["default"] == "_meta"


def test_exactly_one_of_several_keys_is_a_union_of_what_has_each() -> None:
    schemas = component_schemas(CATALOGUE)

    assert schemas["FilterTransform"]["oneOf"] == [
        {"$ref": "#/components/schemas/NumericFilterTransform"},
        {"$ref": "#/components/schemas/StringFilterTransform"},
        {"$ref": "#/components/schemas/WhenFilterTransform"},
    ]
    numeric = schemas["NumericFilterTransform"]
    assert numeric["required"] == ["type", "Numeric"]
    assert numeric["properties"]["Numeric"]["$ref"] == "#/components/schemas/Numeric"
    assert numeric["properties"]["String"]["type"] == "null"
    assert "when" not in numeric["properties"]
    when = schemas["WhenFilterTransform"]
    assert when["required"] == ["type", "when"]
    assert when["properties"]["when"]["items"] == {"$ref": "#/components/schemas/Condition"}
    assert when["properties"]["Numeric"]["type"] == "null"


def test_what_may_lie_inside_itself_is_referred_to_there() -> None:
    schemas = component_schemas(CATALOGUE)

    inside = schemas["NotCondition"]["properties"]["conditions"]
    assert inside["items"] == {"$ref": "#/components/schemas/Condition"}
    assert "not" in schemas["Condition"]["discriminator"]["mapping"]


def test_every_kind_of_the_catalogue_is_in_the_union_of_its_family() -> None:
    schemas = component_schemas(CATALOGUE)

    for family in ("input", "transform", "output", "connection"):
        mapping = schemas[family.capitalize()]["discriminator"]["mapping"]
        assert list(mapping) == list(CATALOGUE.family(family))
