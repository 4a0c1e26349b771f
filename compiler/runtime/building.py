"""Building: from a checked config to parts. May refuse; opens nothing, starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.language.config import PipelineConfig
from headrace.compiler.language.connections import (
    connection_faults,
    filed_secret_faults,
    secret_faults,
)
from headrace.compiler.language.diagnostics import Diagnostic, Fault
from headrace.compiler.language.families import Component, Input, Output, Transform
from headrace.compiler.language.settings import settings_of
from headrace.compiler.language.states import undeclared
from headrace.compiler.lowering.chain import Refusals, lower
from headrace.compiler.runtime.context import Place, World
from headrace.compiler.runtime.envelope import enclosing
from headrace.compiler.runtime.failures import Failures
from headrace.compiler.runtime.inputbuffer import input_buffer
from headrace.compiler.runtime.outputs import writer
from headrace.compiler.runtime.parts import Parts
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.signatures import Stage

_C = TypeVar("_C", bound=Component)


class Builder:
    """Builds the parts of one pipeline and collects every refusal on the way."""

    def __init__(
        self,
        config: PipelineConfig,
        parts: Parts,
        world: World,
        failures: Failures,
        broke: Callable[[Exception], None],
    ) -> None:
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
        self._build_transforms(self._sound("transforms", config.transforms))
        for index, component in self._sound("inputs", config.inputs):
            self._attempt("inputs", index, partial(self._build_input, component, index))
        for index, output in self._sound("outputs", config.outputs):
            self._attempt("outputs", index, partial(self._build_output, output, index))

    def _without_bucket(self) -> list[Diagnostic]:
        """Return what is wrong with the bucket that the pipeline names."""
        state, declared = self._config.state, self._world.buckets.names()
        found = [] if state is None else undeclared(settings_of(state), declared)
        return [self._config.diagnose(fault, ("state",)) for fault in found]

    def _sound(self, family: str, components: Sequence[_C]) -> list[tuple[int, _C]]:
        """Return the components whose connections and secrets are there, with their indices.

        The others are told with the option that names what is missing; building them could only
        say the same again, without the option.
        """
        sound = []
        for index, component in enumerate(components):
            faults = missing(component, self._world)
            if not faults:
                sound.append((index, component))
            self.refused += [self._config.diagnose(fault, (family, index)) for fault in faults]
        return sound

    def _place(self, stage: Stage, index: int) -> Place:
        return Place(self._world, self._parts, self._failures, stage, index)

    def _attempt(self, family: str, index: int, make: Callable[[], None]) -> None:
        try:
            make()
        except BuildRefused as cause:
            self.refused.append(self._config.diagnose(cause.fault, (family, index)))

    def _build_transforms(self, transforms: Sequence[tuple[int, Transform]]) -> None:
        refusals: Refusals = []
        stages = [(each, self._place("transform", index)) for index, each in transforms]
        self._parts.operators = lower(stages, refusals)
        self.refused += [
            self._config.diagnose(cause.fault, ("transforms", index)) for index, cause in refusals
        ]

    def _build_input(self, component: Input, index: int) -> None:
        place = self._place("input", index)
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
        self._parts.inputs.append(arriving)

    def _build_output(self, component: Output, index: int) -> None:
        place = self._place("output", index)
        sink = component.open(place)
        self._parts.writers.append(
            writer(sink, place.report, self._world.clock, note=place.note, warn=place.warn)
        )


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
    return Pump(
        source,
        clock=world.clock,
        turns=world.turns,
        counters=parts.counters,
        decoding=parts.decoding,
        acknowledges=acknowledges,
        on_delivery=component.ack == "on_delivery",
        enclose=enclosing(
            component.envelope,
            source,
            pipeline=place.pipeline,
            kind=component.kind,
            clock=world.clock,
            warn_once=place.warn_once,
        ),
        report=place.report,
        broke=broke,
        warn_once=place.warn_once,
        note=place.note,
        is_taken_over=lambda: place.is_taken_over,
    )
