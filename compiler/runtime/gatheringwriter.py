"""The writer of an output that gathers: what it has taken is written later, and acknowledged then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from headrace.compiler.delivery import Batch, Delivery, SharedDebt
from headrace.compiler.edges import AwaitingSink, GatheringSink, Rest
from headrace.compiler.errors import FailureClass
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.earlierbatches import EarlierBatches
from headrace.compiler.runtime.outputs import QueuedWriter


class GatheringWriter(QueuedWriter):
    """Hands batches to a sink that settles later what is owed for them.

    A delivery that is in nobody's custody costs it nothing more than any writer.
    """

    settles_late: ClassVar[bool] = True

    def __init__(
        self,
        sink: AwaitingSink,
        place: ComponentContext,
        gathering: GatheringSink,
        earlier: EarlierBatches | None,
    ) -> None:
        """Take what batches are handed to, and the one behind it that gathers them.

        ``earlier``: what a version has left that kept no parts; None: nothing is kept here.
        """
        super().__init__(sink, place)
        self._gathering, self._earlier = gathering, earlier

    async def start(self) -> None:
        """Start the sink, and hand it what is left of an earlier version."""
        await super().start()
        if self._earlier is not None and not self._is_over:
            self._earlier.begin(self.take)

    async def drain(self) -> None:
        """Wait until everything that has come is done."""
        if self._earlier is not None:
            await self._earlier.stop()
        await super().drain()

    async def finish(self) -> None:
        """Finish the sink, once."""
        if self._earlier is not None:
            await self._earlier.stop()
        await super().finish()

    def take(self, delivery: Delivery) -> None:
        """Write it, or queue it; its custody is closed when all that keep some of it have done so."""
        if delivery.custody is not None:  # others hold this delivery as well
            custody = SharedDebt(delivery.custody, 1)
            delivery = Delivery(delivery.batch, delivery.flow, custody)
        super().take(delivery)

    def abandon(self) -> int:
        """End the workers, as any; what is in the queue of an earlier version is not lost by that."""
        if self._earlier is not None:
            waiting = [each for each in self._queue if each.batch is not self._earlier.in_hand]
            self._queue.clear()
            self._queue += waiting
        return super().abandon()

    def _left_of(self, batch: Batch) -> tuple[Batch, FailureClass]:
        if self._earlier is not None and batch is self._earlier.in_hand:
            return [], "unclear"
        return super()._left_of(batch)

    def queued(self) -> Iterable[Batch]:
        """Return what the sink has still, though it is becoming dead letters."""
        return self._gathering.put_down()

    def begin(self, delivery: Delivery) -> Rest | None:
        """Begin to write a delivery, having said what is owed for it."""
        custody = delivery.custody
        assert custody is None or isinstance(custody, SharedDebt)  # as `take` has made it
        self._gathering.owe(custody)
        return super().begin(delivery)
