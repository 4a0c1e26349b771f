"""The chain that counts: plain, of transforms that do the same and tell of each branch that they take."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.compiler.component.buildcontext import Operator
from headrace.compiler.lowering.chain import PlacedTransform, RefusedTransforms, plainly


def counting(stages: Sequence[PlacedTransform], refusals: RefusedTransforms) -> list[Operator]:
    """Return the operators of a chain, as `lowering.chain.lower` does; what they take is told."""
    return plainly([(each.counting(ctx.took), ctx) for each, ctx in stages], refusals)
