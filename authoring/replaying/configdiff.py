"""What differs in two configs: what a revert from one to the other would keep, restart, add and remove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from headrace.authoring.configfiles import ConfigFiles, LoadedConfig, place
from headrace.authoring.playing.played import Played
from headrace.authoring.playing.playedenvironment import NoSecrets, PlayedEnvironment
from headrace.authoring.playing.player import on_a_loop, quiet
from headrace.authoring.playing.scenario import Scenario
from headrace.authoring.verdicts.matching import value_text
from headrace.compiler.buckets import Buckets
from headrace.compiler.clock import Clock, VirtualLoop
from headrace.compiler.component.families import Connection
from headrace.compiler.component.pipelineconfig import PipelineConfig, differing
from headrace.compiler.component.states import bounds_of
from headrace.compiler.config.program import Program
from headrace.compiler.config.showing import shown_config
from headrace.compiler.lowering.chain import lower
from headrace.compiler.runtime.dependencies import Dependencies
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.revert.plan import (
    BucketsPlan,
    Comparison,
    ConnectionsPlan,
    Standing,
    buckets_plan,
    compared,
    connections_plan,
)
from headrace.compiler.text.diagnostics import Path, path_text


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that differs. ``before`` and ``after`` are texts of the values, where there are any."""

    path: str
    before: str | None
    after: str | None
    where: str
    """Where it is in the new file."""


@dataclass(frozen=True, slots=True)
class PipelineChange:
    """A pipeline that is built anew, and why: settings, and what it is built on."""

    id: str
    settings: tuple[SettingChange, ...]
    built_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """What differs in two configs. Pipelines are named by their ids, or by where they are written."""

    kept: tuple[str, ...]
    added: tuple[str, ...]
    changed: tuple[PipelineChange, ...]
    removed: tuple[str, ...]
    connections: ConnectionsPlan
    buckets: BucketsPlan

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        found = (self.connections, self.buckets)
        more = [name for each in found for name in (*each.added, *each.changed, *each.removed)]
        return not (self.added or self.changed or self.removed or more)


Config = LoadedConfig[ConfigFiles]


def config_difference(old: Config, new: Config) -> ConfigDifference:
    """Return what differs. Both have a program.

    Raises:
        Refused: one of them cannot be built, with every reason.
    """
    assert old.program is not None
    assert new.program is not None
    _built(new.program, new.base)
    standings, buckets = _built(old.program, old.base)
    standings = [_as_filed(each, old.connections, new.base) for each in standings]
    wanted = buckets.redeclared(bounds_of(new.program.buckets))
    found = compared(standings, new.program, new.connections, wanted)
    names = {each.id: _called(each.config, each.id) for each in standings}
    names |= {id: _called(each, id) for id, each in found.wanted.items()}
    running = {each.id: each.config for each in standings}
    return ConfigDifference(
        kept=tuple(names[id] for id, why in found.why.items() if not why),
        added=tuple(names[id] for id in found.wanted if id not in running),
        changed=tuple(_changes(found, running, names)),
        removed=tuple(names[id] for id in running if id not in found.wanted),
        connections=connections_plan(old.connections, new.connections),
        buckets=buckets_plan(buckets, wanted),
    )


def _built(program: Program, base: FilePath | None) -> tuple[list[Standing], Buckets]:
    """Build a program; return its pipelines with what they were built on, and its buckets."""

    async def perform(loop: VirtualLoop) -> tuple[list[Standing], Buckets]:
        clock = Clock(loop)
        environment = PlayedEnvironment(Scenario(), clock, Played(), (), lower, {})
        engine = Engine(
            clock,
            secrets=NoSecrets(),
            base=base,
            retention_seconds=0,
            environment=environment,
        )
        await engine.load(program)
        standings = [
            Standing(each.id, each.config, each.parts.dependencies, True, False)
            for each in engine.graph.pipelines.values()
        ]
        await engine.close()
        return standings, engine.state

    with quiet():
        return on_a_loop(perform, Scenario())


def _as_filed(
    standing: Standing, connections: Mapping[str, Connection], base: FilePath | None
) -> Standing:
    """Return a pipeline as if it ran where the other config is: with its connections, beside its files."""
    named = {name: connections[name] for name in standing.config.connections if name in connections}
    built_on = standing.dependencies
    files = {
        name: ((base or FilePath()) / name, held) for name, (_, held) in built_on.files.items()
    }
    return replace(standing, dependencies=Dependencies(named, built_on.buckets, files))


def _called(config: PipelineConfig, id: str) -> str:
    """Return what a pipeline is called: one without an id is where it is written."""
    return id if config.id is not None else _written(config, ())


def _written(config: PipelineConfig, path: Path) -> str:
    site = config.site.inside(*path)
    file = None if site.document is None else site.document.file
    return place(file, site.position())


def _changes(
    found: Comparison, running: Mapping[str, PipelineConfig], names: Mapping[str, str]
) -> Iterator[PipelineChange]:
    for id, why in found.why.items():
        if why:
            before, after = running[id], found.wanted[id]
            settings = tuple(_settings(before, after))
            told = {each.path for each in settings}
            built_on = tuple(each for each in why if each not in told)
            yield PipelineChange(names[id], settings, built_on)


def _settings(before: PipelineConfig, after: PipelineConfig) -> Iterator[SettingChange]:
    """Yield the settings that differ. Credentials are told to differ, and not what they are."""
    [was], [becomes] = (shown_config([(each.id, each)], {}) for each in (before, after))
    for path in differing(before, after):
        yield SettingChange(
            path_text(path), _value(was, path), _value(becomes, path), _written(after, path)
        )


def _value(shown: Any, path: Path) -> str | None:
    """Return the text of a value, None where there is none."""
    value = shown
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value_text(value)
