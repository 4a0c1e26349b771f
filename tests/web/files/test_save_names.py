"""`POST /api/config/save`: the names it takes, and what never makes room for a save."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headrace.web.files.reading import Files, load
from tests.web.files.servers import IDLE, POST, held, written

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
