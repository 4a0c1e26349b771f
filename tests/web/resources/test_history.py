"""The past of a pipeline over the API."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import falcon.testing
import pytest
from jsonschema import Draft202012Validator

from headrace.compiler.clock import Clock
from headrace.compiler.config.retention import DEFAULT_RETENTION
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.pipelinehistory import History
from headrace.compiler.runtime.monitoring.pipelinerecord import PipelineRecord
from headrace.compiler.runtime.monitoring.signatures import MOST_SIGNATURES
from headrace.web.app import Application
from headrace.web.service import Service
from tests.compiler.runtime.counting import Counting
from tests.slowness import slowness
from tests.web.conftest import waited_for
from tests.web.jsonengine import JsonEngine

FEED = {"id": "feed", "inputs": [{"type": "http"}]}
PATH = "/api/pipelines/feed/history"
EMPTY = {
    "resolution": "coarse",
    "bucket_secs": 60,
    "buckets": [],
    "errors": [],
    "dropped_signatures": 0,
}


async def counted(client: Any, engine: Engine, messages: list[Any]) -> None:
    """Post messages to a new pipeline, delete it, and so have its counters read."""
    await client.simulate_post("/api/pipelines", json=FEED)
    await client.simulate_post("/api/pipelines/feed/messages", json=messages)
    await client.simulate_delete("/api/pipelines/feed")


async def test_a_pipeline_tells_what_it_counted_and_how_it_failed(client, engine) -> None:
    code = {"type": "inline", "code": "if msg < 2 { throw `too little` } emit(msg)"}
    began = engine.clock.millis()
    await client.simulate_post(
        "/api/pipelines", json={**FEED, "transforms": [{"type": "script", "source": code}]}
    )
    for messages in ([1], [2, 3], [4], [1]):
        await client.simulate_post("/api/pipelines/feed/messages", json=messages)
    await client.simulate_delete("/api/pipelines/feed")

    told = (await client.simulate_get(PATH)).json

    assert list(told) == list(EMPTY)
    assert [(each["inbound"], each["outbound"], each["errors"]) for each in told["buckets"]] == [
        (5, 3, 2)
    ]
    [bucket], [failure] = told["buckets"], told["errors"]
    assert list(bucket) == ["start", "inbound", "outbound", "errors"]
    assert bucket["start"] == engine.clock.millis() // 60_000 * 60
    assert list(failure) == [
        "stage",
        "component",
        "message",
        "first_seen",
        "last_seen",
        "count",
        "class",
    ]
    assert (failure["stage"], failure["component"], failure["count"]) == ("transform", 0, 2)
    assert failure["class"] == "invalid"
    assert "too little" in failure["message"]
    assert began <= failure["first_seen"] <= failure["last_seen"] <= engine.clock.millis()


@pytest.mark.parametrize(
    ("query", "resolution", "width"),
    [
        ("", "coarse", 60),
        ("resolution=coarse", "coarse", 60),
        ("resolution=fine", "fine", 5),
        ("resolution=Fine", "coarse", 60),
        ("resolution=5", "coarse", 60),
        ("resolution=", "coarse", 60),
        ("resolution", "coarse", 60),
        ("resolution=%ff%00", "coarse", 60),
        ("resolution=fine,coarse", "coarse", 60),
        ("other=fine", "coarse", 60),
        ("other=1&resolution=fine", "fine", 5),
    ],
)
async def test_a_resolution_that_cannot_be_read_is_the_coarse_one(
    client, engine, query: str, resolution: str, width: int
) -> None:
    await counted(client, engine, [1])

    told = await client.simulate_get(PATH, query_string=query)

    assert told.status_code == 200
    assert (told.json["resolution"], told.json["bucket_secs"]) == (resolution, width)
    [bucket] = told.json["buckets"]
    assert (bucket["start"] % width, bucket["inbound"]) == (0, 1)


@pytest.mark.parametrize("id", ["unknown", "a%2Fb", "%ff", "dry-run", "history"])
async def test_an_unknown_id_has_an_empty_past(client, id: str) -> None:
    told = await client.simulate_get(f"/api/pipelines/{id}/history")

    assert (told.status_code, told.json) == (200, EMPTY)


async def test_a_new_pipeline_has_a_past_at_once(client, engine) -> None:
    await client.simulate_post("/api/pipelines", json=FEED)

    told = (await client.simulate_get(PATH)).json
    [bucket] = told.pop("buckets")
    assert told == {each: value for each, value in EMPTY.items() if each != "buckets"}
    assert bucket.pop("start") in range(0, int(engine.clock.seconds()) + 1, 60)
    assert bucket == {"inbound": 0, "outbound": 0, "errors": 0}


async def test_without_history_the_past_is_empty(components, tmp_path) -> None:
    inner = Engine(Clock(asyncio.get_running_loop()), retention_seconds=0)
    engine = JsonEngine(inner, components)
    service = Service(engine, components, engine.clock, is_ready=True)
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as client:
        await counted(client, engine, [1])
        told = await client.simulate_get(PATH, query_string="resolution=fine")
    await engine.close()

    assert told.json == {**EMPTY, "resolution": "fine", "bucket_secs": 5}


async def test_a_past_goes_on_under_an_id_with_a_slash(client, engine) -> None:
    for _ in range(2):
        await client.simulate_post("/api/pipelines", json={**FEED, "id": "a/b"})
        await client.simulate_post("/api/pipelines/a%2Fb/messages", json=[1, 2])
        await client.simulate_delete("/api/pipelines/a%2Fb")

    told = await client.simulate_get("/api/pipelines/a%2Fb/history")

    assert sum(each["inbound"] for each in told.json["buckets"]) == 4


def full(history: History, clock: Clock, seconds: int) -> None:
    """Fill the past of `feed` with as much as it can hold."""
    record = history._records["feed"] = PipelineRecord("feed", clock, DEFAULT_RETENTION)
    now = clock.seconds()
    for ago in range(seconds, 0, -60):
        record.add(now - ago, (10_000, 10_000, 10))
    life = Counting(history, "feed").begin()
    for number in range(MOST_SIGNATURES):
        life.fail(f"{number:02}" + "x" * 2046)


@pytest.mark.timed
async def test_a_whole_past_is_answered_as_described_and_in_good_time(client, engine) -> None:
    full(engine.inner.history, engine.clock, 90_000)
    described = (await client.simulate_get("/api/openapi.json")).json

    took = []
    for _ in range(20):
        began = perf_counter()
        told = await client.simulate_get(PATH)
        took.append(perf_counter() - began)

    schema = {**described, "$ref": "#/components/schemas/PipelineHistory"}
    Draft202012Validator(schema).validate(told.json)
    assert (len(told.json["buckets"]), len(told.json["errors"])) == (1440, MOST_SIGNATURES)
    starts = [each["start"] for each in told.json["buckets"]]
    assert starts == list(range(starts[0], starts[0] + 86_400, 60))
    assert min(took) < 0.02 * slowness(), took  # and most of that is the client's


async def test_the_resolution_is_described(client) -> None:
    described = (await client.simulate_get("/api/openapi.json")).json

    captured, asked, *_ = described["paths"]["/api/pipelines/{pipeline_id}/history"]["get"][
        "parameters"
    ]
    assert (captured["name"], captured["in"]) == ("pipeline_id", "path")
    assert (asked["name"], asked["in"], asked.get("required")) == ("resolution", "query", None)
    name = asked["schema"]["$ref"].rpartition("/")[2]
    assert described["components"]["schemas"][name] == {
        "type": "string",
        "enum": ["coarse", "fine"],
        "default": "coarse",
    }
