"""State in a config: the buckets a file declares, the bucket that a pipeline uses."""

from __future__ import annotations

import json

import pytest
from marshmallow import ValidationError

from headrace.compiler.buckets import Bounds
from headrace.compiler.component.drafts import draft_of
from headrace.compiler.component.states import (
    BucketDeclaration,
    PipelineState,
    bounds_of,
    no_state,
)
from headrace.compiler.config.program import ProgramShape, load_pipeline, load_program
from headrace.compiler.schema.records import faults_of
from headrace.compiler.text.documents import Site, read
from tests.compiler.catalogued import CATALOGUE, plain, program, said, written

PIPELINES = "pipelines: [{inputs: [{type: spring}], state: {bucket: mills}}]"


def told(text: str):
    """Return the diagnostics of a YAML text."""
    return load_program(written(text), CATALOGUE)[1]


def posted(state: object, buckets: list[str] | None):
    """Return what is made of a posted pipeline with this state."""
    body = json.dumps({"inputs": [{"type": "spring"}], "state": state})
    return load_pipeline(read(body, None, "json"), CATALOGUE, buckets=buckets)


@pytest.mark.parametrize(
    ("declared", "bounds"),
    [
        ({}, Bounds(10_000, None)),
        ({"max_keys": 500, "idle_timeout_secs": 86400}, Bounds(500, 86400)),
        ({"max_keys": 0}, Bounds(1, None)),
        ({"idle_timeout_secs": 0}, Bounds(10_000, None)),
        ({"max_keys": None, "idle_timeout_secs": None}, Bounds(10_000, None)),
        ({"max_keys": 10**400}, Bounds(10**400, None)),
    ],
)
def test_a_declaration_has_bounds(declared, bounds):
    assert BucketDeclaration.load(declared).bounds == bounds
    assert bounds_of({"b": BucketDeclaration.load(declared)}) == {"b": bounds}


@pytest.mark.parametrize(
    ("declared", "path", "message"),
    [
        (
            None,
            (),
            "expected an object with any of 'max_keys', 'idle_timeout_secs', 'durable', found null",
        ),
        (
            500,
            (),
            "expected an object with any of 'max_keys', 'idle_timeout_secs', 'durable', found a number",
        ),
        ({"max_keys": -1}, ("max_keys",), "found -1"),
        ({"max_keys": 1.0}, ("max_keys",), "found 1.0"),
        ({"max_keys": "1"}, ("max_keys",), 'found "1"'),
        ({"max_keys": True}, ("max_keys",), "found true"),
        ({"idle_timeout_secs": 0.5}, ("idle_timeout_secs",), "found 0.5"),
        ({"idle_timeout_sec": 1}, ("idle_timeout_sec",), "unknown key 'idle_timeout_sec'"),
    ],
)
def test_a_declaration_is_strict(declared, path, message):
    with pytest.raises(ValidationError) as refused:
        BucketDeclaration.load(declared)

    [fault] = faults_of(refused.value)
    assert fault.path == path
    assert message in fault.message


def test_a_declaration_is_echoed_as_it_was_written():
    echoed = [
        BucketDeclaration.load(each).dump()
        for each in ({}, {"max_keys": 10_000}, {"idle_timeout_secs": 0, "max_keys": 0})
    ]

    assert echoed == [{}, {"max_keys": 10_000}, {"max_keys": 0, "idle_timeout_secs": 0}]


@pytest.mark.parametrize(
    ("state", "read_as"),
    [
        ({"bucket": "mills"}, PipelineState(bucket="mills")),
        ({"bucket": " m ", "key": " a.b "}, PipelineState(bucket=" m ", key="a.b")),
        ({"bucket": "mills", "key": None}, PipelineState(bucket="mills")),
    ],
)
def test_the_state_of_a_pipeline_is_a_bucket_and_perhaps_a_key(state, read_as):
    assert PipelineState.load(state) == read_as


def test_a_program_has_its_buckets():
    loaded = program(f"state: {{mills: {{max_keys: 5}}, yards: {{}}}}\n{PIPELINES}")

    assert bounds_of(loaded.buckets) == {"mills": Bounds(5), "yards": Bounds()}
    assert loaded.pipelines[0].state == PipelineState(bucket="mills")


