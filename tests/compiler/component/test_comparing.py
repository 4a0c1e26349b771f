"""Whether two configs mean the same, and where they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.pipelineconfig import PipelineConfig, differing, is_same
from headrace.compiler.config.program import load_program
from headrace.compiler.decimals import Written
from headrace.compiler.text.diagnostics import path_text
from headrace.compiler.text.documents import read

CATALOGUE = scan("headrace.operators", "headrace.connectors")


def loaded(text: str) -> PipelineConfig:
    program, said = load_program(read(text.encode(), None, "yaml"), CATALOGUE)
    assert program is not None, said
    return program.pipelines[0]


BEFORE = """
state: { seen: {} }
pipelines:
- id: p
  inputs: [{ type: dummy, duration: 1 }, { type: mqtt, connection: bus, topic: a/# }]
  transforms:
  - type: buffer
    size: 5
    until: { conditions: [{ type: string, field: a, operator: contains, value: x }] }
  - type: map
    mappings: [{ type: constant, as: c, value: { type: number, value: 1 } }]
  outputs: [{ type: stdout }, { type: http, url: "http://a/b" }]
  state: { bucket: seen }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("duration: 1", "duration: 2", ["inputs[0].duration"]),
        ("duration: 1", "duration: 1, amplitude: 1", []),
        ("duration: 1", "amplitude: 1, duration: 1, period: 60, ack: on_receipt", []),
        ("id: p\n", "id: another\n", []),
        ("type: dummy, duration: 1", "type: http", ["inputs[0]"]),
        ("topic: a/#", "topic: a/+, qos: at_least_once", ["inputs[1].topic", "inputs[1].qos"]),
        ("value: x", "value: y", ["transforms[0].until.conditions[0].value"]),
        (
            "type: number, value: 1",
            "type: boolean, value: true",
            ["transforms[1].mappings[0].value"],
        ),
        (
            "type: number, value: 1",
            "type: number, value: 1.0",
            ["transforms[1].mappings[0].value.value"],
        ),
        (', { type: http, url: "http://a/b" }', "", ["outputs"]),
        ("http://a/b", "http://you:word@a/b", ["outputs[1].url"]),
        ("  state: { bucket: seen }\n", "  state: { bucket: seen, key: k }\n", ["state.key"]),
        ("state: { seen: {} }", "state: { seen: { max_keys: 3 } }", []),
    ],
)
def test_where_two_pipelines_differ(old: str, new: str, told: list[str]) -> None:
    assert BEFORE.count(old) == 1

    found = differing(loaded(BEFORE), loaded(BEFORE.replace(old, new)))

    assert [path_text(path) for path in found] == told


def test_a_state_that_is_new_is_a_difference() -> None:
    after = loaded(BEFORE)
    without = replace(after, state=None)

    assert [*differing(without, after)] == [("state",)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (Written("1.10"), Written("1.1")),
        ("1", 1),
        (None, {}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"b": 1}),
        ([1, 2], [1, 2, 3]),
        ((1,), [1]),
    ],
)
def test_what_is_written_otherwise_as_json_differs(before: Any, after: Any) -> None:
    assert not is_same(before, after)


@pytest.mark.parametrize(
    "value", [None, True, 3, 1.5, Written("1.10"), "x", {"a": [1, {"b": None}]}]
)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert is_same(value, value)
