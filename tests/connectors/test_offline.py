"""What inputs and outputs say of themselves, for who tries a config offline, is what they do."""

import math

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.component.families import Input, Output
from headrace.compiler.edges import Source
from headrace.compiler.errors import BatchFailed
from headrace.compiler.runtime.failureinbox import FailureInbox
from headrace.compiler.runtime.inbox import Inbox
from headrace.connectors.clickhouse import ClickHouseOutput
from headrace.connectors.dummy import Dummy, DummyInput
from headrace.connectors.failuresinput import FailuresInput
from headrace.connectors.http import HttpInput
from headrace.connectors.http.source import Posts
from headrace.connectors.kafka import KafkaInput, KafkaOutput
from headrace.connectors.kafka.source import KafkaSource
from headrace.connectors.mqtt import MqttInput, MqttOutput
from headrace.connectors.mqtt.source import MqttSource
from headrace.connectors.nats import NatsInput
from headrace.connectors.nats.source import NatsSource
from headrace.connectors.opcua import OpcuaInput
from headrace.connectors.opcua.source import OpcuaSource
from headrace.connectors.pipelineinput import PipelineInput
from headrace.connectors.postgres import PostgresOutput
from headrace.connectors.redis import RedisInput
from headrace.connectors.redis.source import RedisSource
from headrace.connectors.s3 import S3Output
from headrace.connectors.stdout import StdoutOutput
from tests.doubles import StubContext

S3 = {"connection": "c", "prefix": "p", "rotate": {"max_rows": 1}}

NEEDED = {"clickhouse": {"order_by": ["temp"]}}
"""What a table needs beside its columns."""

SOURCES: dict[type[Input], type[Source]] = {
    DummyInput: Dummy,
    FailuresInput: FailureInbox,
    HttpInput: Posts,
    KafkaInput: KafkaSource,
    MqttInput: MqttSource,
    NatsInput: NatsSource,
    OpcuaInput: OpcuaSource,
    PipelineInput: Inbox,
    RedisInput: RedisSource,
}


def test_every_input_is_here() -> None:
    assert {*catalogue().family("input").values()} == {*SOURCES}


@pytest.mark.parametrize("kind", SOURCES, ids=lambda kind: kind.kind)
def test_an_input_says_whether_what_arrives_is_bytes(kind: type[Input]) -> None:
    assert kind.is_raw == SOURCES[kind].is_raw


@pytest.mark.parametrize("kind", SOURCES, ids=lambda kind: kind.kind)
def test_an_input_that_a_server_feeds_has_a_connection(kind: type[Input]) -> None:
    assert (kind.fed_by == "server") == ("connection" in kind.options())


@pytest.mark.parametrize(("ack", "is_kept"), [("on_receipt", False), ("on_delivery", True)])
def test_mqtt_keeps_what_comes_meanwhile_if_the_session_is_kept(ack: str, is_kept: bool) -> None:
    told = {"connection": "c", "topic": "t", "qos": "at_least_once", "ack": ack}

    assert MqttInput.load(told).is_kept() is is_kept


def test_kafka_keeps_what_comes_meanwhile() -> None:
    assert KafkaInput.load({"connection": "c", "topic": "t", "group": "g"}).is_kept()


@pytest.mark.parametrize(("qos", "seconds"), [("at_most_once", 0), ("exactly_once", 30)])
def test_mqtt_waits_where_somebody_confirms(qos: str, seconds: float) -> None:
    assert (
        MqttOutput.load({"connection": "c", "topic": "t", "qos": qos}).outlasts_seconds() == seconds
    )


def test_kafka_waits_for_half_a_minute() -> None:
    assert KafkaOutput.load({"connection": "c", "topic": "t"}).outlasts_seconds() == 30


def test_no_other_waits_for_a_time() -> None:
    kinds: dict[str, type[Output]] = catalogue().family("output")

    waiting = {kind for kind, each in kinds.items() if "outlasts_seconds" in vars(each)}

    assert waiting == {"kafka", "mqtt", "s3", "stdout"}
    assert S3Output.load(S3).outlasts_seconds() == StdoutOutput().outlasts_seconds() == math.inf


@pytest.mark.parametrize("table", [PostgresOutput, ClickHouseOutput], ids=lambda kind: kind.kind)
def test_a_table_refuses_what_fits_no_column_before_anything_is_sent(table: type[Output]) -> None:
    columns = [{"name": "temp", "type": "integer"}]
    told = {"connection": "c", "table": "t", "columns": columns}
    fits = table.load({**told, **NEEDED.get(table.kind, {})}).fits(StubContext())
    assert fits is not None

    fits([{"temp": 20}])
    with pytest.raises(BatchFailed, match="column 'temp': expected an integer, found a string"):
        fits([{"temp": "hot"}])


def test_only_tables_refuse_what_has_neither_a_template_nor_columns() -> None:
    kinds: dict[str, type[Output]] = catalogue().family("output")
    by_option = {kind for kind, each in kinds.items() if {"template", "csv"} & {*each.options()}}

    refusing = {kind for kind, each in kinds.items() if each.fits is not Output.fits}

    assert refusing - by_option == {"postgres", "clickhouse"}
    assert S3Output.load(S3).fits(StubContext()) is None
    assert MqttOutput.load({"connection": "c", "topic": "t"}).fits(StubContext()) is None
