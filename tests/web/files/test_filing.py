"""A process that ends in the middle of a save leaves files that a server starts from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.config.dumping import Snapshot
from headrace.compiler.text.decoding import LARGEST
from headrace.web.files.filing import Save
from headrace.web.files.layoutfile import LayoutFile
from headrace.web.files.reading import Files, Loaded, load
from headrace.web.files.replacing import NotWritten, replace, steps
from headrace.web.files.targets import targets_of
from tests.web.files.graphs import known

FILE = {"type": "file", "root": "data"}
BUS = {"type": "nats", "urls": "nats://bus:4222"}
OTHER = {"type": "file", "root": "other"}


def reading(connection: str) -> dict[str, Any]:
    return {
        "id": f"reads {connection}",
        "inputs": [{"type": "nats", "connection": connection, "subject": "a"}],
        "outputs": [{"type": "nats", "connection": connection, "subject": "b"}],
    }


def writing(connection: str) -> dict[str, Any]:
    return {
        "id": f"writes {connection}",
        "inputs": [{"type": "dummy", "duration": 1}],
        "outputs": [{"type": "file", "connection": connection, "path": "out"}],
    }


IDLE = {"id": "idle", "inputs": [{"type": "dummy", "duration": 1}], "outputs": []}

CASES: dict[str, tuple[list[Any], dict[str, Any], list[Any], dict[str, Any]]] = {
    "a connection more": ([IDLE], {}, [writing("a")], {"a": FILE}),
    "a connection less": ([writing("a")], {"a": FILE}, [IDLE], {}),
    "another connection": ([writing("a")], {"a": FILE}, [reading("b")], {"b": BUS}),
    "a connection of another kind": ([writing("a")], {"a": FILE}, [reading("a")], {"a": BUS}),
    "a connection that says something else": (
        [writing("a")],
        {"a": FILE},
        [writing("a"), IDLE],
        {"a": OTHER},
    ),
    "two that change places, one that has the name of an alias, one of each that goes": (
        [writing("a"), reading("b"), writing("saving-1"), writing("gone")],
        {"a": FILE, "b": BUS, "saving-1": OTHER, "gone": FILE},
        [reading("a"), writing("b"), writing("saving-1"), reading("new")],
        {"a": BUS, "b": FILE, "saving-1": OTHER, "new": BUS},
    ),
    "the first save": ([], {}, [writing("a")], {"a": FILE}),
    "no connections at all": ([], {}, [IDLE], {}),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_name = pytest.mark.parametrize("name", ["plant.json", "plant.yaml"])


def filed(folder: Path, pipelines: list[Any], connections: dict[str, Any]) -> Loaded:
    """Write a config by hand, and read it; no file for connections that there are none of."""
    if connections:
        (folder / "by-hand.connections.json").write_text(json.dumps(connections))
    (folder / "by-hand.json").write_text(json.dumps(pipelines))
    return load(Files(folder / "by-hand.json"), known())


def snapshot(folder: Path, pipelines: list[Any], connections: dict[str, Any]) -> Snapshot:
    folder.mkdir()
    loaded = filed(folder, pipelines, connections)
    assert loaded.program is not None, loaded.diagnostics
    return Snapshot({str(each.id): each for each in loaded.program.pipelines}, loaded.connections)


def save(folder: Path, name: str, of: Snapshot) -> Save:
    targets = targets_of(name, folder, Files())
    format: Any = name.partition(".")[2]
    return Save(of, LayoutFile(), targets, format, is_new=False)


def ends_after(folder: Path, saving: Save, count: int) -> bool:
    """Save in a process that ends after so many steps; return whether it had more to do."""
    process = os.fork()
    if process == 0:  # pragma: no cover - another process
        done = 0
        for done, _ in enumerate(steps([*saving.changes(known())]), start=1):
            if done == count:
                os._exit(9)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9


@pytest.mark.long
@every_name
@every_case
def test_wherever_a_save_is_cut_off_the_old_or_the_new_graph_can_be_started(
    tmp_path: Path, case: Any, name: str
) -> None:
    before, after = snapshot(tmp_path / "old", *case[:2]), snapshot(tmp_path / "new", *case[2:])
    count, has_more = 0, True
    while has_more:
        count += 1
        folder = tmp_path / f"cut off after {count}"
        folder.mkdir()
        if before.pipelines:
            replace([*save(folder, name, before).changes(known())])
        has_more = ends_after(folder, save(folder, name, after), count)
        if not before.pipelines and not (folder / name).exists():
            continue  # nothing there yet, as before

        loaded = load(Files(folder / name), known())

        assert loaded.program is not None, [one.message for one in loaded.diagnostics]
        started = {str(each.id) for each in loaded.program.pipelines}
        assert started in (before.pipelines.keys(), after.pipelines.keys())
    assert count > 4
    assert not Snapshot(
        {str(each.id): each for each in loaded.program.pipelines}, loaded.connections
    ).differs_from(after)
    assert [each.name for each in folder.iterdir() if each.name.endswith(".tmp")] == []


@pytest.mark.long
@every_case
def test_what_a_save_that_was_cut_off_left_behind_does_not_block_the_next(
    tmp_path: Path, case: Any
) -> None:
    after = snapshot(tmp_path / "new", *case[2:])
    for count in range(1, 6):
        ends_after(tmp_path, save(tmp_path, "plant.json", after), count)

    replace([*save(tmp_path, "plant.json", after).changes(known())])

    loaded = load(Files(tmp_path / "plant.json"), known())
    assert loaded.program is not None
    assert {str(each.id) for each in loaded.program.pipelines} == after.pipelines.keys()


def written(folder: Path, name: str, of: Snapshot) -> list[str]:
    """Return which files a save writes, in order."""
    return [change.file.name for change in save(folder, name, of).changes(known())]


def test_the_config_comes_last(tmp_path: Path) -> None:
    one = snapshot(tmp_path / "one", [writing("a")], {"a": FILE})

    assert written(tmp_path, "plant.yaml", one) == [
        "plant.connections.yaml",
        "plant.layout.json",
        "plant.yaml",
    ]


def test_without_connections_there_is_no_file_of_them(tmp_path: Path) -> None:
    idle = snapshot(tmp_path / "idle", [IDLE], {})

    assert written(tmp_path, "plant.json", idle) == ["plant.layout.json", "plant.json"]


def test_where_there_is_a_file_of_them_it_becomes_empty(tmp_path: Path) -> None:
    idle = snapshot(tmp_path / "idle", [IDLE], {})
    (tmp_path / "plant.connections.json").write_text("{ broken")

    replace([*save(tmp_path, "plant.json", idle).changes(known())])

    assert (tmp_path / "plant.connections.json").read_text() == "{}\n"


def test_connections_that_nobody_names_any_more_go_after_the_config(tmp_path: Path) -> None:
    old = snapshot(tmp_path / "old", [writing("a")], {"a": FILE})
    replace([*save(tmp_path, "plant.json", old).changes(known())])
    new = snapshot(tmp_path / "new", [reading("b")], {"b": BUS})

    first, *_, config, last = save(tmp_path, "plant.json", new).changes(known())

    assert json.loads(first.text) == {"a": FILE, "b": BUS}
    assert config.file.name == "plant.json"
    assert json.loads(last.text) == {"b": BUS}


@pytest.mark.long
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    half = [{"type": "map", "mappings": [constant("x" * (LARGEST // 2))]}]
    pipelines: dict[str, Any] = {}
    for id in ("one", "other"):
        folder = tmp_path / id
        pipelines |= snapshot(folder, [{**IDLE, "id": id, "transforms": half}], {}).pipelines

    with pytest.raises(NotWritten) as refused:
        [*save(tmp_path, "plant.json", Snapshot(pipelines)).changes(known())]

    why = "it is larger than the 16 MiB that a document may have"
    assert str(refused.value) == f"'plant.json' could not be read again: {why}"


def constant(text: str) -> dict[str, Any]:
    return {"type": "constant", "as": "a", "value": {"type": "text", "value": text}}
