"""What a command imports: the language, and what the config names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.operators.mappings import Mapping

CONFIG = """
- id: days
  inputs: [{type: http}]
  transforms:
    - {type: map, mappings: [{type: copy, from: site, as: place}]}
    - {type: buffer, seconds: 86400, max_messages: 1000}
    - {type: reducer, group_by: [site], aggregations: [{function: count, as: n}]}
  outputs: [{type: stdout}]
"""
NAMED = {
    "headrace.connectors.http",
    "headrace.connectors.stdout",
    "headrace.operators.buffer",
    "headrace.operators.map",
    "headrace.operators.reducer",
}
MAPPINGS = {each.__module__ for each in Mapping.variants.values()}
COMPONENTS = {each.__module__ for each in catalogue()}
DRIVERS = {name for each in catalogue() for name in each.drivers}
SERVING = {"falcon", "headrace.web.app", "headrace.web.service", "uvicorn", "uvloop"}
TOLD = """
import sys
from headrace.web.commands.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
COLLECTED = """
import atexit, gc, sys
from headrace.web.commands.cli import main
looks, usual = [], gc.get_threshold()
def tell():
    left, looked = len(gc.get_objects()), len(looks)
    more = [[] for _ in range(200_000)]
    print(looked, left, gc.get_threshold() == usual, file=sys.stderr)
gc.callbacks.append(lambda *_: looks.append(1))
atexit.register(tell)  # and called after what is registered later
main()
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    return file


def imported(*arguments: str | Path, given: str = "", code: int = 0) -> set[str]:
    """Return the modules that a command has imported at its end; its exit code is looked at, too."""
    done = subprocess.run(
        [sys.executable, "-c", TOLD, *arguments], input=given, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return {*done.stderr.splitlines()[-1].split()}


def test_each_mapping_is_found_by_its_type_and_has_a_place_of_its_own() -> None:
    assert {tag: f"headrace.operators.mappings.{tag}" for tag in Mapping.variants} == {
        tag: each.__module__ for tag, each in Mapping.variants.items()
    }
    places = [each.listed for each in Mapping.variants.values()]
    assert sorted({*places}) == places


def test_there_is_something_that_could_be_imported() -> None:
    assert NAMED < COMPONENTS
    assert {"aiokafka", "asyncpg"} < DRIVERS
    assert len(MAPPINGS) > 20


def test_a_check_imports_the_components_that_the_config_names(config: Path) -> None:
    found = imported("check", config)

    assert found & COMPONENTS == NAMED
    assert found & MAPPINGS == {"headrace.operators.mappings.copy"}
    assert not found & (
        DRIVERS | SERVING | {"reactivex", "rhai", "headrace.compiler.runtime.engine"}
    )


def test_a_run_imports_no_more_components_than_that_and_nothing_that_serves(config: Path) -> None:
    found = imported("run", config, given='{"site": "north"}\n')

    assert found & COMPONENTS == NAMED
    assert found & MAPPINGS == {"headrace.operators.mappings.copy"}
    assert not found & (DRIVERS | SERVING)


def test_all_kinds_are_imported_to_tell_what_an_unknown_one_may_have_been(config: Path) -> None:
    config.write_text(CONFIG.replace("reducer", "reduce"))

    assert imported("check", config, code=1) >= COMPONENTS | MAPPINGS


def test_a_server_has_imported_all_kinds_when_it_is_ready() -> None:
    serving = [sys.executable, "-c", TOLD, "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(serving, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        while not server.stderr.readline().startswith("headrace runs"):
            assert server.poll() is None
        server.terminate()
        told = server.stderr.read()

    found = {*told.splitlines()[-1].split()}
    assert found >= COMPONENTS | MAPPINGS
    assert "rhai" not in found


def test_nobody_looks_for_cycles_while_a_command_starts_or_ends(config: Path) -> None:
    checking = [sys.executable, "-c", COLLECTED, "check", str(config)]

    done = subprocess.run(checking, capture_output=True, text=True)

    looked, left, is_as_usual = done.stderr.split()[-3:]
    assert looked == "0"
    assert int(left) < 1000  # of tens of thousands
    assert is_as_usual == "True"  # once more objects were made than a start makes


def test_telling_the_version_imports_the_command_line_alone() -> None:
    rooms = ("headrace.authoring", "headrace.compiler", "headrace.connectors", "headrace.operators")

    assert not [name for name in imported("--version") if name.startswith(rooms)]
