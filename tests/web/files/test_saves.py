"""`POST /api/config/save`: what is written, and where."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from typing import Any

import pytest

from tests.web.files.servers import DISK, IDLE, LAKE, POST, WRITES, held, written

# What is written


async def test_a_save_writes_config_connections_and_layout(server, folder):
    await server.files(DISK)
    await server.runs(WRITES, POST)

    path = await server.saves("plant.yaml")

    assert path == str(folder / "plant.yaml")
    assert held(folder) == ["plant.connections.yaml", "plant.layout.json", "plant.yaml"]
    assert (folder / "plant.yaml").read_text() == (
        "- id: post\n"
        "  inputs:\n"
        "    - type: http\n"
        "  transforms: []\n"
        "  outputs: []\n"
        "- id: writes\n"
        "  inputs:\n"
        "    - type: dummy\n"
        "      duration: 3600\n"
        "  transforms: []\n"
        "  outputs:\n"
        "    - type: file\n"
        "      connection: disk\n"
        "      path: out\n"
    )
    assert (folder / "plant.connections.yaml").read_text() == "disk:\n  type: file\n  root: data\n"
    assert (
        folder / "plant.layout.json"
    ).read_text() == '{\n  "version": 1,\n  "pipelines": {}\n}\n'


async def test_connections_that_are_new_on_file_are_for_the_owner_alone(server, folder):
    await server.files(DISK)
    await server.runs(POST)
    usual = os.umask(0o022)
    try:
        await server.saves("plant.json")
    finally:
        os.umask(usual)

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes == {
        "plant.connections.json": 0o600,
        "plant.layout.json": 0o644,
        "plant.json": 0o644,
    }

    (folder / "plant.connections.json").chmod(0o640)
    await server.files(LAKE)
    await server.saves("plant.json")

    after = (folder / "plant.connections.json").stat()
    assert stat.S_IMODE(after.st_mode) == 0o640


@pytest.mark.parametrize(
    ("pipelines", "said"),
    [([POST], "1 pipeline"), ([POST, IDLE], "2 pipelines"), ([], "0 pipelines")],
)
async def test_the_log_tells_how_much_was_saved_and_where(server, folder, caplog, pipelines, said):
    await server.runs(*pipelines)

    with caplog.at_level(logging.INFO, "headrace.web"):
        await server.saves("plant.json")

    assert f"saved {said} to '{folder / 'plant.json'}'" in caplog.messages


async def test_json_is_written_with_the_keys_in_their_order_and_the_names_in_theirs(server, folder):
    await server.files(LAKE, DISK)
    await server.runs({"outputs": [], "inputs": POST["inputs"], "id": "post"})

    await server.saves("plant.json")

    assert (folder / "plant.json").read_text() == (
        "[\n"
        "  {\n"
        '    "id": "post",\n'
        '    "inputs": [\n'
        "      {\n"
        '        "type": "http"\n'
        "      }\n"
        "    ],\n"
        '    "transforms": [],\n'
        '    "outputs": []\n'
        "  }\n"
        "]\n"
    )
    filed = json.loads((folder / "plant.connections.json").read_text())
    assert [*filed] == ["disk", "lake"]
    assert filed["lake"]["secret_access_key"] == "${KEY}"


async def test_a_generated_id_is_written(server, folder):
    await server.runs({"inputs": [{"type": "http"}]})
    [figures] = await server.service.engine.pipelines()

    await server.saves("plant.json")

    [saved] = json.loads((folder / "plant.json").read_text())
    assert next(iter(saved.items())) == ("id", figures.id)


async def test_a_credential_in_a_url_is_written_as_it_was_given(server, folder):
    output = {"type": "http", "url": "https://ann:sesame@h.example/"}
    await server.runs({**POST, "outputs": [output]})
    [echoed] = (await server.client.simulate_get("/api/pipelines")).json

    await server.saves("plant.json")

    [saved] = json.loads((folder / "plant.json").read_text())
    assert echoed["config"]["outputs"][0]["url"] == "https://***@h.example/"
    assert saved["outputs"] == [output]


async def test_buckets_are_written_first_as_they_were_declared(started, folder):
    buckets = {"modes": {}, "machines": {"max_keys": 10000, "idle_timeout_secs": 5}}
    written(folder / "plant.json", {"pipelines": [POST], "state": buckets})
    server = await started("plant.json")

    await server.saves("copy.json")

    saved = json.loads((folder / "copy.json").read_text())
    assert [*saved] == ["state", "pipelines"]
    assert saved["state"] == buckets
    assert [*saved["state"]] == ["machines", "modes"]


async def test_readers_come_after_what_they_read_in_rounds_by_id(server, folder):
    def reads(id: str, *upstreams: str) -> Any:
        return {"id": id, "inputs": [{"type": "pipeline", "upstream": each} for each in upstreams]}

    await server.runs(
        {**POST, "id": "z"}, {**POST, "id": "m"}, reads("a", "z"), reads("b", "a", "m")
    )
    await server.runs(reads("y", "m"), {**POST, "id": "c"})

    await server.saves("plant.json")

    saved = json.loads((folder / "plant.json").read_text())
    assert [each["id"] for each in saved] == ["c", "m", "z", "a", "y", "b"]


async def test_what_is_saved_starts_again(server, started, folder):
    await server.files(DISK)
    await server.runs(WRITES, POST)
    await server.saves("plant.yaml")

    again = await started("plant.yaml")

    echoed = [(await each.client.simulate_get("/api/pipelines")).json for each in (server, again)]
    one, other = ({each["id"]: each["config"] for each in listed} for listed in echoed)
    assert one == other
    assert (await again.settings())["unsaved_changes"] is False


async def test_a_save_of_nothing_is_an_empty_list(server, folder):
    await server.saves("plant.json")

    assert (folder / "plant.json").read_text() == "[]\n"
    assert held(folder) == ["plant.json", "plant.layout.json"]


async def test_connections_with_a_file_of_their_own_go_there_in_its_format(started, folder):
    filed = written(folder / "filed.json", {})
    server = await started(connections=filed)
    await server.files(DISK)

    await server.saves("plant.yaml")

    assert json.loads(filed.read_text()) == {"disk": {"type": "file", "root": "data"}}
    assert held(folder) == ["filed.json", "plant.layout.json", "plant.yaml"]


async def test_the_format_that_is_asked_for_wins_over_the_name(server, folder, caplog):
    await server.files(DISK)
    with caplog.at_level(logging.WARNING):
        await server.saves("plant.json", format="yaml")

    assert (folder / "plant.json").read_text() == "[]\n"
    assert (folder / "plant.connections.json").read_text().startswith("{")
    file = folder / "plant.json"
    assert caplog.messages == [f"'{file}' is written as yaml, and read as json because of its name"]


async def test_what_names_something_that_is_gone_is_saved_with_a_warning(server, folder, caplog):
    reader = {"id": "reads", "inputs": [{"type": "pipeline", "upstream": "post"}]}
    await server.runs(POST, reader)
    await server.client.simulate_delete("/api/pipelines/post")

    with caplog.at_level(logging.WARNING):
        await server.saves("plant.json")

    assert [each["id"] for each in json.loads((folder / "plant.json").read_text())] == ["reads"]
    assert caplog.messages == [
        f"'{folder / 'plant.json'}' cannot be started from as it is saved: "
        "pipeline 'reads': there is no pipeline 'post' to read from"
    ]


async def test_a_pipeline_that_may_still_be_refused_is_not_saved(server, folder):
    nobody = {"id": "nobody", "type": "redis", "url": "redis://127.0.0.1:1"}
    slow = {
        **IDLE,
        "id": "slow",
        "outputs": [{"type": "redis", "connection": "nobody", "channel": "a"}],
    }
    await server.files(nobody)
    await server.runs(POST)
    creating = asyncio.create_task(server.client.simulate_post("/api/pipelines", json=slow))
    while len(server.service.engine.names()) < 2:
        await server.service.clock.sleep(0)

    await server.saves("plant.json")
    await server.client.simulate_delete("/api/pipelines/slow")

    assert [each["id"] for each in json.loads((folder / "plant.json").read_text())] == ["post"]
    assert (await creating).status_code == 409


# Which files count from then on


async def test_the_first_save_makes_the_config(server, folder):
    assert await server.settings() == {
        "config_file": None,
        "save_directory": str(folder),
        "unsaved_changes": False,
    }

    await server.saves("plant.yaml")
    await server.saves("copy.json")

    assert server.service.filing.files.config == folder / "plant.yaml"
    assert server.service.engine.base == folder
    assert (await server.settings())["config_file"] == "plant.yaml"


async def test_a_copy_leaves_the_config_that_was_loaded(started, folder):
    (folder / "configs").mkdir()
    written(folder / "configs" / "plant.json", [POST])
    server = await started("configs/plant.json")
    await server.runs(IDLE)

    path = await server.saves("copy.yaml")

    assert path == str(folder / "configs" / "copy.yaml")
    assert held(folder / "configs") == ["copy.layout.json", "copy.yaml", "plant.json"]
    assert json.loads((folder / "configs" / "plant.json").read_text()) == [POST]
    assert await server.settings() == {
        "config_file": "plant.json",
        "save_directory": str(folder / "configs"),
        "unsaved_changes": False,
    }


async def test_a_save_lands_in_the_directory_of_the_start_wherever_the_process_goes(
    server, folder, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)

    assert await server.saves("plant.json") == str(folder / "plant.json")
