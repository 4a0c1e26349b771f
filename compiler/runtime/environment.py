"""What pipelines run in: what stands at their ends, how chains are built, chance, and who is told.

Production has the one here. Who plays a config offline puts another in its place, and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.families import Input, Output, Stage
from headrace.compiler.component.selection import Selection
from headrace.compiler.edges import Sink, Source
from headrace.compiler.httpexchange import ExchangeWith
from headrace.compiler.lowering.chain import (
    PlacedTransform,
    RefusedTransforms,
    TransformContext,
    lower,
)
from headrace.compiler.runtime.backoff import CHANCE
from headrace.compiler.text.diagnostics import Fault, Path

if TYPE_CHECKING:
    from headrace.compiler.store.memorydisk import MemoryDisk

log = logging.getLogger("headrace.pipeline")
state_log = logging.getLogger("headrace.state")


class Environment:
    """The real one: components meet servers, chains are fused, the log is told."""

    is_real: bool = True
    """Whether connections and secrets are looked up, and drivers imported."""

    is_told: bool = True
    """Whether the log is told of failures."""

    random: Random = CHANCE
    """Chance: of pauses between tries, of made-up messages."""

    def disk(self) -> MemoryDisk | None:
        """Return what a store is kept on that is in memory, and is to outlive its engine; None: nothing."""
        return None

    def source(self, component: Input, ctx: Context) -> Source:
        """Return what an input reads.

        Raises:
            BuildRefused: it cannot be built.
        """
        return component.source(ctx)

    def sink(self, component: Output, ctx: Context) -> Sink:
        """Return what an output writes to.

        Raises:
            BuildRefused: it cannot be built.
        """
        return component.open(ctx)

    def exchange(self, pipeline: str, place: str) -> ExchangeWith | None:
        """Return what stands for the servers that a component asks; None: they are asked."""
        return None

    def lower(
        self, stages: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return the operators of a chain, as `lowering.chain.lower` does."""
        return lower(stages, refusals)

    def select(self, selection: Selection, place: TransformContext) -> list[Operator]:
        """Return the operators that hand on what a component wants."""
        return lower([(selection, place)], [])

    def refused(self, pipeline: str, stage: Stage, component: int, fault: Fault) -> None:
        """Take why a component cannot be built, beside its being told to whoever builds."""

    def warned(self, pipeline: str, place: str, text: str) -> None:
        """Take what a component warns of."""
        log.warning("pipeline '%s' %s: %s", pipeline, place, text)

    def needs_somebody(self, pipeline: str, place: str, text: str) -> None:
        """Take why a component waits until somebody acts."""
        log.error("pipeline '%s' %s: waits until somebody acts: %s", pipeline, place, text)

    def noted(self, pipeline: str, place: str, text: str) -> None:
        """Take what a component tells of that went well."""
        log.info("pipeline '%s' %s: %s", pipeline, place, text)

    def took(self, pipeline: str, place: str, branch: str, path: Path) -> None:
        """Take that a component has taken a branch."""

    def failed(self, pipeline: str, stage: Stage, component: int | None, message: str) -> None:
        """Take one failure, of a component if that is known, beside the count of it and the log."""

    def crowded(self, text: str) -> None:
        """Take what a bucket warns of."""
        state_log.warning("%s", text)


REAL = Environment()
