"""Configs: read whole, with everything that is wrong told at once."""

import time

import pytest

from headrace.compiler.component.families import Transform
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.program import Program, load_program
from headrace.compiler.schema.secrets import Secrets
from tests.compiler.catalogued import (
    CATALOGUE,
    Bucket,
    Mesh,
    Sieve,
    Sink,
    Spring,
    Well,
    Wheel,
    plain,
    program,
    said,
    written,
)
from tests.compiler.config.programs import only, sieve


def test_a_pipeline_is_its_components_in_order():
    config = only(
        """
        - id: a
          inputs: [{type: spring, litres: 2}, {type: bucket, connection: w}]
          transforms: [{type: sieve, field: f, from: 1}, {type: sieve, field: g}]
          outputs: [{type: wheel, connection: m}, {type: sink}]
        """
    )

    assert config.id == "a"
    assert config.inputs == (Spring(litres=2), Bucket(connection="w"))
    assert config.transforms == (Sieve(field="f", from_=1), Sieve(field="g"))
    assert config.outputs == (Wheel(connection="m"), Sink())


def test_both_spellings_say_the_same():
    listed = program("[{id: a, inputs: [{type: spring}]}, {inputs: [{type: spring}]}]")
    spelled_out = program(
        "pipelines: [{id: a, inputs: [{type: spring}]}, {inputs: [{type: spring}]}]"
    )

    assert [each.dump() for each in listed.pipelines] == [
        each.dump() for each in spelled_out.pipelines
    ]


def test_a_transform_that_asks_servers_says_so_itself():
    transforms = (Sieve(field="f"), Asking(), Asking())
    nameless = PipelineConfig(inputs=(Spring(),), transforms=transforms)
    named = PipelineConfig(id="a", inputs=(Spring(),), transforms=transforms)

    both = Program((nameless, named))

    assert [*nameless.asking()] == [1, 2]
    assert both.named == {"a": named}
    assert [*both.asking()] == [("a", 1), ("a", 2)]


class Asking(Transform):
    """Asks a server."""

    asks = True


@pytest.mark.parametrize("text", ["[]", "pipelines: []"])
def test_a_config_may_have_no_pipeline(text):
    assert program(text).pipelines == ()


def test_paths_are_called_the_same_in_both_spellings():
    assert said("[{inputs: 3}]") == [
        "1:11: pipelines[0].inputs: expected a list of at least one input, found 3"
    ]
    assert said("pipelines: [{inputs: 3}]") == [
        "1:22: pipelines[0].inputs: expected a list of at least one input, found 3"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "3",
            "1:1: : expected a list of pipelines, or an object that has it as 'pipelines', found a number",
        ),
        (
            "{inputs: [{type: spring}]}",
            "1:1: : expected a list of pipelines, or an object that has it as 'pipelines',"
            " found one pipeline",
        ),
        ("{}", "1:1: pipelines: this key is required"),
        ("pipelines: null", "1:12: pipelines: expected a list of pipelines, found null"),
        ("pipelines: {}", "1:12: pipelines: expected a list of pipelines, found {}"),
        ("pipeline: []", "1:1: pipeline: unknown key 'pipeline'"),
        ("{pipelines: [], states: {}}", "1:17: states: unknown key 'states'"),
        ("[3]", "1:2: pipelines[0]: expected an object with 'inputs', found a number"),
        ("[null]", "1:2: pipelines[0]: expected an object with 'inputs', found null"),
        ("pipelines: [[]]", "1:13: pipelines[0]: expected an object with 'inputs', found a list"),
    ],
)
def test_what_is_no_config_is_told(text, message):
    assert said(text) == [message]


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("{id: a}", "1:2: pipelines[0].inputs: this key is required"),
        (
            "{inputs: []}",
            "1:11: pipelines[0].inputs: expected a list of at least one input, found an empty list",
        ),
        (
            "{inputs: null}",
            "1:11: pipelines[0].inputs: expected a list of at least one input, found null",
        ),
        (
            "{inputs: [{type: spring}], transforms: null}",
            "1:41: pipelines[0].transforms: expected a list of transforms, found null",
        ),
        (
            "{inputs: [{type: spring}], outputs: null}",
            "1:38: pipelines[0].outputs: expected a list of outputs, found null",
        ),
        (
            "{inputs: [{type: spring}], outputs: {type: sink}}",
            '1:38: pipelines[0].outputs: expected a list of outputs, found {"type":"sink"}',
        ),
        ("{id: ' ', inputs: [{type: spring}]}", "1:7: pipelines[0].id: this must not be blank"),
        (
            "{id: 3, inputs: [{type: spring}]}",
            "1:7: pipelines[0].id: expected a string that is not blank, found 3",
        ),
        (
            "{inputs: [{type: spring}], states: {bucket: b}}",
            "1:29: pipelines[0].states: unknown key 'states'",
        ),
        (
            "{inputs: [3]}",
            "1:12: pipelines[0].inputs[0]: expected an object whose 'type' is one of spring, gate, bucket,"
            " pipe, found a number",
        ),
        (
            "{inputs: [null]}",
            "1:12: pipelines[0].inputs[0]: expected an object whose 'type' is one of spring, gate, bucket,"
            " pipe, found null",
        ),
        ("{inputs: [{}]}", "1:12: pipelines[0].inputs[0]: 'type' is required"),
        ("{inputs: [{type: null}]}", "1:19: pipelines[0].inputs[0].type: unknown type null"),
        ("{inputs: [{type: sping}]}", '1:19: pipelines[0].inputs[0].type: unknown type "sping"'),
    ],
)
def test_what_is_no_pipeline_is_told(pipeline, message):
    assert said(f"[{pipeline}]") == [message]


