"""Rules across components: of one pipeline, and between pipelines."""

import pytest

from headrace.compiler.lint.rules import missing_upstream
from tests.compiler.catalogued import program, said
from tests.promises import promise


def order(text):
    return [pipeline.id for pipeline in program(text).pipelines]


def test_two_pipelines_cannot_have_one_id():
    assert said(
        """
        - {id: a, inputs: [{type: spring}]}
        - {id: b, inputs: [{type: spring}]}
        - id: a
          inputs: [{type: spring}]
        - {inputs: [{type: spring}], id: a}
        """
    ) == [
        "4:15: pipelines[2].id: the id 'a' is taken by the pipeline on line 2",
        "6:42: pipelines[3].id: the id 'a' is taken by the pipeline on line 2",
    ]


def test_pipelines_without_an_id_do_not_collide():
    assert said("[{inputs: [{type: spring}]}, {inputs: [{type: spring}], id: null}]") == []


def test_an_upstream_that_is_missing_is_told_with_the_known_ids():
    assert said(
        """
        - {id: press, inputs: [{type: spring}]}
        - {id: oven, inputs: [{type: pipe, upstream: pres}]}
        """
    ) == ["3:54: pipelines[1].inputs[0].upstream: there is no pipeline 'pres' to read from"]
    fault = missing_upstream("pres", ["oven", "press"])
    assert (fault.code, fault.found, fault.expected, fault.suggestion) == (
        "missing-upstream",
        '"pres"',
        "one of oven, press",
        "did you mean 'press'?",
    )


def test_with_no_other_pipeline_there_is_none_to_name():
    assert missing_upstream("a", []).expected == "the id of another pipeline"


def test_a_pipeline_cannot_read_itself():
    assert said("[{id: a, inputs: [{type: pipe, upstream: a}]}]") == [
        "1:42: pipelines[0].inputs[0].upstream: 'a' reads its own output"
    ]


def test_a_ring_is_named_in_the_direction_of_the_messages_from_the_first_in_the_file():
    assert said(
        """
        - {id: sink, inputs: [{type: pipe, upstream: b}]}
        - {id: a, inputs: [{type: spring}, {type: pipe, upstream: c}]}
        - {id: c, inputs: [{type: pipe, upstream: b}]}
        - {id: b, inputs: [{type: pipe, upstream: a}]}
        """
    ) == [
        "3:67: pipelines[1].inputs[1].upstream:"
        " these pipelines feed each other in a circle: a -> b -> c -> a"
    ]


def test_every_ring_is_told_once():
    assert said(
        """
        - {id: a, inputs: [{type: pipe, upstream: b}, {type: pipe, upstream: b}]}
        - {id: b, inputs: [{type: pipe, upstream: a}, {type: pipe, upstream: c}]}
        - {id: c, inputs: [{type: pipe, upstream: b}]}
        - {id: d, inputs: [{type: pipe, upstream: d}]}
        """
    ) == [
        "2:51: pipelines[0].inputs[0].upstream:"
        " these pipelines feed each other in a circle: a -> b -> a",
        "3:78: pipelines[1].inputs[1].upstream:"
        " these pipelines feed each other in a circle: b -> c -> b",
        "5:51: pipelines[3].inputs[0].upstream: 'd' reads its own output",
    ]


@pytest.mark.long
def test_of_rings_beyond_counting_a_hundred_are_told():
    ids = range(120)
    reads = ", ".join(f"{{type: pipe, upstream: p{n}}}" for n in ids)
    everybody = ", ".join(f"{{id: p{n}, inputs: [{reads}]}}" for n in ids)
    pairs = ", ".join(f"{{id: p{n}, inputs: [{{type: pipe, upstream: p{n ^ 1}}}]}}" for n in ids)

    assert len(said(f"[{everybody}]")) == 100
    assert len(said(f"[{pairs}]")) == 60
    assert said(f"[{pairs}]")[-1].endswith("in a circle: p118 -> p119 -> p118")


