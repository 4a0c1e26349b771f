"""Pipelines that were read: posted alone, asked what they use, written out again."""

import json

import pytest

from headrace.compiler.component.families import Output
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.schema.fields import ConnectionName
from headrace.compiler.schema.records import Record, option
from headrace.compiler.schema.structures import ListOf, RecordOf
from headrace.compiler.text.diagnostics import Fault
from tests.compiler.catalogued import (
    Bucket,
    Pipe,
    Sink,
    Spring,
    Well,
    Wheel,
    plain,
    program,
)
from tests.compiler.config.programs import only, posted, sieve


def test_a_posted_pipeline_is_read_by_itself():
    config, told = posted('{"id": "a", "inputs": [{"type": "gate", "token": "${T}"}]}')

    assert told == []
    assert config is not None
    assert config.dump() == {
        "id": "a",
        "inputs": [{"type": "gate", "token": "${T}"}],
        "transforms": [],
        "outputs": [],
    }


def test_a_posted_pipeline_may_read_what_is_running():
    text = '{"inputs": [{"type": "pipe", "upstream": "b"}]}'

    assert posted(text, running=["a", "b"])[1] == []
    assert posted(text, running=["a"]) == (
        None,
        ["1:42: inputs[0].upstream: there is no pipeline 'b' to read from"],
    )


def test_the_connections_of_a_posted_pipeline_are_looked_up_if_they_are_known():
    text = '{"inputs": [{"type": "bucket", "connection": "yrad"}]}'

    unknown = posted(text, connections={"yard": Well(host="w")})
    unasked = posted(text)

    assert unknown == (None, ["1:46: inputs[0].connection: there is no well connection 'yrad'"])
    assert unasked[1] == []


def test_a_posted_pipeline_cannot_read_itself():
    text = '{"id": "b", "inputs": [{"type": "pipe", "upstream": "b"}]}'

    assert posted(text, running=["a"]) == (
        None,
        ["1:53: inputs[0].upstream: 'b' reads its own output"],
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("[]", "1:1: : expected an object with 'inputs', found a list"),
        ('"a"', "1:1: : expected an object with 'inputs', found a string"),
        ("{}", "1:1: inputs: this key is required"),
        (
            '{"inputs": [{"type": "gate"}, {"type": "gate"}]}',
            "1:31: inputs[1]: a pipeline has at most one gate input, and inputs[0] (gate, line 1) is one",
        ),
    ],
)
def test_what_is_wrong_with_a_posted_pipeline_is_told(body, told):
    assert posted(body) == (None, [told])


def test_a_fault_found_while_building_is_told_with_its_place():
    _, second = program(
        """
        - inputs: [{type: spring}]
        - id: b
          inputs:
            - type: bucket
              connection: w
        """
    ).pipelines

    diagnostic = second.diagnose(Fault("outside-root", "no", path=("connection",)), ("inputs", 0))

    assert plain([diagnostic]) == ["6:27: pipelines[1].inputs[0].connection: no"]
    assert diagnostic.file == "mill.yaml"


def test_a_pipeline_made_by_hand_has_no_place():
    config = PipelineConfig(inputs=(Spring(),), outputs=(Sink(),))

    diagnostic = config.diagnose(Fault("outside-root", "no"), ("outputs", 0))

    assert (diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.path) == (
        None,
        None,
        None,
        "outputs[0]",
    )


def test_a_pipeline_knows_what_it_reads():
    config = PipelineConfig(inputs=(Pipe(upstream="a"), Spring(), Pipe(upstream="b")))

    assert config.upstreams == ["a", "b"]


class Chain(Record):
    """What several buckets hang on."""

    wells: tuple[str, ...] = option(ListOf(ConnectionName("well")), "Where each is let down.")


class Pump(Output, kind="pump"):
    """Draws from several wells."""

    chain: Chain = option(RecordOf(Chain), "How.")


def test_a_pipeline_knows_which_connections_it_names_also_deep_inside():
    config = PipelineConfig(
        inputs=(Bucket(connection="yard"), Spring()),
        outputs=(Wheel(connection="brook"), Pump(chain=Chain(wells=("yard", "barn")))),
    )

    assert [*config.namings()] == [
        (("inputs", 0, "connection"), "well", "yard"),
        (("outputs", 0, "connection"), "mill", "brook"),
        (("outputs", 1, "chain", "wells", 0), "well", "yard"),
        (("outputs", 1, "chain", "wells", 1), "well", "barn"),
    ]
    assert config.connections == {"yard", "brook", "barn"}


def test_an_echo_is_what_was_written():
    text = """
        - outputs: [{type: wheel, label: "", connection: m}]
          inputs:
            - {connection: w, type: bucket, max_batch: 1, ack: on_receipt, buffer: null}
            - type: spring
              litres: 8
              buffer: {window_seconds: 3, type: batch, size: 0}
              envelope: {type: wrap, meta: ""}
          transforms:
            - {type: sieve, field: " f ", keep: coarse, on_missing: null, mesh: {width: 1, round: false}}
          id: a
        """

    echo = only(text).dump()

    assert echo == {
        "id": "a",
        "inputs": [
            {"type": "bucket", "ack": "on_receipt", "connection": "w", "max_batch": 1},
            {
                "type": "spring",
                "buffer": {"type": "batch", "size": 0, "window_seconds": 3},
                "envelope": {"type": "wrap", "meta": ""},
                "litres": 8,
            },
        ],
        "transforms": [
            {
                "type": "sieve",
                "field": "f",
                "mesh": {"width": 1, "round": False},
                "on_missing": "null",
            }
        ],
        "outputs": [{"type": "wheel", "connection": "m", "label": ""}],
    }
    assert [*echo] == ["id", "inputs", "transforms", "outputs"]
    assert [next(iter(each)) for name in ("inputs", "outputs") for each in echo[name]] == [
        "type"
    ] * 3
    assert type(echo["inputs"][1]["litres"]) is int


def test_an_echo_has_the_id_under_which_the_pipeline_runs():
    config = PipelineConfig(inputs=(Spring(),))

    assert config.dump("gladly-quiet-heron")["id"] == "gladly-quiet-heron"
    assert config.dump() == {"inputs": [{"type": "spring"}], "transforms": [], "outputs": []}


def test_an_echo_is_read_as_the_same_config():
    text = sieve("from: {a: [1, 2.5, null]}, meshes: [{width: 2}], word: no")

    echo = only(text).dump()

    again, _ = posted(json.dumps(echo))
    assert again is not None
    assert (again.inputs, again.transforms) == (only(text).inputs, only(text).transforms)
