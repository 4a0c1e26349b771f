"""Creating, listing and deleting pipelines over the API."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.parse import quote

import falcon.asgi
import pytest

from headrace.web.app import Application
from headrace.web.resources.pipelines import list_pipelines
from headrace.web.service import Service
from tests.web.exchange import Exchange

UP = {"state": "up", "why": None, "retry_at": None}
HELLO = {"id": "hello", "inputs": [{"type": "dummy", "duration": 3600}]}


async def create(client: Any, config: Any) -> Any:
    return await client.simulate_post("/api/pipelines", json=config)


async def test_what_is_created_is_answered_and_listed(client, service) -> None:
    auth = {"type": "bearer", "token": "${HOME}"}
    config = {**HELLO, "outputs": [{"type": "http", "url": "http://127.0.0.1:9/", "auth": auth}]}

    created = await create(client, config)
    listed = await client.simulate_get("/api/pipelines")

    assert created.status_code == 201
    assert "Location" not in created.headers
    assert created.json == {
        "id": "hello",
        "config": {**config, "transforms": []},
        "status": "running",
        "started_at": created.json["started_at"],
        "health": "ok",
        "inputs": [UP],
        "outputs": [UP],
        "queues": [
            {"stage": "output", "component": 0, "unit": "batches", "used": 0, "capacity": 16}
        ],
    }
    assert 0 <= service.clock.millis() - created.json["started_at"] < 60_000
    assert listed.json == [created.json]


async def test_a_long_list_is_in_the_order_of_creation_and_leaves_others_their_turn(
    client, service: Service
) -> None:
    for number in range(50):
        await create(client, {**HELLO, "id": f"p{number}"})
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await service.clock.sleep(0)

    beside = asyncio.ensure_future(others())
    resp = falcon.asgi.Response()
    await list_pipelines(service, None, resp)  # type: ignore[arg-type]
    beside.cancel()

    listed = json.loads(resp.data)
    assert [each["id"] for each in listed] == [f"p{number}" for number in range(50)]
    assert turns >= 2


@pytest.mark.long
async def test_a_listed_status_is_the_present_one_though_the_config_is_encoded_once(
    client, engine
) -> None:
    await create(client, HELLO)
    [before] = await engine.inner.pipelines()
    engine.inner.graph.pipelines["hello"]._lifecycle.fail()

    listed = await client.simulate_get("/api/pipelines")

    config = engine.configs()["hello"].dump("hello")
    [told] = listed.json
    assert {"id": "hello", "config": config, "status": "failed"}.items() <= told.items()
    [after] = await engine.inner.pipelines()
    assert after.text is before.text


async def test_a_pipeline_without_an_id_gets_one_and_its_config_says_so(client) -> None:
    created = await create(client, {"inputs": HELLO["inputs"]})

    words = created.json["id"].split("-")
    assert len(words) == 3
    assert all(word.isalpha() and word.islower() for word in words)
    assert created.json["config"]["id"] == created.json["id"]


@pytest.mark.parametrize(
    ("method", "site", "status"),
    [
        ("POST", b"cross-site", 403),
        ("POST", b"same-origin", 201),
        ("POST", b"none", 201),
        ("GET", b"cross-site", 200),
    ],
)
async def test_a_page_of_another_site_creates_nothing(
    service: Service, method: str, site: bytes, status: int
) -> None:
    asked = Exchange(
        Application(service),
        method,
        "/api/pipelines",
        headers=[(b"sec-fetch-site", site)],
        body=[json.dumps(HELLO).encode()],
    )

    await asked.run()

    assert asked.status == status
    assert len(service.engine.names()) == (status == 201)


async def test_an_id_that_runs_is_taken(client) -> None:
    await create(client, HELLO)

    again = await create(client, HELLO)

    assert again.status_code == 409
    assert again.json == {"error": "a pipeline named 'hello' is already running"}


async def test_a_refused_config_tells_everything_at_once_with_its_place(client) -> None:
    body = """{
  "id": "new",
  "inputs": [{"type": "dummy", "duration": "1"}],
  "outputs": [{"type": "stduot"}],
  "transfroms": []
}"""

    refused = await client.simulate_post("/api/pipelines", body=body)

    assert refused.status_code == 422
    said = refused.json["error"]
    assert said.startswith("pipeline 'new' could not be started: inputs[0].duration: ")
    assert "; outputs[0].type: " in said
    assert "; transfroms: " in said
    assert [
        (one["line"], one["column"], one["path"], one["code"], one["file"])
        for one in refused.json["diagnostics"]
    ] == [
        (3, 44, "inputs[0].duration", "wrong-type", None),
        (4, 24, "outputs[0].type", "unknown-kind", None),
        (5, 3, "transfroms", "unknown-key", None),
    ]
    assert (await client.simulate_get("/api/pipelines")).json == []


@pytest.mark.long
async def test_a_large_config_is_read_beside_other_requests(client) -> None:
    asked = [{"function": "sum", "field": f"a{n}", "as": f"b{n}"} for n in range(3000)]
    reducer = {"type": "reducer", "aggregations": asked}
    creating = asyncio.ensure_future(create(client, {**HELLO, "transforms": [reducer]}))

    answered = 0
    while not creating.done():
        answered += (await client.simulate_get("/livez")).status_code == 200

    assert creating.result().status_code == 201
    assert answered > 20


@pytest.mark.parametrize("body", ["[]", '"text"', "null", "42"])
async def test_json_that_is_no_config_is_refused_not_malformed(client, body) -> None:
    refused = await client.simulate_post("/api/pipelines", body=body)

    assert refused.status_code == 422
    assert refused.json["error"].startswith("the pipeline could not be started: ")


async def test_a_key_given_twice_is_refused_together_with_the_rest(client) -> None:
    refused = await client.simulate_post(
        "/api/pipelines", body='{"id": "a", "id": "b", "inputs": [{"type": "nix"}]}'
    )

    assert refused.status_code == 422
    assert [one["code"] for one in refused.json["diagnostics"]] == [
        "duplicate-key",
        "unknown-kind",
    ]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"", "line 1, column 1"),
        (b'{"id": "x",\n "inputs": [}', "line 2, column 13"),
        (b"\xff", "line 1, column 1"),
        (b"[" * 100_000, "line 1, column 129"),
        (b'{"id": 1e400}', "line 1, column 8"),
        (b'{"id": "\\ud800"}', "line 1, column 8"),
        (b"inputs: []", "line 1, column 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:8].hex(),
)
async def test_what_is_not_json_is_malformed(client, body, place) -> None:
    refused = await client.simulate_post("/api/pipelines", body=body)

    assert refused.status_code == 400
    assert refused.json["error"].startswith(f"the body is not JSON: {place}: ")
    assert len(refused.json["diagnostics"]) == 1


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        (None, 201),
        ("application/json", 201),
        ("Application/JSON; charset=utf-8", 201),
        ("text/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/yaml", 415),
    ],
)
async def test_a_body_that_says_it_is_not_json_is_not_read(client, content_type, status) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}

    answer = await client.simulate_post(
        "/api/pipelines", body='{"inputs": [{"type": "dummy", "duration": 3600}]}', headers=headers
    )

    assert answer.status_code == status


async def test_a_body_of_two_mebibytes_is_the_largest(client) -> None:
    config = b'{"inputs": [{"type": "dummy", "duration": 3600}]}'
    largest = 2 * 1024 * 1024

    fits = await client.simulate_post("/api/pipelines", body=config.ljust(largest))
    too_large = await client.simulate_post("/api/pipelines", body=config.ljust(largest + 1))

    assert fits.status_code == 201
    assert too_large.status_code == 413
    assert too_large.headers["Connection"] == "close"
    assert too_large.json == {"error": "POST /api/pipelines: the body is larger than 2097152 bytes"}


async def test_what_is_named_and_not_there_is_told_with_what_is(client) -> None:
    await create(client, HELLO)
    body = """{"id": "new", "inputs": [{"type": "pipeline", "upstream": "hallo"}],
 "transforms": [{"type": "filtre"}],
 "outputs": [{"type": "file", "connection": "disk", "path": "out"}]}"""

    refused = await client.simulate_post("/api/pipelines", body=body)

    assert refused.status_code == 422
    assert refused.json["error"] == (
        "pipeline 'new' could not be started: "
        "inputs[0].upstream: there is no pipeline 'hallo' to read from (expected one of hello); "
        'transforms[0].type: unknown type "filtre" (expected one of buffer, http, splitter, '
        "reducer, filter, remember, parse, recall, map, explode, script); "
        "outputs[0].connection: there is no file connection 'disk' "
        "(expected a file connection; none is filed)"
    )
    assert [one["line"] for one in refused.json["diagnostics"]] == [1, 2, 3]


async def test_an_upstream_has_to_run(client) -> None:
    reader = {"id": "reader", "inputs": [{"type": "pipeline", "upstream": "hello"}]}

    before = await create(client, reader)
    await create(client, HELLO)
    after = await create(client, reader)

    assert before.status_code == 422
    assert "inputs[0].upstream" in before.json["error"]
    assert after.status_code == 201


async def test_what_the_build_refuses_has_its_place_as_well(client) -> None:
    auth = '{"type": "bearer",\n "token": "${NO_SUCH-NAME}"}'
    body = f'{{"id": "new", "inputs": [{{"type": "http", "auth": {auth}}}]}}'

    refused = await client.simulate_post("/api/pipelines", body=body)

    assert refused.status_code == 422
    [diagnostic] = refused.json["diagnostics"]
    assert diagnostic["code"] == "unresolved-secret"
    assert (diagnostic["line"], diagnostic["column"]) == (2, 11)
    assert refused.json["error"].startswith("pipeline 'new' could not be started: inputs[0].auth")
    assert "${NO_SUCH-NAME}" in refused.json["error"]


async def test_what_is_odd_but_runs_is_logged(client, caplog) -> None:
    reducer = {"type": "reducer", "aggregations": [{"function": "count", "as": "n"}]}

    created = await create(client, {**HELLO, "transforms": [reducer]})

    assert created.status_code == 201
    assert "pipeline 'hello' transforms[0]: " in caplog.text
    assert caplog.records[-1].levelno == logging.WARNING


@pytest.mark.parametrize("id", ["a/b", "a b", "grün", "%2F", "a?b#c", "..", "dry-run"])
async def test_any_id_can_be_addressed(client, id) -> None:
    path = f"/api/pipelines/{quote(id, safe='')}"
    created = await create(client, {**HELLO, "id": id})

    deleted = await client.simulate_delete(path)
    again = await client.simulate_delete(path)

    assert created.status_code == 201
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert "Content-Type" not in deleted.headers
    assert again.status_code == 404
    assert again.json == {"error": f"no pipeline named '{id}'"}


async def test_a_line_break_in_an_id_stays_on_the_line(client) -> None:
    missing = await client.simulate_delete("/api/pipelines/a%0Ab")

    assert missing.json == {"error": "no pipeline named 'a b'"}
