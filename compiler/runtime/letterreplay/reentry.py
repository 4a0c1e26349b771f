"""Where dead letters go in again: at an input, before a transform, or into one output.

An input or a transform is entered by a chain of its own, built of what follows. It ends where that of the
pipeline does. So nothing of a replay waits in a buffer of the pipeline; what one of its own holds is let go
of when the replay is over.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Acknowledgement, Batch, Delivery, Several
from headrace.compiler.errors import FailureClass
from headrace.compiler.lowering.chainends import leaving
from headrace.compiler.lowering.lines import SliceShare
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.letterbody import DeadArrival
from headrace.compiler.runtime.letterreplay.arrivingagain import ArrivingAgain
from headrace.compiler.runtime.monitoring.failures import About
from headrace.compiler.runtime.monitoring.losses import LostData
from headrace.compiler.runtime.registrations import Registrations

if TYPE_CHECKING:
    from headrace.compiler.runtime.pipeline import Pipeline
    from headrace.compiler.runtime.world import World

Through = Callable[[], None]
"""Is called when a batch has left, whatever became of it behind where it went in."""


class FailedAgain(NamedTuple):
    """How something failed where it had failed before."""

    message: str
    failure: FailureClass


class Reentry(ABC):
    """A place where batches go in again, one after the other."""

    _failed: FailedAgain | None = None
    """How the batch failed that is in there now."""

    async def send(self, batch: Batch, through: Through) -> FailedAgain | None:
        """Hand a batch on, and wait until it has passed what it failed on.

        Return how it failed there again. ``through`` is called once, when it has left or failed. What
        fails further on is a letter of its own.
        """
        gone = asyncio.Event()
        self._failed = None
        self._hand(Delivery(batch, Acknowledgement(gone.set), Acknowledgement(through)))
        await gone.wait()
        return self._failed

    @abstractmethod
    def _hand(self, delivery: Delivery) -> None:
        """Hand on a delivery."""

    def parts(self, batch: Batch) -> Iterable[Batch]:
        """Return what of a batch is sent at a time: a message, where one that fails costs no other."""
        return ([message] for message in batch)

    def end(self) -> None:
        """Have what is held be handed on."""

    async def close(self) -> None:
        """Give up what it took to go in here."""


class OutputReentry(Reentry):
    """One output, as it is."""

    def __init__(self, pipeline: Pipeline, index: int) -> None:
        self._writer = pipeline.parts.writers[index]
        self._held = [
            hold
            for hold in pipeline.parts.holding
            if (hold.stage, hold.component) == ("output", index)
        ]
        assert pipeline.parts.letters is not None
        self._letters = pipeline.parts.letters

    def _note(self, message: str, failure: FailureClass) -> None:
        self._failed = FailedAgain(message, failure)

    def _hand(self, delivery: Delivery) -> None:
        has_left = self._letters.look_for(delivery.batch, self._note)
        delivery.flow = Several((delivery.flow, Acknowledgement(has_left)))
        self._writer.take(delivery)

    def end(self) -> None:
        """Have the output hand over what it gathers, as its part."""
        for each in self._held:
            if each.release is not None and each.count():
                each.release()


class ChainReentry(Reentry):
    """A chain of its own, from a transform to where the outputs begin."""

    def __init__(self, pipeline: Pipeline, world: World, start: int) -> None:
        """Build it. ``start``: the index of the transform.

        Raises:
            BuildRefused: a transform cannot be built again.
        """
        self._pipeline, self._world = pipeline, world
        assert pipeline.parts.letters is not None
        self._letters = pipeline.parts.letters
        self._place: tuple[Stage, int] = ("transform", start)
        parts = pipeline.parts
        self._parts = Registrations(
            pipeline.id,
            parts.state,
            counters=parts.counters,
            decoding=parts.decoding,
            slices=SliceShare(world.slices),
            hidden=parts.hidden,
            tell=parts.tell,
            letters=parts.letters,
        )
        self._failures = copy(pipeline.failures)  # it counts where the pipeline does
        self._failures.keep = self._keep
        refused: list[Any] = []
        stages = [
            (transform, self._context("transform", start + at))
            for at, transform in enumerate(pipeline.config.transforms[start:])
        ]
        operators = world.environment.lower(stages, refused)
        if refused:
            raise refused[0][1]
        self._observer: ObserverBase[Delivery] | None = None
        self._broken: Exception | None = None
        self._subscription = (
            Observable(self._subscribe)
            .pipe(*operators)
            .subscribe(
                leaving(pipeline.outlet, parts.counters, pipeline.watch),
                self._broke,
                scheduler=world.clock.scheduler,
            )
        )

    def _context(self, stage: Stage, index: int) -> ComponentContext:
        return ComponentContext(self._world, self._parts, self._failures, stage, index)

    def _subscribe(
        self, observer: ObserverBase[Delivery], _: SchedulerBase | None = None
    ) -> DisposableBase:
        self._observer = observer
        return Disposable()

    def _broke(self, cause: Exception) -> None:
        self._broken = cause

    def _keep(
        self,
        stage: Stage,
        index: int,
        message: str,
        failure: FailureClass,
        lost: LostData,
        about: About | None,
    ) -> None:
        """Note what fails where it had failed before; put down what fails further on, if that can be."""
        if (stage, index) == self._place or not self._letters.can_keep:
            self._failed = FailedAgain(message, failure)
        else:
            self._letters.take(stage, index, message, failure, lost, about)

    async def send(self, batch: Batch, through: Through) -> FailedAgain | None:
        """See `Reentry.send`; what fails further on, or is remembered, is on the disk then."""
        if (stored_first := self._pipeline.parts.stored_first) is not None:
            through = partial(stored_first.when_stored, through)
        return await super().send(batch, partial(self._letters.keeping.when_kept, through))

    def _hand(self, delivery: Delivery) -> None:
        assert self._observer is not None
        self._observer.on_next(delivery)
        if self._broken is not None:
            raise self._broken

    def parts(self, batch: Batch) -> Iterable[Batch]:
        """See `Reentry.parts`."""
        stage, index = self._place
        fails_whole = (
            stage == "transform" and not self._pipeline.config.transforms[index].skips_failing
        )
        return [batch] if fails_whole else super().parts(batch)

    def end(self) -> None:
        """Have buffers hand on what they hold."""
        if self._observer is not None:
            self._observer.on_completed()

    async def close(self) -> None:
        """Give back what its transforms have."""
        self._subscription.dispose()
        while self._parts.closing:
            await self._parts.closing.pop()()


class InputReentry(ChainReentry):
    """What an input reads is made of payloads as they came; then they pass the whole chain."""

    def __init__(self, pipeline: Pipeline, world: World, index: int) -> None:
        """Build it. Raises what `ChainReentry` does."""
        super().__init__(pipeline, world, 0)
        component = pipeline.config.inputs[index]
        self._place = ("input", index)
        ctx = self._context("input", index)
        self._arriving = ArrivingAgain(
            pipeline.id, component, self._parts.decoding, ctx.clock, ctx.warn_once
        )

    async def arrive(self, arrival: DeadArrival, through: Through) -> FailedAgain | None:
        """Have a payload arrive once more; see `Reentry.send`, where it is one batch."""
        made = await self._arriving.messages(arrival)
        if isinstance(made, str):
            through()
            return FailedAgain(made, "invalid")
        self._parts.counters.inbound += len(made)
        return await self.send(made, through)
