"""Of which class the failures of a `kafka` output are, and which records are confirmed or at fault."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import LARGE_BATCH, Batch
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.connectors.kafka.connection import Limits
from headrace.connectors.kafka.metadata import NoTopic
from headrace.connectors.kafka.partitions import Pending, TopicPartitions
from headrace.connectors.kafka.sink import KafkaSink
from tests.clients import PATIENCE
from tests.doubles import StubContext, TickingClock
from tests.kafka_sides import context, create, deleted, sink, started, values
from tests.promises import promise
from tests.services.kafka import Kafka
from tests.waiting import until

PASSWORD, OTHER = "pa55-w0rd", "an0ther-one"
AT_ONCE = Limits(request_seconds=0.5)
"""A batch is given up before the brokers are asked what is wrong."""
TOO_LARGE = "x" * 2_000_000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Give a broker that makes no topics, where a guest may do what it is allowed to, and others all."""
    rules = [
        "auto.create.topics.enable=false",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS;User:me",
    ]
    users = {"me": PASSWORD, "guest": PASSWORD}
    with Kafka(tmp_path_factory.mktemp("guarded"), users=users, extra=rules) as server:
        yield server


def signed_in(server: Kafka, user: str) -> StubContext:
    """Return a context whose connection has a credential."""
    credential = {"sasl_mechanism": "PLAIN", "username": user, "password": PASSWORD}
    return context(server.bootstrap_for("SASL_PLAINTEXT"), **credential)


async def failure(it: KafkaSink, batch: Batch) -> BatchFailed:
    """Return why a batch is not written."""
    with pytest.raises(BatchFailed) as failed:
        await it.write(batch)
    return failed.value


@pytest.fixture
def changed_password(guarded: Kafka) -> Iterator[None]:
    """Let a test change the password in the broker's file."""
    file = guarded.folder / "server.properties"
    as_it_was = file.read_text()
    yield
    file.write_text(as_it_was)
    guarded.restart()


@promise("kafka.output.fails.too_large")
async def test_of_a_batch_with_a_record_that_is_too_large_the_others_are_done(kafka: Kafka) -> None:
    async with started(sink(context(kafka.bootstrap), "too-large")) as it:
        failed = await failure(it, [1, 2, TOO_LARGE, 3])

    assert failed.failure == "invalid"
    assert failed.done == [0, 1, 3]
    assert failed.refused == {2: "'too-large' takes no record of that size ('max.message.bytes')"}


async def test_indices_are_those_of_the_batch_whatever_is_sent_with_it(kafka: Kafka) -> None:
    kafka.create_topic("indices", partitions=5)
    batches = [[{"k": f"{n}-{m}"} for m in range(30)] for n in range(3)]
    batches[1][7] = {"k": "large", "text": TOO_LARGE}

    async with started(sink(context(kafka.bootstrap), "indices", key="k")) as it:
        rests = [it.begin(batch) for batch in batches]
        told = await asyncio.gather(*(rest() for rest in rests), return_exceptions=True)

    assert (told[0], told[2]) == (None, None)
    assert isinstance(told[1], BatchFailed)
    assert told[1].done == [index for index in range(30) if index != 7]
    assert [*told[1].refused] == [7]


async def test_indices_are_those_of_a_large_batch_too(kafka: Kafka) -> None:
    ctx = context(kafka.bootstrap, clock=TickingClock())
    large: Batch = [*range(2 * LARGE_BATCH)]
    large[LARGE_BATCH + 1] = TOO_LARGE

    async with started(sink(ctx, "large-indices")) as it:
        failed = await failure(it, large)

    assert [*failed.refused] == [LARGE_BATCH + 1]
    assert failed.done == [index for index in range(len(large)) if index != LARGE_BATCH + 1]


@promise("kafka.output.fails.larger_than_a_request")
@pytest.mark.parametrize("before", [0, 2 * LARGE_BATCH])
async def test_records_that_no_broker_would_look_at_are_refused(kafka: Kafka, before: int) -> None:
    topic = f"no-request-{before}"
    ctx = context(kafka.bootstrap, clock=TickingClock())
    async with started(sink(ctx, topic, Limits(record_bytes=1000))) as it:
        failed = await failure(it, [*range(before), "x" * 1000, 1, "y" * 2000])

    said = f"a record for '{topic}' has more than 1,000 bytes"
    assert (str(failed), failed.failure) == (said, "invalid")
    assert failed.refused == {before: said, before + 2: said}
    assert failed.done == ()
    assert await values(kafka.bootstrap, topic) == []


