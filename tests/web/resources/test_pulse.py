"""Who asks for the pulse is told each second what pipelines have counted, and shown no batches."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from jsonschema import Draft202012Validator

from headrace.web.app import Application
from tests.web.auth.people import READER, basic, guarded
from tests.web.resources.plant import EventClient, ingest

FAILING = ingest(
    "failing",
    {"type": "map", "mappings": [{"type": "cast", "from": "n", "to": "integer", "as": "n"}]},
)


@pytest.fixture
async def listener(client, service) -> AsyncIterator[EventClient]:
    for config in (ingest("a"), FAILING):
        answer = await client.simulate_post("/api/pipelines", json=config)
        assert answer.status_code == 201, answer.text
    listener = EventClient(Application(service), "named=pulse")
    await listener.begin()
    yield listener
    await listener.leave()


async def test_the_pulse_is_what_the_description_says(client, listener) -> None:
    described = (await client.simulate_get("/api/openapi.json")).json

    name, first = await listener.next()

    assert name == "pulse"
    assert [*first["pipelines"]] == ["a", "failing"]
    content = described["paths"]["/events"]["get"]["responses"]["200"]["content"]
    schema = content["text/event-stream"]["x-headrace-events"]["pulse"]
    Draft202012Validator({**described, **schema}).validate(first)
    [figures, _] = first["pipelines"].values()
    assert {*figures} == {*described["components"]["schemas"]["PipelinePulse"]["required"]}


async def test_no_batch_comes_with_it_and_failures_do(client, listener) -> None:
    await listener.next()

    for id, value in (("a", {"n": 1}), ("failing", {"n": "x"})):
        await client.simulate_post(f"/api/pipelines/{id}/messages", json=value)

    name, event = await listener.next()
    assert (name, event["pipeline_id"], event["stage"]) == ("", "failing", "transform")
    name, pulse = await listener.next()
    counts = {id: (each["in"], each["failed"]) for id, each in pulse["pipelines"].items()}
    assert (name, counts) == ("pulse", {"a": (1, 0), "failing": (1, 1)})


async def test_the_batches_of_pipelines_that_are_named_come_with_it(client, service) -> None:
    for id in ("a", "b"):
        await client.simulate_post("/api/pipelines", json=ingest(id))
    query = "named=pulse&pipeline=b&pipeline=later&limit=1"
    listener = await EventClient(Application(service), query).begin()
    await listener.next()

    for id in ("a", "b"):
        await client.simulate_post(f"/api/pipelines/{id}/messages", json=[1, 2, 3])

    told = [await listener.next() for _ in range(3)]
    shown = [(event["pipeline_id"], event["payload"]["batch"]) for _, event in told[:2]]
    assert shown == [("b", {"messages": ["1"], "total": 3, "skipped_messages": 0})] * 2
    assert told[2][0] == "pulse"
    await listener.leave()


async def test_who_may_read_is_told(service) -> None:
    service.authenticator = guarded(service.clock)
    listener = await EventClient(Application(service), "named=pulse", basic(READER)).begin()

    assert (await listener.next())[1]["pipelines"] == {}
    await listener.leave()
