"""Assembling: from a config to the whole chain of a pipeline, one cold observable."""

from __future__ import annotations

from typing import Protocol

from reactivex import Observable

from headrace.compiler.component.families import Component, Input
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.delivery import Delivery
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lowering.chain import RefusedTransforms, TransformContext, lower
from headrace.compiler.lowering.merging import PassCounters, PassWatch, entering


class Assembling(Protocol):
    """What a chain is assembled in: it lends the components what they need, and takes their refusals."""

    @property
    def counters(self) -> PassCounters:
        """What the pipeline counts."""

    @property
    def watch(self) -> PassWatch:
        """Who is shown its passes."""

    def is_sound(self, component: Component, family: str, index: int) -> bool:
        """Return whether all that a component names is there; refuse it otherwise."""

    def place(self, family: str, index: int) -> TransformContext:
        """Return the context of a component."""

    def arriving(self, component: Input, index: int) -> Observable[Delivery]:
        """Return what an input delivers: cold.

        Raises:
            BuildRefused: it cannot be built.
        """

    def refuse(self, family: str, index: int, cause: BuildRefused) -> None:
        """Take why a component cannot be built."""


def assemble(config: PipelineConfig, context: Assembling) -> Observable[Delivery]:
    """Return all of a pipeline but its outputs: inputs merged and counted, then the transforms.

    Nothing runs before it is subscribed, to one observer. If anything was refused it is not to be used:
    the rest is built nevertheless, to hear all of it.
    """
    refusals: RefusedTransforms = []
    stages = [
        (transform, context.place("transforms", index))
        for index, transform in enumerate(config.transforms)
        if context.is_sound(transform, "transforms", index)
    ]
    operators = lower(stages, refusals)
    for index, cause in refusals:
        context.refuse("transforms", index, cause)
    inputs: list[Observable[Delivery]] = []
    for index, component in enumerate(config.inputs):
        if context.is_sound(component, "inputs", index):
            try:
                inputs.append(context.arriving(component, index))
            except BuildRefused as cause:
                context.refuse("inputs", index, cause)
    return entering(inputs, context.counters, context.watch).pipe(*operators)