async def test_a_batch_fails_for_the_first_of_its_faults(kafka: Kafka) -> None:
    options: dict[str, Any] = {"key": "k", "template": "{v}"}
    async with started(
        sink(context(kafka.bootstrap), "faults", Limits(record_bytes=100), **options)
    ) as it:
        failed = await failure(it, [{"k": "", "v": "x" * 200}, {"k": "\ud800", "v": ""}])

    assert [*failed.refused] == [0]


@promise("kafka.output.fails.larger_than_a_segment")
async def test_a_record_that_is_larger_than_a_file_of_its_topic_is_refused(kafka: Kafka) -> None:
    await create(
        kafka.bootstrap, "files", {"max.message.bytes": "3000000", "segment.bytes": "1048576"}
    )
    async with started(sink(context(kafka.bootstrap), "files")) as it:
        failed = await failure(it, [TOO_LARGE, 1])

    assert (failed.failure, failed.done) == ("invalid", [1])
    assert failed.refused == {0: "'files' refuses records: RECORD_LIST_TOO_LARGE"}


@promise("kafka.output.fails.invalid_record")
async def test_which_record_does_not_suit_its_topic_is_known_where_it_was_sent_alone(
    kafka: Kafka,
) -> None:
    await create(kafka.bootstrap, "compacted", {"cleanup.policy": "compact"})
    async with started(sink(context(kafka.bootstrap), "compacted", key="k")) as it:
        together = await failure(it, [{"k": "a"}, {}])
        alone = await failure(it, [{}])

    said = "'compacted' refuses records: UNKNOWN"
    assert {(str(each), each.failure) for each in (together, alone)} == {(said, "invalid")}
    assert (together.done, together.refused) == ([], {})
    assert (alone.done, alone.refused) == ([], {0: said})


@promise("kafka.output.fails.invalid_timestamp")
async def test_a_record_that_is_older_than_its_topic_takes_is_invalid(kafka: Kafka) -> None:
    await create(kafka.bootstrap, "timely", {"message.timestamp.before.max.ms": "60000"})
    late = datetime.now(UTC) - timedelta(hours=1)
    clock = Clock(asyncio.get_running_loop(), started_at=late)
    async with started(sink(context(kafka.bootstrap, clock=clock), "timely")) as it:
        failed = await failure(it, [1])

    assert failed.failure == "invalid"
    assert failed.refused == {0: "'timely' refuses records: INVALID_TIMESTAMP"}


