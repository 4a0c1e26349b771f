"""What a save finds there already, and several saves at once."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.web.files.servers import DISK, POST, held, written

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
