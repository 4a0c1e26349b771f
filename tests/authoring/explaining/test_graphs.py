"""Graphs: what they join, and that no id can write any of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from headrace.authoring.explaining.graphs import dot_of, mermaid_of
from tests.authoring.explaining.configs import GOLDEN, SPECS, explained_file, explained_text

IDS = [
    '"',
    '"]',
    "a\\",
    '\\"',
    "end",
    "x;y",
    "<b>&amp;",
    "#quot;",
    "`*a*`",
    "\x1b[31m\n",
    "ü 炉",
    "%%{init",
]

MERMAID_LINE = re.compile(
    r"flowchart LR"
    r"|  subgraph p\d+\[\"(?:[\w .,:'()\[\]_+-]|#\d+;)*\"\]"
    r"|    p\d+_\w+\[\"(?:[\w .,:'()\[\]_+-]|#\d+;)*\"\]"
    r"|  end"
    r"|  p\d+_\w+ --> p\d+_\w+"
)
STRING = r'"(?:[^"\\\n]|\\\\|\\")*"'
DOT_LINE = re.compile(
    r"digraph headrace \{|  rankdir=LR;|  node \[shape=box\];"
    r"|  subgraph cluster_p\d+ \{|    label=" + STRING + r";"
    r"|    p\d+_\w+ \[label=" + STRING + r"\];"
    r"|  \}|  p\d+_\w+ -> p\d+_\w+;|\}"
)


def hostile(id: str) -> str:
    reading = {"id": "reader", "inputs": [{"type": "pipeline", "upstream": id}]}
    return json.dumps(
        [{"id": id, "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}, reading]
    )


@pytest.mark.parametrize("id", IDS)
def test_an_id_is_a_label_and_nothing_else(id: str):
    told = explained_text(hostile(id))

    mermaid, dot = mermaid_of(told).splitlines(), dot_of(told).splitlines()

    assert [line for line in mermaid if not MERMAID_LINE.fullmatch(line)] == []
    assert [line for line in dot if not DOT_LINE.fullmatch(line)] == []
    assert mermaid[-2:] == ["  p0_in0 --> p0_out0", "  p0_in0 --> p1_in0"]
    assert dot[-3:] == ["  p0_in0 -> p0_out0;", "  p0_in0 -> p1_in0;", "}"]
    if shutil.which("dot"):  # as Graphviz reads it, where it is
        drawn = subprocess.run(
            ["dot", "-Tplain"], input="\n".join(dot), text=True, capture_output=True
        )
        assert (drawn.returncode, drawn.stderr) == (0, "")


def test_a_label_says_what_the_id_says():
    [line] = [
        line for line in dot_of(explained_text(hostile('a"\\'))).splitlines() if "label" in line
    ][:1]

    assert json.loads(line.strip().removeprefix("label=").removesuffix(";")) == 'a"\\'


def test_transforms_of_one_loop_are_one_node():
    told = mermaid_of(explained_file(SPECS / "weather" / "config.yaml"))

    assert 'p1_step0["filter + map"]' in told
    assert "p0_step2 --> p1_in0" in told


def test_without_transforms_every_input_goes_to_every_output():
    told = dot_of(explained_file(GOLDEN / "stores.yaml"))

    assert [line for line in told.splitlines() if "->" in line] == [
        f"  p0_in0 -> p0_out{index};" for index in range(7)
    ]
