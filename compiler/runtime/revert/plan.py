"""The plan of a revert: what goes on, comes, changes and goes, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.compiler.annotated import Count
from headrace.compiler.buckets import Buckets
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import (
    PipelineConfig,
    differing,
    generated_id,
    is_same,
)
from headrace.compiler.config.program import Program
from headrace.compiler.runtime.dependencies import Dependencies, Digest, digest
from headrace.compiler.runtime.pipeline import Pipeline
from headrace.compiler.runtime.revert.storedfates import StoredFate
from headrace.compiler.text.diagnostics import path_text

MOST_NAMED = 10
"""How many of a kind a log line names."""


class RemovedPipeline(msgspec.Struct, frozen=True):
    """A pipeline that is not in the file."""

    id: str
    held: Annotated[Count, Meta(description="Messages that its buffers let go early.")]
    in_flight: Annotated[Count, Meta(description="Batches on their way, which go through first.")]


class ChangedPipeline(RemovedPipeline, frozen=True):
    """A pipeline that is built anew."""

    why: Annotated[
        tuple[str, ...],
        Meta(
            description="Settings that differ, and what it was built on that is something else by now."
        ),
    ]


class PipelinesPlan(msgspec.Struct, frozen=True):
    """What becomes of the pipelines."""

    kept: Annotated[tuple[str, ...], Meta(description="Those that go on undisturbed.")]
    added: tuple[str, ...]
    changed: tuple[ChangedPipeline, ...]
    removed: tuple[RemovedPipeline, ...]


class ConnectionsPlan(msgspec.Struct, frozen=True):
    """What becomes of the connections."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


class EmptiedBucket(msgspec.Struct, frozen=True):
    """A bucket that does not go on with what it holds."""

    name: str
    keys: Annotated[Count, Meta(description="Keys that it loses, or leaves over.")]
    left_over: Annotated[
        bool,
        Meta(
            description="Whether they stay on the disk, left over: the bucket is `durable`. Else they are"
            " gone."
        ),
    ]


class BucketsPlan(msgspec.Struct, frozen=True):
    """What becomes of the buckets."""

    kept: tuple[str, ...]
    added: tuple[str, ...]
    changed: tuple[EmptiedBucket, ...]
    removed: tuple[EmptiedBucket, ...]


class Plan(msgspec.Struct, frozen=True):
    """What a revert does."""

    pipelines: PipelinesPlan
    connections: ConnectionsPlan
    buckets: BucketsPlan
    lost: int = 0
    """Messages that had not left the outputs in time, when it was done."""
    stored: tuple[StoredFate, ...] = ()
    """What is kept on disk of the pipelines that come, change and go; told before it is done."""

    def __str__(self) -> str:
        """Say in short what becomes of the pipelines, and what is lost."""
        pipelines, emptied = self.pipelines, [*self.buckets.changed, *self.buckets.removed]
        told = [
            _told(pipelines.added, "added"),
            _told([each.id for each in pipelines.changed], "changed"),
            _told([each.id for each in pipelines.removed], "removed"),
            f"{len(pipelines.kept):,} left alone",
            *(
                f"bucket '{each.name}' {'left over with' if each.left_over else 'lost'} {each.keys:,} keys"
                for each in emptied
                if each.keys
            ),
            f"messages lost, because not written in time: {self.lost:,}" if self.lost else "",
        ]
        return "pipelines: " + ", ".join(filter(None, told))


def _told(names: Sequence[str], verb: str) -> str:
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{len(names):,} {verb} ({', '.join(map(repr, names[:MOST_NAMED]))}{more})"


