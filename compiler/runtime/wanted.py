"""What is asked of the configs of all pipelines, by the ids they run under: wherever they run."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.compiler.component.pipelineconfig import Configs, PipelineConfig
from headrace.compiler.lint.rules import circle
from headrace.compiler.text.diagnostics import Diagnostic


def naming(connection: str, configs: Configs) -> list[str]:
    """Return the pipelines that name a connection, whatever their status."""
    return [id for id, config in configs.items() if connection in config.connections]


def rings(id: str, config: PipelineConfig, configs: Configs) -> Iterator[Diagnostic]:
    """Yield the readings that would close a ring: of pipelines that waited for this id."""
    for path, upstream in config.readings():
        if ring := _way(id, upstream, configs):
            yield config.diagnose(circle(ring), path)


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
