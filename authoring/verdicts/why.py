"""Why a batch never came: the chain once more, plain, each message handed in by itself.

Every transform that takes messages one by one tells of those that it made nothing of, as in a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

from headrace.compiler.component.buildcontext import Operator, PacedStep, Step
from headrace.compiler.component.families import Transform
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.lowering.chain import (
    PlacedTransform,
    RefusedTransforms,
    TransformContext,
    plainly,
)

MOST_KEPT = 10_000
"""How many messages that were dropped are remembered."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A message that a transform made nothing of. Units: seconds since the play began."""

    at: float
    pipeline: str
    index: int
    reason: str


class Reasons:
    """What was dropped in one play, where and why."""

    def __init__(self) -> None:
        self.dropped: list[Dropped] = []

    def lowering(
        self, stages: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return the operators of a chain, each telling why it drops what it drops."""
        return plainly([(each, self._told(each, ctx)) for each, ctx in stages], refusals)

    def before(self, pipeline: str, at: float, most: int) -> Iterator[Dropped]:
        """Yield what a pipeline dropped last, up to a moment: one of each reason."""
        seen: set[tuple[int, str]] = set()
        for each in reversed(self.dropped):
            key = each.index, each.reason
            if each.pipeline == pipeline and each.at <= at and key not in seen:
                seen.add(key)
                yield each
                if len(seen) == most:
                    return

    def _told(self, transform: Transform, ctx: TransformContext) -> TransformContext:
        if not transform.takes_each_alone:
            return ctx
        telling = copy(cast(Any, ctx))
        lift: Callable[..., Operator] = ctx.lift

        def lifted(step: Step, paced: PacedStep | None = None) -> Operator:
            return lift(lambda batch: self._each(step, batch, transform, ctx))

        telling.lift = lifted
        return cast(TransformContext, telling)

    def _each(
        self, step: Step, batch: Batch, transform: Transform, ctx: TransformContext
    ) -> list[Batch]:
        kept: list[JsonValue] = []
        for message in batch:
            made = [each for part in step([message]) for each in part]
            if not made and len(self.dropped) < MOST_KEPT:
                reason = transform.reason(message, ctx)
                at = ctx.clock.monotonic()
                self.dropped.append(Dropped(at, ctx.pipeline, ctx.index, reason))
            kept += made
        return [kept] if kept else []
