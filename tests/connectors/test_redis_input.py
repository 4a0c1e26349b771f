"""The `redis` input, against a real server."""

from __future__ import annotations

import asyncio

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.compiler.config.program import load_program
from headrace.compiler.errors import Unreachable
from headrace.compiler.text.documents import read
from headrace.connectors.redis.connection import Limits
from tests.clients import PATIENCE
from tests.promises import promise
from tests.redis_sides import client, context, payloads, source, subscribed
from tests.services.redis import Redis

ODD = [b"", b"\xff\xfe", b"{half", b"[" * 100_000, bytes(range(256)), b"x" * (16 << 20)]


@promise("delivery.begins.ready")
async def test_what_is_published_once_it_is_ready_arrives(redis_server: Redis):
    async with subscribed(source(redis_server, "ready")) as reader:
        with client(redis_server) as publisher:
            assert publisher.publish("ready", b'{"n":1}') == 1

        assert await anext(reader) == [(b'{"n":1}', None)]


async def test_payloads_are_handed_over_as_they_are(redis_server: Redis):
    async with subscribed(source(redis_server, "odd")) as reader:
        with client(redis_server) as publisher:
            for payload in ODD:
                publisher.publish("odd", payload)

        assert await payloads(reader, len(ODD)) == ODD


async def test_what_has_arrived_is_handed_over_at_once(redis_server: Redis):
    async with subscribed(source(redis_server, "many")) as reader:
        with client(redis_server) as publisher, publisher.pipeline(transaction=False) as batch:
            for n in range(500):
                batch.publish("many", b"%d" % n)
            batch.execute()

        chunks = [await anext(reader)]
        while sum(map(len, chunks)) < 500:
            chunks.append(await anext(reader))

    assert [payload for chunk in chunks for payload, _ in chunk] == [b"%d" % n for n in range(500)]
    assert len(chunks) < 50


async def test_a_channel_is_a_name_and_no_pattern(redis_server: Redis):
    ctx = context(redis_server)
    async with subscribed(source(redis_server, "plant/*", ctx)) as reader:
        with client(redis_server) as publisher:
            assert publisher.publish("plant/1", b"1") == 0
            publisher.publish("plant/*", b"2")

        assert await payloads(reader, 1) == [b"2"]
    assert ctx.warnings == [
        "'*' in the channel 'plant/*' is a character like any other: this is the name of one channel,"
        " not a pattern"
    ]


async def test_an_operator_sees_who_is_subscribed(redis_server: Redis):
    ctx = context(redis_server, pipeline="Wärme 1")
    async with subscribed(source(redis_server, "seen", ctx)):
        with client(redis_server) as operator:
            names = [each["name"] for each in operator.client_list(_type="pubsub")]

    assert names == ["headrace-W_rme_1"]


async def test_it_hangs_up_when_it_is_closed(redis_server: Redis):
    async with subscribed(source(redis_server, "closed")):
        pass

    await asyncio.sleep(0)
    with client(redis_server) as operator:
        while operator.pubsub_numsub("closed") != [(b"closed", 0)]:
            pass


async def test_metadata_is_connection_and_channel():
    it = source("redis://localhost", "news")

    assert it.describe(None) == {"connection": "cache", "channel": "news"}


async def test_a_stopped_one_yields_once_more_and_no_message(redis_server: Redis):
    it = source(redis_server, "stopped")
    async with subscribed(it) as reader:
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        assert it.stop() is False

        assert list(await waiting) == []
        assert list(await anext(reader)) == []


async def test_a_stopped_one_that_was_not_waiting_yields_no_message(redis_server: Redis):
    it = source(redis_server, "stopped early")
    async with subscribed(it) as reader:
        with client(redis_server) as publisher:
            publisher.publish("stopped early", b"1")
        it.stop()

        assert list(await anext(reader)) == []


async def test_a_server_that_hangs_up_is_a_lost_connection(redis_server: Redis):
    ctx = context(redis_server, pipeline="dropped")
    async with subscribed(source(redis_server, "dropped", ctx)) as reader:
        with client(redis_server) as operator:
            operator.publish("dropped", b"last")
            [own] = [each for each in operator.client_list() if each["name"] == "headrace-dropped"]
            operator.client_kill_filter(_id=own["id"])

        assert await payloads(reader, 1) == [b"last"]
        with pytest.raises(Unreachable) as lost:
            await anext(reader)
    assert str(lost.value) == f"{redis_server.address} closed the connection"