@dataclass(frozen=True, slots=True)
class Standing:
    """A running pipeline as it was when somebody looked: enough to compare it anywhere."""

    id: str
    config: PipelineConfig
    dependencies: Dependencies
    is_settled: bool
    has_failed: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The pipelines of a file by the ids they get, and why those that run already have to change.

    Both in the order of the file, each pipeline after those it reads from.
    """

    wanted: Mapping[str, PipelineConfig]
    why: Mapping[str, tuple[str, ...]]

    @property
    def made(self) -> dict[str, PipelineConfig]:
        """Those that are built: the new ones, and those that change."""
        return {id: config for id, config in self.wanted.items() if self.why.get(id) != ()}


def compared(
    running: Sequence[Standing],
    program: Program,
    connections: Mapping[str, Connection],
    buckets: Buckets,
) -> Comparison:
    """Compare what runs with a file. Reads the files that pipelines were built from; for a thread."""
    wanted = _identified(program.pipelines, running)
    held: Digest = cache(digest)
    why = {
        each.id: tuple(_reasons(each, wanted[each.id], connections, buckets, held))
        for each in running
        if each.id in wanted
    }
    return Comparison(wanted, {id: why[id] for id in wanted if id in why})


def exchanged(
    running: Sequence[Standing],
    id: str,
    config: PipelineConfig,
    connections: Mapping[str, Connection],
    buckets: Buckets,
) -> Comparison:
    """Compare one pipeline with the config that it is to have; all the others go on as they are."""
    wanted = {each.id: each.config for each in running} | {id: config}
    why: dict[str, tuple[str, ...]] = dict.fromkeys(wanted, ())
    for each in running:
        if each.id == id:
            why[id] = tuple(_reasons(each, config, connections, buckets, digest))
    return Comparison(wanted, why)


def _identified(
    configs: Iterable[PipelineConfig], running: Sequence[Standing]
) -> dict[str, PipelineConfig]:
    """Return the pipelines of a file by id. One without is the one that runs just so, or a new one."""
    configs = [*configs]
    named = {config.id for config in configs if config.id is not None}
    nameless = [each for each in running if each.config.id is None and each.id not in named]
    taken = {*named, *(each.id for each in running)}
    found = dict[str, PipelineConfig]()
    for config in configs:
        id = config.id
        if id is None:
            same = (one for one in nameless if next(differing(one.config, config), None) is None)
            alike = next(same, None)
            if alike is not None:
                nameless.remove(alike)
            id = alike.id if alike is not None else generated_id(taken)
            taken.add(id)
        found[id] = config
    return found


def _reasons(
    standing: Standing,
    config: PipelineConfig,
    connections: Mapping[str, Connection],
    buckets: Buckets,
    held: Digest,
) -> Iterator[str]:
    """Yield why a pipeline cannot just go on."""
    if not standing.is_settled:
        yield "it is being created"
        return
    if standing.has_failed:
        yield "it has failed"
    yield from map(path_text, differing(standing.config, config))
    yield from standing.dependencies.changes(connections, buckets, held)


def plan_of(
    comparison: Comparison,
    running: Mapping[str, Pipeline],
    filed: tuple[Mapping[str, Connection], Mapping[str, Connection]],
    buckets: tuple[Buckets, Buckets],
) -> Plan:
    """Return the plan; ``filed`` and ``buckets`` are those of now and those that are wanted."""
    made = comparison.made
    return Plan(
        PipelinesPlan(
            kept=tuple(id for id, why in comparison.why.items() if not why),
            added=tuple(id for id in made if id not in running),
            changed=tuple(
                ChangedPipeline(*_costs(running[id]), comparison.why[id])
                for id in made
                if id in comparison.why
            ),
            removed=tuple(
                RemovedPipeline(*_costs(each))
                for id, each in running.items()
                if id not in comparison.wanted
            ),
        ),
        connections_plan(*filed),
        buckets_plan(*buckets),
    )


def _costs(pipeline: Pipeline) -> tuple[str, int, int]:
    """Return which pipeline it is, and what it holds and has on its way."""
    return pipeline.id, pipeline.parts.held, pipeline.in_flight


def connections_plan(
    before: Mapping[str, Connection], after: Mapping[str, Connection]
) -> ConnectionsPlan:
    """Return what becomes of connections."""
    both = sorted(after.keys() & before.keys())
    return ConnectionsPlan(
        added=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(
            name
            for name in both
            if before[name] is not after[name] and not is_same(before[name], after[name])
        ),
        removed=tuple(sorted(before.keys() - after.keys())),
    )


def buckets_plan(before: Buckets, after: Buckets) -> BucketsPlan:
    """Return what becomes of buckets."""
    kept = [bucket.name for bucket in before if after.get(bucket.name) is bucket]
    lost = [
        EmptiedBucket(bucket.name, len(bucket), bucket.bounds.is_durable)
        for bucket in before
        if bucket.name not in kept
    ]
    return BucketsPlan(
        kept=tuple(kept),
        added=tuple(name for name in after.names() if before.get(name) is None),
        changed=tuple(each for each in lost if after.get(each.name) is not None),
        removed=tuple(each for each in lost if after.get(each.name) is None),
    )
