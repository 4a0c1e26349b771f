"""The engine that API tests ask: all that is awaited of the interface goes through JSON, both ways."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.config.program import Program, load_program
from headrace.compiler.errors import PipelineExists, Refused, UnknownPipeline
from headrace.compiler.text.documents import read
from headrace.web.engineprotocol import Engine as Interface
from tests.web.jsonengine import AWAITED, LOCAL, JsonEngine, through_json

CONFIG = """\
state: { seen: { max_keys: 5 } }
pipelines:
  - id: b
    inputs: [{ type: pipeline, upstream: a }]
  - id: a
    inputs: [{ type: http }]
    outputs: [{ type: file, connection: disk, path: out }]
"""


def program(components: Any) -> Program:
    document = read(CONFIG, "plant.yaml", "yaml")
    loaded, said = load_program(document, components)
    assert loaded is not None, said
    return loaded


def test_every_method_of_the_interface_is_awaited_or_of_this_process() -> None:
    methods = {name for name in vars(Interface) if not name.startswith("_")}

    assert methods == {*AWAITED, *(LOCAL & methods)}
    assert {"load", "compile", "pipelines", "bucket", "revert", "close"} <= {*AWAITED}
    assert {"way_in", "observe", "hush", "base"} <= LOCAL
    assert inspect.iscoroutinefunction(Interface.close)


async def test_what_is_no_part_of_the_interface_is_not_there(engine: JsonEngine) -> None:
    with pytest.raises(AttributeError, match="'graph' is no part of the interface"):
        engine.graph  # noqa: B018


async def test_a_program_arrives_with_the_places_of_its_document(engine, components) -> None:
    with pytest.raises(Refused) as refused:
        await engine.load(program(components))

    [told] = refused.value.diagnostics
    assert (told.file, told.line, told.path) == (
        "plant.yaml",
        7,
        "pipelines[1].outputs[0].connection",
    )


async def test_figures_are_those_of_the_engine_and_not_its_own_objects(engine, components) -> None:
    whole = program(components)
    [reads] = [each for each in whole.pipelines if each.id == "b"]
    [posted] = [each for each in whole.pipelines if each.id == "a"]
    without = Program((type(posted)(id="a", inputs=posted.inputs), reads), whole.buckets)
    await engine.load(without)

    here, there = await engine.inner.pipelines(), await engine.pipelines()

    assert [each.id for each in there] == ["a", "b"]
    assert there == here
    assert there[0] is not here[0]
    assert [each.max_keys for each in await engine.buckets()] == [5]
    assert [*engine.declarations] == ["seen"]


async def test_an_error_arrives_as_its_class_with_what_it_carries(engine, client) -> None:
    config = {"id": "p", "inputs": [{"type": "http"}]}
    await client.simulate_post("/api/pipelines", json=config)

    with pytest.raises(UnknownPipeline, match="no pipeline named 'q'") as unknown:
        await engine.dispose("q")
    with pytest.raises(PipelineExists) as exists:
        await engine.compile(engine.configs()["p"])

    assert (unknown.value.pipeline, exists.value.pipeline) == ("q", "p")


def test_what_is_no_value_does_not_go_through() -> None:
    assert through_json(Path("a"), Path) == Path("a")
    with pytest.raises(TypeError, match="a function is no value"):
        through_json(lambda: 1)