async def test_a_silent_server_is_asked_whether_it_is_there(redis_server: Redis):
    limits = Limits(quiet_seconds=0.02)
    async with subscribed(source(redis_server, "quiet", limits=limits)) as reader:
        waiting = asyncio.ensure_future(anext(reader))
        with client(redis_server) as other, other.monitor() as monitor:
            said = (each["command"] for each in monitor.listen())
            for _ in range(3):
                await asyncio.to_thread(lambda: next(each for each in said if each == "PING"))
            other.publish("quiet", b"1")

        assert await waiting == [(b"1", None)]


async def test_a_server_that_hangs_is_a_lost_connection(tmp_path):
    with Redis(tmp_path) as server:
        async with subscribed(source(server, "hung", limits=Limits(quiet_seconds=0.1))) as reader:
            with server.halted(), pytest.raises(Unreachable) as lost:
                await anext(reader)
    assert str(lost.value) == f"{server.address} does not answer any more"


async def test_a_large_message_that_comes_slowly_keeps_the_connection():
    limits = Limits(quiet_seconds=0.05)
    head, tail = b"*3\r\n$7\r\nmessage\r\n$4\r\nslow\r\n$6\r\n", b"123456"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer like Redis; then say a message byte by byte, one for each question."""
        await reader.readuntil(b"SETNAME")
        writer.write(b"+OK\r\n")
        await reader.readuntil(b"SUBSCRIBE")
        writer.write(b"*3\r\n$9\r\nsubscribe\r\n$4\r\nslow\r\n:1\r\n" + head)
        for byte in tail:
            await reader.readuntil(b"PING")
            writer.write(bytes([byte]))
        writer.write(b"\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = "{}:{}".format(*server.sockets[0].getsockname())
        async with subscribed(source(f"redis://{where}", "slow", limits=limits)) as reader:
            assert await anext(reader) == [(b"123456", None)]


async def test_a_message_that_has_begun_is_not_waited_for_without_end():
    limits = Limits(quiet_seconds=0.02, questions_in_a_message=5)
    questions = asyncio.get_running_loop().create_future()
    begun = b"*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$6\r\n1"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer like Redis; then begin a message and say no more."""
        await reader.readuntil(b"SETNAME")
        writer.write(b"+OK\r\n")
        await reader.readuntil(b"SUBSCRIBE")
        writer.write(b"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n" + begun)
        questions.set_result((await reader.read()).count(b"PING"))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = "{}:{}".format(*server.sockets[0].getsockname())
        async with subscribed(source(f"redis://{where}", "x", limits=limits)) as reader:
            with pytest.raises(Unreachable, match="does not answer any more"):
                await anext(reader)
        async with asyncio.timeout(PATIENCE):
            assert await questions == 5


@pytest.mark.parametrize("odd", [b"*1\r\n$7\r\nmessage\r\n", b":5\r\n:5\r\n"])
async def test_a_push_that_is_none_of_redis_ends_the_connection(odd):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"SETNAME")
        writer.write(b"+OK\r\n")
        await reader.readuntil(b"SUBSCRIBE")
        writer.write(b"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n" + odd)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        where = "{}:{}".format(*server.sockets[0].getsockname())
        async with subscribed(source(f"redis://{where}", "x")) as reader:
            with pytest.raises(Unreachable, match="answers, and not as Redis does"):
                await anext(reader)


def test_that_nothing_can_be_acknowledged_is_told_with_the_reason():
    text = "[{id: a, inputs: [{type: redis, connection: c, channel: x, ack: on_delivery}]}]"

    _, said = load_program(read(text, "a.yaml", "yaml"), catalogue())

    assert [each.message for each in said if each.code == "nothing-to-acknowledge"] == [
        "a message from 'redis' is acknowledged to nobody (Pub/Sub keeps nothing that it could send"
        " again), so 'ack' cannot be on_delivery"
    ]
