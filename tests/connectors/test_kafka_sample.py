"""Samples of a Kafka topic, from a real broker that must not notice."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from headrace.compiler.runtime.sampling import Unread
from headrace.connectors.kafka import KafkaConnection, KafkaInput
from headrace.connectors.kafka.member import TOMBSTONE
from tests.kafka_sides import committed, joined, payloads, produce
from tests.kafka_sides import context as context
from tests.kafka_sides import source as member
from tests.sampled import engine, failed, reading, shown, take, taken
from tests.services.authority import Authority
from tests.services.kafka import Kafka
from tests.waiting import until


def plant(brokers: str, **options: Any) -> KafkaConnection:
    return KafkaConnection.load({"brokers": brokers, **options})


def topic(name: str, **options: Any) -> KafkaInput:
    return KafkaInput.load({"connection": "plant", "topic": name, "group": name, **options})


async def groups(brokers: str) -> set[str]:
    """Return the groups that a broker knows of."""
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    try:
        found: Iterable[Any] = await admin.list_consumer_groups()
        return {group for group, *_ in found}
    finally:
        await admin.close()


async def topics(brokers: str) -> list[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    try:
        found: list[str] = await admin.list_topics()
        return found
    finally:
        await admin.close()


async def test_what_is_there_is_read_and_the_broker_knows_no_more_groups_than_before(kafka: Kafka):
    await produce(kafka.bootstrap, "s-there", [b'{"n": %d}' % n for n in range(9)])
    before = await groups(kafka.bootstrap)

    async with engine(plant=plant(kafka.bootstrap)) as it:
        said = await taken(it, topic("s-there", start_at="earliest"), most=3)

        assert said.messages == [{"n": n} for n in range(3)]
        assert said.notes[0].startswith("read with a throwaway consumer group, 'headrace-sample-")
        assert "'start_at' earliest begins with the oldest record" in said.notes[1]
    assert await groups(kafka.bootstrap) == before


async def test_no_group_is_there_while_it_is_read(kafka: Kafka):
    await produce(kafka.bootstrap, "s-while", [b"1"])
    before = await groups(kafka.bootstrap)

    async with (
        engine(plant=plant(kafka.bootstrap)) as it,
        reading(it, topic("s-while", start_at="earliest"), most=2) as asking,
    ):
        assert await groups(kafka.bootstrap) == before
        await produce(kafka.bootstrap, "s-while", [b"2"])
        assert (await asking).messages == [1, 2]


async def test_latest_shows_only_what_is_produced_meanwhile(kafka: Kafka):
    kafka.create_topic("s-latest", partitions=3)
    for partition in range(3):
        await produce(kafka.bootstrap, "s-latest", [b'"before"'], partition=partition)

    async with (
        engine(plant=plant(kafka.bootstrap)) as it,
        reading(it, topic("s-latest"), most=3) as asking,
    ):
        for partition in range(3):
            await produce(kafka.bootstrap, "s-latest", [b'"during"'], partition=partition)
        said = await asking

    assert said.messages == ["during"] * 3
    assert "'start_at' latest shows only what is produced during the sample" in said.notes[1]


async def test_the_groups_own_position_neither_counts_nor_moves(kafka: Kafka):
    await produce(kafka.bootstrap, "s-own", [b"%d" % n for n in range(10)])
    first = member(context(kafka.bootstrap), "s-own", start_at="earliest")
    async with joined(first) as reader:
        arrivals = []
        while len(arrivals) < 10:
            arrivals += await anext(reader)
        first.acknowledge([record for _, record in arrivals[:4]])
        first.stop()
        await anext(reader)

    async with engine(plant=plant(kafka.bootstrap)) as it:
        for ack in ("on_receipt", "on_delivery"):
            said = await taken(it, topic("s-own", start_at="earliest", ack=ack), most=10)
            assert said.messages == [*range(10)]

    assert await committed(kafka.bootstrap, "s-own") == 4


async def test_a_member_of_the_group_gets_everything_and_is_not_divided_anew(kafka: Kafka):
    kafka.create_topic("s-member", partitions=2)
    it = member(context(kafka.bootstrap), "s-member", start_at="earliest")
    async with joined(it) as reader, engine(plant=plant(kafka.bootstrap)) as sampling:
        generation = it._member._consumer._coordinator.generation
        async with reading(sampling, topic("s-member"), most=4) as asking:
            for partition in (0, 1):
                await produce(kafka.bootstrap, "s-member", [b"1", b"2"], partition=partition)
            assert sorted((await asking).messages) == [1, 1, 2, 2]

        assert sorted(await payloads(reader, 4)) == [b"1", b"1", b"2", b"2"]
        assert it._member._consumer._coordinator.generation == generation


async def test_metadata_is_that_of_the_record(kafka: Kafka):
    await produce(kafka.bootstrap, "s-meta", [b'{"n": 1}'], key=b"press")

    async with engine(plant=plant(kafka.bootstrap)) as it:
        config = topic("s-meta", start_at="earliest", envelope={"type": "merge"})
        said = await taken(it, config, most=1)

    about = said.messages[0]["_meta"]
    assert (about["topic"], about["offset"], about["key"]) == ("s-meta", 0, "press")
    assert said.notes[0].split("'")[1] == f"headrace-{about['pipeline']}"


async def test_what_holds_no_message_is_told(kafka: Kafka):
    await produce(kafka.bootstrap, "s-odd", [b"1", None, b"{", b"2"], key=b"press")

    async with engine(plant=plant(kafka.bootstrap)) as it:
        said = await taken(it, topic("s-odd", start_at="earliest"), seconds=2)

    assert said.messages == [1, 2]
    assert "skipped 2 of what arrived" in said.notes
    assert TOMBSTONE in said.notes


async def test_a_topic_that_is_not_there_is_not_made(kafka: Kafka):
    async with engine(plant=plant(kafka.bootstrap)) as it:
        why = await failed(it, topic("s-nowhere"), seconds=1)

    assert why == f"{kafka.bootstrap} has no topic 's-nowhere'"
    assert "s-nowhere" not in await topics(kafka.bootstrap)


async def test_a_broker_that_is_not_there_is_told():
    async with engine(plant=plant("127.0.0.1:1")) as it:
        why = await failed(it, topic("t"), seconds=0.5)

    assert why == "127.0.0.1:1 does not answer: connection refused"


@pytest.mark.long
async def test_a_broker_that_stops_leaves_what_was_read(tmp_path: Path):
    with Kafka(tmp_path) as broker:
        await produce(broker.bootstrap, "t", [b"1", b"2"])
        async with (
            engine(plant=plant(broker.bootstrap)) as it,
            reading(it, topic("t", start_at="earliest"), most=5) as asking,
        ):
            await until(lambda: shown(it) == 2)
            broker.stop()
            said = await asking

    assert said.messages == [1, 2]
    assert said.notes[-1] == f"{broker.bootstrap} does not answer: connection refused"


@pytest.mark.long
async def test_a_wrong_credential_is_told_at_once_and_is_in_no_answer(tmp_path: Path):
    with Kafka(tmp_path, users={"ann": "open-sesame"}) as broker:
        where = broker.bootstrap_for("SASL_PLAINTEXT")
        sasl = {"sasl_mechanism": "PLAIN", "username": "ann", "password": "${PASSWORD}"}
        async with engine({"PASSWORD": "close-sesame"}, plant=plant(where, **sasl)) as it:
            said = await take(it, topic("t"))

    assert isinstance(said, Unread)
    assert said.reason.startswith(f"{where} refuses the credential: ")
    assert "close-sesame" not in str(said)


@pytest.mark.long
@pytest.mark.parametrize("is_plain", [True, False])
async def test_tls_that_does_not_fit_is_told_at_once(
    tmp_path: Path, authority: Authority, is_plain: bool
):
    with Kafka(tmp_path, tls=authority) as broker:
        where = broker.bootstrap if is_plain else broker.bootstrap_for("SSL")
        connection = plant(where, tls=True) if is_plain else plant(where)
        async with engine(plant=connection) as it:
            why = await failed(it, topic("t"))

    expected = "does not speak TLS" if is_plain else "speaks TLS, and the connection does not"
    assert why == f"{where} {expected}"
