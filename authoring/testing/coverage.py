"""Coverage: which branches of a config its tests have taken, counted in a play of their own.

What tests took is summed over all tests of a config, whichever files they stand in and processes ran them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from headrace.authoring.configfiles import place
from headrace.authoring.playing.played import TakenBranch
from headrace.authoring.testing.outcomes import CaseOutcome
from headrace.authoring.testing.suites import Suite
from headrace.compiler.component.branches import Branch
from headrace.compiler.component.checkcontext import CheckContext
from headrace.compiler.component.families import Component
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.config.program import Program
from headrace.compiler.text.diagnostics import path_text


@dataclass(frozen=True, slots=True)
class CoveredBranch:
    """A branch of a config, and how often tests took it."""

    pipeline: str
    component: str
    """The place of the component in its pipeline: ``transforms[0]``."""
    branch: Branch
    position: tuple[int, int] | None
    """Line and column of what decides."""
    count: int

    def line(self, file: str) -> str:
        """Return the line that tells that it was not taken."""
        where = place(file, self.position)
        return f"{where}: {self.pipeline}.{self.component}: {self.branch.untaken}"

    def as_json(self) -> dict[str, Any]:
        """Return it as an object."""
        line, column = self.position or (None, None)
        told = {
            "at": f"{self.pipeline}.{self.component}",
            "branch": self.branch.name,
            "line": line,
            "column": column,
            "count": self.count,
        }
        return told if self.count else {**told, "message": self.branch.untaken}


class Share(NamedTuple):
    """So many of so many branches."""

    taken: int
    total: int

    @classmethod
    def of(cls, branches: Iterable[CoveredBranch]) -> Share:
        """Return how many of some branches were taken."""
        counts = [each.count for each in branches]
        return cls(sum(map(bool, counts)), len(counts))

    @property
    def percent(self) -> float:
        """Percentage with one decimal, rounded down: 100 only if all were taken. Of none there are all."""
        return self.taken * 1000 // self.total / 10 if self.total else 100.0

    def is_below(self, percent: float) -> bool:
        """Return whether it is less than a percentage; what is shown to suffice does."""
        return self.taken * 100 < Fraction(str(percent)) * self.total

    def __str__(self) -> str:
        return f"{self.taken:,} of {self.total:,}"


@dataclass(frozen=True, slots=True)
class ConfigCoverage:
    """What tests have taken of one config. ``file`` is what it is called in texts."""

    file: str
    pipelines: Sequence[str]
    branches: Sequence[CoveredBranch]

    def shares(self) -> Iterator[tuple[str, Share]]:
        """Yield the share of each pipeline that has branches."""
        for id in self.pipelines:
            share = Share.of(each for each in self.branches if each.pipeline == id)
            if share.total:
                yield id, share

    def text(self) -> Iterator[str]:
        """Yield the lines that tell it: how much of each pipeline, and what was never taken."""
        shares = [*self.shares()]
        widest = max((len(id) for id, _ in shares), default=0)
        for id, share in shares:
            yield f"{id:<{widest}}  {share}"
        for each in self.branches:
            if not each.count:
                yield each.line(self.file)

    def as_json(self) -> dict[str, Any]:
        """Return it as an object."""
        shares = {id: _share(share) for id, share in self.shares()}
        branches = [each.as_json() for each in self.branches]
        return {
            "file": self.file,
            **_share(Share.of(self.branches)),
            "pipelines": shares,
            "branches": branches,
        }


def coverage(suites: Sequence[Suite], outcomes: Iterable[CaseOutcome]) -> list[ConfigCoverage]:
    """Return what tests have taken of each config that they are about."""
    taken: dict[str, Counter[TakenBranch]] = {}
    for outcome in outcomes:
        taken.setdefault(outcome.file, Counter()).update(outcome.taken)
    of_configs: dict[FilePath, tuple[Suite, Counter[TakenBranch]]] = {}
    for suite in suites:
        if suite.tests is not None and (counts := taken.get(str(suite.file))) is not None:
            assert suite.config is not None
            config = suite.config.files.config
            assert config is not None
            _, of_config = of_configs.setdefault(config.resolve(), (suite, Counter()))
            of_config.update(counts)
    return [_covered(suite, counts) for suite, counts in of_configs.values()]


def text_of(covered: Sequence[ConfigCoverage]) -> Iterator[str]:
    """Yield the lines that tell coverage, the sum last; where there are several configs, by their names."""
    for each in covered:
        if len(covered) > 1:
            yield each.file
        yield from each.text()
    share = total(covered)
    yield f"{share} branches, {share.percent:.1f} %"


def json_of(covered: Sequence[ConfigCoverage]) -> dict[str, Any]:
    """Return coverage as an object."""
    return {**_share(total(covered)), "configs": [each.as_json() for each in covered]}


def total(covered: Iterable[ConfigCoverage]) -> Share:
    """Return how much was taken of all configs together."""
    return Share.of(branch for each in covered for branch in each.branches)


def _share(share: Share) -> dict[str, Any]:
    return {"taken": share.taken, "total": share.total, "percent": share.percent}


def _covered(suite: Suite, counts: Counter[TakenBranch]) -> ConfigCoverage:
    assert suite.config is not None
    program, config = suite.config.program, suite.config.files.config
    assert program is not None
    assert config is not None
    context = CheckContext(base=suite.config.base)
    branches = [*_branches(program, context, counts)]
    return ConfigCoverage(
        suite.config.files.called(config),
        [_called(each) for each in program.pipelines],
        branches,
    )


def _branches(
    program: Program, context: CheckContext, counts: Counter[TakenBranch]
) -> Iterator[CoveredBranch]:
    for config in program.pipelines:
        called = _called(config)
        for name, index, component in _components(config):
            at = f"{name}[{index}]"
            for branch in component.branches(context):
                site = config.site.inside(name, index, *branch.path)
                taken = counts[called, at, branch.path, branch.name]
                yield CoveredBranch(called, at, branch, site.position(), taken)


def _called(config: PipelineConfig) -> str:
    """Return what a pipeline is called; one without an id, of which no test can be, by its place."""
    return path_text(config.site.called) if config.id is None else config.id


def _components(config: PipelineConfig) -> Iterator[tuple[str, int, Component]]:
    for name in FAMILY_OF:
        for index, component in enumerate(getattr(config, name)):
            yield name, index, component
