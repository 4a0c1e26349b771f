"""Redis servers that are killed, hang, or are not there yet: both sides as parts of a pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.schema.secrets import Secrets
from headrace.connectors.redis import RedisConnection, RedisInput, RedisOutput
from headrace.connectors.redis.connection import Limits
from tests.connected import Reader
from tests.promises import promise
from tests.redis_sides import client, context, listening, source, subscribed
from tests.services.redis import Redis
from tests.stand_ins import Kept, pipeline, running, takes
from tests.stopwatch import Stopwatch
from tests.virtual import virtual
from tests.waiting import until

BACK_SECONDS = 3.0
"""What may pass between the return of a server and the next message."""


@asynccontextmanager
async def engine(**servers: Redis) -> AsyncIterator[Engine]:
    """Give an engine whose connections are those servers; close it in the end."""
    connections = {name: RedisConnection.load({"url": each.url}) for name, each in servers.items()}
    made = Engine(
        Clock(asyncio.get_running_loop()), connections=connections, secrets=Secrets({}, {})
    )
    try:
        yield made
    finally:
        await made.close()


def reading(connection: str, **options) -> RedisInput:
    return RedisInput.load({"connection": connection, "channel": "in", **options})


def writing(connection: str) -> RedisOutput:
    return RedisOutput.load({"connection": connection, "channel": "out"})


def failures(it: Engine, stage: str) -> dict[str, int]:
    """Return the failures of one stage with their counts."""
    signatures = running(it, "p").failures.table.latest()
    return {each.message: each.count for each in signatures if each.stage == stage}


def messages(kept: Kept) -> list:
    return [message for batch in kept.batches for message in batch]


@promise("redis.input.away", "redis.input.twice")
async def test_an_input_goes_on_when_its_server_is_back(tmp_path, caplog):
    caplog.set_level("INFO", "headrace")
    kept = Kept()
    with Redis(tmp_path) as server:
        async with engine(cache=server) as it:
            await it.compile(pipeline("p", [reading("cache")], [], [takes(kept)]))
            publish(server, "before")
            await until(lambda: messages(kept) == ["before"])

            await asyncio.to_thread(server.kill)
            await until(lambda: sum(failures(it, "input").values()) >= 4)
            await asyncio.to_thread(server.start)
            await until(lambda: publish(server, "after") > 0, BACK_SECONDS)
            await until(lambda: messages(kept)[-1] == "after")

            [(message, count)] = failures(it, "input").items()
            assert message == f"{server.address} closed the connection"
            assert count >= 4
            assert running(it, "p").status == "running"
    assert [each for each in caplog.messages if each.endswith("connected again")]


def publish(server: Redis, message: str) -> int:
    """Publish a message; return how many were subscribed."""
    with client(server) as it:
        return it.publish("in", f'"{message}"')


@promise("redis.output.away", "redis.output.twice")
async def test_an_output_goes_on_when_its_server_is_back(tmp_path):
    with Redis(tmp_path / "near") as near, Redis(tmp_path / "far") as far:
        async with engine(near=near, far=far) as it:
            await it.compile(pipeline("p", [reading("near")], [], [writing("far")]))

            await asyncio.to_thread(far.kill)
            await until(lambda: publish(near, "lost") and tried(it) >= 2)
            await asyncio.to_thread(far.start)
            with listening(far, "out") as published:
                heard = asyncio.ensure_future(asyncio.to_thread(next, published))
                await until(lambda: bool(publish(near, "after")) and heard.done(), BACK_SECONDS)
                assert await heard == b'"after"'

            assert [*failures(it, "output")] == [
                f"{far.address} does not answer: connection refused"
            ]
            assert running(it, "p").status == "running"


def tried(it: Engine) -> int:
    return sum(failures(it, "output").values())


async def test_a_pipeline_waits_for_a_server_that_is_not_there_yet(tmp_path, caplog):
    server, kept = Redis(tmp_path), Kept()
    async with engine(cache=server) as it:
        config = pipeline("p", [reading("cache")], [], [takes(kept), writing("cache")])
        building = asyncio.ensure_future(it.compile(config))
        await until(lambda: server.address in caplog.text)
        with server_started(await asyncio.to_thread(server.start)):
            await building
            await until(lambda: publish(server, "now") > 0)
            await until(lambda: "now" in messages(kept))

            assert running(it, "p").status == "running"
            await it.dispose("p")


@contextmanager
def server_started(server: Redis) -> Iterator[None]:
    """End a server that runs already."""
    try:
        yield
    finally:
        server.kill()


async def test_a_pipeline_ends_in_time_while_its_server_hangs(tmp_path):
    with Redis(tmp_path) as server:
        async with engine(cache=server) as it:
            kept = Kept()
            config = pipeline("p", [reading("cache")], [], [takes(kept), writing("cache")])
            await it.compile(config)
            with server.halted():
                watch = Stopwatch()
                await it.dispose("p")
                assert watch.seconds < 2


@virtual(patience=0.2)
async def test_a_server_that_hangs_has_a_second_for_the_end_of_tls(tmp_path, authority):
    with Redis(tmp_path, tls=authority) as server:
        ctx = context(server, tls={"ca_file": str(authority.ca_file)})
        opened = await ctx.connection(RedisConnection, "cache").server(ctx).connect()
        with server.halted():
            began = ctx.clock.monotonic()
            await opened.close()
            took = ctx.clock.monotonic() - began
        with client(server) as it:
            await until(lambda: len(it.client_list()) == 1)

    assert took == Limits().close_seconds == 1


@promise("redis.input.beyond")
async def test_a_reader_that_is_slow_is_dropped_by_the_server_and_told_of_it(tmp_path):
    large = b"x" * (1 << 20)
    with Redis(tmp_path, extra=["client-output-buffer-limit pubsub 2mb 2mb 0"]) as server:
        async with subscribed(source(server, "slow")) as reader:
            with client(server) as publisher:
                sent = 0
                while publisher.publish("slow", large):
                    sent += 1

            got: list[bytes] = []
            with pytest.raises(Unreachable) as lost:
                await take_all(reader, got)
    assert str(lost.value) == f"{server.address} closed the connection"
    assert got == [large] * len(got)
    assert len(got) < sent


async def take_all(reader: Reader, got: list[bytes]) -> None:
    """Keep payloads for as long as they come."""
    while True:
        got += [payload for payload, _ in await anext(reader)]


@pytest.mark.long
async def test_good_messages_arrive_among_ten_thousand_that_are_none(redis_server: Redis, caplog):
    odd = [b"", b"{half", b"\xff\xfe", b"[" * 2000, b"nan", b"1 2", b"\x00", bytes(range(256))]
    kept = Kept()
    async with engine(cache=redis_server) as it:
        config = pipeline("p", [reading("cache", max_batch=50)], [], [takes(kept)])
        await it.compile(config)
        with client(redis_server) as publisher:
            for n in range(100):
                with publisher.pipeline(transaction=False) as batch:
                    for each in range(100):
                        batch.publish("in", odd[each % len(odd)])
                    batch.publish("in", b"%d" % n)
                    await asyncio.to_thread(batch.execute)
            for n in range(100, 103):
                await asyncio.to_thread(publisher.publish, "in", b"\x16" * (16 << 20))
                publisher.publish("in", b"%d" % n)
                await until(lambda n=n: n in messages(kept))

        assert messages(kept) == [*range(103)]
        assert failures(it, "input") == {}
    assert [each for each in caplog.messages if "skipped a payload that is not JSON" in each]
