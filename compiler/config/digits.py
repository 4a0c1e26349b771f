"""Which pipelines numbers go through on their way to an output that wants them as they were written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from headrace.compiler.component.pipelineconfig import PipelineConfig

Configs = Mapping[str, PipelineConfig]
"""Pipelines by the ids under which they run."""


def keeping_digits(pipelines: Configs) -> set[str]:
    """Return the pipelines that have to decode numbers as they are written.

    That is those with an output that wants it, those that hand on to one of them, and those that
    remember in a bucket what one of them recalls.
    """
    keeping = {id for id, config in pipelines.items() if _wants_digits(config)}
    remembering = _remembering(pipelines) if keeping else {}
    found = [*keeping]
    for id in found:
        new = {*_feeding(pipelines[id], pipelines, remembering)} - keeping
        keeping |= new
        found += new
    return keeping


def _wants_digits(config: PipelineConfig) -> bool:
    return any(output.keeps_digits() for output in config.outputs)


def _remembering(pipelines: Configs) -> Mapping[str, list[str]]:
    """Return who remembers, by bucket."""
    found = defaultdict[str, list[str]](list)
    for id, config in pipelines.items():
        if config.state is not None and any(each.remembers for each in config.transforms):
            found[config.state.bucket].append(id)
    return found


def _feeding(
    config: PipelineConfig, pipelines: Configs, remembering: Mapping[str, list[str]]
) -> Iterator[str]:
    """Yield where the messages of a pipeline come from, and the values that it puts into them."""
    yield from (upstream for upstream in config.upstreams if upstream in pipelines)
    if config.state is not None and any(each.recalls for each in config.transforms):
        yield from remembering.get(config.state.bucket, ())
