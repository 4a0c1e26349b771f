"""The `kafka` components: what a config may say, and what an address is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compiler.errors import BatchFailed, BuildRefused
from headrace.connectors.kafka import KafkaConnection, KafkaInput, KafkaOutput
from headrace.connectors.kafka.metadata import brokers
from tests.doubles import StubContext, refusals
from tests.kafka_sides import context, sink, source

SASL = {"sasl_mechanism": "PLAIN", "username": "me", "password": "${PASSWORD}"}


def test_an_input_reads_one_message_at_a_time_from_now_on_by_default():
    config = {"connection": "plant", "topic": "t", "group": "g"}
    it = KafkaInput.load(config)

    assert (it.max_batch, it.start_at) == (1, "latest")
    assert source(context("a:1"), "t").max_batch == 1


@pytest.mark.parametrize(("given", "echoed"), [({}, None), ({"start_at": "latest"}, "latest")])
def test_an_echo_always_has_where_to_begin(given, echoed):
    config = {"connection": "plant", "topic": "t", "group": "g", **given}

    echo = KafkaInput.load(config).dump()

    assert echo == {"type": "kafka", **config, "start_at": echoed}
    del echo["type"]
    assert KafkaInput.load(echo) == KafkaInput.load(config)


def test_an_output_has_no_key_and_waits_for_all_replicas_by_default():
    it = KafkaOutput.load({"connection": "plant", "topic": "t"})

    assert (it.key, it.headers, it.compression, it.acks) == (None, None, "none", "all")


@pytest.mark.parametrize(
    ("option", "refusal"),
    [
        ({"acks": 1}, "acks: expected one of all, leader, none, found 1"),
        (
            {"compression": "zip"},
            "compression: expected one of none, gzip, snappy, lz4, zstd, found",
        ),
        ({"headers": {"h": ""}}, "headers.h: this must not be blank"),
        ({"key": 1}, "key: expected a string that is not blank, found 1"),
        ({"topic": " "}, "topic: this must not be blank"),
        ({"topic": "a b"}, 'topic: "a b" cannot be the name of a topic'),
        ({"topic": "Größe"}, 'topic: "Größe" cannot be the name of a topic'),
        ({"topic": ".."}, 'topic: ".." cannot be the name of a topic'),
        ({"topic": "a" * 250}, "topic: "),
    ],
)
def test_what_no_output_can_do_is_refused(option, refusal):
    config = {"connection": "plant", "topic": "t", **option}

    [told] = refusals(KafkaOutput, config)

    assert told.startswith(refusal)


def test_headers_of_null_are_none():
    config = {"connection": "plant", "topic": "t"}

    it = KafkaOutput.load({**config, "headers": None})

    assert it == KafkaOutput.load(config)
    assert it.dump() == {"type": "kafka", **config}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["username"], "'username' needs 'sasl_mechanism' and 'password' beside it"),
        (["username", "password"], "'username' and 'password' need 'sasl_mechanism' beside it"),
        (
            ["sasl_mechanism", "username"],
            "'sasl_mechanism' and 'username' need 'password' beside it",
        ),
    ],
)
def test_half_a_credential_is_refused(given, told):
    half = {name: SASL[name] for name in given}

    assert refusals(KafkaConnection, {"brokers": "a:1", **half}) == [f": {told}"]


@pytest.mark.parametrize("brokers", ["a", "", "a:1,b", "a:1,,b:2", "a..b:1"])
def test_brokers_that_cannot_be_are_refused_before_anybody_goes_there(brokers):
    [told] = refusals(KafkaConnection, {"brokers": brokers})

    assert "is no address of a broker" in told or "must not be" in told
    assert told.startswith("brokers: ")


@pytest.mark.parametrize("brokers", ["a", "", "a:x,"])
def test_brokers_that_are_open_in_part_are_judged_when_they_are_known(brokers):
    assert refusals(KafkaConnection, {"brokers": f"{brokers}${{REST}}"}) == []


def test_a_whole_credential_is_taken_with_and_without_tls():
    assert refusals(KafkaConnection, {"brokers": "a:1", **SASL}) == []
    assert refusals(KafkaConnection, {"brokers": "a:1", "tls": True, **SASL}) == []


def test_brokers_are_told_apart():
    found = brokers("kafka-1.local:9092, [::1]:9093 ,10.0.0.1:1", "")

    assert found == [("kafka-1.local", 9092), ("::1", 9093), ("10.0.0.1", 1)]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "kafka",
        "kafka:",
        ":9092",
        "kafka:0",
        "kafka:65536",
        "kafka:x",
        "a b:1",
        "k:1/x",
        "a..b:1",
    ],
)
def test_what_is_no_address_is_named(bad):
    with pytest.raises(BuildRefused) as refused:
        brokers(f"good:1,{bad}", f"good:1,{bad}")

    fault = refused.value.fault
    assert fault.code == "not-an-address"
    assert fault.message == f"'{bad}' in 'brokers' is no address of a broker"
    assert fault.path == ("connection",)


@pytest.mark.parametrize(
    ("template", "value", "said"),
    [
        ("a:1,${PASSWORD}", "a:1,s3cret", "'${PASSWORD}' in 'brokers' is no address of a broker"),
        ("${PASSWORD}", "a:1,s3cret", "part 2 of '${PASSWORD}' is no address of a broker"),
    ],
)
def test_what_a_reference_stands_for_is_not_shown(template, value, said):
    with pytest.raises(BuildRefused) as refused:
        brokers(value, template)

    assert str(refused.value) == said


@given(st.text())
def test_any_text_is_a_list_of_brokers_or_refused(text):
    try:
        found = brokers(text, text)
    except BuildRefused:
        return
    assert all(host and 0 < port < 65536 for host, port in found)


def test_both_sides_refuse_a_connection_with_a_malformed_address():
    ctx = context("${PASSWORD}")

    for build in (source, sink):
        with pytest.raises(BuildRefused):
            build(ctx, "t")


def test_a_credential_shows_nowhere():
    ctx = StubContext(
        connections={"plant": KafkaConnection.load({"brokers": "a:1", **SASL})},
        secrets={"PASSWORD": "s3cret!"},
    )
    cluster = ctx.connection(KafkaConnection, "plant").cluster(ctx)

    assert cluster.options()["sasl_plain_password"] == "s3cret!"
    assert "s3cret!" not in repr(vars(cluster))
    assert "('a', 1)" not in repr(cluster)


@pytest.mark.parametrize("topic", ["a", ".a", "...", "plant.readings_1-b", "a" * 249])
def test_a_topic_is_what_brokers_take(topic):
    assert refusals(KafkaOutput, {"connection": "plant", "topic": topic}) == []
    assert refusals(KafkaInput, {"connection": "plant", "topic": topic, "group": "g" * 1000}) == []


async def test_a_record_is_too_large_with_its_headers_before_it_is_made():
    names = {f"h{n}": "field" for n in range(2000)}
    it = sink(context("a:1"), "t", headers=names)

    with pytest.raises(BatchFailed, match="more than 100,000,000 bytes"):
        await it.write([{"field": "x" * 900_000}])
    await it.finish()
