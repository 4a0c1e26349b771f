"""The JSON Schema for editors: it refuses what the loader refuses by shape, and tells what things are."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.authoring.configfiles import catalogue
from headrace.compiler.config.program import load_program
from headrace.compiler.describe.editors import config_schema
from headrace.compiler.jsontext import encode
from headrace.compiler.text.documents import read, read_file
from tests.examples import examples

SPECS = Path(__file__).parents[3] / "specs"
CATALOGUE = catalogue()
SCHEMA = config_schema(CATALOGUE)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
BY_SHAPE = {"unknown-kind", "unknown-key", "wrong-type", "not-a-choice"}
"""Codes of what is wrong with one place, whatever the others hold."""

CONFIGS = [read_file(file).value for file in sorted(SPECS.glob("*/config.yaml"))]

Steps = tuple[str | int, ...]


def places(value: Any, path: Steps = ()) -> Iterator[Steps]:
    """Yield the path of everything inside."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in pairs:
        yield (*path, step)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, step))


def at(value: Any, path: Steps) -> Any:
    for step in path:
        value = value[step]
    return value


OTHERS = [None, True, 1, 2.5, "", "x", [], {}, {"type": "x"}, ["x"]]


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """Give a config of which one thing has become something else, or has another name, or is gone."""
    config = copy.deepcopy(draw(st.sampled_from(CONFIGS)))
    *way, last = draw(st.sampled_from([*places(config)]))
    parent = at(config, tuple(way))
    change = draw(st.sampled_from(["value", "name", "gone"]))
    if change == "value":
        parent[last] = draw(st.sampled_from(OTHERS))
    elif change == "name" and isinstance(parent, dict):
        parent[f"{last}x"] = parent.pop(last)
    else:
        del parent[last]
    return config


@given(spoilt())
@examples(300)
def test_what_the_loader_refuses_by_shape_the_schema_refuses_and_nothing_else(config: Any) -> None:
    program, said = load_program(read(encode(config), None, "json"), CATALOGUE)

    if program is not None:
        VALIDATOR.validate(config)
    elif {one.code for one in said} & BY_SHAPE:
        assert not VALIDATOR.is_valid(config)


def test_a_kind_is_offered_with_what_it_is() -> None:
    kind = SCHEMA["$defs"]["Transform"]["properties"]["type"]

    assert kind["enum"] == [*CATALOGUE.family("transform")]
    assert dict(zip(kind["enum"], kind["enumDescriptions"], strict=True))["splitter"] == (
        "Cut each batch into batches of exactly `out_size` messages."
    )


HELLO = read_file(SPECS / "hello" / "config.yaml").value


def test_an_error_stands_at_the_key_that_is_wrong_and_is_the_only_one() -> None:
    config = copy.deepcopy(HELLO)
    config[0]["transforms"][2]["sise"] = 3

    [error] = VALIDATOR.iter_errors(config)

    assert [*error.absolute_path] == [0, "transforms", 2]
    assert error.message.startswith("Additional properties are not allowed ('sise'")


def test_an_unknown_kind_is_told_with_those_there_are_and_nothing_else() -> None:
    config = copy.deepcopy(HELLO)
    config[0]["inputs"][0]["type"] = "dumy"

    [error] = VALIDATOR.iter_errors(config)

    assert [*error.absolute_path] == [0, "inputs", 0, "type"]
    assert error.message.startswith("'dumy' is not one of ['dummy', 'http'")


def test_everything_has_a_title_and_a_description() -> None:
    objects = {name: each for name, each in SCHEMA["$defs"].items() if "properties" in each}
    kinds = [each for each in objects.values() if "allOf" in each]
    records = [each for each in objects.values() if "allOf" not in each]

    assert [each for each in records if not (each.get("title") and each.get("description"))] == []
    options = [
        (each["title"], key, said)
        for each in records
        for key, said in each["properties"].items()
        if key != "type" or each["title"] == "column"  # elsewhere it is the word that tells a kind
    ]
    assert [(title, key) for title, key, said in options if "description" not in said] == []
    assert [each for each in kinds if "description" not in each["properties"]["type"]] == []
    assert SCHEMA["$defs"]["KafkaInput"]["title"] == "kafka (input)"
    assert SCHEMA["$defs"]["MergeEnvelope"]["title"] == "merge (envelope)"
    assert SCHEMA["$defs"]["MergeEnvelope"]["properties"]["meta"]["default"] == "_meta"


def test_an_unquoted_null_of_yaml_is_the_word() -> None:
    text = """
      - inputs: [{ type: dummy, duration: 1 }]
        transforms:
          - type: map
            mappings: [{ type: constant, as: a, value: { type: null } }]
            on_missing: null
    """
    document = read(text, None, "yaml")

    program, _ = load_program(document, CATALOGUE)

    assert program is not None
    VALIDATOR.validate(document.value)


def test_a_column_of_a_table_may_be_left_out_with_null() -> None:
    def table(column: str) -> Any:
        csv = f"csv: {{ columns: [{column}, temp] }}"
        return read(f"- inputs: [{{ type: http, format: csv, {csv} }}]", None, "yaml")

    VALIDATOR.validate(table("null").value)
    assert not VALIDATOR.is_valid(table("7").value)
    assert load_program(table("null"), CATALOGUE)[0] is not None
    assert load_program(table("7"), CATALOGUE)[0] is None


@pytest.mark.parametrize("name", ["Config", "Buckets"])
def test_only_what_is_referred_to_is_there(name: str) -> None:
    assert name in SCHEMA["$defs"]
    assert [each for each in SCHEMA["$defs"] if each.endswith("Connection")] == []
