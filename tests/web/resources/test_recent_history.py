"""The latest counts of all pipelines side by side, and those of one since it was asked before."""

from __future__ import annotations

import asyncio
from typing import Any

import falcon.testing
import pytest
from jsonschema import Draft202012Validator

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.pipelinehistory import SLICE
from headrace.web.app import Application
from headrace.web.resources.history import MOST_BUCKETS
from headrace.web.service import Service
from tests.compiler.runtime.counting import Counting
from tests.virtual import virtual
from tests.web.conftest import waited_for

BEGAN = 1767225600


async def asked(components: Any, engine: Engine, query: str, path: str = "/api/history") -> Any:
    """Return what an engine answers."""
    service = Service(engine, components, engine.clock, is_ready=True)
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as client:
        return (await client.simulate_get(path, query_string=query)).json


def engine() -> Engine:
    return Engine(Clock(asyncio.get_running_loop()))


@virtual
async def test_all_that_runs_is_told_in_the_same_buckets_and_null_where_it_was_not_there(
    components,
):
    it = engine()
    old = Counting(it.history, "old").begin()
    for n in range(1, 5):
        old.count(n, 2 * n)
        await it.clock.sleep(5)
    young = Counting(it.history, "young").begin()
    young.count(7)
    young.fail(times=2)
    await it.clock.sleep(5)

    assert await asked(components, it, "resolution=fine&limit=3") == {
        "resolution": "fine",
        "bucket_secs": 5,
        "start": [BEGAN + 10, BEGAN + 15, BEGAN + 20],
        "pipelines": {
            "old": {"inbound": [3, 4, 0], "outbound": [6, 8, 0], "errors": [0, 0, 0]},
            "young": {
                "inbound": [None, None, 7],
                "outbound": [None, None, 0],
                "errors": [None, None, 2],
            },
        },
    }


@virtual
async def test_without_parameters_it_is_twelve_minutes_at_most(components):
    it = engine()
    one = Counting(it.history, "p").begin()
    for minute in range(1, 31):
        one.count(minute)
        await it.clock.sleep(60)

    told = await asked(components, it, "")

    assert (told["resolution"], told["bucket_secs"]) == ("coarse", 60)
    assert told["start"] == [*range(BEGAN + 18 * 60, BEGAN + 30 * 60, 60)]
    assert told["pipelines"]["p"]["inbound"] == [*range(19, 31)]


@virtual
async def test_there_is_no_bucket_before_the_first_pipeline(components):
    it = engine()
    Counting(it.history, "p").begin()

    told = await asked(components, it, f"limit={MOST_BUCKETS}")

    assert told["start"] == [BEGAN]


@virtual
async def test_what_has_ended_is_not_told(components):
    it = engine()
    Counting(it.history, "gone").begin().end()
    empty = await asked(components, it, "")
    Counting(it.history, "p").begin()

    assert (empty["start"], empty["pipelines"]) == ([], {})
    assert [*(await asked(components, it, ""))["pipelines"]] == ["p"]


@virtual
async def test_without_history_nothing_is_told(components):
    it = Engine(Clock(asyncio.get_running_loop()), retention_seconds=0)
    Counting(it.history, "p").begin()

    assert (await asked(components, it, ""))["pipelines"] == {}


@virtual
async def test_others_have_their_turn_while_many_pipelines_are_told(components):
    it, turns = engine(), 0
    for number in range(10 * SLICE):
        Counting(it.history, f"p{number}").begin()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await it.clock.sleep(0)

    beside = asyncio.ensure_future(others())
    told = await it.recent("fine", MOST_BUCKETS)
    beside.cancel()

    assert len(told.pipelines) == 10 * SLICE
    assert turns >= 10


async def test_a_pipeline_is_told_as_it_is_described(client, engine) -> None:
    await client.simulate_post("/api/pipelines", json={"id": "a/b", "inputs": [{"type": "http"}]})
    described = (await client.simulate_get("/api/openapi.json")).json

    told = (await client.simulate_get("/api/history")).json

    schema = {**described, "$ref": "#/components/schemas/RecentHistory"}
    Draft202012Validator(schema).validate(told)
    assert [*told["pipelines"]] == ["a/b"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("resolution=", "'resolution' is '': expected one of coarse, fine"),
        ("resolution=5", "'resolution' is '5': expected one of coarse, fine"),
        ("limit=0", "'limit' is '0': expected a whole number from 1 to 360"),
        ("limit=361", "'limit' is '361': expected a whole number from 1 to 360"),
    ],
)
async def test_a_malformed_parameter_is_refused(client, query: str, said: str) -> None:
    told = await client.simulate_get("/api/history", query_string=query)

    assert (told.status_code, told.json) == (400, {"error": f"the parameter {said}"})


@virtual
async def test_one_is_asked_for_what_began_after_a_moment(components):
    it = engine()
    one = Counting(it.history, "p").begin()
    for n in range(1, 5):
        one.count(n)
        await it.clock.sleep(5)

    async def after(moment: int) -> list[int]:
        query = f"resolution=fine&after={moment}"
        told = await asked(components, it, query, "/api/pipelines/p/history")
        return [each["inbound"] for each in told["buckets"]]

    assert await after(0) == await after(BEGAN - 1) == [1, 2, 3, 4]
    assert await after(BEGAN) == await after(BEGAN + 4) == [2, 3, 4]
    assert await after(BEGAN + 14) == [4]
    assert await after(BEGAN + 15) == await after(10**15 - 1) == []


async def test_a_moment_that_is_none_is_refused(client) -> None:
    told = await client.simulate_get("/api/pipelines/p/history", query_string="after=2026-01-01")

    assert told.status_code == 400
    assert told.json["error"].startswith("the parameter 'after' is '2026-01-01': expected a whole")
