"""The loops that are shown are those that run."""

from __future__ import annotations

import asyncio
import gc
import linecache
from pathlib import Path

import pytest

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig, load_config
from headrace.authoring.explaining.explanation import explained
from headrace.authoring.explaining.texts import text_of
from headrace.compiler.clock import Clock
from headrace.compiler.errors import Refused
from headrace.compiler.runtime.engine import Engine
from tests.authoring.explaining.configs import (
    GOLDEN,
    SPECS,
    explained_file,
    explained_text,
    known,
)
from tests.virtual import virtual

CONFIG = """
- id: a
  inputs: [{type: http}]
  transforms:
    - {type: filter, Numeric: {field: n, operator: greater_than, value: 1}}
    - {type: map, mappings: [{type: copy, from: n, as: m}]}
    - {type: buffer, size: 2}
    - {type: map, mappings: [{type: copy, from: m, as: n}]}
    - {type: reducer, group_by: [n], aggregations: [{function: count, as: n2}]}
    - {type: filter, String: {field: n, operator: equal_to, value: x}}
"""


def loaded(text: str) -> LoadedConfig[ConfigFiles]:
    return load_config(ConfigFiles(piped=text.encode()), known())


WANTED = """
- id: a
  inputs: [{type: http}]
  outputs:
    - {type: stdout}
    - {type: stdout, when: [{type: exists, field: n}]}
- id: b
  inputs: [{type: pipeline, upstream: a, when: [{type: exists, field: m}]}]
"""


async def _registered(text: str) -> dict[str, str]:
    """Return the sources that production registers for a config, by the name that tracebacks show."""
    program = loaded(text).program
    assert program is not None
    gc.collect()  # whatever other tests have left under the same names
    engine = Engine(Clock(asyncio.get_running_loop()))
    await engine.load(program)
    registered = {
        name: "".join(entry[2])
        for name, entry in linecache.cache.items()
        if name.startswith(("<headrace a ", "<headrace b ")) and len(entry) == 4
    }
    await engine.close()
    return registered


@virtual
async def test_they_are_those_that_production_registers():
    registered = await _registered(CONFIG)

    [told] = await asyncio.to_thread(explained_text, CONFIG)

    assert registered == {
        "<headrace a transforms[0..1]>": told.loops[0].source,
        "<headrace a transforms[3..4]>": told.loops[1].source,
        "<headrace a transforms[5]>": told.loops[2].source,
    }
    assert [loop.transforms for loop in told.loops] == [(0, 1), (3, 4), (5,)]
    assert told.selections == ()


@virtual
async def test_so_are_those_that_look_at_a_when():
    registered = await _registered(WANTED)

    told = await asyncio.to_thread(explained_text, WANTED)

    assert registered == {
        f"<headrace {pipeline.id} {each.place}>": each.source
        for pipeline in told
        for each in pipeline.selections
    }
    assert [[each.place for each in pipeline.selections] for pipeline in told] == [
        ["outputs[1]"],
        ["inputs[0]"],
    ]
    assert "# a outputs[1] when\ndef fused(batch):" in text_of(told, with_code=True)


@pytest.mark.engine
def test_every_one_compiles_and_is_gone_from_the_cache_afterwards():
    files = [
        *SPECS.glob("*/config.yaml"),
        *(GOLDEN / f"{name}.yaml" for name in ("brokers", "holding")),
    ]
    loops = [loop for file in files for each in explained_file(file) for loop in each.loops]

    assert len(loops) > 10
    gc.collect()
    for loop in loops:
        compile(loop.source, "<shown>", "exec")
        assert loop.source.startswith("def fused(batch):\n")
    left = [name for name in linecache.cache if name.startswith("<headrace ")]
    assert [
        name for name in left if not name.startswith("<headrace format ")
    ] == []  # those are kept


def test_a_run_that_is_too_much_source_is_told_as_the_loops_that_it_becomes():
    def long(field: str) -> str:
        mappings = (f"{{type: copy, from: {field}{n}, as: b{n}}}" for n in range(1500))
        return f"{{type: map, mappings: [{', '.join(mappings)}]}}"

    [told] = explained_text(
        f"- {{id: a, inputs: [{{type: http}}], transforms: [{long('x')}, {long('y')}]}}"
    )

    assert [loop.transforms for loop in told.loops] == [(0,), (1,)]
    assert [part.notes for part in told.transforms] == [("one generated loop",)] * 2


@pytest.mark.engine
def test_what_cannot_be_built_is_refused_with_every_reason(tmp_path: Path):
    (tmp_path / "a.rhai").write_text("emit(msg);")
    config = tmp_path / "config.yaml"
    config.write_text(
        "- {id: a, inputs: [{type: http}], outputs: [{type: stdout}], transforms:"
        " [{type: script, source: {type: file, path: a.rhai}}]}"
    )
    files = load_config(ConfigFiles(config), known())
    (tmp_path / "a.rhai").unlink()

    with pytest.raises(Refused) as caught:
        explained(files)

    assert [one.path for one in caught.value.diagnostics] == [
        "pipelines[0].transforms[0].source.path"
    ]