def test_the_id_is_optional_null_is_absent_and_nothing_is_trimmed():
    listed = program(
        "[{inputs: [{type: spring}]}, {id: null, inputs: [{type: spring}]},"
        " {id: ' a/b ', inputs: [{type: spring}]}]"
    )

    assert [each.id for each in listed.pipelines] == [None, None, " a/b "]


@pytest.mark.parametrize(
    ("text", "expected", "suggestion"),
    [
        (
            "[{inputs: [{type: sping}]}]",
            "one of spring, gate, bucket, pipe",
            "did you mean 'spring'?",
        ),
        (
            "[{inputs: [{kind: spring}]}]",
            "one of spring, gate, bucket, pipe",
            "write 'type' instead of 'kind'",
        ),
        ("[{inputs: [{name: a}]}]", "one of spring, gate, bucket, pipe", None),
        (
            "[{inputs: [{type: wheel}]}]",
            "one of spring, gate, bucket, pipe",
            "'wheel' is a kind of output",
        ),
        ("[{inputs: [{type: spring}], outputs: [{type: 3}]}]", "one of sink, wheel", None),
    ],
)
def test_a_kind_that_is_missing_or_unknown_lists_the_known_ones(text, expected, suggestion):
    _, diagnostics = load_program(written(text), CATALOGUE)

    assert [(each.expected, each.suggestion) for each in diagnostics] == [(expected, suggestion)]


def test_everything_that_is_wrong_with_all_pipelines_is_told_in_file_order():
    assert said(
        """
        - outputs: [{type: snk}, {type: sink, to: x}, {type: sink}]
          inputs:
            - {type: bucket, conection: w, max_batch: 1.0}
            - type: spring
              litres: 0
              buffer: {type: batch, size: "1"}
              envelope: {type: wrap, meta: m, payload: m}
          transform: []
        - 3
        - inputs: [{type: spring}]
          transforms:
            - {type: sieve, field: " ", mesh: {widht: 3}, meshes: [{width: 1, round: yes}]}
          id: ""
        """
    ) == [
        '2:28: pipelines[0].outputs[0].type: unknown type "snk"',
        "2:47: pipelines[0].outputs[1].to: unknown key 'to'",
        "4:30: pipelines[0].inputs[0].conection: unknown key 'conection'",
        "4:55: pipelines[0].inputs[0].max_batch: expected an integer of at least 0, found 1.0",
        "6:23: pipelines[0].inputs[1].litres: expected a number above 0, found 0",
        "7:23: pipelines[0].inputs[1].buffer.window_seconds: this key is required",
        '7:43: pipelines[0].inputs[1].buffer.size: expected an integer of at least 0, found "1"',
        "8:56: pipelines[0].inputs[1].envelope.payload:"
        " 'meta' and 'payload' both name 'm', so one would overwrite the other",
        "9:11: pipelines[0].transform: unknown key 'transform'",
        "10:11: pipelines[1]: expected an object with 'inputs', found a number",
        "13:36: pipelines[2].transforms[0].field: this must not be blank",
        "13:48: pipelines[2].transforms[0].mesh.widht: unknown key 'widht'",
        '13:86: pipelines[2].transforms[0].meshes[0].round: expected true or false, found "yes"',
        "14:15: pipelines[2].id: this must not be blank",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "mesh: {width: 1.0}",
            "2:15: pipelines[0].transforms[0].mesh.width: expected an integer of at least 1, found 1.0",
        ),
        (
            "mesh: {width: '1'}",
            '2:15: pipelines[0].transforms[0].mesh.width: expected an integer of at least 1, found "1"',
        ),
        (
            "mesh: {width: true}",
            "2:15: pipelines[0].transforms[0].mesh.width: expected an integer of at least 1, found true",
        ),
        (
            "mesh: {width: -1}",
            "2:15: pipelines[0].transforms[0].mesh.width: expected an integer of at least 1, found -1",
        ),
        (
            "mesh: {width: 1, round: 1}",
            "2:25: pipelines[0].transforms[0].mesh.round: expected true or false, found 1",
        ),
        (
            "mesh: {width: 1, round: off}",
            '2:25: pipelines[0].transforms[0].mesh.round: expected true or false, found "off"',
        ),
        (
            "mesh: {width: 1, odd: 1}",
            "2:18: pipelines[0].transforms[0].mesh.odd: unknown key 'odd'",
        ),
        (
            "meshes: null",
            "2:9: pipelines[0].transforms[0].meshes: expected a list of objects, found null",
        ),
        (
            "meshes: [null]",
            "2:10: pipelines[0].transforms[0].meshes[0]: expected an object with 'width', found null",
        ),
        (
            "keep: null",
            "2:7: pipelines[0].transforms[0].keep: expected one of coarse, fine, found null",
        ),
        (
            "keep: Coarse",
            '2:7: pipelines[0].transforms[0].keep: expected one of coarse, fine, found "Coarse"',
        ),
        (
            "word: yess",
            '2:7: pipelines[0].transforms[0].word: expected one of yes, no, found "yess"',
        ),
        (
            "word: true",
            "2:7: pipelines[0].transforms[0].word: expected one of yes, no, found true",
        ),
        (
            "mesh: {width: 1}, meshes: [{width: 1}]",
            "2:27: pipelines[0].transforms[0].meshes: one mesh or several, not both",
        ),
    ],
)
def test_reading_is_strict(options, message):
    assert said(sieve(options)) == [message]


