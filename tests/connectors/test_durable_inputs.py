"""`durable` in a config: where it is refused, and where it is warned of."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.component.families import Input
from headrace.compiler.config.program import load_program
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.compiler.text.documents import read
from headrace.connectors.failuresinput import FailuresInput
from headrace.connectors.kafka import KafkaInput
from headrace.connectors.mqtt import MqttInput
from tests.compiler.catalogued import plain
from tests.doubles import refusals

Json = dict[str, Any]

CATALOGUE = scan("headrace.operators", "headrace.connectors")
MQTT: Json = {"connection": "bus", "topic": "t", "durable": True}
KAFKA: Json = {"connection": "bus", "topic": "t", "group": "g"}
READINGS = {
    "nats": "type: nats, connection: bus, subject: s",
    "redis": "type: redis, connection: bus, channel: c",
    "mqtt": "type: mqtt, connection: bus, topic: t, qos: at_least_once",
    "opcua": "type: opcua, connection: bus, nodes: [{node_id: 'i=1'}]",
    "dummy": "type: dummy, duration: 1",
    "http": "type: http",
}
every_kind = pytest.mark.parametrize("kind", READINGS)


def warned(kind: str, durable: str, transform: str, options: str = "") -> list[Diagnostic]:
    """Return what is said of an input at line 3 that keeps something, and a transform at line 5."""
    text = "\n".join(
        [
            "- id: a",
            "  inputs:",
            f"    - {{{READINGS[kind]}, durable: {durable}{options}}}",
            "  transforms:",
            f"    - {transform}",
            "  outputs: [{type: stdout}]",
        ]
    )
    loaded, diagnostics = load_program(read(text, None, "yaml"), CATALOGUE)
    assert loaded is not None, plain(diagnostics)
    return [*diagnostics]


@every_kind
def test_a_buffer_that_waits_for_more_than_may_be_kept_is_warned_of(kind: str) -> None:
    [warning] = warned(kind, "{max_bytes: 1000}", "{type: buffer, size: 501}")

    assert (warning.code, warning.path) == (
        "keeps-too-little",
        "pipelines[0].inputs[0].durable.max_bytes",
    )
    assert warning.message == (
        "at most 1,000 bytes are kept, and transforms[0] (buffer, line 5) waits for 501, which take more:"
        " it hands on what it has when no more may be kept"
    )
    assert warning.suggestion == "keep more, or wait for fewer messages"


@every_kind
@pytest.mark.parametrize(
    ("durable", "transform"),
    [
        ("{max_bytes: 1000}", "{type: buffer, size: 500}"),
        ("{max_bytes: 1000}", "{type: buffer, size: 501, seconds: 60}"),
        ("{max_bytes: 1000}", "{type: buffer, seconds: 60, max_messages: 501}"),
        ("true", "{type: buffer, size: 1000000}"),
    ],
    ids=["they may fit", "a time ends it", "a time ends it", "a gigabyte is kept"],
)
def test_one_that_ends_all_the_same_is_not(kind: str, durable: str, transform: str) -> None:
    assert warned(kind, durable, transform) == []


def test_what_an_input_holds_itself_is_looked_at_as_well() -> None:
    options = ", buffer: {type: static, size: 501}"
    [warning] = warned("nats", "{max_bytes: 1000}", "{type: splitter, out_size: 1}", options)

    assert warning.code == "keeps-too-little"
    assert "its buffer waits for 501" in warning.message


def test_a_durable_input_starves_no_broker() -> None:
    assert warned("mqtt", "true", "{type: buffer, size: 21}") == []
    assert warned("mqtt", "true", "{type: buffer, seconds: 60, max_messages: 1000}") == []


def test_what_is_kept_is_not_acknowledged_on_delivery() -> None:
    document = MQTT | {"qos": "at_least_once", "ack": "on_delivery"}

    assert refusals(MqttInput, document) == [
        "ack: with 'durable' a message is acknowledged when it is on the disk, and not on_delivery"
    ]


@pytest.mark.parametrize("more", [{}, {"qos": "at_most_once"}], ids=["by default", "as written"])
def test_what_a_broker_forgets_when_it_has_sent_it_is_not_kept(more: Json) -> None:
    assert refusals(MqttInput, MQTT | more) == [
        "qos: with 'qos' at_most_once the broker forgets a message when it has sent it: there is nothing to"
        " acknowledge when it is on the disk"
    ]


@pytest.mark.parametrize("durable", [True, {}, {"max_bytes": 1}], ids=str)
@pytest.mark.parametrize(
    ("kind", "document", "why"),
    [
        (
            KafkaInput,
            KAFKA,
            "the topic keeps what is not read yet: 'ack: on_delivery' has a restart read it again",
        ),
        (FailuresInput, {}, "failures are told of, and none is kept"),
    ],
    ids=["kafka", "failures"],
)
def test_an_input_that_keeps_nothing_says_why(
    kind: type[Input], document: Json, why: str, durable: Json | bool
) -> None:
    assert refusals(kind, document) == []
    [refused] = refusals(kind, document | {"durable": durable})

    assert refused.startswith("durable: ")
    assert why in refused


@pytest.mark.parametrize("durable", [False, 0, "yes", {"max_bytes": 0}, {"size": 1}], ids=str)
def test_it_is_true_or_says_how_much(durable: object) -> None:
    [refused] = refusals(MqttInput, MQTT | {"qos": "at_least_once", "durable": durable})

    assert refused.startswith("durable")
