"""What a config is built to, as a graph: for Mermaid and for Graphviz.

Nodes have names of their own, so an id may hold any character; in labels whatever is not plain is written
as the languages have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headrace.authoring.explaining.explained import ExplainedPart, ExplainedPipeline
from headrace.compiler.text.diagnostics import printable

_PLAIN = frozenset(" .,:'()[]_-+")
"""What may stand in a label of Mermaid beside letters and digits."""


@dataclass
class _Group:
    """A pipeline: its nodes by name, and where its messages come in and go out."""

    name: str
    label: str
    nodes: dict[str, str] = field(default_factory=dict)
    begins: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)


@dataclass
class _Graph:
    groups: list[_Group]
    edges: list[tuple[str, str]]


def mermaid_of(pipelines: Sequence[ExplainedPipeline]) -> str:
    """Return a flowchart of Mermaid.

    Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
    """
    graph = _graph(pipelines)
    lines = ["flowchart LR"]
    for group in graph.groups:
        lines.append(f'  subgraph {group.name}["{_mermaid(group.label)}"]')
        lines += [f'    {name}["{_mermaid(label)}"]' for name, label in group.nodes.items()]
        lines.append("  end")
    return "\n".join([*lines, *(f"  {one} --> {other}" for one, other in graph.edges)])


def dot_of(pipelines: Sequence[ExplainedPipeline]) -> str:
    """Return a directed graph of Graphviz.

    Source: https://graphviz.org/doc/info/lang.html, "ID".
    """
    graph = _graph(pipelines)
    lines = ["digraph headrace {", "  rankdir=LR;", "  node [shape=box];"]
    for group in graph.groups:
        lines += [f"  subgraph cluster_{group.name} {{", f"    label={_dot(group.label)};"]
        lines += [f"    {name} [label={_dot(label)}];" for name, label in group.nodes.items()]
        lines.append("  }")
    return "\n".join([*lines, *(f"  {one} -> {other};" for one, other in graph.edges), "}"])


def _graph(pipelines: Sequence[ExplainedPipeline]) -> _Graph:
    groups = [_group(f"p{number}", each) for number, each in enumerate(pipelines)]
    edges = [edge for group in groups for edge in _inside(group)]
    ends = {each.id: group.ends for each, group in zip(pipelines, groups, strict=True) if each.id}
    for pipeline, group in zip(pipelines, groups, strict=True):
        for index, part in enumerate(pipeline.inputs):
            if part.upstream is not None:
                edges += [(end, f"{group.name}_in{index}") for end in ends.get(part.upstream, ())]
    return _Graph(groups, edges)


def _group(name: str, pipeline: ExplainedPipeline) -> _Group:
    group = _Group(name, pipeline.called)
    group.begins = [f"{name}_in{index}" for index, _ in enumerate(pipeline.inputs)]
    group.nodes = dict(zip(group.begins, map(_label, pipeline.inputs), strict=True))
    for index, steps in enumerate(_steps(pipeline)):
        group.nodes[f"{name}_step{index}"] = " + ".join(each.kind for each in steps)
    last = [*group.nodes][-1]
    # With several inputs and no transform there is no node in which they meet.
    group.ends = [last] if pipeline.transforms else group.begins
    for index, part in enumerate(pipeline.outputs):
        group.nodes[f"{name}_out{index}"] = _label(part)
    return group


def _steps(pipeline: ExplainedPipeline) -> Iterator[list[ExplainedPart]]:
    """Yield the transforms, those of one generated loop together."""
    loops = {index: loop for loop in pipeline.loops for index in loop.transforms}
    steps: list[ExplainedPart] = []
    for index, part in enumerate(pipeline.transforms):
        steps.append(part)
        loop = loops.get(index)
        if loop is None or index == loop.transforms[-1]:
            yield steps
            steps = []


def _label(part: ExplainedPart) -> str:
    names = "".join(f" '{each.name}'" for each in part.connections)
    return f"{part.kind}{names}"


def _inside(group: _Group) -> Iterator[tuple[str, str]]:
    """Yield the edges between the nodes of one pipeline."""
    steps = [name for name in group.nodes if name.startswith(f"{group.name}_step")]
    if steps:
        yield from ((each, steps[0]) for each in group.begins)
        yield from pairwise(steps)
    for name in group.nodes:
        if name.startswith(f"{group.name}_out"):
            yield from ((end, name) for end in group.ends)


def _mermaid(label: str) -> str:
    return "".join(
        each if each.isalnum() or each in _PLAIN else f"#{ord(each)};" for each in printable(label)
    )


def _dot(label: str) -> str:
    escaped = printable(label).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
