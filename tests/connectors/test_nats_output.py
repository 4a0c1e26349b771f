"""The `nats` output, against a real server."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.connectors.nats import NatsOutput
from headrace.connectors.nats.connection import Limits
from headrace.connectors.nats.natsfailures import FAILURES
from tests.clients import PATIENCE
from tests.doubles import TickingClock, refusals
from tests.nats_sides import context, listening, peer, sink
from tests.promises import promise
from tests.serverloop import on_the_loop_of_the_server
from tests.services.nats import Nats
from tests.stopwatch import Stopwatch


@pytest.mark.parametrize("subject", ["plant.*", "plant.>", "a>b"])
def test_messages_are_published_to_one_subject(subject):
    assert refusals(NatsOutput, {"connection": "bus", "subject": subject}) == [
        "subject: messages are published to one subject, so it holds no '*' and no '>'"
    ]


async def test_each_message_is_published_by_itself_in_order(nats_server: Nats):
    async with peer(nats_server) as reader, sink(context(nats_server), "out.a") as output:
        await reader.subscribe("out.*")
        await output.write([{"n": 1, "text": "ü"}, [2.5], None])
        await output.write(["x"])

        found = [await reader.next() for _ in range(4)]

    assert found == [("out.a", value) for value in ({"n": 1, "text": "ü"}, [2.5], None, "x")]


async def test_that_nobody_subscribes_is_no_error(nats_server: Nats):
    async with sink(context(nats_server), "out.nobody") as output:
        await output.write([1])


@promise("nats.output.written")
async def test_a_batch_is_written_when_the_server_has_all_of_it():
    said: list[bytes] = []

    async def keeping_verbs(reader, writer):
        writer.write(b'INFO {"max_payload":1048576}\r\n')
        while line := await reader.readline():
            said.append(verb := line.split()[0])
            if verb == b"PUB":
                await reader.readline()
            if verb == b"PING":
                writer.write(b"PONG\r\n")

    async with listening(keeping_verbs) as where, sink(context(where), "a") as output:
        for n in range(3):
            await output.write([n] * 500)

            assert said.count(b"PUB") == 500 * (n + 1)
            assert said[-1] == b"PING"


async def test_a_message_that_is_too_large_fails_its_batch_and_no_other(tmp_path):
    with Nats(tmp_path, extra=["max_payload: 1000"]) as server:
        ctx = context(server)
        async with peer(server) as reader, sink(ctx, "a") as output:
            await reader.subscribe("a")
            await output.write(["x" * 998])

            with pytest.raises(BatchFailed) as failed:
                await output.write([1, "x" * 1200, 3])
            await output.write([4])

            assert await reader.several(2) == ["x" * 998, 4]
    assert not isinstance(failed.value, Unreachable)
    assert str(failed.value) == (
        f"a message is larger than the 1,000 bytes that {server.address} takes:"
        " nothing of the batch was sent"
    )
    assert ctx.warnings == ["message 2 of 3 has 1,202 bytes"]


@promise("nats.output.fails.too_large", "nats.output.at_fault")
async def test_of_a_batch_each_message_that_is_too_large_is_named(tmp_path):
    with Nats(tmp_path, extra=["max_payload: 1000"]) as server:
        async with sink(context(server), "a") as output:
            cause = await failure(output, [1, "x" * 1200, 3, "x" * 2000])

    takes = f"larger than the 1,000 bytes that {server.address} takes"
    assert (cause.failure, cause.done) == ("invalid", ())
    assert cause.refused == {1: f"its 1,202 bytes are {takes}", 3: f"its 2,002 bytes are {takes}"}


@promise("nats.output.fails.denied")
async def test_what_may_not_be_published_fails_with_the_words_of_the_server(tmp_path):
    users = '[{ user: u, password: p, permissions: { publish: { deny: ["Secret.>"] } } }]'
    with Nats(tmp_path, extra=[f"authorization {{ users: {users} }}"]) as server:
        ctx = context(f"nats://u:p@{server.address}")
        async with sink(ctx, "Secret.a") as output:
            told = [await failure(output, [1, 2]) for _ in range(2)]
        async with sink(ctx, "open.a") as output:
            await output.write([1])

    assert [(type(cause), str(cause)) for cause in told] == [
        (
            BatchFailed,
            f'{server.address} does not permit it: permissions violation for publish to "secret.a"',
        )
    ] * 2
    assert [(each.failure, each.refused) for each in told] == [("misconfigured", {})] * 2


async def failure(output, batch):
    """Return what the writing of a batch raises."""
    with pytest.raises(BatchFailed) as failed:
        await output.write(batch)
    return failed.value


async def test_an_idle_connection_that_was_lost_costs_nothing(tmp_path):
    with Nats(tmp_path) as server:
        async with sink(context(server), "a") as output:
            await output.write([1])
            server.restart()
            async with peer(server) as reader:
                await reader.subscribe("a")
                await asyncio.sleep(0)
                await output.write([2])

                assert await reader.several(1) == [2]


@promise("nats.output.fails.away")
async def test_nobody_there_is_unreachable_and_what_failed_is_never_delivered(tmp_path):
    with Nats(tmp_path) as server:
        async with sink(context(server), "a") as output:
            await output.write([1])
            server.kill()
            await failure(output, [2])
            told = [await failure(output, [n]) for n in (3, 4)]
            server.start()
            async with peer(server) as reader:
                await reader.subscribe("a")
                await output.write([5])

                assert await reader.several(1) == [5]
    assert [(type(cause), str(cause)) for cause in told] == [
        (Unreachable, f"{server.address} does not answer: connection refused")
    ] * 2
    assert [each.failure for each in told] == ["unavailable"] * 2


@promise("nats.output.fails.unconfirmed")
@pytest.mark.parametrize("batch", [[1], ["x" * 100_000] * 200], ids=["small", "large"])
async def test_a_batch_that_is_not_confirmed_fails_as_soon_as_the_server_dies(tmp_path, batch):
    with Nats(tmp_path) as server:
        async with sink(context(server), "a") as output:
            with server.halted():
                writing = asyncio.ensure_future(failure(output, batch))
                for _ in range(10):
                    await asyncio.sleep(0)
                watch = Stopwatch()
                server.kill()
                cause = await writing
            assert watch.seconds < 5
    assert isinstance(cause, Unreachable)
    assert str(cause) == (
        f"{server.address} did not confirm the batch, so some of it may have been delivered:"
        " the connection was lost"
    )
    assert cause.failure == "unclear"


async def test_a_write_that_is_given_up_ends_nothing_but_itself(tmp_path, caplog):
    with Nats(tmp_path) as server:
        async with sink(context(server), "a") as output:
            with server.halted():
                writing = asyncio.ensure_future(output.write([1]))
                for _ in range(10):
                    await asyncio.sleep(0)
                writing.cancel()
                await asyncio.wait([writing])
            await output.write([2])
    assert caplog.records == []


@promise("nats.output.fails.unconfirmed")
@pytest.mark.parametrize("batch", [[1], ["x" * (16 << 20)]], ids=["small", "large"])
async def test_a_server_that_hangs_fails_the_batch_in_time(tmp_path, batch):
    limits = Limits(confirm_seconds=0.2)
    with Nats(tmp_path, extra=["max_payload: 33554432"]) as server:
        async with sink(context(server), "a", limits) as output:
            with server.halted():
                watch = Stopwatch()
                cause = await failure(output, batch)
                assert watch.seconds < 5
                watch = Stopwatch()
                await output.finish()
                assert watch.seconds < 1
            await output.write([2])
    assert isinstance(cause, Unreachable)
    assert str(cause).endswith("some of it may have been delivered: nothing within 0.2 s")
    assert cause.failure == "unclear"


@on_the_loop_of_the_server
async def test_of_what_is_given_up_only_what_the_system_has_taken_comes_later():
    came, goes_on, is_read = bytearray(), asyncio.Event(), asyncio.Event()

    async def hanging(reader, writer):
        writer.write(b'INFO {"max_payload":1048576}\r\n')
        await reader.readuntil(b"PING\r\n")
        writer.write(b"PONG\r\n")
        await goes_on.wait()
        came.extend(await reader.read())
        is_read.set()

    given_up, limits = ["x" * 100_000] * 400, Limits(confirm_seconds=0.2)  # more than it takes
    async with listening(hanging) as where, sink(context(where), "a", limits) as output:
        await failure(output, given_up)
        goes_on.set()
        async with asyncio.timeout(PATIENCE):
            await is_read.wait()

    assert 0 < came.count(b"PUB") < len(given_up) / 2


@promise("nats.output.fails.turned_away")
async def test_a_user_who_is_taken_away_is_as_unreachable_as_any_lost_server(tmp_path):
    with Nats(tmp_path, user="u", password="p") as server:
        async with sink(context(server), "a") as output:
            await output.write([1])
            file = tmp_path / "nats.conf"
            file.write_text(file.read_text().replace('"password": "p"', '"password": "q"'))
            server.restart()
            await failure(output, [2])
            cause = await failure(output, [3])
    assert isinstance(cause, Unreachable)
    assert str(cause) == f"{server.address} turns the connection away: Authorization Violation"
    assert cause.failure == "misconfigured"
    assert cause.failure == FAILURES.of("Authorization Violation")


@pytest.mark.long
async def test_what_comes_behind_a_large_batch_is_published_behind_it(nats_server: Nats) -> None:
    ctx, large = context(nats_server, clock=TickingClock()), [*range(3 * LARGE_BATCH)]
    async with peer(nats_server) as reader, sink(ctx, "large.a") as output:
        await reader.subscribe("large.*")
        await output.write(large)
        await output.write([-1])

        assert await reader.several(len(large) + 1) == [*large, -1]


async def test_of_a_large_batch_with_a_message_that_is_too_large_nothing_is_sent(
    nats_server: Nats,
) -> None:
    ctx, large = context(nats_server, clock=TickingClock()), [*range(3 * LARGE_BATCH)]
    async with peer(nats_server) as reader, sink(ctx, "large.b") as output:
        await reader.subscribe("large.b")
        with pytest.raises(BatchFailed, match="nothing of the batch was sent") as failed:
            await output.write([*large, "x" * 2_000_000, *large])
        await output.write([-1])

        assert await reader.several(1) == [-1]
    assert ctx.warnings == [f"message {len(large) + 1} of {2 * len(large) + 1} has 2,000,002 bytes"]
    assert [*failed.value.refused] == [len(large)]
