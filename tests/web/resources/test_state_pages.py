"""A bucket read page by page: what begins so, and what comes behind the last entry of the page before."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import falcon.testing
import pytest

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring import bucketfigures
from headrace.compiler.runtime.monitoring.bucketfigures import BucketPage
from headrace.web.app import Application
from headrace.web.resources import state
from headrace.web.service import Service
from tests.stand_ins import engine
from tests.virtual import virtual
from tests.web.conftest import waited_for


def bucket_of(it: Engine, **bounds: Any) -> Bucket:
    """Return the one bucket that is declared."""
    it.state.declare({"b": Bounds(**bounds)})
    [bucket] = it.state
    return bucket


async def page(components: Any, it: Engine, **asked: Any) -> Any:
    """Return a page of the bucket."""
    service = Service(it, components, it.clock, is_ready=True)
    query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in asked.items())
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as client:
        answer = await client.simulate_get("/api/state/b", query_string=query)
    assert answer.status_code == 200
    return answer.json


def keys(page: Any) -> list[str]:
    return [each["key"] for each in page["entries"]]


def behind(page: Any) -> str:
    """Return what asks for the page behind another one."""
    last = page["entries"][-1]
    return f"{last['updated_at']},{last['key']}"


@virtual
async def test_page_by_page_every_entry_is_told_once_the_newest_first(components):
    it = engine()
    bucket = bucket_of(it)
    for second in range(5):
        bucket.merge({f"{second},{each}": {"n": each} for each in ("b", "a", "")})
        await it.clock.sleep(0.001)
    whole = await page(components, it)

    told, one = [], await page(components, it, limit=4)
    while one["entries"]:
        told += one["entries"]
        assert (one["keys"], one["truncated"]) == (15, len(told) < 15)
        one = await page(components, it, limit=4, after=behind(one))

    assert told == whole["entries"]
    assert keys({"entries": told[:3]}) == ["4,", "4,a", "4,b"]


@virtual
async def test_a_prefix_leaves_the_keys_that_begin_so(components):
    it = engine()
    bucket_of(it).merge({key: {"n": 1} for key in ("press-1", "press-2", "oven", "Press", "")})

    found = await page(components, it, prefix="press-", limit=1)
    rest = await page(components, it, prefix="press-", limit=1, after=behind(found))

    assert (keys(found), found["keys"], found["truncated"]) == (["press-1"], 5, True)
    assert (keys(rest), rest["keys"], rest["truncated"]) == (["press-2"], 5, False)
    assert keys(await page(components, it, prefix="none")) == []
    assert len(keys(await page(components, it, prefix=""))) == 5


@virtual
async def test_what_has_expired_is_on_no_page(components):
    it = engine()
    bucket = bucket_of(it, idle_seconds=10)
    bucket.merge({"a1": {"n": 1}})
    await it.clock.sleep(6)
    bucket.merge({"a2": {"n": 1}})
    await it.clock.sleep(6)

    assert keys(await page(components, it, prefix="a")) == ["a2"]


@virtual
async def test_an_entry_that_is_written_again_is_on_the_first_page_again(components):
    it = engine()
    bucket = bucket_of(it)
    for key in "abcd":
        bucket.merge({key: {"n": 1}})
        await it.clock.sleep(1)
    first = await page(components, it, limit=2)

    bucket.merge({"a": {"n": 2}})

    assert keys(first) == ["d", "c"]
    assert keys(await page(components, it, limit=2, after=behind(first))) == ["b"]
    assert keys(await page(components, it, limit=2)) == ["a", "d"]


@virtual
async def test_the_entry_that_a_page_begins_behind_may_have_gone(components):
    it = engine()
    bucket = bucket_of(it, max_keys=3)
    for key in "abc":
        bucket.merge({key: {"n": 1}})
        await it.clock.sleep(1)
    first = await page(components, it, limit=2)
    bucket.merge({"d": {"n": 1}})
    bucket.merge({"e": {"n": 1}})

    assert keys(await page(components, it, after=behind(first))) == []


@virtual
async def test_others_write_while_keys_are_looked_for_and_the_page_is_of_one_moment(monkeypatch):
    monkeypatch.setattr(bucketfigures, "_SLICE", 10)
    it = Engine(Clock(asyncio.get_running_loop()))
    bucket = bucket_of(it, max_keys=100)
    bucket.merge({f"a{number:02}": {"n": 0} for number in range(100)})
    reading = asyncio.ensure_future(it.bucket("b", BucketPage(100, 2**20, "a")))

    turns = 0
    while not reading.done():
        turns += 1
        bucket.merge({f"a{number:02}": {"n": turns} for number in range(50)})
        bucket.merge({f"new{turns}": {"n": turns}})
        await asyncio.sleep(0)

    assert turns >= 10
    told = (await reading).entries
    assert {bytes(each.values) for each in told if each.key < "a50"} == {
        bytes(told[0].values),
    }
    assert [each.key for each in told][:50] == [f"a{number:02}" for number in range(50)]


@pytest.mark.parametrize(
    "text", ["", "m1", "2026-03-01T08:00:00Z", ",m1", "yesterday,m1", "2026-02-30T00:00:00Z,a"]
)
async def test_what_is_no_entry_is_refused(client, engine, text: str) -> None:
    bucket_of(engine.inner)

    answer = await client.simulate_get("/api/state/b", params={"after": text})

    assert answer.status_code == 400
    assert answer.json == {"error": f"the parameter 'after' is '{text}': expected {state.ENTRY}"}


async def test_a_plus_that_is_not_encoded_is_taken_for_one(client, engine) -> None:
    bucket_of(engine.inner).merge({"a": {"n": 1}})

    answer = await client.simulate_get(
        "/api/state/b", query_string="after=2999-03-01T08:00:00.123456+00:00,m1"
    )

    assert keys(answer.json) == ["a"]


@pytest.mark.parametrize("limit", ["0", "1001", "x"])
async def test_a_malformed_limit_is_refused(client, engine, limit: str) -> None:
    bucket_of(engine.inner)

    answer = await client.simulate_get("/api/state/b", query_string=f"limit={limit}")

    assert answer.status_code == 400
