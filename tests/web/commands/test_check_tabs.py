"""A config that tabs indent is told all that it would be told without them, and nothing else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from headrace.authoring.configfiles import catalogue
from headrace.web.files.reading import Files, load

KNOWN = catalogue()

OBJECT = """\
pipelines:
  - id: a
    inputs:
      - type: htp
        buffer: x
    transforms:
      - type: filter
        Numeric:
          field: a
          operator: gt
          value: 5
      - type: map
        mappings:
          - type: copi
            from: a
            as: b
          - type: constant
            as: c
            value: 5
    outputs:
      - type: stdot
  - id: b
    inputs:
    - type: dummy
      duration: x
    transforms:
    - type: buffer
      siez: 3
    outputs:
    - type: stdout
"""
LIST = textwrap.dedent(OBJECT.partition("\n")[2])


def told(text: str, name: str = "a.yaml") -> set[tuple[int | None, str, str]]:
    Path(name).write_text(text)
    diagnostics = load(Files(config=Path("a.yaml")), KNOWN).diagnostics
    return {(one.line, one.code, one.message) for one in diagnostics if one.code != "tab"}


def tabbed(line: str, width: int | None) -> str:
    """Return a line with tabs that are so wide; without a width, with one tab however deep it is."""
    rest = line.lstrip(" ")
    depth = len(line) - len(rest)
    if not depth:
        return line
    return "\t" + rest if width is None else "\t" * (depth // width) + " " * (depth % width) + rest


pytestmark = pytest.mark.usefixtures("in_a_folder")


@pytest.mark.parametrize("text", [OBJECT, LIST], ids=["object", "list"])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_tabs_all_over_hide_nothing_and_add_nothing(text: str, width: int) -> None:
    lines = [tabbed(line, width) for line in text.splitlines()]

    assert told("\n".join(lines)) == told(text)


@pytest.mark.long
@pytest.mark.parametrize("text", [OBJECT, LIST], ids=["object", "list"])
@pytest.mark.parametrize("width", [2, 4, 8, None])
def test_tabs_on_one_line_hide_nothing_and_add_nothing(text: str, width: int | None) -> None:
    lines = text.splitlines()

    for place, line in enumerate(lines):
        with_tab = [*lines[:place], tabbed(line, width), *lines[place + 1 :]]
        assert told("\n".join(with_tab)) == told(text), line


def test_tabs_in_a_connections_file_hide_nothing_and_add_nothing() -> None:
    Path("a.yaml").write_text("[{ inputs: [{ type: http }] }]")
    text = "disk:\n    type: fil\nplant:\n    type: nats\n    servers: 5\n    usr: a\n"
    for line in ("    type: fil", "    servers: 5", "    usr: a"):
        Path("a.connections.yaml").write_text(text)
        files = Files(config=Path("a.yaml"))
        whole = {(one.line, one.message) for one in load(files, KNOWN).diagnostics}

        Path("a.connections.yaml").write_text(text.replace(line, "\t" + line.strip()))

        found = {(o.line, o.message) for o in load(files, KNOWN).diagnostics if o.code != "tab"}
        assert len(whole) >= 3
        assert found == whole
