"""Lowering the transforms of one pipeline: neighbours that are pure are fused, the rest is lifted.

Fused and unfused chains give the same batches and the same failures. Production runs the fused one; a
dry run, which shows every stage, the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.families import Fusible, PerBatch, PerMessage, Transform
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lowering.code import FunctionTooLong, fuse
from headrace.compiler.lowering.lifting import fused, optimistic
from headrace.compiler.lowering.lines import Pacing

_T = TypeVar("_T")


class TransformContext(Context, Protocol):
    """A context that also takes what its component raised."""

    pacing: Pacing
    """How its large batches share the loop."""

    def report(self, cause: BaseException) -> None:
        """Count it, log it, tell whoever listens."""


PlacedTransform = tuple[Transform, TransformContext]
RefusedTransforms = list[tuple[int, BuildRefused]]
"""Which transforms cannot be built, by index; the rest is built nevertheless, to hear all of it."""


def lower(stages: Sequence[PlacedTransform], refusals: RefusedTransforms) -> list[Operator]:
    """Return the operators of a chain, neighbours that can be one loop fused.

    Whatever cannot be built is added to ``refusals``; the chain is not to be used then.
    """
    return [
        operator
        for run in _runs(stages)
        for operator in (_fuse if isinstance(run[0][0], Fusible) else plainly)(run, refusals)
    ]


def _runs(stages: Sequence[PlacedTransform]) -> Iterator[list[PlacedTransform]]:
    """Yield what becomes one operator each: a fused run ends behind what gathers messages.

    What is not pure is alone: a loop that starts again would see what it has done itself.
    """
    run: list[PlacedTransform] = []
    for stage in stages:
        if run and not isinstance(stage[0], PerMessage | PerBatch):
            yield run
            run = []
        run.append(stage)
        if not isinstance(stage[0], PerMessage):
            yield run
            run = []
    if run:
        yield run


def plainly(stages: Sequence[PlacedTransform], refusals: RefusedTransforms) -> list[Operator]:
    """Return the operators of a chain, one per transform and nothing fused."""
    return list(_each(stages, lambda transform, ctx: transform.operator(ctx), refusals))


def _fuse(run: Sequence[PlacedTransform], refusals: RefusedTransforms) -> list[Operator]:
    """Return one operator for a run; several where that would be too much source."""
    plain = list(_each(run, lambda transform, ctx: (transform.step(ctx), ctx.report), refusals))
    if refusals:
        return []
    sources = [
        partial(transform.generate, ctx=ctx)
        for transform, ctx in run
        if isinstance(transform, Fusible)
    ]
    try:
        loop, paced = fuse(sources, _named(run))
    except FunctionTooLong:
        if len(run) == 1:
            return plainly(run, refusals)
        half = len(run) // 2
        return [*_fuse(run[:half], refusals), *_fuse(run[half:], refusals)]
    plainly_paced = [
        (transform.paced(ctx), ctx.report)
        for transform, ctx in run
        if isinstance(transform, Fusible)
    ]
    return [fused(loop, plain, run[0][1].pacing, optimistic(paced, plainly_paced))]


def _each(
    stages: Sequence[PlacedTransform],
    make: Callable[[Transform, TransformContext], _T],
    refusals: RefusedTransforms,
) -> Iterator[_T]:
    for transform, ctx in stages:
        try:
            yield make(transform, ctx)
        except BuildRefused as cause:
            refusals.append((ctx.index, cause))


def _named(run: Sequence[PlacedTransform]) -> str:
    """Return what a traceback calls the loop: the pipeline and the places it was made from."""
    first, last = run[0][1], run[-1][1]
    places = first.place
    if last is not first:
        places = f"{first.place.removesuffix(']')}..{last.index}]"
    return f"{first.pipeline} {places}"
