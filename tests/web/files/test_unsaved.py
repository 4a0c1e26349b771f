"""`GET /api/settings`: what counts as unsaved."""

from __future__ import annotations

import json

from tests.web.files.servers import DISK, IDLE, POST, written


async def test_a_server_without_a_file_has_unsaved_changes_once_something_runs(server):
    await server.runs(POST)

    assert (await server.settings())["unsaved_changes"] is True


async def test_what_is_created_and_deleted_again_is_no_change(server):
    await server.runs(POST)
    await server.files(DISK)
    assert (await server.settings())["unsaved_changes"] is True

    await server.client.simulate_delete("/api/pipelines/post")
    assert (await server.settings())["unsaved_changes"] is True
    await server.client.simulate_delete("/api/connections/disk")

    assert (await server.settings())["unsaved_changes"] is False


async def test_order_and_formatting_are_no_change_and_neither_is_a_generated_id(started, folder):
    nameless = {"inputs": [{"type": "http"}]}
    (folder / "plant.yaml").write_text(f"# comment\n[{json.dumps(POST)},   {json.dumps(nameless)}]")

    server = await started("plant.yaml")

    assert (await server.settings())["unsaved_changes"] is False


async def test_a_pipeline_that_is_created_anew_is_a_change_unless_it_is_the_same(started, folder):
    server = await started(written(folder / "plant.json", [POST, IDLE]))
    await server.client.simulate_delete("/api/pipelines/post")
    assert (await server.settings())["unsaved_changes"] is True

    await server.runs({**POST, "inputs": [{"capacity": 5, "type": "http"}]})
    assert (await server.settings())["unsaved_changes"] is True

    await server.client.simulate_delete("/api/pipelines/post")
    await server.runs({"outputs": [], "inputs": [{"type": "http"}], "id": "post"})
    assert (await server.settings())["unsaved_changes"] is False


async def test_a_save_and_a_layout_are_no_change(started, folder):
    server = await started(written(folder / "plant.json", [POST]))
    await server.client.simulate_put("/api/layout", json={"pipelines": {"post": {"x": 1, "y": 2}}})
    assert (await server.settings())["unsaved_changes"] is False

    await server.runs(IDLE)
    assert (await server.settings())["unsaved_changes"] is True
    await server.saves("copy.json")

    assert (await server.settings())["unsaved_changes"] is False


async def test_a_save_that_fails_leaves_the_changes_unsaved(server, folder):
    await server.runs(POST)
    (folder / "plant.json").mkdir()

    await server.saves("plant.json", 500)

    assert (await server.settings())["unsaved_changes"] is True


async def test_nothing_is_dumped_again_while_nothing_changes(server, monkeypatch):
    await server.runs(*({**POST, "id": f"p{number}"} for number in range(20)))
    assert (await server.settings())["unsaved_changes"] is True
    await server.saves("plant.json")
    monkeypatch.setattr("headrace.compiler.config.program.PipelineConfig.dump", None)

    assert (await server.settings())["unsaved_changes"] is False