@pytest.mark.parametrize("text", ["[]", "pipelines: []", "{pipelines: [], state: {}}"])
def test_a_program_may_have_no_buckets(text):
    assert program(text).buckets == {}


@pytest.mark.parametrize("state", ["", ", state: null"])
def test_a_pipeline_without_state_has_none_and_its_echo_says_nothing_of_it(state):
    [pipeline] = program(f"[{{inputs: [{{type: spring}}]{state}}}]").pipelines

    assert pipeline.state is None
    assert "state" not in pipeline.dump()


def test_an_echo_ends_with_the_state_as_it_was_written():
    config, _ = posted({"key": "id", "bucket": "mills"}, ["mills"])

    assert list(config.dump().items())[-1] == ("state", {"bucket": "mills", "key": "id"})


def test_an_undeclared_bucket_is_told_with_the_declared_ones():
    [diagnostic] = told(f"state: {{mill: {{}}, yard: {{}}}}\n{PIPELINES}")

    assert plain([diagnostic]) == ["2:56: pipelines[0].state.bucket: there is no bucket 'mills'"]
    assert (diagnostic.code, diagnostic.found) == ("unknown-bucket", '"mills"')
    assert (diagnostic.expected, diagnostic.suggestion) == (
        "one of mill, yard",
        "did you mean 'mill'?",
    )
    assert diagnostic.file == "mill.yaml"


@pytest.mark.parametrize("state", ["", "state: {}\n"])
def test_where_no_bucket_is_declared_the_remedy_is_told(state):
    [diagnostic] = told(state + PIPELINES)

    assert diagnostic.path == "pipelines[0].state.bucket"
    assert diagnostic.expected == (
        "a bucket that the config declares under 'state', beside 'pipelines'; it has none"
    )
    assert diagnostic.suggestion == (
        "declare it in the config file: 'state: { \"mills\": {} }' beside 'pipelines'"
    )


def test_a_bare_list_has_to_become_an_object_first():
    [diagnostic] = told("- {inputs: [{type: spring}], state: {bucket: mills}}")

    assert plain([diagnostic]) == ["1:46: pipelines[0].state.bucket: there is no bucket 'mills'"]
    assert diagnostic.suggestion == (
        "make the file an object: 'state: { \"mills\": {} }' and this list as 'pipelines'"
    )


def test_the_remedies_load():
    assert program(f'state: {{ "mills": {{}} }}\n{PIPELINES}')


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("state: null", "1:8: state: expected an object of buckets by name, found null"),
        ("state: [mills]", '1:8: state: expected an object of buckets by name, found ["mills"]'),
        (
            "state: {mills: null}",
            "1:16: state.mills: expected an object with any of 'max_keys', 'idle_timeout_secs', 'durable',"
            " found null",
        ),
        (
            "state: {mills: 5}",
            "1:16: state.mills: expected an object with any of 'max_keys', 'idle_timeout_secs', 'durable',"
            " found a number",
        ),
        (
            "state: {mills: {max_keys: '5'}}",
            '1:27: state.mills.max_keys: expected an integer of at least 0, found "5"',
        ),
        ("state: {mills: {maxkeys: 5}}", "1:17: state.mills.maxkeys: unknown key 'maxkeys'"),
        ("sate: {mills: {}}", "1:1: sate: unknown key 'sate'"),
        ("state: {mills: {}, ' ': {}}", '1:20: state[" "]: this must not be blank'),
        ("state: {mills: {}, '': 5}", '1:20: state[""]: this must not be blank'),
    ],
)
def test_a_fault_in_the_declarations_is_told_once_and_nothing_that_follows_from_it(state, message):
    assert said(f"{state}\n{PIPELINES}") == [message]


def test_a_name_of_a_bucket_has_a_limit():
    text = f"state: {{mills: {{}}, {'x' * 1001}: {{}}}}\n{PIPELINES}"

    [message] = said(text)

    assert message.startswith("1:20: state.xxx")
    assert message.endswith(": a name of 1,001 characters is too long")