def test_of_upstreams_that_are_missing_a_hundred_are_told():
    readers = ", ".join(f"{{inputs: [{{type: pipe, upstream: p{n}}}]}}" for n in range(200))

    assert len(said(f"[{readers}]")) == 100


def test_a_long_chain_is_no_ring():
    links = [f"{{id: p{n}, inputs: [{{type: pipe, upstream: p{n + 1}}}]}}" for n in range(2000)]
    text = f"[{', '.join(links)}, {{id: p2000, inputs: [{{type: spring}}]}}]"

    assert order(text) == [f"p{n}" for n in range(2000, -1, -1)]


def test_pipelines_come_after_what_they_read_and_else_in_file_order():
    assert order(
        """
            - {id: a, inputs: [{type: pipe, upstream: z}]}
            - {id: b, inputs: [{type: spring}]}
            - {id: z, inputs: [{type: spring}]}
            - {id: c, inputs: [{type: pipe, upstream: b}, {type: pipe, upstream: a}]}
            - {id: d, inputs: [{type: spring}]}
            """
    ) == ["b", "z", "a", "c", "d"]


def test_a_pipeline_has_at_most_one_input_of_a_kind_that_is_the_only_one():
    assert said(
        """
        - inputs:
            - {type: gate}
            - {type: spring}
            - {type: gate}
            - {type: spring}
            - {type: gate, token: x}
        - inputs: [{type: gate}]
        """
    ) == [
        "5:15: pipelines[0].inputs[2]:"
        " a pipeline has at most one gate input, and inputs[0] (gate, line 3) is one",
        "7:15: pipelines[0].inputs[4]:"
        " a pipeline has at most one gate input, and inputs[0] (gate, line 3) is one",
    ]


@promise("delivery.refused.on_delivery")
@pytest.mark.parametrize("kind", ["spring", "gate", "pipe, upstream: b"])
def test_an_input_that_acknowledges_to_nobody_cannot_wait_for_delivery(kind):
    text = f"[{{id: b, inputs: [{{type: {kind}, ack: on_delivery}}]}}]"

    told = [line for line in said(text) if ".ack" in line]

    assert told == [
        f"1:{text.index('on_delivery') + 1}: pipelines[0].inputs[0].ack: a message from"
        f" '{kind.split(',')[0]}' is acknowledged to nobody, so 'ack' cannot be on_delivery"
    ]


def test_an_input_that_acknowledges_can_wait_for_delivery():
    assert said("[{inputs: [{type: bucket, connection: w, ack: on_delivery}]}]") == []


def test_rules_are_judged_although_the_components_have_faults_of_their_own():
    assert said(
        """
        - id: a
          inputs:
            - {type: gate, ack: on_delivery, tokn: x}
            - {type: gate, token: 3}
            - {type: pipe, upstream: b, buffer: 3}
            - {type: pipe, upstream: c, envelop: {}}
        - id: b
          inputs: [{type: pipe, upstream: a, ack: on_dlivery}]
        """
    ) == [
        "4:33: pipelines[0].inputs[0].ack:"
        " a message from 'gate' is acknowledged to nobody, so 'ack' cannot be on_delivery",
        "4:46: pipelines[0].inputs[0].tokn: unknown key 'tokn'",
        "5:15: pipelines[0].inputs[1]:"
        " a pipeline has at most one gate input, and inputs[0] (gate, line 4) is one",
        "5:35: pipelines[0].inputs[1].token:"
        " expected a string, usually a ${NAME} reference, found a number",
        "6:38: pipelines[0].inputs[2].upstream:"
        " these pipelines feed each other in a circle: a -> b -> a",
        "6:49: pipelines[0].inputs[2].buffer: expected an object whose 'type' is one of static, tumbling,"
        " batch, found a number",
        "7:38: pipelines[0].inputs[3].upstream: there is no pipeline 'c' to read from",
        "7:41: pipelines[0].inputs[3].envelop: unknown key 'envelop'",
        "9:51: pipelines[1].inputs[0].ack:"
        ' expected one of on_receipt, on_delivery, found "on_dlivery"',
    ]