@pytest.mark.parametrize(
    ("options", "transform"),
    [
        ("mesh: null", Sieve(field="f")),
        ("word: null", Sieve(field="f")),
        ("word: yes", Sieve(field="f", word="yes")),
        ("on_missing: null", Sieve(field="f", on_missing="null")),
        ("on_missing: 'null'", Sieve(field="f", on_missing="null")),
        ("from: 2026-03-01", Sieve(field="f", from_="2026-03-01")),
        ("from: on", Sieve(field="f", from_="on")),
        ("mesh: {width: 3, round: true}", Sieve(field="f", mesh=Mesh(width=3, round=True))),
    ],
)
def test_what_is_read_means_what_yaml_1_2_says(options, transform):
    assert only(sieve(options)).transforms == (transform,)


def test_a_kind_of_another_family_is_no_kind_of_this_one():
    assert said("[{inputs: [{type: spring}], transforms: [{type: well}]}]") == [
        '1:49: pipelines[0].transforms[0].type: unknown type "well"'
    ]


def test_connections_are_looked_up_if_they_are_known():
    text = "[{inputs: [{type: bucket, connection: w}], outputs: [{type: wheel, connection: w}]}]"
    known = {"w": Well(host="here"), "m": Well}

    _, unasked = load_program(written(text), CATALOGUE)
    refused, asked = load_program(written(text), CATALOGUE, connections=known)

    assert unasked == []
    assert refused is None
    assert plain(asked) == [
        "1:80: pipelines[0].outputs[0].connection:"
        " 'w' is a well connection, and a mill connection is needed"
    ]


def test_references_that_nothing_answers_are_warned_of_if_secrets_are_known():
    text = "[{inputs: [{type: gate, token: 'a${T}${U}'}]}]"

    loaded, diagnostics = load_program(written(text), CATALOGUE, secrets=Secrets({"T": "t"}, {}))

    assert loaded is not None
    assert plain(diagnostics) == [
        "1:32: pipelines[0].inputs[0].token: warning:"
        " nothing resolves '${U}': looked in the environment and the secrets file"
    ]


def test_a_reference_that_never_resolves_is_refused_if_secrets_are_known():
    text = "[{inputs: [{type: gate, token: '${T'}]}]"

    loaded, diagnostics = load_program(written(text), CATALOGUE, secrets=Secrets({}, {}))

    assert loaded is None
    assert plain(diagnostics) == [
        "1:32: pipelines[0].inputs[0].token: a '${' here starts no reference"
    ]


@pytest.mark.timed
def test_ten_pipelines_are_read_within_milliseconds():
    pipeline = (
        "{inputs: [{type: spring}], transforms: [{type: sieve, field: f}], outputs: [{type: sink}]}"
    )
    document = written(f"[{', '.join([pipeline] * 10)}]")
    load_program(document, CATALOGUE)

    started = time.thread_time()
    load_program(document, CATALOGUE)

    assert time.thread_time() - started < 0.05
