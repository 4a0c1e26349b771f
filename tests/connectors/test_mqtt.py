"""The configs of the `mqtt` components: what loads, what is refused, who they are to a broker."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.errors import BuildRefused, Refused
from headrace.compiler.runtime.engine import Engine
from headrace.connectors.mqtt import MqttConnection, MqttInput, MqttOutput
from tests.doubles import StubContext, refusals
from tests.mqtt_sides import context, sink, source
from tests.promises import promise
from tests.services.mosquitto import Mosquitto
from tests.stand_ins import Kept, pipeline, takes

IN = {"connection": "bus", "topic": "plant/3"}


def test_what_is_left_out_has_the_established_defaults():
    assert MqttConnection.load({"host": "broker"}).port == 1883
    read, written = MqttInput.load(IN), MqttOutput.load(IN)
    assert (read.qos, read.max_batch, read.ack) == ("at_most_once", 1, "on_receipt")
    assert (written.qos, written.retain) == ("at_most_once", False)


def test_credentials_are_shown_as_templates():
    document = {"host": "broker", "username": "${WHO}", "password": "${WORD}"}

    assert MqttConnection.load(document).dump() == {"type": "mqtt", **document}


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        ({}, "host: this key is required"),
        ({"host": " "}, "host: this must not be blank"),
        (
            {"host": "h", "port": 65536},
            "port: expected an integer of at least 0 and of at most 65535, found 65536",
        ),
    ],
)
def test_a_connection_that_leads_nowhere_is_refused(document, refusal):
    assert refusals(MqttConnection, document) == [refusal]


@pytest.mark.parametrize(
    "topic",
    [
        "a",
        "/",
        "a//b",
        "+",
        "#",
        "a/+/b/#",
        "+/+",
        "$SYS/#",
        "$share/g/a/#",
        "$share/g/+",
        "Wärme/ü",
    ],
)
def test_a_filter_may_have_wildcards_that_are_levels_and_a_group(topic):
    assert refusals(MqttInput, {**IN, "topic": topic}) == []


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("", "topic: this must not be blank"),
        ("a#", 'topic: "a#" has a # that is not the last level'),
        ("a/#/b", 'topic: "a/#/b" has a # that is not the last level'),
        ("a+/b", 'topic: "a+/b" has a + that is not a level of its own'),
        ("a/b+", 'topic: "a/b+" has a + that is not a level of its own'),
        ("$share", 'topic: "$share" is not $share/<group>/<filter>'),
        ("$share/g", 'topic: "$share/g" is not $share/<group>/<filter>'),
        ("$share/g/", 'topic: "$share/g/" is not $share/<group>/<filter>'),
        ("$share//a", 'topic: "$share//a" is not $share/<group>/<filter>'),
        ("$share/+/a", 'topic: "$share/+/a" is not $share/<group>/<filter>'),
        ("$share/g/a#", 'topic: "$share/g/a#" has a # that is not the last level'),
        ("a\0b", 'topic: "a\\u0000b" holds a character that no topic may have'),
        ("a\tb", 'topic: "a\\tb" holds a character that no topic may have'),
        ("a\x85b", 'topic: "a\\x85b" holds a character that no topic may have'),
        ("a\U0010ffffb", 'topic: "a\\U0010ffffb" holds a character that no topic may have'),
    ],
)
def test_a_filter_that_brokers_do_not_take_is_refused(topic, why):
    assert refusals(MqttInput, {**IN, "topic": topic}) == [why]


def test_a_topic_has_a_length_that_a_packet_can_tell():
    assert refusals(MqttOutput, {**IN, "topic": "ü" * 30_000}) == []
    (refusal,) = refusals(MqttOutput, {**IN, "topic": "ü" * 30_001})
    assert refusal.endswith("is too long: at most 60,000 bytes")


@pytest.mark.parametrize("topic", ["a/+", "#", "a#b"])
def test_an_output_publishes_to_one_topic(topic):
    assert refusals(MqttOutput, {**IN, "topic": topic}) == [
        f'topic: "{topic}" is a filter, and a message is published to one topic'
    ]


@promise("delivery.refused.on_delivery")
@pytest.mark.parametrize("options", [{}, {"qos": "at_most_once"}])
def test_on_delivery_needs_a_qos_that_is_acknowledged(options):
    assert refusals(MqttInput, {**IN, "ack": "on_delivery", **options}) == [
        "qos: with 'qos' at_most_once the broker forgets a message when it has sent it: there is"
        " nothing to acknowledge on_delivery"
    ]
    assert refusals(MqttInput, {**IN, "ack": "on_delivery", "qos": "at_least_once"}) == []


@pytest.mark.parametrize(("given", "missing"), [("username", "password"), ("password", "username")])
def test_half_a_credential_is_told_without_building(given, missing):
    half = MqttConnection.load({"host": "broker", given: "${HALF}"})

    (fault,) = half.examine(CheckContext())

    assert fault.message == f"the connection has a '{given}' and no '{missing}'"
    assert fault.path == (given,)


@pytest.mark.parametrize("credential", [{}, {"username": "me", "password": "s3cret"}])
def test_a_whole_credential_is_fine_and_so_is_none(credential):
    assert list(MqttConnection.load({"host": "broker", **credential}).examine(CheckContext())) == []


@pytest.mark.parametrize(("given", "missing"), [("username", "password"), ("password", "username")])
async def test_half_a_credential_is_refused_when_it_is_used(given, missing):
    half = MqttConnection.load({"host": "broker", given: "half"})

    with pytest.raises(BuildRefused) as refused:
        MqttInput.load(IN).source(StubContext(connections={"bus": half}))

    assert str(refused.value) == f"the connection has a '{given}' and no '{missing}'"
    assert refused.value.fault.path == ("connection",)


async def test_the_client_id_is_made_of_pipeline_and_topic(mosquitto: Mosquitto):
    ctx = context(mosquitto)

    source(ctx, "a/#")
    sink(ctx, "a/b")

    where = f"{mosquitto.host}:{mosquitto.port}"
    assert ctx.claims == [
        f"the client id 'headrace-p1-a/**' at {where}",
        f"the client id 'headrace-p1-a/b-out' at {where}",
    ]


def test_two_of_a_pipeline_may_not_have_one_topic_of_one_connection():
    (claim,), (other,) = MqttInput.load(IN).claims(), MqttOutput.load(IN).claims()

    assert claim == other == "the topic 'plant/3' of 'bus'"


async def test_two_connections_to_one_broker_are_one_client(mosquitto: Mosquitto):
    bus = MqttConnection.load({"host": mosquitto.host, "port": mosquitto.port})
    it = Engine(Clock(asyncio.get_running_loop()), connections={"bus": bus, "again": bus})
    inputs = [MqttInput.load(IN), MqttInput.load({**IN, "connection": "again"})]

    with pytest.raises(Refused) as refused:
        await it.compile(pipeline("p", inputs, [], [takes(Kept())]))

    where = f"{mosquitto.host}:{mosquitto.port}"
    assert [each.message for each in refused.value.diagnostics] == [
        f"the client id 'headrace-p-plant/3' at {where} is taken by 'p' inputs[0]:"
        " each would cut off the other"
    ]
    await it.close()


async def test_a_client_id_is_free_again_when_its_pipeline_is_gone(mosquitto: Mosquitto):
    bus = MqttConnection.load({"host": mosquitto.host, "port": mosquitto.port})
    it = Engine(Clock(asyncio.get_running_loop()), connections={"bus": bus})

    for _ in range(2):
        await it.compile(pipeline("p", [MqttInput.load(IN)], [], [MqttOutput.load(IN)]))
        await it.dispose("p")

    assert [*it.names()] == []
    await it.close()
