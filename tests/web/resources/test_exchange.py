"""One pipeline over the API: read with its version, given another config, and what that would cost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.resources.plant import WIDE, ingest

PATH = "/api/pipelines/a"


@pytest.fixture
async def version(client: Any) -> str:
    """Create `a`, and `b` that reads it; return what `GET` says is the version of `a`."""
    reader = {"id": "b", "inputs": [{"type": "pipeline", "upstream": "a"}]}
    for config in (ingest("a", WIDE), reader):
        assert (await client.simulate_post("/api/pipelines", json=config)).status_code == 201
    return (await client.simulate_get(PATH)).headers["ETag"]


async def put(client: Any, config: Any, version: str | None, path: str = PATH) -> Any:
    headers = {} if version is None else {"If-Match": version}
    return await client.simulate_put(path, json=config, headers=headers)


async def held(client: Any) -> int:
    await client.simulate_post("/api/pipelines/a/messages", json=[1, 2])
    await client.simulate_get("/api/pipelines")
    planned = await client.simulate_post(f"{PATH}/plan", json=ingest("a"))
    return int(planned.json["pipelines"]["changed"][0]["held"])


async def test_one_is_answered_as_it_is_listed(client, version) -> None:
    one = await client.simulate_get(PATH)
    listed = await client.simulate_get("/api/pipelines")

    assert one.json == listed.json[0]
    assert version.startswith('"')
    assert (await client.simulate_get("/api/pipelines/b")).headers["ETag"] != version
    assert (await client.simulate_get("/api/pipelines/nobody")).status_code == 404


async def test_messages_leave_the_version_as_it_is(client, version) -> None:
    assert await held(client) == 2

    assert (await client.simulate_get(PATH)).headers["ETag"] == version


async def test_what_was_read_can_be_put_back_changed(client, version) -> None:
    config = (await client.simulate_get(PATH)).json["config"]
    config["transforms"][0]["seconds"] = 60

    answer = await put(client, config, version)

    assert answer.status_code == 200
    shown = {key: answer.json[key] for key in ("id", "config", "status")}
    assert shown == {"id": "a", "config": config, "status": "running"}
    assert answer.headers["ETag"] != version
    assert (await client.simulate_get(PATH)).headers["ETag"] == answer.headers["ETag"]
    ids = [each["id"] for each in (await client.simulate_get("/api/pipelines")).json]
    assert ids == ["a", "b"]


@pytest.mark.parametrize("stale", ['"0"', '"0", "1"', "W/{version}", '""'])
async def test_without_the_version_that_runs_nothing_is_exchanged(client, version, stale) -> None:
    answer = await put(client, ingest("a"), stale.format(version=version))

    assert answer.status_code == 412
    assert "has changed since it was read" in answer.json["error"]
    assert (await client.simulate_get(PATH)).headers["ETag"] == version


@pytest.mark.parametrize("fresh", ["*", '"0", {version}', "{version}"])
async def test_with_it_or_whatever_it_is_it_is_exchanged(client, version, fresh) -> None:
    answer = await put(client, ingest("a"), fresh.format(version=version))

    assert answer.status_code == 200


async def test_the_version_has_to_be_told(client, version) -> None:
    answer = await put(client, ingest("a"), None)

    assert answer.status_code == 428
    assert "'If-Match' is required" in answer.json["error"]


@pytest.mark.parametrize("malformed", ["abc", '"a" "b"', '"a', "*, *", "", '"a",'])
async def test_a_malformed_version_is_told_what_would_be_one(client, version, malformed) -> None:
    answer = await put(client, ingest("a"), malformed)

    assert answer.status_code == 400
    assert "expected an ETag in double quotes" in answer.json["error"]


async def test_nobody_is_created_by_an_exchange(client, version) -> None:
    for answer in (
        await put(client, ingest("new"), "*", "/api/pipelines/new"),
        await client.simulate_post("/api/pipelines/new/plan", json=ingest("new")),
    ):
        assert answer.status_code == 404
    assert len((await client.simulate_get("/api/pipelines")).json) == 2


TOKEN = {"type": "bearer", "token": "${NOBODY_KNOWS}"}


@pytest.mark.parametrize(
    ("config", "code", "path"),
    [
        (ingest("other"), "not-a-choice", "id"),
        (ingest("a", {"type": "bufer"}), "unknown-kind", "transforms[0].type"),
        (
            {"inputs": [{"type": "pipeline", "upstream": "b"}]},
            "cycle",
            "inputs[0].upstream",
        ),
        (
            {"inputs": [{"type": "http", "auth": TOKEN}]},
            "unresolved-secret",
            "inputs[0].auth.token",
        ),
    ],
    ids=["another id", "not read", "a ring", "not built"],
)
async def test_what_is_refused_leaves_everything_as_it_was(
    client, version, config, code, path
) -> None:
    assert await held(client) == 2

    answer = await put(client, config, version)

    assert answer.status_code == 422
    assert [(each["code"], each["path"]) for each in answer.json["diagnostics"]] == [(code, path)]
    assert (await client.simulate_get(PATH)).headers["ETag"] == version
    assert await held(client) == 4


async def test_credentials_that_an_echo_hides_are_asked_for(client) -> None:
    output = {"type": "http", "url": "http://ann:sesame@127.0.0.1:9/"}
    await client.simulate_post("/api/pipelines", json=ingest("a", outputs=[output]))
    config = (await client.simulate_get(PATH)).json["config"]

    answer = await put(client, config, "*")

    assert answer.status_code == 422
    assert "write it anew" in answer.json["error"]
    assert "sesame" not in answer.text


async def test_a_save_is_due_after_an_exchange(client, service, version) -> None:
    service.filing.loaded(service.filing.layout)

    await put(client, ingest("a"), version)

    assert (await client.simulate_get("/api/settings")).json["unsaved_changes"] is True


async def test_the_plan_is_that_of_a_revert(client, version) -> None:
    assert await held(client) == 2

    planned = await client.simulate_post(f"{PATH}/plan", json=ingest("a", {**WIDE, "size": 50}))

    assert planned.status_code == 200
    assert planned.json == {
        "pipelines": {
            "kept": ["b"],
            "added": [],
            "changed": [{"id": "a", "why": ["transforms[0].size"], "held": 2, "in_flight": 0}],
            "removed": [],
        },
        "connections": {"added": [], "changed": [], "removed": []},
        "buckets": {"kept": [], "added": [], "changed": [], "removed": []},
        "stored": [],
    }
    assert (await client.simulate_get(PATH)).headers["ETag"] == version


async def test_a_pipeline_may_be_called_as_an_endpoint_is(client) -> None:
    await client.simulate_post("/api/pipelines", json=ingest("dry-run"))

    one = await client.simulate_get("/api/pipelines/dry-run")
    answer = await put(
        client, ingest("dry-run", WIDE), one.headers["ETag"], "/api/pipelines/dry-run"
    )

    assert (one.json["id"], answer.status_code) == ("dry-run", 200)


async def test_clients_learn_that_they_need_the_version_and_where_it_is(client) -> None:
    described = (await client.simulate_get("/api/openapi.json")).json["paths"]

    one = described["/api/pipelines/{pipeline_id}"]
    [demanded] = [each for each in one["put"]["parameters"] if each["in"] == "header"]
    assert (demanded["name"], demanded["required"]) == ("If-Match", True)
    for method in ("get", "put"):
        assert "ETag" in one[method]["responses"]["200"]["headers"]
