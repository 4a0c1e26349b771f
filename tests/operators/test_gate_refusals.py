"""What a config may not say about a gate, where that is told, and what helps."""

import json

import pytest
from marshmallow import ValidationError

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.config.program import load_pipeline, load_program
from headrace.compiler.schema.records import faults_of
from headrace.compiler.text.documents import read
from headrace.operators.buffer import Buffer
from tests.stand_ins import Doing, Given

CATALOGUE = Catalogue([Given, Doing, Buffer])
MODE = {"type": "string", "field": "mode", "operator": "equal_to", "value": "auto"}
AUTO = "{ type: string, field: mode, operator: equal_to, value: auto }"


def program(until, state=None, declared="{ machines: {}, lines: {} }"):
    """Return the text of a config whose second transform is a buffer with a gate."""
    return f"""\
state: {declared}
pipelines:
  - id: reports
    inputs: [{{ type: given }}]
    state: {state or "null"}
    transforms:
      - type: doing
      - type: buffer
        max_messages: 10
        until: {until}
"""


def said(text):
    """Return all that is told of a config."""
    _, diagnostics = load_program(read(text, "config.yaml", "yaml"), CATALOGUE)
    return diagnostics


def told(text):
    """Return what is wrong with a config: line, path, code, message, what would be accepted."""
    return [(d.line, d.path, d.code, d.message, d.expected) for d in said(text)]


def test_a_gate_needs_a_bucket_from_itself_or_from_its_pipeline():
    assert told(program(f"{{ conditions: [{AUTO}] }}")) == [
        (
            10,
            "pipelines[0].transforms[1].until",
            "no-state",
            "'until' needs to know which bucket: the pipeline has no 'state'",
            "'bucket' in 'until', or 'state' on the pipeline",
        )
    ]


@pytest.mark.parametrize(
    ("until", "state"),
    [
        (f"{{ conditions: [{AUTO}] }}", "{ bucket: machines }"),
        (f"{{ conditions: [{AUTO}], bucket: lines }}", None),
        (f"{{ conditions: [{AUTO}], bucket: lines }}", "{ bucket: machines, key: machine_id }"),
        (f"{{ conditions: [{AUTO}], bucket: null, key: m1 }}", "{ bucket: machines }"),
        (f"{{ conditions: [{AUTO}, {AUTO}], bucket: lines, key: '' }}", None),
    ],
)
def test_a_gate_over_a_declared_bucket_is_fine(until, state):
    assert said(program(until, state)) == []


def test_a_bucket_that_is_not_declared_is_told_where_it_is_named():
    [fault] = said(program(f"{{ bucket: machine, conditions: [{AUTO}] }}"))

    assert (fault.line, fault.column) == (10, 26)
    assert fault.path == "pipelines[0].transforms[1].until.bucket"
    assert (fault.code, fault.message) == ("unknown-bucket", "there is no bucket 'machine'")
    assert fault.suggestion == "did you mean 'machines'?"


def test_a_pipeline_whose_own_bucket_is_not_declared_is_told_that_alone():
    assert [
        (path, code)
        for _, path, code, *_ in told(program(f"{{ conditions: [{AUTO}] }}", "{ bucket: no }"))
    ] == [("pipelines[0].state.bucket", "unknown-bucket")]


def test_a_pipeline_that_is_posted_is_asked_for_the_same():
    gate = {"conditions": [MODE]}

    def codes(**more):
        buffer = {"type": "buffer", "max_messages": 1, "until": gate | more}
        body = json.dumps({"inputs": [{"type": "given"}], "transforms": [buffer]})
        _, diagnostics = load_pipeline(read(body, "body", "json"), CATALOGUE, buckets=["machines"])
        return [(each.path, each.code) for each in diagnostics]

    assert codes() == [("transforms[0].until", "no-state")]
    assert codes(bucket="machine") == [("transforms[0].until.bucket", "unknown-bucket")]
    assert codes(bucket="machines") == []


@pytest.mark.parametrize(
    ("until", "path", "code", "message"),
    [
        (
            "{ bucket: lines, conditions: [] }",
            ".conditions",
            "out-of-range",
            "expected a list of at least one condition, found an empty list",
        ),
        ("{ bucket: lines }", ".conditions", "missing-key", "this key is required"),
        (
            "{ bucket: lines, conditions: null }",
            ".conditions",
            "wrong-type",
            "expected a list of at least one condition, found null",
        ),
        (
            "{ bucket: lines, conditions: [{ type: sting, field: a, operator: contains, value: b }] }",
            ".conditions[0].type",
            "unknown-kind",
            'unknown type "sting"',
        ),
        (
            "{ bucket: lines, conditions: [{ field: a, operator: contains, value: b }] }",
            ".conditions[0]",
            "missing-key",
            "'type' is required",
        ),
        (
            "{ bucket: lines, conditions: [{ type: numeric, field: a, operator: contains, value: 1 }] }",
            ".conditions[0].operator",
            "not-a-choice",
            "expected one of greater_than, less_than, equal_to, at_least, at_most, not_equal_to, "
            'found "contains"',
        ),
        (
            f"{{ bucket: lines, key: 1, conditions: [{AUTO}] }}",
            ".key",
            "wrong-type",
            "expected a string, found 1",
        ),
        (f"{{ bucket: ' ', conditions: [{AUTO}] }}", ".bucket", "blank", "this must not be blank"),
        (
            f"{{ bucket: lines, keys: m1, conditions: [{AUTO}] }}",
            ".keys",
            "unknown-key",
            "unknown key 'keys'",
        ),
        ("open", "", "wrong-type", "expected an object with 'conditions', found a string"),
    ],
)
def test_what_a_gate_cannot_be(until, path, code, message):
    [(_, where, *what, _)] = told(program(until))

    assert (where, *what) == (f"pipelines[0].transforms[1].until{path}", code, message)


@pytest.mark.parametrize(
    ("document", "code", "expected"),
    [
        ({"max_messages": 5}, "no-trigger", "'size', or 'seconds' or 'until' with 'max_messages'"),
        ({"until": {"conditions": [MODE]}}, "no-bound", "'max_messages', or 'size'"),
    ],
)
def test_a_gate_is_a_trigger_and_bounds_nothing(document, code, expected):
    with pytest.raises(ValidationError) as refused:
        Buffer.load(document)

    assert [(each.code, each.expected) for each in faults_of(refused.value)] == [(code, expected)]


def test_a_condition_of_an_unknown_type_is_told_with_what_is_probably_meant():
    condition = "{ type: sting, field: a, operator: contains, value: b }"

    [fault] = said(program(f"{{ bucket: lines, conditions: [{condition}] }}"))

    assert (fault.expected, fault.suggestion) == (
        "one of numeric, string, length, boolean, exists, one_of, matches, any, all, not",
        "did you mean 'string'?",
    )


def test_a_gate_is_echoed_as_it_was_written():
    for until in (
        {"conditions": [MODE]},
        {"conditions": [MODE], "bucket": "machines", "key": ""},
    ):
        document = {"max_messages": 5, "until": until}

        assert Buffer.load(document).dump() == {"type": "buffer", **document}
