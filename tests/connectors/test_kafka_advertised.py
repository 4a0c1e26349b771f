"""Kafka brokers that answer, and tell of others that do not: it is said which, and what to change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.compiler.errors import Unreachable
from headrace.connectors.kafka.connection import Limits
from tests.kafka_hearsay import Hearsay, telling
from tests.kafka_sides import context, engine, joined, sink, source
from tests.services.kafka import Kafka
from tests.services.server import free_port
from tests.stand_ins import pipeline, running

REMEDY = "the brokers advertise that address (if it is wrong, change their 'advertised.listeners')"
AT_ONCE = Limits(missing_seconds=0.0)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Iterator[Kafka]:
    """Give a broker that advertises a port where nobody listens, `elsewhere.nobody`."""
    nobody = f"127.0.0.1:{free_port()}"
    rules = [f"advertised.listeners=PLAINTEXT://{nobody}"]
    with Kafka(tmp_path_factory.mktemp("elsewhere"), extra=rules) as server:
        server.nobody = nobody
        yield server


@pytest.fixture(scope="module")
def lonely(tmp_path_factory) -> Iterator[Kafka]:
    """Give a broker without groups: it would need two others for them."""
    rules = ["offsets.topic.replication.factor=3"]
    with Kafka(tmp_path_factory.mktemp("lonely"), extra=rules) as server:
        server.create_topic("t")
        yield server


async def silence(brokers: str) -> str:
    """Return what both sides say when they cannot begin, which is soon."""
    ctx, said = context(brokers), []
    for attempt in (anext(source(ctx, "t").read()), sink(ctx, "t").start()):
        async with ctx.clock.timeout(5):
            with pytest.raises(Unreachable) as silent:
                await attempt
        said.append(str(silent.value))
    assert said[0] == said[1]
    return said[0]


async def told(ctx: Any, reader: Any) -> str:
    """Return the failure that is counted while a reader waits; it is the same ever again."""
    async with ctx.clock.timeout(10):
        while len(ctx.failures) < 2:
            arrived = asyncio.ensure_future(anext(reader))
            while not arrived.done() and len(ctx.failures) < 2:
                await ctx.clock.sleep(0.05)
            arrived.cancel()
            await asyncio.wait([arrived])
    assert len(set(ctx.failures)) == 1
    return ctx.failures[0]


@pytest.mark.long
async def test_an_advertised_address_where_nobody_listens_is_named(elsewhere: Kafka):
    said = await silence(elsewhere.bootstrap)

    assert said == f"{elsewhere.nobody} does not answer: connection refused; {REMEDY}"


@pytest.mark.long
async def test_a_pipeline_counts_it_and_tries_on_without_haste(elsewhere: Kafka):
    from headrace.connectors.kafka import KafkaInput, KafkaOutput

    reads = KafkaInput.load({"connection": "plant", "topic": "t", "group": "g"})
    writes = KafkaOutput.load({"connection": "plant", "topic": "t"})
    async with engine(elsewhere.bootstrap) as it:
        await it.compile(pipeline("in", [reads], [], []))
        out = await it.compile(pipeline("out", [reads], [], [writes]))
        await it.clock.sleep(2)
        signatures = [*running(it, "in").failures.table.latest()]
        count = sum(each.count for each in signatures)

    assert out.status == "starting"
    assert {each.message for each in signatures} == {
        f"{elsewhere.nobody} does not answer: connection refused; {REMEDY}"
    }
    assert 2 <= count <= 6


@pytest.mark.long
async def test_a_group_that_nobody_looks_after_is_told(lonely: Kafka):
    ctx = context(lonely.bootstrap)

    async with joined(source(ctx, "t", AT_ONCE, group="g")) as reader:
        said = await told(ctx, reader)

    assert said == "no broker looks after the group 'g': COORDINATOR_NOT_AVAILABLE"


async def test_an_advertised_host_that_there_is_not_is_named():
    async with telling(Hearsay({1: ("kafka.invalid", 9092)})) as it:
        said = await silence(it.address)

    assert said == f"kafka.invalid:9092 does not answer: the host name cannot be resolved; {REMEDY}"


@pytest.mark.parametrize(
    ("host", "shown"), [("no such\x00host", '"no such\\\\u0000host"'), ("a..b", '"a..b"')]
)
async def test_an_advertised_address_that_is_none_is_told(host: str, shown: str):
    async with telling(Hearsay({1: (host, 99_999_999)})) as it:
        said = await silence(it.address)

    assert said.startswith("the brokers advertise ")
    assert said.endswith(", 99999999, which is no address")
    assert "\x00" not in said


@pytest.mark.long
@pytest.mark.parametrize(
    ("hearsay", "lack"),
    [
        (Hearsay({}), "names no brokers"),
        (Hearsay({1: None}, leaders=()), "has no partition of it"),
        (Hearsay({1: None}, leaders=(-1,)), "has a leader for no partition of it"),
        (Hearsay({1: None}, leaders=(77,)), "has a leader for no partition of it"),
    ],
)
async def test_a_cluster_that_lacks_what_is_needed_is_told(hearsay: Hearsay, lack: str):
    async with telling(hearsay) as it:
        said = await silence(it.address)
        where = it.address

    assert said == f"{where}, asked for the topic 't', {lack}"


@pytest.mark.long
async def test_an_answer_without_the_topic_is_as_good_as_none():
    async with telling(Hearsay({1: None}, knows_topics=False)) as it:
        said = await silence(it.address)
        where = it.address

    assert said == f"{where} has no topic 't', and makes none"


async def test_one_advertised_broker_that_answers_is_enough_to_begin():
    async with telling(Hearsay({1: None})) as there:
        brokers = {1: ("127.0.0.1", free_port()), 2: ("127.0.0.1", there.port)}
        async with telling(Hearsay(brokers)) as it:
            ctx = context(it.address)
            cluster = sink(ctx, "t")._cluster

            assert await cluster.reach("t") == (it.address, {0})


@pytest.mark.long
async def test_a_coordinator_that_is_not_where_it_is_said_to_be_is_named():
    nobody = ("127.0.0.1", free_port())
    async with telling(Hearsay({1: None}, coordinator=nobody)) as it:
        ctx = context(it.address)
        async with joined(source(ctx, "t", AT_ONCE)) as reader:
            said = await told(ctx, reader)

    assert said == f"127.0.0.1:{nobody[1]} does not answer: connection refused; {REMEDY}"


async def test_one_leader_of_several_that_does_not_answer_is_named():
    nobody = ("127.0.0.1", free_port())
    async with telling(Hearsay({1: None, 2: nobody}, leaders=(1, 2))) as it:
        ctx = context(it.address)
        with pytest.raises(Unreachable) as missing:
            await sink(ctx, "t")._cluster.examine("t", None, 1.0)

    assert (
        str(missing.value) == f"127.0.0.1:{nobody[1]} does not answer: connection refused; {REMEDY}"
    )


async def test_a_partition_that_nobody_leads_is_told():
    async with telling(Hearsay({1: None}, leaders=(1, -1))) as it:
        with pytest.raises(Unreachable) as missing:
            await sink(context(it.address), "t")._cluster.examine("t", None, 1.0)

    assert str(missing.value) == "a partition of 't' has no leader"
