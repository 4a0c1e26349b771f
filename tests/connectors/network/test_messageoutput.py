"""Outputs that send the text of a template for each message, against real servers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Output
from headrace.compiler.component.fieldflow import FieldUse
from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.edges import AwaitingSink
from headrace.compiler.errors import BatchFailed
from headrace.compiler.largejson import LargeList
from headrace.connectors.http import HttpOutput
from headrace.connectors.kafka import KafkaOutput
from headrace.connectors.mqtt import MqttOutput
from headrace.connectors.nats import NatsOutput
from headrace.connectors.redis import RedisOutput
from tests import http_sides, kafka_sides, mqtt_sides, nats_sides, redis_sides
from tests.connected import started
from tests.doubles import StubContext, refusals
from tests.peer import peer
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.redis import Redis
from tests.virtual import virtual

TEMPLATE = "{machine}: {reading.temp} °C"
BATCH = [
    {"machine": "m1", "reading": {"temp": 21.5}},
    {"machine": 'the "old" one\n', "reading": {"temp": -3}},
    {"machine": True, "reading.temp": "warm"},
]
TEXTS = [text.encode() for text in ("m1: 21.5 °C", 'the "old" one\n: -3 °C', "true: warm °C")]
LACKING = [*BATCH, {"machine": "m2", "reading": {"temp": None}}, *BATCH]
LACKS = "field 'reading.temp' is missing or null"
KINDS: list[tuple[type[Output], dict[str, Any]]] = [
    (HttpOutput, {"url": "http://collector/in", "body": "message"}),
    (KafkaOutput, {"connection": "plant", "topic": "t"}),
    (MqttOutput, {"connection": "bus", "topic": "t"}),
    (NatsOutput, {"connection": "bus", "subject": "t"}),
    (RedisOutput, {"connection": "cache", "channel": "t"}),
]


async def written(sink: AwaitingSink, batch: list[Any]) -> None:
    """Write a batch as the output's worker does."""
    if (rest := sink.begin(batch)) is not None:
        await rest()


async def fails(sink: AwaitingSink, batch: list[Any]) -> str:
    """Return why a batch fails."""
    with pytest.raises(BatchFailed) as failed:
        await written(sink, batch)
    return str(failed.value)


async def test_http_sends_each_text_by_itself_as_plain_text():
    async with peer() as server:
        options = {"url": server.url(), "body": "message", "template": TEMPLATE}
        async with http_sides.sink(options) as sink:
            assert await fails(sink, LACKING) == LACKS
            assert server.bodies() == []

            await written(sink, BATCH)

    assert server.bodies() == TEXTS
    sent = {request.headers["Content-Type"] for request in server.received}
    assert sent == {"text/plain; charset=utf-8"}


async def test_http_is_json_without_a_template():
    async with peer() as server, http_sides.sink({"url": server.url()}) as sink:
        await written(sink, [1])

    assert server.received[0].headers["Content-Type"] == "application/json"


async def test_kafka_writes_texts_as_values(kafka: Kafka):
    options = {"template": TEMPLATE, "key": "machine"}
    ctx = kafka_sides.context(kafka.bootstrap)
    async with kafka_sides.started(kafka_sides.sink(ctx, "texts", **options)) as sink:
        assert await fails(sink, LACKING) == LACKS
        await written(sink, BATCH)

    found = await kafka_sides.records(kafka.bootstrap, "texts")
    assert [record.value for record in found] == TEXTS
    assert found[0].key == b"m1"


@pytest.mark.parametrize("qos", ["at_most_once", "at_least_once"])
async def test_mqtt_publishes_texts(mosquitto: Mosquitto, qos: str):
    topic = f"texts/{qos}"
    ctx = mqtt_sides.context(mosquitto)
    async with mqtt_sides.listening(mosquitto, topic, 1) as client:
        async with started(mqtt_sides.sink(ctx, topic, qos=qos, template=TEMPLATE)) as sink:
            assert await fails(sink, LACKING) == LACKS
            await written(sink, BATCH)
        messages = await mqtt_sides.heard(client, len(BATCH))

    assert [message.payload for message in messages] == TEXTS


async def test_nats_publishes_texts(nats_server: Nats):
    async with nats_sides.peer(nats_server) as reader:
        await reader.subscribe("texts.*")
        ctx = nats_sides.context(nats_server)
        async with nats_sides.sink(ctx, "texts.a", template=TEMPLATE) as sink:
            assert await fails(sink, LACKING) == LACKS
            await written(sink, BATCH)
        found = [await reader.next_payload() for _ in BATCH]

    assert found == [("texts.a", text) for text in TEXTS]


async def test_redis_publishes_texts_also_of_a_large_batch(redis_server: Redis):
    large = [{"machine": n, "reading": {"temp": 1}} for n in range(LARGE_BATCH + 1)]
    with redis_sides.listening(redis_server, "texts") as published:
        async with started(redis_sides.sink(redis_server, "texts", template=TEMPLATE)) as sink:
            assert await fails(sink, LACKING) == LACKS
            assert await fails(sink, [*large, {}]) == (
                "fields 'machine' and 'reading.temp' are missing or null"
            )
            await written(sink, BATCH)
            await written(sink, large)
        found = [next(published) for _ in range(len(BATCH) + len(large))]

    assert found == [*TEXTS, *(f"{n}: 1 °C".encode() for n in range(len(large)))]


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_with_a_template_its_fields_are_all_that_is_read(kind, options):
    plain = kind.load(options)
    made = kind.load(options | {"template": TEMPLATE})

    assert plain.field_use() == FieldUse.unknown()
    assert plain.fits(StubContext()) is None
    assert made.field_use() == FieldUse.of(reads=["machine", "reading.temp"])
    assert made.dump()["template"] == TEMPLATE


def test_a_key_and_headers_are_read_beside_a_template():
    made = KafkaOutput.load(
        {
            "connection": "plant",
            "topic": "t",
            "template": "{a}",
            "key": "id",
            "headers": {"unit": "m.unit"},
        }
    )

    assert made.field_use() == FieldUse.of(reads=["a", "id", "m.unit"])


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_whether_a_batch_can_be_sent_is_known_before(kind, options):
    fits = kind.load(options | {"template": TEMPLATE}).fits(StubContext())

    assert fits(BATCH) == TEXTS
    with pytest.raises(BatchFailed, match=LACKS):
        fits(LACKING)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_what_is_no_template_is_refused(kind, options):
    assert refusals(kind, options | {"template": "{a"}) == [
        "template: a '{' is not closed: character 1"
    ]


def test_a_template_is_no_body_of_a_whole_batch():
    assert refusals(HttpOutput, {"url": "http://collector/in", "template": "{a}"}) == [
        "template: a template is filled in with one message, and a request has a batch"
    ]


@virtual
async def test_each_message_that_lacks_a_field_is_named_also_of_a_large_batch():
    bodies = HttpOutput.load(
        {"url": "http://collector/in", "body": "message", "template": TEMPLATE}
    ).bodies(StubContext(clock=Clock(asyncio.get_running_loop())))

    with pytest.raises(BatchFailed, match=LACKS) as failed:
        await bodies.of_any(LACKING)
    assert failed.value.refused == {3: LACKS}

    large = LargeList()
    large += BATCH * LARGE_BATCH
    for place in (7, 4_000):
        large[place] = {"machine": "m"}
    with pytest.raises(BatchFailed, match=LACKS) as failed:
        await bodies.of_any(large)
    assert failed.value.refused == {7: LACKS, 4_000: LACKS}
