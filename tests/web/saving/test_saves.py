"""`POST /api/config/save` and `GET /api/settings`, each rule of them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
import pytest_asyncio

from headrace.compiler.clock import Clock
from headrace.compiler.language.catalogue import Catalogue
from headrace.compiler.runtime.engine import Engine
from headrace.web.app import Application
from headrace.web.reading import Files, load
from headrace.web.service import Service
from tests.web.conftest import waited_for

IDLE = {"id": "idle", "inputs": [{"type": "dummy", "duration": 3600}], "outputs": []}
POST = {"id": "post", "inputs": [{"type": "http"}], "outputs": []}
DISK = {"id": "disk", "type": "file", "root": "data"}
LAKE = {
    "id": "lake",
    "type": "s3",
    "bucket": "readings",
    "access_key_id": "${KEY_ID}",
    "secret_access_key": "${KEY}",
}
WRITES = {
    "id": "writes",
    "inputs": [{"type": "dummy", "duration": 3600}],
    "transforms": [],
    "outputs": [{"type": "file", "connection": "disk", "path": "out"}],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest_asyncio.fixture
async def service(folder: Path, engine: Engine, components: Catalogue) -> Service:
    return Service(engine, components, engine.clock, is_ready=True)


class Server:
    """A server that was started with files, with what they say running."""

    def __init__(self, client: Any, service: Service) -> None:
        self.client, self.service = client, service

    async def saves(self, name: str, status: int = 200, **rest: Any) -> Any:
        answer = await self.client.simulate_post("/api/config/save", json={"name": name, **rest})
        assert answer.status_code == status, answer.text
        return answer.json.get("path", answer.json.get("error"))

    async def settings(self) -> Any:
        return (await self.client.simulate_get("/api/settings")).json

    async def runs(self, *configs: Any) -> None:
        for config in configs:
            answer = await self.client.simulate_post("/api/pipelines", json=config)
            assert answer.status_code == 201, answer.text

    async def files(self, *connections: Any) -> None:
        for connection in connections:
            answer = await self.client.simulate_post("/api/connections", json=connection)
            assert answer.status_code == 201, answer.text


@pytest.fixture
def server(client: Any, service: Service) -> Server:
    """Return a server without files."""
    return Server(client, service)


@pytest_asyncio.fixture
async def started(folder: Path, components: Catalogue) -> Any:
    """Return what starts a server with files."""
    engines, conductors = [], []

    async def start(config: Path | str | None = None, **files: Any) -> Server:
        named = Files(None if config is None else Path(config), **files)
        loaded = load(named, components)
        assert loaded.program is not None, loaded.diagnostics
        assert not loaded.is_refused, loaded.diagnostics
        clock = Clock(asyncio.get_running_loop())
        engine = Engine(clock, connections=loaded.connections, data_dir=folder, base=loaded.base)
        engines.append(engine)
        service = Service(engine, components, clock, is_ready=True, files=named)
        await engine.load(loaded.program)
        service.filing.loaded(loaded.layout)
        conductor = falcon.testing.ASGIConductor(waited_for(Application(service)))
        conductors.append(conductor)
        return Server(await conductor.__aenter__(), service)

    yield start
    for conductor in conductors:
        await conductor.__aexit__(None, None, None)
    for engine in engines:
        await engine.close()


def held(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def written(file: Path, value: Any) -> Path:
    file.write_text(json.dumps(value))
    return file


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
    [view] = server.service.engine.pipelines()

    await server.saves("plant.json")

    [saved] = json.loads((folder / "plant.json").read_text())
    assert next(iter(saved.items())) == ("id", view.id)


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


async def test_a_connection_that_no_start_takes_is_saved_with_a_warning(server, folder, caplog):
    await server.files({**LAKE, "endpoint": "http://store.example"})

    with caplog.at_level(logging.WARNING):
        await server.saves("plant.json")

    [said] = caplog.messages
    assert "cannot be started from as it is saved: connection 'lake': " in said


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
    while len(server.service.engine.pipelines()) < 2:
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


# Names


@pytest.mark.parametrize(
    ("name", "objection"),
    [
        ("", "it is empty"),
        (" \t", "it is empty"),
        ("a/b", "it has to be the bare name of a file, without '/' and '\\'"),
        ("../a", "it has to be the bare name of a file, without '/' and '\\'"),
        ("/a", "it has to be the bare name of a file, without '/' and '\\'"),
        ("a\\b", "it has to be the bare name of a file, without '/' and '\\'"),
        (".", "it consists of dots"),
        (" .. ", "it consists of dots"),
        ("...", "it consists of dots"),
        ("a\x00b", "it holds a control character"),
        ("a\nb", "it holds a control character"),
        ("a\x85b", "it holds a control character"),
        ("x" * 256, "it has 256 bytes, and a name has at most 255"),
        ("ü" * 128, "it has 256 bytes, and a name has at most 255"),
        (
            "x" * 240 + ".yaml",
            f"the connections file '{'x' * 23}.connections.yaml' beside it has 257 bytes, and a name"
            " has at most 255",
        ),
    ],
)
async def test_a_name_that_is_no_bare_file_name_is_refused(server, folder, name, objection):
    said = await server.saves(name, 422)

    assert said.endswith(f" cannot be saved under: {objection}")
    assert held(folder) == []


@pytest.mark.parametrize(
    "name",
    [
        " plant.json ",
        "größe 日本.yaml",
        ".yaml",
        "flows",
        "a..b",
        "-rf",
        "~",
        "x" * 238,
        "*.json",
        "'\"$(a)",
    ],
)
async def test_any_other_name_is_taken_without_the_blanks_around_it(server, folder, name):
    path = await server.saves(name)

    assert path == str(folder / name.strip())
    assert load(Files(Path(path)), server.service.catalogue).diagnostics == []


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        (
            "plant.connections.json",
            "'plant.connections.json' is the connections file, and cannot be its config as well",
        ),
        (
            "plant.layout.json",
            "'plant.layout.json' is the layout file, and cannot be its config as well",
        ),
        ("secrets.json", "'secrets.json' is the secrets file, and cannot be its config as well"),
        ("server.yaml", "'server.yaml' is the settings file, and cannot be its config as well"),
    ],
)
async def test_a_file_of_the_server_with_another_purpose_is_not_replaced(
    started, folder, name, taken
):
    (folder / "server.yaml").write_text("{}")
    files = {"secrets": written(folder / "secrets.json", {}), "settings": folder / "server.yaml"}
    server = await started(written(folder / "plant.json", []), **files)

    said = await server.saves(name, 422)

    assert said == f"'name' \"{name}\" cannot be saved under: {taken}"
    assert held(folder) == ["plant.json", "secrets.json", "server.yaml"]


async def test_neither_is_one_that_would_be_written_beside_it(started, folder):
    secrets = written(folder / "copy.layout.json", {})
    server = await started(written(folder / "plant.json", []), secrets=secrets)

    said = await server.saves("copy.json", 422)

    assert "'copy.layout.json' is the secrets file, and cannot be its layout file as well" in said


async def test_the_named_connections_file_is_no_config(started, folder):
    (folder / "elsewhere").symlink_to(folder)
    written(folder / "filed.json", {})
    server = await started(connections=folder / "elsewhere" / "filed.json")

    said = await server.saves("filed.json", 422)

    assert "'filed.json' is the connections file, and cannot be its config as well" in said


# What is there already


@pytest.mark.parametrize(
    ("there", "named"),
    [
        (["plant.json"], "'plant.json' exists"),
        (["plant.connections.json"], "'plant.connections.json' exists"),
        (["plant.layout.json", "plant.json"], "'plant.json' and 'plant.layout.json' exist"),
    ],
)
async def test_without_overwriting_whatever_is_there_is_named_and_nothing_written(
    server, folder, there, named
):
    for name in there:
        (folder / name).write_text("mine")

    said = await server.saves("plant.json", 409, overwrite=False)

    assert said == f"nothing was saved: {named}, and 'overwrite' is false"
    assert held(folder) == sorted(there)
    assert {(folder / name).read_text() for name in there} == {"mine"}


async def test_a_link_that_leads_nowhere_is_there(server, folder):
    (folder / "plant.json").symlink_to("nowhere")

    await server.saves("plant.json", 409, overwrite=False)

    assert (folder / "plant.json").is_symlink()


async def test_without_overwriting_a_new_name_is_saved(server, folder):
    await server.files(DISK)

    await server.saves("plant.json", overwrite=False)

    assert held(folder) == ["plant.connections.json", "plant.json", "plant.layout.json"]


async def test_connections_with_a_file_of_their_own_may_be_there(started, folder):
    server = await started(connections=written(folder / "filed.json", {}))
    await server.files(DISK)

    await server.saves("plant.json", overwrite=False)

    assert json.loads((folder / "filed.json").read_text()) == {
        "disk": {"type": "file", "root": "data"}
    }


async def test_a_directory_in_the_way_is_a_failure_that_is_told(server, folder):
    (folder / "plant.layout.json").mkdir()

    said = await server.saves("plant.json", 500)

    assert said == "'plant.layout.json' cannot be written: a directory stands in its place"
    assert held(folder) == ["plant.layout.json"]
    assert (await server.settings())["config_file"] is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "nothing was saved: name: this key is required (expected a string)"),
        ({"name": 1}, "nothing was saved: name: expected a string, found 1"),
        ({"name": None}, "nothing was saved: name: expected a string, found null"),
        (
            {"name": "a", "format": "toml"},
            'nothing was saved: format: expected one of json, yaml, found "toml"',
        ),
        (
            {"name": "a", "overwrite": None},
            "nothing was saved: overwrite: expected true or false, found null",
        ),
        (
            {"name": "a", "overwrit": True},
            "nothing was saved: overwrit: unknown key 'overwrit' (expected one of name, format, overwrite)",
        ),
        ([], "nothing was saved: expected an object with 'name', found a list"),
    ],
)
async def test_a_wrong_body_is_refused(server, folder, body, said):
    answer = await server.client.simulate_post("/api/config/save", json=body)

    assert (answer.status_code, answer.json["error"]) == (422, said)
    assert held(folder) == []


async def test_a_format_of_null_is_that_of_the_name(server, folder):
    await server.runs(POST)

    await server.saves("plant.yaml", format=None)

    assert (folder / "plant.yaml").read_text().startswith("- id: post\n")


# Unsaved changes


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
    monkeypatch.setattr("headrace.compiler.language.config.PipelineConfig.dump", None)

    assert (await server.settings())["unsaved_changes"] is False


# Several at once


async def test_saves_are_done_one_after_the_other(server, folder):
    await server.runs(POST)

    names = ["one.json", "other.json"] * 10
    await asyncio.gather(*(server.saves(name) for name in names))

    saved = [json.loads((folder / name).read_text()) for name in ("one.json", "other.json")]
    assert saved == [[{**POST, "transforms": []}]] * 2
    assert held(folder) == ["one.json", "one.layout.json", "other.json", "other.layout.json"]


async def test_of_two_saves_that_must_not_overwrite_one_is_refused(server, folder):
    answers = await asyncio.gather(
        *(
            server.client.simulate_post(
                "/api/config/save", json={"name": "plant.json", "overwrite": False}
            )
            for _ in range(5)
        )
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]


# What would be gone


@pytest.mark.parametrize("purpose", ["secrets", "settings"])
@pytest.mark.parametrize("links", [["real.json"], ["next.json", "real.json"]])
async def test_a_file_that_is_named_through_links_is_not_replaced_and_neither_are_they(
    started, folder, purpose, links
):
    real = written(folder / "real.json", {})
    for link, leads_to in zip(["named.json", *links], links, strict=False):
        (folder / link).symlink_to(leads_to)
    server = await started(written(folder / "plant.json", []), **{purpose: folder / "named.json"})

    for name in ["named.json", *links]:
        said = await server.saves(name, 422)
        assert f"'{name}' is the {purpose} file, and cannot be its config as well" in said

    assert real.read_text() == "{}"
    assert not real.is_symlink()


async def test_another_name_of_a_file_of_the_server_is_that_file(started, folder):
    secrets = written(folder / "secrets.json", {})
    (folder / "other.json").hardlink_to(secrets)
    server = await started(written(folder / "plant.json", []), secrets=secrets)

    assert "'other.json' is the secrets file" in await server.saves("other.json", 422)


async def test_a_config_that_is_a_link_is_saved_under_either_name(started, folder):
    real = written(folder / "real.json", [POST])
    (folder / "plant.json").symlink_to("real.json")
    server = await started("plant.json")
    await server.runs(IDLE)

    await server.saves("real.json")
    assert len(json.loads(real.read_text())) == 2
    await server.saves("plant.json")
    assert not (folder / "plant.json").is_symlink()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.rhai", "emit(msg);"),
        ("ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
        ("data.json", '[{"value": 1}]'),
        ("data.json", '{"value": 1}'),
        ("numbers.json", "[1, 2]"),
        ("log.txt", "2026-01-01 started\n"),
        ("binary", "\x00\x01"),
        ("broken.yaml", "- id: post\n  inputs: ["),
    ],
)
async def test_a_file_that_is_no_config_is_not_replaced(server, folder, name, content):
    (folder / name).write_text(content)

    said = await server.saves(name, 422)

    assert said == f"'name' \"{name}\" cannot be saved under: '{name}' exists, and is no config"
    assert (folder / name).read_text() == content
    assert held(folder) == [name]
    assert (await server.settings())["config_file"] is None


@pytest.mark.parametrize(
    ("name", "purpose"),
    [("plant.connections.json", "connections file"), ("plant.layout.json", "layout file")],
)
async def test_neither_is_one_beside_it_that_is_something_else(server, folder, name, purpose):
    written(folder / name, {"A": "b"})

    said = await server.saves("plant.json", 422)

    assert f"'{name}' exists, and is no {purpose}" in said
    assert held(folder) == [name]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plant.json", ""),
        ("plant.json", "\n"),
        ("plant.json", "[]"),
        ("plant.json", '{"pipelines": [], "staet": 1}'),
        ("plant.json", "- id: post\n  inputs: [{type: gone}]\n"),
        ("plant.yaml", "# nothing yet\n"),
        ("plant.yaml", "- {id: a, id: a, inputs: []}"),
    ],
)
async def test_a_config_is_replaced_whatever_is_wrong_with_what_it_says(
    server, folder, name, content
):
    (folder / name).write_text(content)
    await server.runs(POST)

    await server.saves(name)

    assert "post" in (folder / name).read_text()


async def test_the_files_that_were_loaded_are_replaced_whatever_has_become_of_them(started, folder):
    written(folder / "plant.connections.json", {"disk": {"type": "file", "root": "data"}})
    written(folder / "plant.layout.json", {})
    server = await started(written(folder / "plant.json", [POST]))
    for file in folder.iterdir():
        file.write_text("broken")

    await server.saves("plant.json")

    assert [each["id"] for each in json.loads((folder / "plant.json").read_text())] == ["post"]
    assert json.loads((folder / "plant.connections.json").read_text()).keys() == {"disk"}


async def test_a_link_to_something_else_stays(server, folder, tmp_path):
    (tmp_path / "release").mkdir()
    (folder / "current").symlink_to(tmp_path / "release")

    said = await server.saves("current", 422)

    assert "'current' exists, and is no config" in said
    assert (folder / "current").is_symlink()


async def test_a_file_that_a_pipeline_was_built_from_is_not_replaced_even_if_it_is_empty(
    started, folder
):
    (folder / "s.rhai").write_text("emit(msg);")
    script = {"type": "script", "source": {"type": "file", "path": "s.rhai"}}
    scripted = {**POST, "transforms": [script]}
    server = await started(written(folder / "plant.json", [scripted]))
    (folder / "s.rhai").write_text("")

    said = await server.saves("s.rhai", 422)

    assert "'s.rhai' is the file that a pipeline was built from, and cannot be its config" in said


@pytest.mark.parametrize("name", [".headrace-0.tmp", ".headrace-0123456789abcdef.tmp"])
async def test_a_name_that_a_later_save_would_take_for_its_own_leavings_is_refused(server, name):
    said = await server.saves(name, 422)

    assert said.endswith("files are called like that while they are being written")


async def test_save_layout_and_revert_mean_one_file_wherever_the_directory_has_gone(
    started, folder, tmp_path
):
    plant = tmp_path / "plant"
    plant.mkdir()
    os.chdir(plant)
    written(plant / "plant.json", [POST])
    server = await started("plant.json")
    plant.rename(tmp_path / "before")
    plant.mkdir()
    await server.runs(IDLE)

    assert await server.saves("plant.json") == str(plant / "plant.json")
    await server.client.simulate_put("/api/layout", json={"pipelines": {"post": {"x": 1, "y": 2}}})
    plan = (await server.client.simulate_get("/api/config/plan")).json
    await server.client.simulate_post("/api/config/revert")

    assert sorted(plan["pipelines"]["kept"]) == ["idle", "post"]
    assert server.service.engine.configs().keys() == {"post", "idle"}
    assert json.loads((plant / "plant.layout.json").read_text())["pipelines"].keys() == {"post"}
    assert held(tmp_path / "before") == ["plant.json"]


async def test_what_is_wrong_with_a_file_is_told_under_the_name_it_was_given(started, folder):
    written(folder / "plant.json", [POST])
    server = await started("plant.json")
    (folder / "plant.json").write_text("[{]")

    answer = await server.client.simulate_post("/api/config/revert")

    assert {each["file"] for each in answer.json["diagnostics"]} == {"plant.json"}
