"""Samples of Redis channels, from a real server that must not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.runtime.sampling import Unread
from headrace.connectors.redis import RedisConnection, RedisInput
from tests.clients import PATIENCE
from tests.redis_sides import client, listening
from tests.sampled import engine, failed, reading, shown, take, taken
from tests.services.authority import Authority
from tests.services.redis import Redis
from tests.waiting import until


def cache(url: str, **options: Any) -> RedisConnection:
    return RedisConnection.load({"url": url, **options})


def channel(name: str, **options: Any) -> RedisInput:
    return RedisInput.load({"connection": "cache", "channel": name, **options})


async def test_others_get_everything_and_the_keys_stay_as_they_are(redis_server: Redis):
    with client(redis_server) as it, listening(redis_server, "sampled") as other:
        it.rpush("a-list", "1", "2")
        it.xadd("a-stream", {"n": 1})
        before = {key: it.dump(key) for key in it.scan_iter()}
        async with (
            engine(cache=cache(redis_server.url)) as ours,
            reading(ours, channel("sampled"), most=3) as asking,
        ):
            for n in range(3):
                it.publish("sampled", n)
            said = await asking

        assert said.messages == [int(next(other)) for _ in range(3)] == [0, 1, 2]
        assert said.notes == []
        assert {key: it.dump(key) for key in it.scan_iter()} == before
        it.delete("a-list", "a-stream")


async def test_nobody_is_subscribed_afterwards(redis_server: Redis):
    with client(redis_server) as it:
        async with engine(cache=cache(redis_server.url)) as ours:
            async with reading(ours, channel("left"), seconds=PATIENCE) as asking:
                [ours_there] = [
                    each for each in it.client_list() if "headrace-sample-" in each["name"]
                ]
                assert dict(it.pubsub_numsub("left")) == {b"left": 1}
                ours.hush()
                assert (await asking).messages == []

            await until(lambda: dict(it.pubsub_numsub("left")) == {b"left": 0})
        assert ours_there["name"] not in [each["name"] for each in it.client_list()]


@pytest.mark.parametrize("name", ["s*", "s?"])
async def test_what_looks_like_a_pattern_is_told_of(redis_server: Redis, name: str):
    async with engine(cache=cache(redis_server.url)) as it:
        said = await taken(it, channel(name), seconds=0.1)

    assert len(said.notes) == 1
    assert "is the name of one channel, not a pattern" in said.notes[0]


async def test_metadata_is_that_of_the_channel(redis_server: Redis):
    with client(redis_server) as other:
        async with (
            engine(cache=cache(redis_server.url)) as it,
            reading(it, channel("about", envelope={"type": "wrap"}), most=1) as asking,
        ):
            other.publish("about", "1")
            about = (await asking).messages[0]["_meta"]

    assert (about["connection"], about["channel"]) == ("cache", "about")


async def test_a_server_that_is_not_there_is_told():
    async with engine(cache=cache("redis://:open-sesame@127.0.0.1:1")) as it:
        why = await failed(it, channel("c"), seconds=0.5)

    assert why == "127.0.0.1:1 does not answer: connection refused"


async def test_a_server_that_hangs_is_told_and_let_go_of(tmp_path: Path):
    with Redis(tmp_path) as server, server.halted():
        async with engine(cache=cache(server.url)) as it:
            why = await failed(it, channel("c"), seconds=0.5)
            assert it.samples._under_way == {}

    assert why == "nothing that speaks 'redis' has answered after 0.5 s"


async def test_a_wrong_credential_is_told_at_once_and_is_in_no_answer(tmp_path: Path):
    with Redis(tmp_path, password="open-sesame") as server:
        async with engine(cache=cache(f"redis://:close-sesame@{server.address}")) as it:
            said = await take(it, channel("c"))

    assert isinstance(said, Unread)
    assert said.reason.startswith(f"{server.address} says 'WRONGPASS")
    assert "sesame" not in str(said)


@pytest.mark.long
@pytest.mark.parametrize("is_plain", [True, False])
async def test_tls_that_does_not_fit_is_told_at_once(
    tmp_path: Path, authority: Authority, is_plain: bool
):
    with Redis(tmp_path, tls=None if is_plain else authority) as server:
        scheme = "rediss" if is_plain else "redis"
        async with engine(cache=cache(f"{scheme}://{server.address}")) as it:
            why = await failed(it, channel("c"))

    expected = "does not speak TLS" if is_plain else "speaks TLS, and the connection does not"
    assert why == f"{server.address} {expected}"


async def test_a_server_that_stops_leaves_what_was_read(tmp_path: Path):
    with Redis(tmp_path) as server, client(server) as other:
        async with (
            engine(cache=cache(server.url)) as it,
            reading(it, channel("c"), most=5) as asking,
        ):
            other.publish("c", "1")
            other.publish("c", "2")
            await until(lambda: shown(it) == 2)
            server.stop()
            said = await asking

    assert said.messages == [1, 2]
    assert said.notes == [f"{server.address} closed the connection"]
