"""What is kept on disk over the API: the list, and what nobody reads discarded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from headrace.compiler.clock import Clock
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull
from headrace.web.service import Service
from tests.web.jsonengine import JsonEngine
from tests.web.storing import AT, Storing

KEYS = [
    "id",
    "pipeline_id",
    "target",
    "part",
    "entries",
    "bytes",
    "oldest",
    "state",
    "left_over",
    "ended",
    "aside",
    "aside_bytes",
]


@pytest_asyncio.fixture
async def engine(components: Catalogue) -> AsyncIterator[JsonEngine]:
    engine = JsonEngine(Storing(Clock(asyncio.get_running_loop())), components)
    yield engine
    await engine.close()


async def ids(client: Any) -> list[int]:
    """Return the ids of what is listed."""
    return [each["id"] for each in (await client.simulate_get("/api/stored")).json]


async def test_where_no_store_is_open_nothing_is_listed_or_found(client, service: Service) -> None:
    service.engine = Engine(service.clock)

    listed = await client.simulate_get("/api/stored")
    missing = await client.simulate_delete("/api/stored/1")

    assert (listed.status_code, listed.json) == (200, [])
    assert (missing.status_code, missing.json) == (
        404,
        {"error": "nothing is stored under the id '1'"},
    )


async def test_what_is_kept_is_listed_with_whose_it_is_and_how_much(client) -> None:
    listed = await client.simulate_get("/api/stored")

    assert listed.status_code == 200
    assert listed.json == [
        {
            "id": 1,
            "pipeline_id": "press-line",
            "target": "http",
            "part": "journal",
            "entries": 3,
            "bytes": 120,
            "oldest": AT,
            "state": "open",
            "left_over": False,
            "ended": False,
            "aside": 2,
            "aside_bytes": 30,
        },
        {
            "id": 2,
            "pipeline_id": "alarms",
            "target": "http",
            "part": "journal",
            "entries": 0,
            "bytes": 0,
            "oldest": None,
            "state": "full",
            "left_over": False,
            "ended": False,
            "aside": 0,
            "aside_bytes": 0,
        },
        {
            "id": 3,
            "pipeline_id": "press-line",
            "target": "http",
            "part": "journal",
            "entries": 2,
            "bytes": 50,
            "oldest": AT + 1000,
            "state": "open",
            "left_over": True,
            "ended": True,
            "aside": 0,
            "aside_bytes": 0,
        },
    ]
    assert [*listed.json[0]] == KEYS


async def test_it_is_listed_as_it_is_described(client) -> None:
    described = (await client.simulate_get("/api/openapi.json")).json

    told = (await client.simulate_get("/api/stored")).json

    part = described["components"]["schemas"]["StoredPart"]
    assert [*part["properties"]] == KEYS
    for each in told:
        Draft202012Validator({**described, "$ref": "#/components/schemas/StoredPart"}).validate(
            each
        )


async def test_what_nobody_reads_is_discarded(client) -> None:
    gone = await client.simulate_delete("/api/stored/3")
    again = await client.simulate_delete("/api/stored/3")

    assert (gone.status_code, gone.text) == (204, "")
    assert (again.status_code, await ids(client)) == (404, [1, 2])


async def test_what_a_pipeline_reads_stays(client) -> None:
    refused = await client.simulate_delete("/api/stored/1")

    assert (refused.status_code, refused.json) == (
        409,
        {"error": "what is stored under the id '1' is in use by pipeline 'press-line'"},
    )
    assert await ids(client) == [1, 2, 3]


async def test_what_was_set_aside_of_what_a_pipeline_reads_is_discarded_alone(client) -> None:
    gone = await client.simulate_delete("/api/stored/1/aside")
    again = await client.simulate_delete("/api/stored/1/aside")
    unknown = await client.simulate_delete("/api/stored/x/aside")

    assert (gone.status_code, gone.text) == (204, "")
    said = "nothing that was set aside is stored under the id '1'"
    assert (again.status_code, again.json) == (404, {"error": said})
    assert unknown.status_code == 404
    listed = (await client.simulate_get("/api/stored")).json
    assert [(each["entries"], each["aside"]) for each in listed] == [(3, 0), (0, 0), (2, 0)]


@pytest.mark.parametrize("id", [9, 0, -1, 2**63 - 1, -(2**63)])
async def test_an_id_of_nothing_is_not_found(client, engine, id: int) -> None:
    missing = await client.simulate_delete(f"/api/stored/{id}")

    assert missing.status_code == 404
    assert missing.json == {"error": f"nothing is stored under the id '{id}'"}
    assert engine.inner.asked == [id]


@pytest.mark.parametrize(
    ("written", "id"),
    [
        ("press-line", "press-line"),
        ("3.0", "3.0"),
        ("03", "03"),
        ("+3", "+3"),
        ("-0", "-0"),
        ("3%0A", "3"),  # an answer is one line
        ("%203", "3"),
        ("%EF%BC%93", "\uff13"),  # a digit as well
        (str(2**63), str(2**63)),
        ("9" * 1000, "9" * 1000),
    ],
)
async def test_what_is_no_id_is_not_found(client, engine, written: str, id: str) -> None:
    missing = await client.simulate_delete(f"/api/stored/{written}")

    assert missing.status_code == 404
    assert missing.json["error"].replace(" ", "") == f"nothingisstoredundertheid'{id}'"
    assert (engine.inner.asked, await ids(client)) == ([], [1, 2, 3])


@pytest.mark.parametrize("cause", [StoreFailed("disk I/O error"), StoreFull("the disk is full")])
async def test_a_store_that_cannot_be_written_says_so(
    client, engine, monkeypatch: pytest.MonkeyPatch, cause: StoreFailed
) -> None:
    async def discard_stored(id: int) -> None:
        raise cause

    monkeypatch.setattr(engine.inner, "discard_stored", discard_stored)

    refused = await client.simulate_delete("/api/stored/3")

    assert (refused.status_code, refused.json) == (503, {"error": str(cause)})
    assert await ids(client) == [1, 2, 3]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("DELETE", "/api/stored", "GET"), ("GET", "/api/stored/3", "DELETE")],
)
async def test_all_is_listed_and_one_is_discarded(
    client, method: str, path: str, allowed: str
) -> None:
    refused = await client.simulate_request(method, path)

    assert refused.status_code == 405
    assert allowed in refused.headers["Allow"]
    assert await ids(client) == [1, 2, 3]
