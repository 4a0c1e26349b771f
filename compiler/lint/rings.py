"""Rings of pipelines that run: what one of them reads comes from itself in the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.lint.rules import circle
from headrace.compiler.schema.structures import settings_of, upstreams
from headrace.compiler.text.diagnostics import Diagnostic

Configs = Mapping[str, PipelineConfig]
"""Pipelines by the ids under which they run."""


def rings(id: str, configs: Configs) -> Iterator[Diagnostic]:
    """Yield the readings of a pipeline that close a ring: of pipelines that waited for its id."""
    for index, each in enumerate(configs[id].inputs):
        for path, upstream in upstreams(settings_of(each)):
            if ring := _way(id, upstream, configs):
                yield configs[id].diagnose(circle(ring, each.of_itself), ("inputs", index, *path))


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


def fed_by_hearers(configs: Configs) -> frozenset[str]:
    """Return the pipelines that read the failures of all, and those that get something from one of them.

    Nobody who reads the failures of all hears of these: what fails there would come round for ever.
    """
    readers: dict[str, list[str]] = {}
    for id, config in configs.items():
        for upstream in config.upstreams:
            readers.setdefault(upstream, []).append(id)
    reached = [id for id, config in configs.items() if config.hears_all]
    found = {*reached}
    for here in reached:
        new = [each for each in readers.get(here, ()) if each not in found]
        found.update(new)
        reached += new
    return frozenset(found)


def read_by(config: PipelineConfig, fed: Collection[str], ids: Iterable[str]) -> list[str]:
    """Return the pipelines that one reads from: what they hand on, or what fails in them.

    ``fed`` is what `fed_by_hearers` says of all of them, whose ``ids`` are given.
    """
    heard = [each for each in ids if each not in fed] if config.hears_all else []
    return [*config.upstreams, *heard]