@pytest.mark.parametrize(
    ("state", "messages"),
    [
        ("3", ["state: expected an object with 'bucket', found a number"]),
        ("{}", ["state.bucket: this key is required"]),
        ("{bucket: null}", ["state.bucket: expected a string that is not blank, found null"]),
        ("{bucket: ' '}", ["state.bucket: this must not be blank"]),
        ("{bucket: mills, key: ''}", ["state.key: this must not be blank"]),
        ("{bucket: mills, key: 3}", ["state.key: expected a string that is not blank, found 3"]),
        ("{bucket: mills, kee: id}", ["state.kee: unknown key 'kee'"]),
        ("{buckte: mills}", ["state.buckte: unknown key 'buckte'"]),
        (
            "{bucket: miles, kee: id}",
            ["state.bucket: there is no bucket 'miles'", "state.kee: unknown key 'kee'"],
        ),
    ],
)
def test_a_fault_in_the_state_of_a_pipeline_is_told_once(state, messages):
    text = f"""
state: {{mills: {{}}}}
pipelines: [{{inputs: [{{type: spring}}], state: {state}}}]"""

    assert [line.split(": pipelines[0].")[1] for line in said(text)] == messages


def test_everything_about_state_is_told_at_once_in_file_order():
    assert said(
        """
        state:
          mills: {max_keys: 1.5}
          yards: {idle: 3}
        pipelines:
          - inputs: [{type: spring}]
            state: {bucket: mils}
          - inputs: [{type: spring, litres: 0}]
            state: {bucket: yards, key: " "}
        """
    ) == [
        "3:29: state.mills.max_keys: expected an integer of at least 0, found 1.5",
        "4:19: state.yards.idle: unknown key 'idle'",
        "7:29: pipelines[0].state.bucket: there is no bucket 'mils'",
        "8:45: pipelines[1].inputs[0].litres: expected a number above 0, found 0",
        "9:41: pipelines[1].state.key: this must not be blank",
    ]


def test_of_a_thousand_undeclared_buckets_a_hundred_are_told():
    pipeline = "{inputs: [{type: spring}], state: {bucket: mils}}"

    assert len(said(f"state: {{mills: {{}}}}\npipelines: [{', '.join([pipeline] * 1000)}]")) == 100


def test_a_posted_pipeline_names_a_bucket_that_is_there():
    config, nothing = posted({"bucket": "mills"}, ["mills"])
    refused, [diagnostic] = posted({"bucket": "mils"}, ["mills"])
    _, [without] = posted({"bucket": "mils"}, [])

    assert (config.state, nothing) == (PipelineState(bucket="mills"), [])
    assert refused is None
    assert plain([diagnostic]) == ["1:54: state.bucket: there is no bucket 'mils'"]
    assert diagnostic.suggestion == "did you mean 'mills'?"
    assert without.suggestion == (
        "declare it in the config file: 'state: { \"mils\": {} }' beside 'pipelines'"
    )


def test_the_bucket_of_a_posted_pipeline_is_not_judged_by_who_knows_none():
    assert posted({"bucket": "mills"}, None)[1] == []


@pytest.mark.parametrize(
    ("pipeline", "has_state"),
    [
        ({}, False),
        ({"state": None}, False),
        ({"sttae": {"bucket": "mills"}}, True),
        ({"state": {"bucket": 3}}, True),
        ({"state": 3}, True),
        (3, False),
    ],
)
def test_a_pipeline_that_gives_a_wrong_state_still_gives_one(pipeline, has_state):
    draft, _ = draft_of(pipeline, Site(), CATALOGUE)

    assert (draft.has_state, draft.state) == (has_state, None)


def test_who_needs_state_says_so_with_an_example():
    fault = no_state("'remember'")

    assert fault.message == "'remember' needs to know which bucket: the pipeline has no 'state'"
    assert fault.expected == (
        "'state' on the pipeline, such as 'state: { bucket: machines, key: machine_id }'"
    )


def test_a_whole_config_is_echoed_with_its_buckets():
    shape = ProgramShape.load({"pipelines": [], "state": {"b": {}, "a": {"max_keys": 5}}})

    assert shape.dump() == {"pipelines": [], "state": {"b": {}, "a": {"max_keys": 5}}}
