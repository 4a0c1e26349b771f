"""The failures of all pipelines over the API."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import falcon.testing
import pytest
from jsonschema import Draft202012Validator

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BatchFailed, FailureClass, Unreachable
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.pipelinehistory import SLICE
from headrace.compiler.runtime.monitoring.signatures import MOST_SIGNATURES
from headrace.web.app import Application
from headrace.web.service import Service
from tests.compiler.runtime.counting import Counting
from tests.stand_ins import Slow, Told, batches, engine, pipeline, reads, run, takes
from tests.virtual import virtual
from tests.web.conftest import waited_for

BEGAN = 1767225600000


async def listed(components: Any, engine: Engine, query: str = "") -> Any:
    """Return what an engine answers."""
    service = Service(engine, components, engine.clock, is_ready=True)
    async with falcon.testing.ASGIConductor(waited_for(Application(service))) as client:
        return (await client.simulate_get("/api/failures", query_string=query)).json


@virtual
async def test_failures_of_all_pipelines_are_told_the_last_seen_first(components):
    it = engine()
    first, second = (Counting(it.history, id).begin() for id in ("first", "second"))
    first.fail("full")
    second.fail("slow", times=2)
    await it.clock.sleep(1)
    first.fail("full")

    def told(id: str, message: str, first_seen: int, last_seen: int, count: int) -> dict[str, Any]:
        return {
            "stage": "output",
            "component": 0,
            "message": message,
            "first_seen": BEGAN + first_seen,
            "last_seen": BEGAN + last_seen,
            "count": count,
            "class": "invalid",
            "pipeline_id": id,
        }

    assert await listed(components, it) == {
        "total": 2,
        "failures": [told("first", "full", 0, 1000, 2), told("second", "slow", 0, 0, 2)],
    }


@virtual
async def test_inputs_that_fail_alike_are_told_apart(components):
    it = engine()
    sources = [Told(it.clock, [Unreachable("gone")]) for _ in range(2)]
    await run(it, pipeline("p", [reads(each) for each in sources]))

    told = (await listed(components, it))["failures"]

    assert {(each["component"], each["class"]) for each in told} == {(None, "unavailable")}
    assert sorted((each["input_index"], each["count"]) for each in told) == [(0, 1), (1, 1)]


@pytest.mark.parametrize("failure", get_args(FailureClass))
@virtual
async def test_a_failure_has_the_class_that_it_was_raised_with(components, failure) -> None:
    it = engine()
    source = Told(it.clock, [0.5, batches([1])])
    refusing = Slow(it.clock, 0, [BatchFailed("no", failure)])
    await run(it, pipeline("p", [reads(source)], [], [takes(refusing)]))
    await it.clock.sleep(1)

    [told] = (await listed(components, it))["failures"]

    assert (told["message"], told["class"]) == ("no", failure)
    assert (await it.past("p", "coarse")).failures[0].failure == failure


@virtual
async def test_the_class_of_a_failure_is_that_of_the_last_time(components) -> None:
    it = engine()
    source = Told(it.clock, [0.5, batches([1]), 1, batches([2])])
    refusing = Slow(it.clock, 0, [BatchFailed("no", each) for each in ("unclear", "invalid")])
    await run(it, pipeline("p", [reads(source)], [], [takes(refusing)]))

    classes = []
    for _ in range(2):
        await it.clock.sleep(1)
        [told] = (await listed(components, it))["failures"]
        classes.append((told["count"], told["class"]))

    assert classes == [(1, "unclear"), (2, "invalid")]


@virtual
async def test_a_limit_leaves_those_seen_last_of_however_many_pipelines(components):
    it = engine()
    for number in range(3 * SLICE):
        one = Counting(it.history, f"p{number}").begin()
        for each in range(3):
            one.fail(f"{number} {each}")
        await it.clock.sleep(1)

    told = await listed(components, it, "limit=5")

    last = 3 * SLICE - 1
    assert told["total"] == 9 * SLICE
    assert [each["message"] for each in told["failures"]] == [
        *(f"{last} {each}" for each in range(3)),
        *(f"{last - 1} {each}" for each in range(2)),
    ]


@virtual
async def test_without_a_limit_two_hundred_are_told(components):
    it = engine()
    for number in range(4):
        one = Counting(it.history, f"p{number}").begin()
        for each in range(MOST_SIGNATURES):
            one.fail(str(each))

    told = await listed(components, it)

    assert (told["total"], len(told["failures"])) == (4 * MOST_SIGNATURES, 200)


@virtual
async def test_what_has_ended_is_not_told(components):
    it = engine()
    one = Counting(it.history).begin()
    one.fail()
    one.end()

    assert await listed(components, it) == {"total": 0, "failures": []}


@virtual
async def test_others_have_their_turn_while_failures_are_looked_for():
    it, turns = Engine(Clock(asyncio.get_running_loop())), 0
    for number in range(10 * SLICE):
        Counting(it.history, f"p{number}").begin()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await it.clock.sleep(0)

    beside = asyncio.ensure_future(others())
    await it.failures(1000)
    beside.cancel()

    assert turns >= 10


async def test_failures_are_told_as_they_are_described(client, engine) -> None:
    for id in ("p", "q"):
        Counting(engine.inner.history, id).begin().fail()
    described = (await client.simulate_get("/api/openapi.json")).json

    told = (await client.simulate_get("/api/failures")).json

    schema = {**described, "$ref": "#/components/schemas/LatestFailures"}
    Draft202012Validator(schema).validate(told)
    assert described["components"]["schemas"]["PipelineFailure"]["required"] == [
        "stage",
        "component",
        "message",
        "first_seen",
        "last_seen",
        "count",
        "class",
        "pipeline_id",
    ]


@pytest.mark.parametrize("limit", ["0", "1001", "all", ""])
async def test_a_malformed_limit_is_refused(client, limit: str) -> None:
    told = await client.simulate_get("/api/failures", query_string=f"limit={limit}")

    said = f"the parameter 'limit' is '{limit}': expected a whole number from 1 to 1,000"
    assert (told.status_code, told.json) == (400, {"error": said})
