"""Building: from a checked config to parts. May refuse; opens nothing, starts nothing."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable

from headrace.compiler.delivery import Delivery
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.language.connections import (
    connection_faults,
    filed_secret_faults,
    secret_faults,
)
from headrace.compiler.language.diagnostics import Diagnostic, Fault
from headrace.compiler.language.families import Component, Input, Output
from headrace.compiler.language.pipelines import FAMILY_OF, PipelineConfig
from headrace.compiler.language.settings import settings_of
from headrace.compiler.language.states import undeclared
from headrace.compiler.lowering.assembling import assemble
from headrace.compiler.lowering.merging import Watch
from headrace.compiler.runtime.context import Place, World
from headrace.compiler.runtime.envelope import enclosing
from headrace.compiler.runtime.failures import Failures
from headrace.compiler.runtime.inputbuffer import input_buffer
from headrace.compiler.runtime.outputs import Writer, writer
from headrace.compiler.runtime.parts import Parts
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.unpacking import Unpacking


class Builder:
    """Builds the parts of one pipeline and collects every refusal on the way."""

    def __init__(
        self,
        config: PipelineConfig,
        parts: Parts,
        world: World,
        failures: Failures,
        broke: Callable[[Exception], None],
        watch: Watch,
    ) -> None:
        self.counters, self.watch = parts.counters, watch
        self._config = config
        self._parts = parts
        self._world = world
        self._failures = failures
        self._broke = broke
        self.refused: list[Diagnostic] = []

    def build(self) -> None:
        """Build transforms, inputs, outputs, in this order."""
        config = self._config
        self.refused += self._without_bucket()
        if self.refused:
            return  # whatever uses it could only say the same again
        self._parts.chain = assemble(config, self)
        for index, output in enumerate(config.outputs):
            if self.is_sound(output, "outputs", index):
                try:
                    self._parts.writers.append(self._writer(output, index))
                except BuildRefused as cause:
                    self.refuse("outputs", index, cause)

    def _without_bucket(self) -> list[Diagnostic]:
        """Return what is wrong with the bucket that the pipeline names."""
        state, declared = self._config.state, self._world.buckets.names()
        found = [] if state is None else undeclared(settings_of(state), declared)
        return [self._config.diagnose(fault, ("state",)) for fault in found]

    def is_sound(self, component: Component, family: str, index: int) -> bool:
        """Return whether the connections and secrets of a component are there.

        They are told with the option that names what is missing; building could only say the same again,
        without the option.
        """
        faults = missing(component, self._world)
        self.refused += [self._config.diagnose(fault, (family, index)) for fault in faults]
        return not faults

    def refuse(self, family: str, index: int, cause: BuildRefused) -> None:
        """Take why a component cannot be built."""
        self.refused.append(self._config.diagnose(cause.fault, (family, index)))

    def place(self, family: str, index: int) -> Place:
        """Return the context of a component."""
        return Place(self._world, self._parts, self._failures, FAMILY_OF[family], index)

    def arriving(self, component: Input, index: int) -> Observable[Delivery]:
        """Return what an input delivers, through its own buffer."""
        place = self.place("inputs", index)
        pump = pump_over(
            component.source(place),
            component,
            place,
            self._parts,
            self._world,
            self._broke,
            acknowledges=component.acknowledges,
        )
        arriving = pump.observable()
        if component.buffer is not None:
            arriving = arriving.pipe(input_buffer(component.buffer, place))
        self._parts.pumps.append(pump)
        return arriving

    def _writer(self, component: Output, index: int) -> Writer:
        place = self.place("outputs", index)
        sink = component.open(place)
        return writer(sink, place.report, self._world.clock, note=place.note, warn=place.warn)


def missing(component: Component, world: World) -> list[Fault]:
    """Return the connections and secrets that a component names and that are not there."""
    return [
        *connection_faults(component, world.connections),
        *secret_faults(component, world.secrets),
        *filed_secret_faults(component, world.connections, world.secrets),
    ]


def pump_over(
    source: Source,
    component: Input,
    place: Place,
    parts: Parts,
    world: World,
    broke: Callable[[Exception], None],
    *,
    acknowledges: bool,
) -> Pump:
    """Return what reads ``source`` as an input is to be read, its envelope included."""
    enclose = enclosing(
        component.envelope,
        source,
        pipeline=place.pipeline,
        kind=component.kind,
        clock=world.clock,
        warn_once=place.warn_once,
    )
    unpacking = Unpacking(
        source,
        parts.decoding,
        enclose,
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
