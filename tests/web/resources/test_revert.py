"""Reverting over the API: back to what the files say, or not at all; and the plan of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.datadir import DataDir
from headrace.web.app import Application
from headrace.web.files.reading import Loaded, load_again
from headrace.web.resources import revert as reverting
from headrace.web.service import Service
from tests.clients import PATIENCE
from tests.web.conftest import waited_for
from tests.web.resources.plant import FILE, WIDE, Plant, ingest


@pytest.fixture
async def plant(tmp_path: Path, components: Catalogue) -> AsyncIterator[Plant]:
    plant = Plant(tmp_path, components)
    plant.write(FILE, {"disk": {"type": "file", "root": "data"}})
    engine = await plant.start()
    async with falcon.testing.ASGIConductor(waited_for(Application(plant.service))) as client:
        plant.client = client
        yield plant
    await engine.close()


async def test_what_the_api_made_goes_and_what_it_deleted_comes_back(plant: Plant) -> None:
    await plant.client.simulate_delete("/api/pipelines/b")
    await plant.client.simulate_post("/api/pipelines", json=ingest("new"))
    disk = {"id": "other", "type": "file", "root": "x"}
    await plant.client.simulate_post("/api/connections", json=disk)
    assert await plant.post("a", [1, 2]) == 202

    reverted = await plant.revert()

    assert (reverted.status_code, reverted.content) == (204, b"")
    assert [*plant.running()] == ["a", "b", "c"]
    assert [*plant.service.engine.connections] == ["disk"]
    assert {each.id: each.held for each in await plant.service.engine.pipelines()}["a"] == 2
    settings = await plant.client.simulate_get("/api/settings")
    assert settings.json["unsaved_changes"] is False


async def test_a_root_outside_of_the_data_directory_is_refused(
    tmp_path: Path, components: Catalogue
) -> None:
    plant, inside = Plant(tmp_path, components), tmp_path / "data"
    inside.mkdir()
    plant.write(FILE, {"disk": {"type": "file", "root": str(inside)}})
    engine = await plant.start(DataDir(inside))
    plant.write(FILE, {"disk": {"type": "file", "root": str(tmp_path)}})

    async with falcon.testing.ASGIConductor(waited_for(Application(plant.service))) as client:
        plant.client = client
        answers = [await plant.plan(), await plant.revert()]
    await engine.close()

    assert [answer.status_code for answer in answers] == [500, 500]
    assert [[one["code"] for one in each.json["diagnostics"]] for each in answers] == [
        ["outside-root"]
    ] * 2


async def test_the_plan_is_what_a_revert_does_and_changes_nothing(plant: Plant) -> None:
    assert await plant.post("a", [1, 2]) == 202
    await plant.service.engine.clock.sleep(0)
    bucket = plant.service.engine.inner.state.get("seen")
    assert bucket is not None
    bucket.merge({"k": {"n": 1}})
    await plant.client.simulate_post("/api/pipelines", json=ingest("new"))
    plant.write(
        {
            "state": {"more": {}},
            "pipelines": [ingest("a", {**WIDE, "size": 50}), ingest("b"), ingest("d")],
        },
        {"disk": {"type": "file", "root": "elsewhere"}, "more": {"type": "file", "root": "x"}},
    )
    before = plant.running()

    planned = await plant.plan()

    ending = {"held": 0, "in_flight": 0}
    assert planned.json == {
        "pipelines": {
            "kept": ["b"],
            "added": ["d"],
            "changed": [{"id": "a", "why": ["transforms[0].size"], "held": 2, "in_flight": 0}],
            "removed": [{"id": "c", **ending}, {"id": "new", **ending}],
        },
        "connections": {"added": ["more"], "changed": ["disk"], "removed": []},
        "buckets": {
            "kept": [],
            "added": ["more"],
            "changed": [],
            "removed": [{"name": "seen", "keys": 1, "left_over": False}],
        },
        "stored": [],
    }
    assert plant.running() == before
    assert (await plant.plan()).json == planned.json

    assert (await plant.revert()).status_code == 204
    assert [*plant.running()] == ["a", "b", "d"]
    nothing = (await plant.plan()).json
    assert nothing["pipelines"] == {
        "kept": ["a", "b", "d"],
        "added": [],
        "changed": [],
        "removed": [],
    }


async def test_the_plan_tells_what_becomes_of_what_is_kept_on_disk(
    tmp_path: Path, components: Catalogue
) -> None:
    plant, inside = Plant(tmp_path, components), tmp_path / "data"
    inside.mkdir()
    kept = {**ingest("a", WIDE), "inputs": [{"type": "http", "durable": True}]}
    plant.write({"pipelines": [kept]}, {})
    engine = await plant.start(DataDir(inside))
    async with falcon.testing.ASGIConductor(waited_for(Application(plant.service))) as client:
        plant.client = client
        assert await plant.post("a", [1, 2]) == 202
        [part] = (await client.simulate_get("/api/stored")).json
        plant.write({"pipelines": []})
        planned = (await plant.plan()).json
    await engine.close()

    assert planned["pipelines"]["removed"] == [{"id": "a", "held": 2, "in_flight": 0}]
    assert planned["stored"] == [
        {
            "id": part["id"],
            "pipeline_id": "a",
            "target": "http",
            "part": "journal",
            "entries": 1,
            "bytes": part["bytes"],
            "becomes": "left_over",
        }
    ]


async def test_a_revert_says_in_the_log_what_it_did(plant: Plant, caplog: Any) -> None:
    plant.write({**FILE, "pipelines": [ingest("a", WIDE), ingest("b", WIDE)]})

    with caplog.at_level(logging.INFO, "headrace.web"):
        await plant.revert()

    assert caplog.messages[-1] == (
        f"reverted to '{plant.config}': pipelines: 1 changed ('b'), 1 removed ('c'), 1 left alone"
    )


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ("{", "malformed-json"),
        ("", "empty-document"),
        ("[]]", "malformed-json"),
        ('{"pipelines": 3}', "wrong-type"),
        ([ingest("a"), ingest("a")], "duplicate"),
        ([{"id": "a", "inputs": [{"type": "pipeline", "upstream": "z"}]}], "missing-upstream"),
        (
            [
                {"id": "a", "inputs": [{"type": "pipeline", "upstream": "b"}]},
                {"id": "b", "inputs": [{"type": "pipeline", "upstream": "a"}]},
            ],
            "cycle",
        ),
        (
            [ingest("a", outputs=[{"type": "file", "connection": "x", "path": "p"}])],
            "unknown-connection",
        ),
        ([ingest("a", state={"bucket": "seen"})], "unknown-bucket"),
        ([ingest("a", {"type": "splitter", "out_size": 0})], "out-of-range"),
        ([ingest("a", colour="red")], "unknown-key"),
        # What only a build finds out.
        (
            [
                ingest("n"),
                ingest("a", outputs=[{"type": "file", "connection": "disk", "path": "p"}]),
            ],
            None,
        ),
        (
            [
                {
                    "id": "a",
                    "inputs": [{"type": "http", "auth": {"type": "bearer", "token": "${GONE}"}}],
                }
            ],
            "unresolved-secret",
        ),
    ],
)
async def test_a_file_that_is_refused_changes_nothing(
    plant: Plant, config: Any, code: str | None
) -> None:
    await plant.client.simulate_post("/api/pipelines", json=ingest("new"))
    assert await plant.post("a", [1, 2]) == 202
    await plant.service.engine.clock.sleep(0)
    before, graph = plant.running(), dict(plant.service.engine.inner.graph.pipelines)
    plant.write(config)

    reverted = await plant.revert()

    assert reverted.status_code == 500
    assert reverted.json["error"].startswith(f"nothing was changed: {plant.config}: ")
    told = reverted.json["diagnostics"]
    assert {each["file"] for each in told} == {str(plant.config)}
    assert code is None or code in [each["code"] for each in told]
    assert plant.service.engine.inner.graph.pipelines == graph
    assert plant.running() == before
    assert [*plant.service.engine.connections] == ["disk"]
    assert (await plant.client.simulate_get("/api/settings")).json["unsaved_changes"] is True


@pytest.mark.parametrize("how", ["missing", "a directory", "broken connections"])
async def test_files_that_cannot_be_read_change_nothing(plant: Plant, how: str) -> None:
    before = dict(plant.service.engine.inner.graph.pipelines)
    if how == "broken connections":
        plant.connections.write_text("{")
    else:
        plant.config.unlink()
    if how == "a directory":
        plant.config.mkdir()

    file = plant.connections if how == "broken connections" else plant.config
    for asked, begins in ((plant.revert, "nothing was changed"), (plant.plan, "there is no plan")):
        answer = await asked()
        assert answer.status_code == 500
        assert answer.json["error"].startswith(f"{begins}: {file}: ")
        assert answer.json["diagnostics"]
    assert plant.service.engine.inner.graph.pipelines == before


async def test_a_file_with_a_fault_has_no_plan(plant: Plant) -> None:
    plant.write([ingest("a"), ingest("a")])

    planned = await plant.plan()

    assert planned.status_code == 500
    assert [each["code"] for each in planned.json["diagnostics"]] == ["duplicate"]


async def test_plans_share_the_work_and_hold_up_nobody_who_sends_something(
    plant: Plant, monkeypatch: Any
) -> None:
    held, read = threading.Event(), list[Any]()

    def slow(*asked: Any) -> Loaded:
        read.append(asked)
        assert held.wait(PATIENCE)
        return load_again(*asked)

    monkeypatch.setattr(reverting, "load_again", slow)
    asked = [asyncio.ensure_future(plant.plan()) for _ in range(40)]
    while not read:
        await plant.service.clock.sleep(0.01)
    asked += [asyncio.ensure_future(plant.plan()) for _ in range(40)]

    made = await plant.client.simulate_post("/api/pipelines", json=ingest("new"))
    assert made.status_code == 201
    assert not any(each.done() for each in asked)
    held.set()

    for each in await asyncio.gather(*asked):
        assert each.status_code == 200
    assert len(read) <= 3
    assert (await plant.plan()).json["pipelines"]["removed"] == [
        {"id": "new", "held": 0, "in_flight": 0}
    ]


async def test_without_a_config_file_there_is_nothing_to_revert_to(client: Any) -> None:
    for answer in (
        await client.simulate_post("/api/config/revert"),
        await client.simulate_get("/api/config/plan"),
    ):
        assert answer.status_code == 500
        assert answer.json == {
            "error": "there is no config file: start with '--config FILE', or save first"
        }


async def test_what_was_saved_first_is_what_a_revert_goes_back_to(
    client: Any, service: Service, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(service.filing, "directory", tmp_path)
    await client.simulate_post("/api/pipelines", json=ingest("a", WIDE))
    await client.simulate_post("/api/pipelines/a/messages", json=[1])
    saved = await client.simulate_post("/api/config/save", json={"name": "new.yaml"})
    assert saved.status_code == 200
    await client.simulate_post("/api/pipelines", json=ingest("b"))

    reverted = await client.simulate_post("/api/config/revert")

    assert reverted.status_code == 204
    [figures] = await service.engine.pipelines()
    assert (figures.id, figures.held) == ("a", 1)


async def test_secrets_are_those_of_the_start(plant: Plant) -> None:
    auth = {"type": "bearer", "token": "${WORD}"}
    plant.write([{"id": "a", "inputs": [{"type": "http", "auth": auth}]}])

    assert (await plant.revert()).status_code == 204

    assert await plant.post("a", 1) == 401
    answer = await plant.client.simulate_post(
        "/api/pipelines/a/messages", json=1, headers={"Authorization": "Bearer open-sesame"}
    )
    assert answer.status_code == 202


async def test_what_is_odd_about_a_file_is_logged(plant: Plant, caplog: Any) -> None:
    silent = {"type": "script", "source": {"type": "inline", "code": "let n = 1;"}}
    plant.write([ingest("a", silent)])

    assert (await plant.revert()).status_code == 204

    [odd] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "warning: this script never calls 'emit'" in odd.message


async def test_a_client_that_leaves_does_not_leave_it_half_done(plant: Plant) -> None:
    plant.write([ingest("z")])

    lock = plant.service.filing.lock
    asking = asyncio.ensure_future(plant.revert())
    while not lock.locked():
        await plant.service.engine.clock.sleep(0)

    asking.cancel()
    async with lock:
        assert [*plant.running()] == ["z"]
        assert not plant.service.filing.has_changed()
    assert asking.cancelled()


async def test_a_pipeline_that_is_turned_down_is_named(plant: Plant) -> None:
    nobody = {"type": "redis", "url": "redis://127.0.0.1:1"}
    plant.write([ingest("a")], {"cache": nobody})
    assert (await plant.revert()).status_code == 204

    async def deny(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            writer.write(b"-WRONGPASS invalid username-password pair\r\n")
        writer.close()

    out = {"type": "redis", "connection": "cache", "channel": "c"}
    async with await asyncio.start_server(deny, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        plant.write(
            [ingest("a"), ingest("b", outputs=[out])],
            {"cache": {"type": "redis", "url": f"redis://you:wrong@127.0.0.1:{port}"}},
        )
        reverted = await plant.revert()

    assert reverted.status_code == 500
    assert reverted.json["error"].startswith("reverted, but these failed: 'b': ")
    [told] = reverted.json["diagnostics"]
    assert (told["path"], told["code"]) == ("pipelines[1].outputs[0].connection", "turned-away")
    views = {each.id: each.status for each in await plant.service.engine.pipelines()}
    assert views == {"a": "running", "b": "failed"}
    assert (await plant.client.simulate_get("/api/settings")).json["unsaved_changes"] is False
