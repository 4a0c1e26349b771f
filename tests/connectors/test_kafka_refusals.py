"""Kafka brokers that say no, or nothing: the reason is theirs, it comes soon, and holds no secret."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.kafka import KafkaConnection
from headrace.connectors.kafka.connection import Limits
from headrace.connectors.kafka.metadata import NoTopic
from tests.doubles import StubContext
from tests.kafka_sides import deleted, joined, payloads, sink, source, started, values
from tests.services.authority import Authority
from tests.services.kafka import Kafka
from tests.services.server import free_port

PASSWORD = "pa55-w0rd"
WRONG = "wr0ng-one"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, authority: Authority) -> Iterator[Kafka]:
    """Give a broker with all four listeners, which makes no topics, and where a guest may do little."""
    rules = [
        "auto.create.topics.enable=false",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS;User:me",
    ]
    users = {"me": PASSWORD, "guest": PASSWORD}
    folder = tmp_path_factory.mktemp("guarded")
    with Kafka(folder, tls=authority, users=users, extra=rules) as server:
        server.create_topic("t")
        yield server


@pytest.fixture(scope="module")
def stranger(tmp_path_factory) -> Authority:
    """Give an authority that signed nothing here."""
    return Authority(tmp_path_factory.mktemp("stranger"))


def context(
    server: Kafka,
    listener: str,
    authority: Authority | None = None,
    mechanism: str | None = None,
    user: str = "me",
    password: str = PASSWORD,
) -> StubContext:
    """Return a context whose connection goes to a listener."""
    options = {"brokers": server.bootstrap_for(listener)}
    if authority is not None:
        options |= {"tls": True, "ca_file": str(authority.ca_file)}
    if mechanism is not None:
        options |= {"sasl_mechanism": mechanism, "username": user, "password": "${PASSWORD}"}
    connection = KafkaConnection.load(options)
    return StubContext(connections={"plant": connection}, secrets={"PASSWORD": password})


async def refusal(ctx: StubContext, topic: str = "t") -> str:
    """Return why both sides are refused, which is soon."""
    said = []
    for attempt in (anext(source(ctx, topic).read()), sink(ctx, topic).start()):
        async with ctx.clock.timeout(5):
            with pytest.raises(BuildRefused) as refused:
                await attempt
        assert refused.value.fault.code == "turned-away"
        assert refused.value.fault.path == ("connection",)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert PASSWORD not in said[0]
    assert WRONG not in said[0]
    for _ in range(10):
        await asyncio.sleep(0)  # sockets that were closed are gone some turns later
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return said[0]


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_the_right_credential_is_let_in(guarded, authority, mechanism, listener):
    ctx = context(guarded, listener, authority if "SSL" in listener else None, mechanism)

    async with joined(source(ctx, "t", group=f"{mechanism}-{listener}")) as reader:
        async with started(sink(ctx, "t")) as it:
            await it.write([1])

        assert await payloads(reader, 1) == [b"1"]
    assert ctx.failures == []


async def test_a_trusted_certificate_is_enough_without_a_credential(guarded, authority):
    ctx = context(guarded, "SSL", authority)

    async with joined(source(ctx, "t", group="trusting")) as reader, started(sink(ctx, "t")) as it:
        await it.write([2])

        assert await payloads(reader, 1) == [b"2"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_wrong_password_is_refused_as_the_broker_says(guarded, mechanism):
    said = await refusal(context(guarded, "SASL_PLAINTEXT", None, mechanism, password=WRONG))

    where = guarded.bootstrap_for("SASL_PLAINTEXT")
    assert said.startswith(f"{where} refuses the credential: Authentication failed")


async def test_a_certificate_of_a_stranger_is_not_trusted(guarded, stranger):
    said = await refusal(context(guarded, "SSL", stranger))

    where = guarded.bootstrap_for("SSL")
    assert said.startswith(f"the certificate of {where} is not trusted: ")


async def test_tls_against_plaintext_is_told(guarded, authority):
    said = await refusal(context(guarded, "PLAINTEXT", authority))

    assert said == f"{guarded.bootstrap_for('PLAINTEXT')} does not speak TLS"


async def test_plaintext_against_tls_is_told(guarded):
    said = await refusal(context(guarded, "SSL"))

    assert said == f"{guarded.bootstrap_for('SSL')} speaks TLS, and the connection does not"


async def test_no_credential_where_one_is_wanted_is_told(guarded, authority):
    plain, secret = context(guarded, "SASL_PLAINTEXT"), context(guarded, "SASL_SSL", authority)

    wanted = "asks for a credential: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    assert await refusal(plain) == f"{guarded.bootstrap_for('SASL_PLAINTEXT')} {wanted}"
    assert await refusal(secret) == f"{guarded.bootstrap_for('SASL_SSL')} {wanted}"


async def test_a_credential_where_none_is_taken_is_told(guarded):
    said = await refusal(context(guarded, "PLAINTEXT", None, "PLAIN"))

    where = guarded.bootstrap_for("PLAINTEXT")
    assert said == f"{where} takes no credential, and the connection has one"


async def test_a_topic_that_one_may_not_see_is_refused(guarded):
    said = await refusal(context(guarded, "SASL_PLAINTEXT", None, "PLAIN", user="guest"))

    where = guarded.bootstrap_for("SASL_PLAINTEXT")
    assert said == f"{where} refuses the topic 't': TOPIC_AUTHORIZATION_FAILED"


async def test_a_topic_that_is_not_there_is_waited_for_and_then_read_from_its_beginning(guarded):
    ctx = context(guarded, "PLAINTEXT")
    it, out = source(ctx, "late"), sink(ctx, "late")
    for attempt in (anext(it.read()), out.start()):
        with pytest.raises(NoTopic) as missing:
            await attempt
        assert str(missing.value) == f"{guarded.bootstrap} has no topic 'late', and makes none"

    guarded.create_topic("late")
    async with started(out):
        await out.write([1])
    async with joined(it) as reader:
        assert await payloads(reader, 1) == [b"1"]


async def test_nobody_there_is_no_refusal(guarded):
    ports = [free_port(), free_port()]
    brokers = ",".join(f"127.0.0.1:{port}" for port in ports)
    ctx = StubContext(connections={"plant": KafkaConnection.load({"brokers": brokers})})

    for attempt in (anext(source(ctx, "t").read()), sink(ctx, "t").start()):
        with pytest.raises(Unreachable) as silent:
            await attempt
        assert str(silent.value) == "; ".join(
            f"127.0.0.1:{port} does not answer: connection refused" for port in ports
        )


@pytest.mark.long
async def test_somebody_who_says_nothing_is_given_up_soon():
    async def silent(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ctx = StubContext(connections={"plant": KafkaConnection.load({"brokers": f"127.0.0.1:{port}"})})
    async with server, ctx.clock.timeout(5):
        with pytest.raises(Unreachable) as given_up:
            await sink(ctx, "t").start()

    assert str(given_up.value) == f"127.0.0.1:{port} does not answer"


async def test_one_broker_that_answers_is_enough(guarded):
    brokers = f"127.0.0.1:{free_port()},{guarded.bootstrap},127.0.0.1:{free_port()}"
    ctx = StubContext(connections={"plant": KafkaConnection.load({"brokers": brokers})})

    async with started(sink(ctx, "t")) as it:
        await it.write([1])


async def test_a_group_that_divides_its_partitions_otherwise_refuses_us(guarded):
    other = AIOKafkaConsumer(
        "t",
        bootstrap_servers=guarded.bootstrap,
        group_id="sticky",
        partition_assignment_strategy=(StickyPartitionAssignor,),
    )
    await other.start()
    try:
        with pytest.raises(BuildRefused) as refused:
            await anext(source(context(guarded, "PLAINTEXT"), "t", group="sticky").read())
    finally:
        await other.stop()

    assert str(refused.value) == (
        "the brokers refuse the topic 't' or the group 'sticky': INCONSISTENT_GROUP_PROTOCOL"
    )


@pytest.mark.long
async def test_a_topic_that_was_deleted_is_waited_for(guarded):
    guarded.create_topic("dropped")
    ctx = context(guarded, "PLAINTEXT")
    async with started(sink(ctx, "dropped", Limits(missing_seconds=0.0))) as it:
        await it.write([1])
        await deleted(guarded.bootstrap, "dropped")
        writing = [asyncio.ensure_future(it.write([n])) for n in (2, 3)]
        async with ctx.clock.timeout(15):
            while not ctx.failures:
                await ctx.clock.sleep(0.05)
        assert set(ctx.failures) == {f"{guarded.bootstrap} has no topic 'dropped', and makes none"}

        guarded.create_topic("dropped")
        await asyncio.gather(*writing)
    assert await values(guarded.bootstrap, "dropped") == [b"2", b"3"]
    assert ctx.notes == ["connected again"]


@pytest.mark.long
async def test_a_batch_for_a_topic_that_does_not_come_back_is_given_up(guarded):
    guarded.create_topic("gone")
    limits = Limits(request_seconds=3.0, metadata_seconds=1.0, missing_seconds=0.0)
    ctx = context(guarded, "PLAINTEXT")
    async with started(sink(ctx, "gone", limits)) as it:
        await deleted(guarded.bootstrap, "gone")
        for _ in range(2):
            with pytest.raises(Unreachable) as lost:
                await it.write([1])
            assert str(lost.value) == f"{guarded.bootstrap} has no topic 'gone', and makes none"
