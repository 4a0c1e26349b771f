"""Dry runs as tests ask for them: from config objects, in the thread of the test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from headrace.authoring.configfiles import catalogue
from headrace.authoring.dryrun.run import ChainDryRun, DryRunLimits
from headrace.authoring.playing.playedenvironment import Surroundings
from headrace.compiler.component.catalogue import Catalogue
from headrace.compiler.component.families import Transform
from headrace.compiler.component.states import PipelineState
from headrace.compiler.runtime.limitedthreads import TimeLimit

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def known() -> Catalogue:
    return catalogue()


def transform(document: dict[str, Any] | Transform) -> Transform:
    """Return the transform of a config object."""
    if isinstance(document, Transform):
        return document
    options = {key: value for key, value in document.items() if key != "type"}
    loaded = known().family("transform")[document["type"]].load(options)
    assert isinstance(loaded, Transform)
    return loaded


def tried(
    transforms: Sequence[dict[str, Any] | Transform],
    messages: list[Any],
    *later: tuple[float, list[Any]],
    state: dict[str, str] | None = None,
    seeds: dict[str, dict[str, Any]] | None = None,
    advance: float = 0,
    traced: bool = False,
    surroundings: Surroundings | None = None,
    **limits: int,
) -> ChainDryRun:
    """Return a dry run that is over; messages go in at once, others at their times."""
    trial = ChainDryRun(
        [transform(each) for each in transforms],
        surroundings or Surroundings(),
        TimeLimit(),
        state=None if state is None else PipelineState.load(state),
        seeds=seeds,
        is_traced=traced,
        limits=DryRunLimits(**limits),
    )
    trial.perform([(0.0, messages), *later], started_at=NEW_YEAR, advance_seconds=advance)
    return trial


def handed_on(trial: ChainDryRun, *, flushed: bool = False) -> list[list[list[Any]]]:
    """Return the batches of each stage that completed: those it made, or those it let go of later."""
    return [
        [lot.batch for lot in stage.handed_on if lot.is_flush is flushed]
        for stage in trial.completed
    ]
