"""What a transform `remember` refuses, and what it says of itself."""

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.config.program import load_program
from headrace.compiler.text.documents import read
from headrace.operators.remember import Remember
from tests.doubles import StubContext, refusals
from tests.operators.remembered import FAST, IS_AUTO, MODE, SPEED, remember

# --- what it refuses


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        ({}, ["remember: this key is required"]),
        (
            {"remember": []},
            ["remember: expected a list of at least one value, found an empty list"],
        ),
        ({"remember": None}, ["remember: expected a list of at least one value, found null"]),
        (
            {"remember": ["mode"]},
            ["remember[0]: expected an object with 'field' and 'as', found a string"],
        ),
        (
            {"remember": [{}]},
            ["remember[0].field: this key is required", "remember[0].as: this key is required"],
        ),
        (
            {"remember": [{"field": " ", "as": ""}]},
            ["remember[0].field: this must not be blank", "remember[0].as: this must not be blank"],
        ),
        (
            {"remember": [MODE, SPEED, {"field": "m", "as": " mode "}]},
            ["remember[2].as: 'mode' is written by remember[0] already"],
        ),
        ({"remember": [MODE], "when": None}, ["when: expected a list of conditions, found null"]),
        (
            {"remember": [MODE], "when": [None]},
            [
                "when[0]: expected an object whose 'type' is one of numeric, string, length, "
                "boolean, exists, one_of, matches, any, all, not, found null"
            ],
        ),
        ({"remember": [MODE], "when": [{"field": "a"}]}, ["when[0]: 'type' is required"]),
        ({"remember": [MODE], "wehn": []}, ["wehn: unknown key 'wehn'"]),
    ],
)
def test_what_cannot_be_meant_is_refused(document, reasons):
    assert refusals(Remember, document) == reasons


@pytest.mark.parametrize(
    "document",
    [
        {"remember": [MODE]},
        {"remember": [{"field": "a.b", "as": "c"}], "when": [FAST, IS_AUTO]},
        {"remember": [MODE], "when": []},
    ],
)
def test_the_echo_is_what_was_written(document):
    assert Remember.load(document).dump() == {"type": "remember"} | document


def said_of(text):
    """Return what is said of a config."""
    known = scan("headrace.operators", "headrace.connectors")
    return load_program(read(text, "mill.yaml", "yaml"), known)[1]


def test_without_state_on_the_pipeline_it_is_refused_where_it_stands():
    [refused] = said_of(
        """\
state: { machines: {} }
pipelines:
  - inputs: [{ type: http }]
    transforms:
      - type: remember
        remember: [{ field: mode, as: mode }]
"""
    )

    assert refused.as_json() == {
        "file": "mill.yaml",
        "line": 5,
        "column": 9,
        "end_line": 6,
        "end_column": 46,
        "path": "pipelines[0].transforms[0]",
        "severity": "error",
        "code": "no-state",
        "message": "'remember' needs to know which bucket: the pipeline has no 'state'",
        "found": None,
        "expected": "'state' on the pipeline, such as 'state: { bucket: machines, key: machine_id }'",
        "suggestion": None,
        "replacement": None,
    }


# --- what it says of fields


def test_it_reads_what_it_keeps_and_asks_for_and_the_key():
    use = remember(MODE, {"field": "a.b", "as": "x"}, when=[FAST]).field_use()

    assert use == FieldUse.of(reads=["mode", "a.b", "speed"], by_key=True)


def test_a_key_that_is_not_handed_on_is_remarked_on():
    said = said_of(
        """\
state: { machines: {} }
pipelines:
  - inputs: [{ type: dummy, duration: 1 }]
    state: { bucket: machines, key: machine_id }
    transforms:
      - type: remember
        remember: [{ field: value, as: value }, { field: mode, as: mode }]
"""
    )

    assert [(each.line, each.code, each.message) for each in said] == [
        (
            6,
            "not-handed-on",
            "reads 'machine_id', which inputs[0] (dummy, line 3) does not hand on",
        ),
        (7, "not-handed-on", "reads 'mode', which inputs[0] (dummy, line 3) does not hand on"),
    ]


def test_what_is_known_of_messages_holds_behind_it():
    said = said_of(
        """\
state: { machines: {} }
pipelines:
  - inputs: [{ type: dummy, duration: 1 }]
    state: { bucket: machines }
    transforms:
      - type: remember
        remember: [{ field: value, as: temp }]
      - type: map
        mappings: [{ type: copy, from: temp, as: t }]
"""
    )

    assert [(each.line, each.message) for each in said] == [
        (9, "reads 'temp', which inputs[0] (dummy, line 3) does not hand on")
    ]


def test_each_message_of_a_dry_run_came_from_itself():
    it, batch = StubContext(), [{}, {}]

    assert remember().origins(batch, [batch]) == [[[0], [1]]]
    assert it.warnings == []