@promise("kafka.output.fails.not_confirmed")
async def test_records_that_are_not_confirmed_in_time_are_not_done(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    halted, settle = kafka.halted(), Pending.settle

    def settled(*arguments: Any) -> None:
        settle(*arguments)
        if arguments[-1] is None:
            halted.__enter__()

    monkeypatch.setattr(Pending, "settle", settled)
    async with started(sink(context(kafka.bootstrap), "unconfirmed", AT_ONCE)) as it:
        failed = await failure(it, ["x" * 100_000] * 3)
        halted.__exit__(None, None, None)

    assert str(failed) == (
        "'unconfirmed' did not confirm records: REQUEST_TIMED_OUT; some records of the batch were"
        " confirmed"
    )
    assert (failed.failure, failed.done, failed.refused) == ("unavailable", [0], {})


@pytest.mark.parametrize("is_apart", [False, True])
async def test_a_record_that_is_refused_in_an_outage_is_told_with_it_where_somebody_asks(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, is_apart: bool
) -> None:
    halted, settle = kafka.halted(), Pending.settle

    def settled(*arguments: Any) -> None:
        settle(*arguments)
        if len(arguments[0].faults) == 1:
            halted.__enter__()

    monkeypatch.setattr(Pending, "settle", settled)
    it = sink(context(kafka.bootstrap), f"in-an-outage-{is_apart}", AT_ONCE)
    if is_apart:
        it.tell_apart()
    async with started(it):
        failed = await failure(it, [TOO_LARGE, "x" * 100_000])
        halted.__exit__(None, None, None)

    assert failed.failure == ("unavailable" if is_apart else "invalid")
    assert ([*failed.done], [*failed.refused]) == ([], [0])


async def test_of_a_large_batch_that_is_given_up_on_its_way_what_is_confirmed_is_done(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, writable = [*range(3 * LARGE_BATCH)], KafkaSink._writable

    async def gone(it: KafkaSink) -> TopicPartitions:
        [pending] = it._under_way
        if pending.records and it._topic and it._topic._partitions:
            await until(lambda: pending.confirmed > 0)
            raise Unreachable("gone", "misconfigured")
        return await writable(it)

    monkeypatch.setattr(KafkaSink, "_writable", gone)
    async with started(sink(context(kafka.bootstrap), "on-its-way")) as it:
        failed = await failure(it, large)

    assert (str(failed), failed.failure) == ("gone", "misconfigured")
    assert 0 < len(failed.done) < len(large)
    assert failed.done == [*range(len(failed.done))]


@promise("kafka.output.fails.no_broker")
@pytest.mark.long
@pytest.mark.parametrize("limits", [AT_ONCE, Limits(request_seconds=4.0)], ids=["at-once", "asked"])
async def test_without_a_broker_a_batch_is_unavailable(guarded: Kafka, limits: Limits) -> None:
    guarded.create_topic(topic := f"away-{limits.request_seconds}")
    ctx = context(guarded.bootstrap)
    async with started(sink(ctx, topic, limits)) as it:
        await it.write([1])
        guarded.kill()
        failed = await failure(it, [2])
        await asyncio.to_thread(guarded.start)

    told = {
        "at-once": f"'{topic}' did not confirm records: NodeNotReadyError",
        "asked": f"{guarded.address} does not answer: connection refused",
    }
    assert str(failed) == told["at-once" if limits is AT_ONCE else "asked"]
    assert isinstance(failed, Unreachable)
    assert (failed.failure, failed.done) == ("unavailable", [])
    assert {*ctx.classes} <= {"unavailable"}


@promise("kafka.output.fails.unknown_topic")
async def test_a_topic_that_is_not_there_is_misconfigured(guarded: Kafka) -> None:
    with pytest.raises(NoTopic) as failed:
        await sink(context(guarded.bootstrap), "never-there").start()

    assert failed.value.failure == "misconfigured"


@promise("kafka.output.fails.unknown_topic")
@pytest.mark.long
async def test_a_topic_that_is_not_there_any_more_is_misconfigured(guarded: Kafka) -> None:
    guarded.create_topic("deleted")
    ctx = context(guarded.bootstrap)
    limits = Limits(request_seconds=6.0, metadata_seconds=1.0, missing_seconds=0.0)
    async with started(sink(ctx, "deleted", limits)) as it:
        await it.write([1])
        await deleted(guarded.bootstrap, "deleted")
        failed = await failure(it, [2])

    assert isinstance(failed, Unreachable)
    assert str(failed) == f"{guarded.bootstrap} has no topic 'deleted', and makes none"
    assert failed.failure == "misconfigured"
    assert {*ctx.classes} == {"misconfigured"}


@promise("kafka.output.fails.topic_not_allowed")
async def test_a_topic_that_may_not_be_written_to_is_misconfigured(guarded: Kafka) -> None:
    guarded.create_topic("seen")
    guarded.show_topic("seen", "guest")
    it = sink(signed_in(guarded, "guest"), "seen")
    await let_in(it)
    failed = await failure(it, [1])
    await it.finish()

    assert str(failed) == "'seen' refuses records: TOPIC_AUTHORIZATION_FAILED"
    assert (failed.failure, failed.done, failed.refused) == ("misconfigured", [], {})


async def let_in(it: KafkaSink) -> None:
    """Start an output whose broker is about to hear that it may see the topic."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(BuildRefused):
                return await it.start()


@promise("kafka.output.fails.internal_topic")
async def test_a_topic_of_the_brokers_own_is_misconfigured(kafka: Kafka) -> None:
    async with started(sink(context(kafka.bootstrap), "__consumer_offsets")) as it:
        failed = await failure(it, [1])

    assert str(failed) == "'__consumer_offsets' refuses records: INVALID_TOPIC"
    assert (failed.failure, failed.refused) == ("misconfigured", {})


@promise("kafka.output.fails.turned_away")
@pytest.mark.long
@pytest.mark.usefixtures("changed_password")
async def test_a_credential_that_is_refused_later_is_misconfigured(guarded: Kafka) -> None:
    guarded.create_topic("later")
    ctx = signed_in(guarded, "me")
    async with started(sink(ctx, "later", Limits(request_seconds=5.0))) as it:
        await it.write([1])
        guarded.kill()
        file = guarded.folder / "server.properties"
        file.write_text(file.read_text().replace(PASSWORD, OTHER))
        await asyncio.to_thread(guarded.start)
        failed = await failure(it, [2])

    where = guarded.bootstrap_for("SASL_PLAINTEXT")
    assert str(failed).startswith(f"{where} refuses the credential: Authentication failed")
    assert isinstance(failed, Unreachable)
    assert failed.failure == "misconfigured"
    assert {*ctx.failures} == {str(failed)}
    assert {*ctx.classes} == {"misconfigured"}
