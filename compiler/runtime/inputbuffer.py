"""The buffer of an input: batches messages before the transforms see them.

`size` is a floor: an arriving batch is taken whole, so three held and five arriving with `size` 4 leave
as eight. An input that breaks or ends hands on what is held first. What a window gathers is bounded by
what its source delivers while it is open.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.compiler.delivery import Delivery
from headrace.compiler.language.context import Context, Operator
from headrace.compiler.language.inputbuffers import InputBuffer
from headrace.compiler.lowering.holding import Holding, holding


def input_buffer(buffer: InputBuffer, ctx: Context) -> Operator:
    """Return the operator that hands on everything held at its size or after its seconds."""
    size, seconds = buffer.limits

    def let_go(held: Holding) -> Iterable[Delivery]:
        # With no seconds at all a batch ends as it begins, and no timer could say so sooner.
        is_full = seconds == 0 or (size is not None and held.count >= size)
        return [held.release()] if is_full and held.count else ()

    return holding(let_go, seconds, ctx)
