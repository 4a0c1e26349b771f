"""`GET` and `PUT /api/layout`, and the layout file: at the start, beside the config, after a revert."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from headrace.authoring.configfiles import catalogue
from headrace.web.files.filing import SavedFiles
from headrace.web.files.reading import Files, load
from headrace.web.service import Service
from tests.web.jsonengine import JsonEngine

EMPTY = {"version": 1, "pipelines": {}}
WHOLE = {
    "version": 1,
    "pipelines": {
        "p1": {"x": 40, "y": -80.5, "width": 320, "height": 180},
        "runs nowhere": {"x": 1e16, "y": 10**30, "width": 0.1},
        "ü": {"x": -0.0, "y": 8.0},
    },
    "edges": [
        {"from": "p2", "to": "p1", "offset": 0},
        {
            "from": "p1",
            "to": "p2",
            "offset": -0.25,
            "from_port": {"side": "right", "along": 0.5},
            "to_port": {"side": "top", "along": 7},
        },
        {"from": "p1", "to": "p2"},
    ],
}


async def put(client: Any, layout: Any) -> Any:
    return await client.simulate_put("/api/layout", json=layout)


async def got(client: Any) -> Any:
    answer = await client.simulate_get("/api/layout")
    assert answer.status_code == 200
    return answer.json


@pytest_asyncio.fixture
async def service(tmp_path: Path, engine: JsonEngine, components: Any) -> Service:
    """Return a server with a config file."""
    (tmp_path / "plant.yaml").write_text("[]")
    files = Files(tmp_path / "plant.yaml")
    engine.move(tmp_path)
    return Service(engine, components, engine.clock, is_ready=True, files=files)


@pytest.fixture
def unfiled(service: Service) -> Service:
    """Return the same without one."""
    service.filing = SavedFiles(service.engine, Files())
    return service


async def test_there_is_an_empty_layout_at_first(client):
    assert await got(client) == EMPTY


async def test_a_layout_is_answered_as_it_was_put_number_by_number(client):
    answer = await put(client, WHOLE)

    assert (answer.status_code, answer.text) == (204, "")
    assert json.dumps(await got(client)) == json.dumps(WHOLE)


async def test_null_is_the_same_as_absent_and_no_edges_are_none(client):
    await put(
        client,
        {
            "version": None,
            "pipelines": {"p1": {"x": 1, "y": 2, "width": None, "height": None}},
            "edges": [{"from": "a", "to": "b", "offset": None, "from_port": None, "to_port": None}],
        },
    )
    read = await got(client)
    await put(client, {"edges": []})

    assert read["pipelines"] == {"p1": {"x": 1, "y": 2}}
    assert read["edges"] == [{"from": "a", "to": "b"}]
    assert await got(client) == EMPTY


async def test_a_layout_replaces_the_one_before_whole(client):
    await put(client, WHOLE)
    await put(client, {"pipelines": {"p3": {"x": 1, "y": 1}}})
    one = await got(client)
    await put(client, {})

    assert one == {"version": 1, "pipelines": {"p3": {"x": 1, "y": 1}}}
    assert await got(client) == EMPTY


async def test_it_is_written_beside_the_config_at_once_always_as_json(client, tmp_path):
    await put(client, WHOLE)

    text = (tmp_path / "plant.layout.json").read_text()
    assert json.dumps(json.loads(text)) == json.dumps(WHOLE)
    assert text.startswith('{\n  "version": 1,\n  "pipelines": {\n    "p1": {\n')
    assert sorted(each.name for each in tmp_path.iterdir()) == ["plant.layout.json", "plant.yaml"]


async def test_without_a_config_it_is_kept_until_a_save(unfiled, client, tmp_path):
    unfiled.filing.directory = tmp_path
    (tmp_path / "plant.yaml").unlink()
    await put(client, WHOLE)
    before = [*tmp_path.iterdir()]

    await client.simulate_post("/api/config/save", json={"name": "new.yaml"})

    assert before == []
    assert json.loads((tmp_path / "new.layout.json").read_text()) == WHOLE


async def test_a_layout_that_cannot_be_written_is_not_taken(client, tmp_path):
    await put(client, WHOLE)
    (tmp_path / "plant.layout.json").unlink()
    (tmp_path / "plant.layout.json").mkdir()

    refused = await put(client, {})

    assert refused.status_code == 500
    said = "'plant.layout.json' cannot be written: a directory stands in its place"
    assert refused.json == {"error": said}
    assert await got(client) == WHOLE


async def test_a_layout_does_not_take_the_place_of_what_a_pipeline_was_built_from(client, tmp_path):
    script = tmp_path / "plant.layout.json"
    script.write_text("emit(msg);")
    source = {"type": "file", "path": script.name}
    scripted = {"inputs": [{"type": "http"}], "transforms": [{"type": "script", "source": source}]}
    made = await client.simulate_post("/api/pipelines", json=scripted)
    assert made.status_code == 201, made.text

    refused = await put(client, WHOLE)

    assert (refused.status_code, refused.json) == (
        422,
        {
            "error": "the layout is as it was: 'plant.layout.json' is the file that a pipeline was"
            " built from, and cannot be its layout file as well"
        },
    )
    assert script.read_text() == "emit(msg);"
    assert await got(client) == EMPTY


@pytest.mark.parametrize(
    "body", [{"pipelines": {"k" * 100_000: {"x": 1, "y": 1}}}, {"k" * 100_000: 1}]
)
async def test_of_a_key_that_is_far_too_long_the_beginning_is_told(client, body):
    refused = await put(client, body)

    assert refused.status_code == 422
    assert len(refused.content) < 10_000


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ([], "", "expected an object with any of 'version', 'pipelines', 'edges', found a list"),
        (
            {"pipelines": []},
            "pipelines",
            "expected an object of pipeline layouts by name, found []",
        ),
        ({"pipelines": {"p": {"x": 1}}}, "pipelines.p.y", "this key is required"),
        (
            {"pipelines": {"p": {"x": "1", "y": 1}}},
            "pipelines.p.x",
            'expected a number, found "1"',
        ),
        (
            {"pipelines": {"p": {"x": True, "y": 1}}},
            "pipelines.p.x",
            "expected a number, found true",
        ),
        ({"pipelines": {"p": {"x": 1, "y": 1, "z": 1}}}, "pipelines.p.z", "unknown key 'z'"),
        ({"pipelines": {"": {"x": 1, "y": 1}}}, 'pipelines[""]', "this must not be blank"),
        ({"version": "1"}, "version", 'expected an integer, found "1"'),
        ({"edges": None}, "edges", "expected a list of edge layouts, found null"),
        (
            {"pipelines": None},
            "pipelines",
            "expected an object of pipeline layouts by name, found null",
        ),
        ({"edges": [{"from": "a"}]}, "edges[0].to", "this key is required"),
        (
            {"edges": [{"from": "a", "to": "b", "to_port": {"side": "middle", "along": 1}}]},
            "edges[0].to_port.side",
            'expected one of top, right, bottom, left, found "middle"',
        ),
        (
            {"edges": [{"from": "a", "to": "b", "from_port": {"side": "top"}}]},
            "edges[0].from_port.along",
            "this key is required",
        ),
        ({"pipeline": {}}, "pipeline", "unknown key 'pipeline'"),
    ],
)
async def test_a_wrong_layout_is_refused_with_the_place(client, body, path, message):
    await put(client, WHOLE)

    refused = await put(client, body)

    [one] = refused.json["diagnostics"]
    assert (refused.status_code, one["path"], one["message"]) == (422, path, message)
    assert refused.json["error"].startswith("the layout is as it was: ")
    assert await got(client) == WHOLE


@pytest.mark.parametrize("body", [b'{"x": NaN}', b"{", b"", b'{"version": 1e400}', b'"\\ud800"'])
async def test_what_is_no_json_is_malformed(client, body):
    refused = await client.simulate_put("/api/layout", body=body)

    assert refused.status_code == 400


async def test_a_key_that_is_given_twice_is_refused(client):
    refused = await client.simulate_put("/api/layout", body=b'{"version": 1, "version": 2}')

    assert refused.status_code == 422
    assert "duplicate key 'version'" in refused.json["error"]


def started(folder: Path, layout: str) -> Any:
    (folder / "plant.yml").write_text("[]")
    (folder / "plant.layout.json").write_text(layout)
    return load(Files(folder / "plant.yml"), catalogue())


def test_a_start_reads_the_layout_beside_the_config(tmp_path):
    loaded = started(tmp_path, json.dumps(WHOLE))

    assert not loaded.is_refused
    assert loaded.layout.dump() == WHOLE


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("{", (1, 1, "malformed-json")),
        ("[]", (1, 1, "wrong-type")),
        ('{"pipelines":\n  {"p": {"x": 1, "y": null}}}', (2, 23, "wrong-type")),
        ("version: 1", (1, 1, "malformed-json")),
    ],
)
def test_a_broken_layout_refuses_the_start_with_its_place(tmp_path, layout, said):
    loaded = started(tmp_path, layout)

    [one] = loaded.diagnostics
    assert loaded.is_refused
    assert one.file == str(tmp_path / "plant.layout.json")
    assert (one.line, one.column, one.code) == said


async def test_after_a_revert_the_layout_of_the_file_counts(service, client, tmp_path):
    await put(client, WHOLE)
    (tmp_path / "plant.layout.json").write_text('{"pipelines": {"p9": {"x": 1, "y": 1}}}')

    await service.filing.reverted()

    assert await got(client) == {"version": 1, "pipelines": {"p9": {"x": 1, "y": 1}}}


async def test_after_a_revert_without_a_layout_file_there_is_none(service, client, tmp_path):
    await put(client, WHOLE)
    (tmp_path / "plant.layout.json").unlink()

    await service.filing.reverted()

    assert await got(client) == EMPTY


async def test_on_a_revert_a_broken_layout_only_warns(service, client, tmp_path, caplog):
    await put(client, WHOLE)
    (tmp_path / "plant.layout.json").write_text('{"pipelines": 1}')

    with caplog.at_level(logging.WARNING):
        await service.filing.reverted()

    assert await got(client) == WHOLE
    [said] = caplog.messages
    assert said.startswith(f"the layout is as it was: {tmp_path / 'plant.layout.json'}:1:15: ")
