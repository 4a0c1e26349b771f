"""What is told of configs, word for word; and that it is the same each time."""

from __future__ import annotations

import subprocess
import sys
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path

import pytest

from headrace.authoring.explaining.graphs import dot_of, mermaid_of
from headrace.authoring.explaining.texts import WIDTH, text_of
from tests.authoring.explaining.configs import (
    GOLDEN,
    SPECS,
    explained_file,
    explained_text,
    known,
)
from tests.server import environment

EXPLAINS = """
import sys
from pathlib import Path
from headrace.web.commands.explaining import explain
for folder in sys.argv[1:]:
    for form in ("text", "json", "mermaid", "dot"):
        print()
        assert explain(Path(folder, "config.yaml"), (), form, with_code=form == "text") == 0
"""

CONFIGS = sorted(path.stem for path in GOLDEN.glob("*.yaml") if "." not in path.stem)
WITH_SCRIPT = ("machines", "plant")
SPEC_NAMES = [
    spec.name
    for spec in sorted(SPECS.iterdir())
    if (spec / "config.yaml").exists() and (find_spec("rhai") or spec.name not in WITH_SCRIPT)
]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_is_told_of_word_for_word(name: str):
    with chdir(GOLDEN):
        told = explained_file(Path(f"{name}.yaml"))

    assert text_of(told).splitlines() == (GOLDEN / f"{name}.txt").read_text().splitlines()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_is_drawn_edge_by_edge(name: str):
    told = explained_file(GOLDEN / f"{name}.yaml")

    assert mermaid_of(told) == (GOLDEN / f"{name}.mermaid").read_text().rstrip("\n")
    assert dot_of(told) == (GOLDEN / f"{name}.dot").read_text().rstrip("\n")


def test_these_configs_have_components_of_every_kind():
    told = [each for name in CONFIGS for each in explained_file(GOLDEN / f"{name}.yaml")]
    there = {
        (family, part.kind)
        for each in told
        for family, parts in (
            ("input", each.inputs),
            ("transform", each.transforms),
            ("output", each.outputs),
        )
        for part in parts
    }
    families = ("input", "transform", "output")
    kinds = {(family, kind) for family in families for kind in known().family(family)}

    assert kinds - there == {("transform", "script")}  # specs/machines has one


def test_of_every_row_of_promises_a_part_is_told():
    told = [each for name in CONFIGS for each in explained_file(GOLDEN / f"{name}.yaml")]
    said = {promise.name for each in told for part in each.parts() for promise in part.promises}
    declared = {
        name
        for family in ("input", "output")
        for kind in known().family(family).values()
        for row in kind.promises
        for name, _, _ in row.named(kind)
    }

    assert declared - said == set()


def test_specs_are_told_of_the_same_whatever_the_hash_seed():
    said = {
        subprocess.run(
            [sys.executable, "-c", EXPLAINS, *(str(SPECS / spec) for spec in SPEC_NAMES)],
            env={**environment(), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }

    assert len(said) == 1
    assert said.pop().count("\npipeline '") >= len(SPEC_NAMES)


def test_of_several_pipelines_those_that_are_named_are_told_in_the_order_of_the_file():
    named = explained_file(SPECS / "weather" / "config.yaml", ["heat", "weather"])
    alone = explained_file(SPECS / "weather" / "config.yaml", ["heat"])

    assert [each.id for each in named] == ["weather", "heat"]
    assert alone == named[1:]


def test_what_an_id_holds_stays_on_its_line():
    id = 'a"]; x --> y %%\\ "#<b>\u2028\x1b[31m'
    [told] = explained_text(
        '[{"id": "a\\"]; x --> y %%\\\\ \\"#<b>\\u2028\\u001b[31m", "inputs": [{"type": "http"}]}]'
    )

    first, *others = text_of([told], with_code=True).splitlines()

    assert told.id == id
    assert first.startswith("pipeline 'a\"]; x --> y %%\\ \"#<b>\\u2028\\x1b[31m'   ")
    assert all(line.startswith("  ") for line in others)


def test_no_line_is_wider_than_its_longest_word_makes_it():
    for name in CONFIGS:
        for line in (GOLDEN / f"{name}.txt").read_text().splitlines():
            assert len(line) <= WIDTH or line.startswith("pipeline ") or " " not in line.strip()


CONDITIONS = """
- id: up
  inputs: [{type: http}]
  transforms:
    - type: filter
      when:
        - {type: one_of, field: m, values: [press, 7, true]}
        - {type: length, field: tags, operator: at_least, value: 2}
        - {type: string, field: state, operator: starts_with, other: prefix}
  outputs:
    - type: stdout
      when:
        - {type: numeric, field: temp, operator: at_least, value: 80}
        - type: any
          conditions:
            - {type: boolean, field: alarm}
            - {type: not, conditions: [{type: exists, field: x}, {type: exists, field: y}]}
- id: down
  inputs: [{type: pipeline, upstream: up, when: [{type: exists, field: temp}]}]
  outputs: [{type: stdout, when: [{type: one_of, field: m, values: [MANY]}]}]
""".replace("MANY", ", ".join(["a" * 90] * 5))


def test_conditions_are_told_in_words_and_no_more_of_them_than_can_be_read():
    up, down = explained_text(CONDITIONS)

    assert [part.notes for part in up.parts()] == [
        (),
        (
            "when 'm' one_of \"press\", 7, true and 'tags' a length at_least 2"
            " and 'state' starts_with 'prefix'",
            "one generated loop",
        ),
        ("when 'temp' at_least 80 and any ('alarm' true or not ('x' exists and 'y' exists))",),
    ]
    reads, writes = [part.notes for part in down.parts()]
    assert reads == ("when 'temp' exists",)
    assert (len(writes[0]), writes[0][-3:]) == (308, "...")
    assert "  outputs[0]     stdout  :11  when 'temp' at_least 80" in text_of([up])
