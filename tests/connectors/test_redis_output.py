"""The `redis` output, against a real server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from threading import Thread

import pytest
import redis

from headrace.compiler.delivery import LARGE_BATCH
from headrace.compiler.errors import BatchFailed, BuildRefused, Unreachable
from headrace.connectors.redis.connection import Limits
from headrace.connectors.redis.sink import RedisSink
from tests.connected import started
from tests.doubles import TickingClock
from tests.promises import promise
from tests.redis_sides import client, context, listening, sink
from tests.serverloop import on_the_loop_of_the_server
from tests.services.redis import Redis
from tests.stopwatch import Stopwatch

NO_CHANNEL = "NOPERM this user has no permissions to access one of the channels used as arguments"
USERS = {
    "writer": "&orders +publish +multi +discard",
    "untold": "&orders +publish",
    "bound": "&orders +publish +multi",
}


LEAVING = {
    "enabled": True,
    "passwords": ["+s3cret"],
    "commands": ["+publish"],
    "channels": ["leave"],
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[Redis]:
    """Give a server with users who may do little, and anybody who may do everything."""
    users = [f"user {name} on >s3cret {rights}" for name, rights in USERS.items()]
    with Redis(tmp_path_factory.mktemp("guarded"), extra=users) as server:
        yield server


def as_user(name: str, server: Redis) -> str:
    """Return the url of a user."""
    return f"redis://{name}:s3cret@{server.address}"


async def test_each_message_is_published_in_order(redis_server: Redis):
    batch = [{"n": 1, "s": "ü"}, 2.0, None, "x" * 3_000_000]

    with listening(redis_server, "out") as published:
        async with started(sink(redis_server, "out")) as it:
            await it.write(batch)

        assert [next(published) for _ in batch] == [
            '{"n":1,"s":"ü"}'.encode(),
            b"2.0",
            b"null",
            b'"' + b"x" * 3_000_000 + b'"',
        ]


async def test_a_batch_of_any_size_is_published(redis_server: Redis):
    with listening(redis_server, "large") as published:
        async with started(sink(redis_server, "large")) as it:
            await it.write([*range(2500)])
            await it.write([-1])

        assert [int(each) for each in islice(published, 2501)] == [*range(2500), -1]


@promise("redis.output.written")
async def test_that_nobody_is_subscribed_is_no_failure(redis_server: Redis):
    async with started(sink(redis_server, "unheard")) as it:
        await it.write([1])


async def test_one_connection_is_used_for_all(redis_server: Redis):
    ctx = context(redis_server, pipeline="only one")
    async with started(sink(redis_server, "once", ctx)) as it:
        for n in range(5):
            await it.write([n])
        with client(redis_server) as operator:
            names = [each["name"] for each in operator.client_list()]

    assert names.count("headrace-only_one") == 1


async def test_nothing_is_published_to_learn_whether_it_may_be(redis_server: Redis):
    with listening(redis_server, "rehearsed") as published:
        async with started(sink(redis_server, "rehearsed")) as it:
            await it.write(["first"])

        assert next(published) == b'"first"'


async def test_a_connection_that_was_closed_while_idle_costs_no_batch(redis_server: Redis):
    ctx = context(redis_server, pipeline="idle")
    with listening(redis_server, "idle") as published:
        async with started(sink(redis_server, "idle", ctx)) as it:
            with client(redis_server) as operator:
                [own] = [each for each in operator.client_list() if each["name"] == "headrace-idle"]
                operator.client_kill_filter(_id=own["id"])
                await asyncio.to_thread(operator.ping)  # the loop sees it meanwhile
            await it.write([1])

        assert next(published) == b"1"


async def test_a_channel_that_the_user_may_not_publish_on_refuses_the_build(guarded: Redis):
    with listening(guarded, "orders") as published:
        async with started(sink(as_user("writer", guarded), "orders")) as it:
            await it.write([1])
        assert next(published) == b"1"

    with pytest.raises(BuildRefused) as refused:
        await sink(as_user("writer", guarded), "others").start()

    assert refused.value.fault.code == "turned-away"
    assert str(refused.value) == f"{guarded.address} says '{NO_CHANNEL}'"


@promise("redis.output.fails.denied")
async def test_a_user_who_may_use_no_transaction_learns_it_with_the_first_batch(guarded: Redis):
    async with started(sink(as_user("untold", guarded), "others")) as it:
        for _ in range(2):
            with pytest.raises(BatchFailed) as failed:
                await it.write([1, 2])

            assert str(failed.value) == f"{guarded.address} says '{NO_CHANNEL}'"
            assert not isinstance(failed.value, Unreachable)
            assert failed.value.failure == "misconfigured"
            assert (failed.value.done, failed.value.refused) == ([], {})


async def test_a_user_who_may_not_end_a_transaction_publishes_all_the_same(guarded: Redis):
    with listening(guarded, "orders") as published:
        async with started(sink(as_user("bound", guarded), "orders")) as it:
            await it.write([1])

        assert next(published) == b"1"


@promise("delivery.failed.told")
async def test_a_failed_batch_says_how_much_of_it_was_published(guarded: Redis):
    batch = [*range(100_000)]
    with client(guarded) as operator, operator.monitor() as monitor:
        operator.acl_setuser("leaving", reset=True, **LEAVING)
        ctx = context(as_user("leaving", guarded))
        async with started(sink(guarded, "leave", ctx)) as it:
            writing = asyncio.ensure_future(it.write(batch))
            await asyncio.to_thread(seen, monitor, "PUBLISH leave 5000")
            operator.acl_setuser("leaving", reset=True, **LEAVING | {"channels": []})
            with pytest.raises(BatchFailed) as failed:
                await writing

    why = f"{guarded.address} says '{NO_CHANNEL}'"
    assert str(failed.value) == f"published in part: {why}"
    [told] = ctx.warnings
    said = re.fullmatch(r"of a batch of 100000 messages (\d+) were published: (.*)", told)
    assert said is not None
    assert 5000 < int(said[1]) < 100_000
    assert failed.value.failure == "misconfigured"
    assert failed.value.done == [*range(int(said[1]))]
    assert said[2] == why


def seen(monitor: redis.client.Monitor, command: str) -> None:
    """Return when the server has been told something."""
    next(each for each in monitor.listen() if each["command"] == command)


@promise("redis.output.fails.busy")
async def test_a_server_that_is_busy_is_tried_again(tmp_path):
    with Redis(tmp_path, extra=["busy-reply-threshold 1"]) as server:
        async with started(sink(server, "busy")) as it:
            with client(server) as operator, occupied(server):
                with pytest.raises(Unreachable) as failed:
                    await it.write([1])
                assert str(failed.value).startswith(f"{server.address} says 'BUSY ")
                assert failed.value.failure == "unavailable"
                with pytest.raises(Unreachable):
                    await sink(server, "busy").start()
                operator.script_kill()
            await it.write([1])


@contextmanager
def occupied(server: Redis) -> Iterator[None]:
    """Have a server run a script that does not end by itself."""

    def run() -> None:
        with client(server) as it, suppress(redis.ResponseError):
            it.eval("while true do end", 0)

    runner = Thread(target=run)
    runner.start()
    with client(server) as it:
        with suppress(redis.ResponseError):
            while it.ping():
                pass
        yield
    runner.join()


@promise("redis.output.away", "redis.output.fails.away")
async def test_a_server_that_is_gone_is_unreachable_until_it_is_back(tmp_path):
    with Redis(tmp_path) as server:
        async with started(sink(server, "gone")) as it:
            await it.write([1])
            await asyncio.to_thread(server.kill)
            told = set()
            for _ in range(3):
                with pytest.raises(Unreachable) as failed:
                    await it.write([2])
                told.add(str(failed.value))
                assert failed.value.failure == "unavailable"
            await asyncio.to_thread(server.start)

            with listening(server, "gone") as published:
                await it.write([3])
                assert next(published) == b"3"

    assert told == {f"{server.address} does not answer: connection refused"}


@promise("redis.output.fails.signed_out")
async def test_a_credential_that_is_refused_later_is_not_tried_for_every_batch(tmp_path):
    with Redis(tmp_path) as server:
        async with started(sink(server, "later")) as it:
            with client(server) as operator:
                operator.config_set("requirepass", "n0ne")
                operator.client_kill_filter(_type="normal", skipme=True)
                await asyncio.to_thread(operator.ping)

            with pytest.raises(Unreachable) as failed:
                await it.write([1])
    assert str(failed.value) == f"{server.address} says 'NOAUTH Authentication required.'"
    assert failed.value.failure == "misconfigured"


@promise("redis.output.fails.signed_out")
async def test_a_password_that_is_another_one_later_is_for_somebody_to_set(tmp_path):
    with Redis(tmp_path, password="f1rst") as server:
        async with started(sink(server, "later")) as it:
            with client(server) as operator:
                operator.config_set("requirepass", "n3xt")
                operator.client_kill_filter(_type="normal", skipme=True)
                await asyncio.to_thread(operator.ping)  # the loop sees it meanwhile

            cause = await failure(it, [1])
    assert str(cause).startswith(f"{server.address} says 'WRONGPASS ")
    assert isinstance(cause, Unreachable)
    assert cause.failure == "misconfigured"


@promise("redis.output.fails.busy")
async def test_a_server_that_has_clients_enough_is_tried_again(tmp_path):
    with Redis(tmp_path) as server:
        async with started(sink(server, "later")) as it:
            with client(server) as operator:
                operator.client_kill_filter(_type="normal", skipme=True)
                operator.config_set("maxclients", 1)
                await asyncio.to_thread(operator.ping)  # the loop sees it meanwhile

                cause = await failure(it, [1])
    assert str(cause) == f"{server.address} says 'ERR max number of clients reached'"
    assert isinstance(cause, Unreachable)
    assert cause.failure == "unavailable"


@promise("redis.output.fails.no_command")
async def test_a_server_without_the_command_is_for_somebody_to_set(tmp_path):
    with Redis(
        tmp_path, extra=[f'rename-command {each} ""' for each in ("PUBLISH", "MULTI")]
    ) as it:
        async with started(sink(it, "none")) as output:
            cause = await failure(output, [1, 2])
    assert f"{it.address} says 'ERR unknown command 'PUBLISH'" in str(cause)
    assert not isinstance(cause, Unreachable)
    assert (cause.failure, cause.done, cause.refused) == ("misconfigured", [], {})


async def failure(output: RedisSink, batch: list) -> BatchFailed:
    """Return what the writing of a batch raises."""
    with pytest.raises(BatchFailed) as failed:
        await output.write(batch)
    return failed.value


@pytest.mark.parametrize(
    ("said", "raised", "failure_class", "at_fault"),
    [
        ("LOADING Redis is loading the dataset in memory", Unreachable, "unavailable", False),
        ("CLUSTERDOWN Hash slot not served", Unreachable, "unavailable", False),
        (
            "OOM command not allowed when used memory > 'maxmemory'.",
            BatchFailed,
            "unavailable",
            False,
        ),
        (
            "READONLY You can't write against a read only replica.",
            BatchFailed,
            "unavailable",
            False,
        ),
        ("LOADINGS a code that nobody knows", BatchFailed, "invalid", True),
    ],
)
@promise("redis.output.at_fault")
async def test_an_error_among_the_answers_tells_what_is_done_and_maybe_what_is_at_fault(
    said, raised, failure_class, at_fault
):
    answers = iter([":1", f"-{said}", ":0"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while command := await asked(reader):
            answer = {b"PUBLISH": lambda: next(answers), b"MULTI": lambda: "-ERR no"}.get(command)
            writer.write(f"{answer() if answer else '+OK'}\r\n".encode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        where = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        async with started(sink(f"redis://{where}", "a")) as output:
            cause = await failure(output, [1, 2, 3])

    assert (type(cause), cause.failure) == (raised, failure_class)
    assert cause.done == [0, 2]
    assert cause.refused == ({1: f"{where} says '{said}'"} if at_fault else {})


async def asked(reader: asyncio.StreamReader) -> bytes | None:
    """Return the name of the next command; None when there is none."""
    if not (head := await reader.readline()):
        return None
    words = []
    for _ in range(int(head[1:])):
        size = int((await reader.readline())[1:])
        words.append((await reader.readexactly(size + 2)).removesuffix(b"\r\n"))
    return words[0]


@promise("redis.output.fails.unanswered")
@pytest.mark.long
async def test_a_server_that_hangs_is_unreachable_and_holds_nobody_up(tmp_path):
    limits = Limits(answer_seconds=0.1)
    with Redis(tmp_path) as server:
        async with started(sink(server, "hung", limits=limits)) as it:
            with server.halted():
                with pytest.raises(Unreachable) as failed:
                    await it.write(["x" * (32 << 20)])  # more than the system takes
                watch = Stopwatch()
                await it.finish()
                assert watch.seconds < 0.5
    assert str(failed.value) == f"{server.address} does not answer any more"
    assert (failed.value.failure, [*failed.value.done]) == ("unclear", [])


@promise("redis.output.twice")
@pytest.mark.long
@on_the_loop_of_the_server
async def test_what_was_given_up_is_not_published_when_the_server_goes_on(tmp_path):
    with Redis(tmp_path) as server:
        ctx = context(server, pipeline="late")
        with listening(server, "late") as published, client(server) as operator:
            async with started(sink(server, "late", ctx, Limits(answer_seconds=0.1))) as it:
                with server.halted(), pytest.raises(Unreachable):
                    await it.write(["x" * (32 << 20)])  # more than the system takes
                await asyncio.to_thread(gone, operator, "headrace-late")
                await it.write([1])

            assert next(published) == b"1"


def gone(operator: redis.Redis, name: str) -> None:
    """Return when the server has no connection of that name any more."""
    while name in [each["name"] for each in operator.client_list()]:
        pass


@pytest.mark.long
@on_the_loop_of_the_server
async def test_a_write_that_is_given_up_leaves_nothing_behind(tmp_path):
    with Redis(tmp_path) as server:
        async with started(sink(server, "given up")) as it:
            with server.halted():
                writing = asyncio.ensure_future(it.write(["x" * (32 << 20)]))
                await asyncio.sleep(0)
                writing.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await writing
                watch = Stopwatch()
                await it.finish()
                assert watch.seconds < 0.5


@promise("redis.output.fails.unanswered")
@pytest.mark.long
async def test_the_log_says_what_is_known_of_a_batch_when_the_connection_breaks(tmp_path):
    with Redis(tmp_path) as server:
        ctx = context(server, pipeline="breaks")
        async with started(sink(server, "breaks", ctx)) as it:
            with client(server) as operator, operator.monitor() as monitor:
                writing = asyncio.ensure_future(it.write([*range(200_000)]))
                await asyncio.to_thread(seen, monitor, "PUBLISH breaks 5000")
                server.kill()
                with pytest.raises(Unreachable) as failed:
                    await writing

    assert str(failed.value) == f"{server.address} closed the connection"
    [warning] = ctx.warnings
    known = re.fullmatch(
        r"of a batch of 200000 messages (\d+) were published before the connection was lost;"
        " of the others nobody knows",
        warning,
    )
    assert known is not None
    assert failed.value.failure == "unclear"
    assert [*failed.value.done] == [*range(int(known[1]))]


async def test_what_comes_behind_a_large_batch_is_published_behind_it(redis_server: Redis):
    ctx, large = context(redis_server, clock=TickingClock()), [*range(3 * LARGE_BATCH)]
    with listening(redis_server, "turns") as published:
        async with started(sink(redis_server, "turns", ctx)) as it:
            with pytest.raises(UnicodeEncodeError):
                await it.write([*large, "\ud800"])
            await it.write(large)
            await it.write([-1])

        assert [int(each) for each in islice(published, len(large) + 1)] == [*large, -1]
