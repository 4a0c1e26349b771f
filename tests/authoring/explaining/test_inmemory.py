"""What is in memory at most, and what a kill takes of it: sums over what the parts declare."""

from __future__ import annotations

import pytest

from headrace.authoring.configfiles import ConfigFiles, load_config
from headrace.authoring.explaining.inmemory import Amount
from tests.authoring.explaining.configs import GOLDEN, explained_text, known

KAFKA = "{type: kafka, connection: log, topic: t, group: g, ack: on_delivery}"


def told(inputs: str, transforms: str = "", outputs: str = "{type: stdout}", more: str = ""):
    pipeline = f"{{id: a, inputs: [{inputs}], transforms: [{transforms}], outputs: [{outputs}]}}"
    return explained_text(f"- {pipeline}{more}")[0].in_memory


def said(amounts: list[Amount]) -> list[str]:
    return list(map(str, amounts))


def test_what_waits_is_before_the_pipeline_in_it_held_and_with_its_readers():
    held = told(
        "{type: http, capacity: 10}",
        "{type: buffer, size: 7}, {type: buffer, seconds: 1, max_messages: 5}",
        more="\n- {id: b, inputs: [{type: pipeline, upstream: a}]}",
    )

    assert said(held.waits) == ["26 posts", "16 batches", "12 messages", "100 batches in 'b'"]
    assert said(held.kill_loses) == ["26 posts", "16 batches on their way", "12 messages held"]
    assert said(held.let_go_early) == ["12 messages"]


def test_small_batches_of_a_broker_are_more_at_once():
    nats = "{type: nats, connection: bus, subject: s, max_batch: %d}"

    sizes = {size: said(told(nats % size).waits)[-1] for size in (0, 1, 10, 16, 500)}

    assert sizes == {
        0: "256 batches",
        1: "256 batches",
        10: "25 batches",
        16: "16 batches",
        500: "16 batches",
    }


def test_what_nobody_holds_to_be_delivered_is_not_lost():
    held = told(KAFKA, "{type: buffer, size: 7}")

    assert said(held.kill_loses) == []
    assert "7 messages" in said(held.waits)


def test_what_an_output_gathers_is_lost_unless_it_comes_again():
    s3 = "{type: s3, connection: store, prefix: p, rotate: {max_rows: 9}, max_buffered_bytes: 1048576}"

    dummy = "{type: dummy, duration: 1}"
    assert said(told(KAFKA, outputs=s3).kill_loses) == []
    assert "1 MiB in parts" in said(told(dummy, outputs=s3).kill_loses)
    assert "2 x (1 MiB in parts)" in said(
        told(f"{KAFKA}, {dummy}", outputs=f"{s3}, {s3}").kill_loses
    )


@pytest.mark.parametrize("name", ["brokers", "stores"])
def test_what_an_input_loses_while_its_server_is_away_is_what_is_not_kept_for_it(name: str):
    program = load_config(ConfigFiles(GOLDEN / f"{name}.yaml"), known()).program
    assert program is not None
    inputs = [each for config in program.pipelines for each in config.inputs]

    assert {each.kind for each in inputs} & {"kafka", "opcua"}
    for each in inputs:
        assert each.is_kept() == each.promised().away.startswith("nothing")


def test_one_input_that_loses_is_enough_for_what_is_held():
    held = told(f"{KAFKA}, {{type: dummy, duration: 1}}", "{type: buffer, size: 7}")

    assert said(held.kill_loses) == ["16 batches on their way", "7 messages held"]


def test_a_window_without_a_size_is_bounded_by_its_time_alone():
    held = told("{type: http, buffer: {type: tumbling, window_seconds: 3}}")

    assert "any number of messages that come in 3 s" in said(held.waits)


@pytest.mark.parametrize(
    ("amounts", "both"),
    [
        ((Amount(1, "posts"), Amount(2, "posts")), "3 posts"),
        ((Amount(None, "posts"), Amount(2, "posts")), "any number of posts"),
        ((Amount(1, "batches"), Amount(0, "batches")), "1 batch"),
        ((Amount(5, "bytes"), Amount(1019, "bytes")), "1 KiB"),
        ((Amount(1, "posts", "or so"), Amount(1, "posts", "or so")), "2 x (1 post or so)"),
    ],
)
def test_amounts_add_up_and_bounds_with_a_remark_are_counted(
    amounts: tuple[Amount, Amount], both: str
):
    assert str(amounts[0].plus(amounts[1])) == both
