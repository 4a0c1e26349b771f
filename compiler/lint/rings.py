"""Rings of pipelines that run: what one of them reads comes from itself in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.lint.rules import circle
from headrace.compiler.text.diagnostics import Diagnostic

Configs = Mapping[str, PipelineConfig]
"""Pipelines by the ids under which they run."""


def rings(id: str, configs: Configs) -> Iterator[Diagnostic]:
    """Yield the readings of a pipeline that close a ring: of pipelines that waited for its id."""
    for path, upstream in configs[id].readings():
        if ring := _way(id, upstream, configs):
            yield configs[id].diagnose(circle(ring), path)


def _way(start: str, end: str, configs: Configs) -> list[str]:
    """Return the pipelines that messages of one go through to another; empty if there are none."""
    after: dict[str, str | None] = {end: None}
    reached: list[str] = [end]
    for here in reached:
        if here == start:
            way = [here]
            while (following := after[way[-1]]) is not None:
                way.append(following)
            return way
        if here in configs:
            new = [each for each in dict.fromkeys(configs[here].upstreams) if each not in after]
            after.update(dict.fromkeys(new, here))
            reached += new
    return []
