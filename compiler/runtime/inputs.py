"""How an input is read: by a pump that decodes, through its envelope and its buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context, Operator
from headrace.compiler.component.families import Input
from headrace.compiler.component.inputbuffers import InputBuffer
from headrace.compiler.delivery import Delivery
from headrace.compiler.edges import Source
from headrace.compiler.lowering.holding import Holding, holding
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.componentcontext import ComponentContext, World
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.unpacking import Enclose, Unpacking


def pump_over(
    source: Source,
    component: Input,
    place: ComponentContext,
    parts: BuiltComponents,
    world: World,
    broke: Callable[[Exception], None],
    *,
    acknowledges: bool,
) -> Pump:
    """Return what reads ``source`` as an input is to be read, its envelope included."""
    unpacking = Unpacking(
        source,
        parts.decoding,
        enclosing(component, source, place, world.clock),
        parts.counters,
        world.clock,
        place.warn_once,
        with_origins=acknowledges,
    )
    return Pump(
        source,
        unpacking,
        place,
        world.turns,
        broke,
        acknowledges=acknowledges,
        on_delivery=component.ack == "on_delivery",
    )


def enclosing(
    component: Input, source: Source, place: ComponentContext, clock: Clock
) -> Enclose | None:
    """Return what puts the envelope of an input on, or None where there is none.

    ``received_at`` is when a message arrived here: an input buffer behind this does not change it.
    """
    if component.envelope is None:
        return None

    def metadata(origin: Any) -> dict[str, Any]:
        about = {"pipeline": place.pipeline, "input": component.kind, **source.describe(origin)}
        about["received_at"] = clock.timestamp()
        return about

    put_on = component.envelope.putting(place.warn_once, is_added=source.merges_metadata)
    return Enclose(metadata, put_on)


def input_buffer(buffer: InputBuffer, ctx: Context) -> Operator:
    """Return the operator that hands on everything held at its size or after its seconds.

    An input that breaks or ends hands on what is held first. What a window gathers is bounded by what its
    source delivers while it is open.
    """
    size, seconds = buffer.limits

    def let_go(held: Holding) -> Iterable[Delivery]:
        # With no seconds at all a batch ends as it begins, and no timer could say so sooner.
        is_full = seconds == 0 or (size is not None and held.count >= size)
        return [held.release()] if is_full and held.count else ()

    return holding(let_go, seconds, ctx)
