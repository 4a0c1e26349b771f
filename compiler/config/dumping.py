"""The running graph as the documents that a save writes: its config and its connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any

from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.component.states import BucketDeclaration
from headrace.compiler.config.connectionsfile import misnamed
from headrace.compiler.jsontext import encode
from headrace.compiler.lint.rules import missing_upstream
from headrace.compiler.schema.structures import settings_of

_Named = PipelineConfig | Connection | BucketDeclaration

NO_ALIASES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Snapshot:
    """What ran at one moment: pipelines by the ids they run under, connections, buckets."""

    pipelines: Mapping[str, PipelineConfig] = field(default_factory=dict)
    connections: Mapping[str, Connection] = field(default_factory=dict)
    buckets: Mapping[str, BucketDeclaration] = field(default_factory=dict)

    def config(self, aliases: Mapping[str, str] = NO_ALIASES) -> Any:
        """Return the config: a list of pipelines, or with buckets an object that has it.

        Connections that have one of the ``aliases`` are called by that.
        """
        return config_document([self._pipeline(id, aliases) for id in self.order()], self.buckets)

    def order(self) -> list[str]:
        """Return the ids in rounds: whatever reads only what is there already, by id.

        What does not run counts as there; pipelines that feed each other in a circle come last.
        """
        graph = {
            id: [each for each in config.upstreams if each in self.pipelines]
            for id, config in self.pipelines.items()
        }
        sorter = TopologicalSorter(graph)
        with suppress(CycleError):
            sorter.prepare()
        order = list[str]()
        while ready := sorted(sorter.get_ready()):
            order += ready
            sorter.done(*ready)
        return [*order, *sorted(self.pipelines.keys() - set(order))]

    def dangling(self) -> Iterator[str]:
        """Yield what a load refuses of the documents, because something was removed."""
        for id, config in self.pipelines.items():
            faults = [
                missing_upstream(upstream, ())
                for upstream in config.upstreams
                if upstream not in self.pipelines
            ]
            faults += misnamed(settings_of(config), self.connections)
            yield from (f"pipeline '{id}': {fault.message}" for fault in faults)

    def differs_from(self, other: Snapshot) -> bool:
        """Return whether the documents differ, their order aside.

        Quick where most of it is the very same objects.
        """
        return any(
            these.keys() != others.keys()
            or any(
                # As text, because 1, 1.0 and true are equal.
                one is not others[name]
                and encode(_dumped(name, one)) != encode(_dumped(name, others[name]))
                for name, one in these.items()
            )
            for these, others in zip(self._parts, other._parts, strict=True)
        )

    def is_made_of(self, other: Snapshot) -> bool:
        """Return whether it is the very same objects under the same names."""
        return all(
            these.keys() == others.keys() and all(these[name] is others[name] for name in these)
            for these, others in zip(self._parts, other._parts, strict=True)
        )

    @property
    def _parts(self) -> tuple[Mapping[str, _Named], ...]:
        return self.pipelines, self.connections, self.buckets

    def _pipeline(self, id: str, aliases: Mapping[str, str]) -> dict[str, Any]:
        dumped = self.pipelines[id].dump(id, masked=False)
        for path, _, name in self.pipelines[id].namings() if aliases else ():
            place: Any = dumped
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = aliases.get(name, name)
        return dumped


def config_document(pipelines: list[Any], buckets: Mapping[str, BucketDeclaration]) -> Any:
    """Return the document of a config: a list of pipelines, or with buckets an object that has it."""
    if not buckets:
        return pipelines
    declared = {name: buckets[name].dump() for name in sorted(buckets)}
    return {"state": declared, "pipelines": pipelines}


def dumped_connections(filed: Mapping[str, Connection]) -> dict[str, Any]:
    """Return the document of a connections file, in the order of the names."""
    return {name: filed[name].dump(masked=False) for name in sorted(filed)}


def _dumped(name: str, each: _Named) -> Any:
    if isinstance(each, PipelineConfig):
        return each.dump(name, masked=False)
    return each.dump(masked=False)
