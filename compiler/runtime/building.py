"""Building: from a checked config to parts. May refuse; opens nothing, starts nothing."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable

from headrace.compiler.component.families import Component, Input, Output
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.delivery import Delivery
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lowering.assembling import assemble
from headrace.compiler.lowering.merging import PassWatch
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.componentcontext import ComponentContext, World
from headrace.compiler.runtime.inputs import input_buffer, pump_over
from headrace.compiler.runtime.monitoring.failures import Failures
from headrace.compiler.runtime.outputs import Writer, writer
from headrace.compiler.schema.records import Record
from headrace.compiler.text.diagnostics import Diagnostic, Path


class Builder:
    """Builds the parts of one pipeline and collects every refusal on the way."""

    def __init__(
        self,
        config: PipelineConfig,
        parts: BuiltComponents,
        world: World,
        failures: Failures,
        broke: Callable[[Exception], None],
        watch: PassWatch,
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
        if config.state is not None and not self._is_there(config.state, ("state",)):
            return  # whatever uses it could only say the same again
        self._parts.chain = assemble(config, self)
        for index, output in enumerate(config.outputs):
            if self.is_sound(output, "outputs", index):
                try:
                    self._parts.writers.append(self._writer(output, index))
                except BuildRefused as cause:
                    self.refuse("outputs", index, cause)

    def is_sound(self, component: Component, family: str, index: int) -> bool:
        """Return whether all that a component names is there; building it could only say the same again."""
        return self._is_there(component, (family, index))

    def _is_there(self, record: Record, path: Path) -> bool:
        faults = self._world.missing(record)
        self.refused += [self._config.diagnose(fault, path) for fault in faults]
        return not faults

    def refuse(self, family: str, index: int, cause: BuildRefused) -> None:
        """Take why a component cannot be built."""
        self.refused.append(self._config.diagnose(cause.fault, (family, index)))

    def place(self, family: str, index: int) -> ComponentContext:
        """Return the context of a component."""
        return ComponentContext(self._world, self._parts, self._failures, FAMILY_OF[family], index)

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
