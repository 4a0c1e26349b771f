"""What `headrace check` says of an MQTT input whose messages are held: a broker that waits for them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.compiler.component.catalogue import scan
from headrace.compiler.config.program import load_program
from headrace.compiler.schema.records import dumped
from headrace.compiler.text.diagnostics import Diagnostic
from headrace.compiler.text.documents import read
from headrace.compiler.text.render import Style, render
from headrace.connectors.mqtt import MqttInput
from headrace.connectors.mqtt.source import REMEDIES
from tests.compiler.catalogued import plain
from tests.doubles import refusals
from tests.operators.gated import gated

CATALOGUE = scan("headrace.operators", "headrace.connectors")
WINDOW = "{type: buffer, seconds: 10, max_messages: 1000}"
MEANS = "{type: reducer, aggregations: [{function: count, as: n}]}"
MAP = "{type: map, mappings: [{type: copy, from: a}]}"
SCRIPT = "{type: script, source: {type: inline, code: 'emit(msg)'}}"
HTTP = "{type: http, verb: POST, url: 'http://127.0.0.1/'}"


def warned(
    *transforms: str, options: str = "", ack: str = "on_delivery", qos: str = "at_least_once"
) -> list[Diagnostic]:
    """Return the warnings about an input at line 3 with an option more, and transforms from line 5."""
    text = "\n".join(
        [
            "- id: a",
            "  inputs:",
            f"    - {{type: mqtt, connection: bus, topic: t, qos: {qos}, ack: {ack}{options}}}",
            *(["  transforms:"] if transforms else []),
            *(f"    - {each}" for each in transforms),
            "  outputs: [{type: stdout}]",
        ]
    )
    loaded, diagnostics = load_program(read(text, None, "yaml"), CATALOGUE)
    assert loaded is not None, plain(diagnostics)
    return [each for each in diagnostics if each.code == "starves-broker"]


def said(*transforms: str, **more: Any) -> list[str]:
    """Return what holds messages, according to the warnings."""
    return [each.message.partition("acknowledged, and ")[2] for each in warned(*transforms, **more)]


def test_it_says_who_holds_and_what_to_do_the_best_first():
    (warning,) = warned(MAP, WINDOW)

    assert (warning.line, warning.path) == (3, "pipelines[0].inputs[0].ack")
    assert warning.message == (
        "the broker sends 20 messages ('in_flight') and no more until some are acknowledged, and"
        " transforms[1] (buffer, line 6) holds them for 10 s"
    )
    assert warning.suggestion == (
        "let the broker have more in flight, in Mosquitto with max_inflight_messages, and say so with"
        " 'in_flight', or acknowledge on_receipt"
    )


@pytest.mark.parametrize("style", ["plain", "terminal", "json"])
def test_the_remedies_are_told_in_every_form(style: Style):
    (warning,) = warned(WINDOW)

    assert REMEDIES in render([warning], style=style)


@pytest.mark.parametrize(
    ("options", "transforms", "holds"),
    [
        ("", ["{type: buffer, size: 21}"], "transforms[0] (buffer, line 5) waits for 21"),
        ("", ["{type: buffer, size: 21, seconds: 2}"], "transforms[0] (buffer, line 5) holds them for 2 s"),
        (", buffer: {type: static, size: 21}", [], "its buffer waits for 21"),
        (", buffer: {type: tumbling, window_seconds: 2}", [], "its buffer holds them for 2 s"),
        (", buffer: {type: batch, size: 21, window_seconds: 2}", [], "its buffer holds them for 2 s"),
        (", in_flight: 5", ["{type: buffer, size: 6}"], "transforms[0] (buffer, line 5) waits for 6"),
    ],
)  # fmt: skip
def test_whatever_holds_more_than_the_broker_sends_is_told_of(options, transforms, holds):
    assert said(*transforms, options=options) == [holds]


@pytest.mark.parametrize(
    ("options", "transforms"),
    [
        ("", [MAP, MEANS]),
        ("", ["{type: buffer, seconds: 1, max_messages: 1000}"]),
        (", buffer: {type: tumbling, window_seconds: 1}", []),
        (", buffer: {type: tumbling, window_seconds: 0}", []),
        (", buffer: {type: batch, size: 100, window_seconds: 0}", []),
    ],
    ids=["nothing is held", "for a second", "for a second", "not at all", "not at all"],
)
def test_what_is_held_for_a_moment_is_not(options, transforms):
    assert said(*transforms, options=options) == []


@pytest.mark.parametrize(
    ("options", "transforms"),
    [
        ("", ["{type: buffer, size: 20}"]),
        ("", ["{type: buffer, seconds: 10, max_messages: 20}"]),
        (", buffer: {type: batch, size: 20, window_seconds: 60}", []),
        (", buffer: {type: static, size: 0}, in_flight: 1", []),
        (", in_flight: 100", ["{type: buffer, size: 100}"]),
    ],
)
def test_nor_is_a_number_that_the_broker_sends(options, transforms):
    assert said(*transforms, options=options) == []


def test_only_what_is_acknowledged_on_delivery_is_waited_for():
    assert said(WINDOW, ack="on_receipt") == []
    assert said(WINDOW, ack="on_receipt", qos="at_most_once") == []


def test_whoever_says_that_more_is_in_flight_is_believed_where_a_time_ends_the_wait():
    assert said(WINDOW, options=", in_flight: 21") == []
    assert said("{type: buffer, seconds: 10, size: 1000}", options=", in_flight: 21") == []
    assert said("{type: buffer, size: 22}", options=", in_flight: 21") == [
        "transforms[0] (buffer, line 5) waits for 22"
    ]


@pytest.mark.parametrize("number", [1, 20])
def test_whoever_says_that_it_is_the_usual_number_or_less_is_warned_as_well(number):
    assert said(WINDOW, options=f", in_flight: {number}") == [
        "transforms[0] (buffer, line 5) holds them for 10 s"
    ]


def test_a_gate_holds_until_it_opens_and_a_number_only_if_it_stays_shut():
    gate = gated(max_messages=1000).holder()

    fixed = {"connection": "bus", "topic": "t", "qos": "at_least_once", "ack": "on_delivery"}
    usual, more = (
        MqttInput.load(fixed | {"in_flight": number}).starved_by(gate) for number in (20, 21)
    )

    assert usual is not None
    assert usual.message.endswith(" holds them until its gate opens")
    assert more is None


def test_one_warning_for_an_input_is_enough():
    assert said(
        "{type: buffer, size: 500}", WINDOW, options=", buffer: {type: static, size: 100}"
    ) == ["its buffer waits for 100"]


@pytest.mark.parametrize("what", [SCRIPT, HTTP], ids=["script", "http"])
def test_nothing_is_said_of_what_is_held_behind_what_may_make_many_messages_of_one(what):
    assert said(what, "{type: buffer, size: 500}") == []
    assert said("{type: buffer, size: 500}", what) == [
        "transforms[0] (buffer, line 5) waits for 500"
    ]


@pytest.mark.parametrize("number", [0, 65_536])
def test_a_broker_sends_at_least_one_and_no_more_than_there_are_packet_ids(number):
    document = {"connection": "bus", "topic": "t", "in_flight": number}
    assert refusals(MqttInput, document) == [
        "in_flight: expected an integer of at least 1 and of at most 65535, found " + str(number)
    ]


def test_an_input_that_does_not_tell_is_echoed_as_before():
    document = {"type": "mqtt", "connection": "bus", "topic": "t", "qos": "at_least_once"}
    plain_one = MqttInput.load({key: document[key] for key in ("connection", "topic", "qos")})

    assert plain_one.in_flight == 20
    assert "in_flight" not in dumped(plain_one)
