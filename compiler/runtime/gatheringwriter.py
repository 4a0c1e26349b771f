"""The writer of an output that gathers: what it has taken is written later, and acknowledged then."""

from __future__ import annotations

from typing import ClassVar

from headrace.compiler.delivery import Delivery, SharedDebt
from headrace.compiler.edges import AwaitingSink, GatheringSink, Rest
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.outputs import QueuedWriter


class GatheringWriter(QueuedWriter):
    """Hands batches to a sink that settles later what is owed for them.

    A delivery that is in nobody's custody costs it nothing more than any writer.
    """

    settles_late: ClassVar[bool] = True

    def __init__(
        self, sink: AwaitingSink, place: ComponentContext, gathering: GatheringSink
    ) -> None:
        """Take what batches are handed to, and the one behind it that gathers them."""
        super().__init__(sink, place)
        self._gathering = gathering

    def take(self, delivery: Delivery) -> None:
        """Write it, or queue it; its custody is closed when all that keep some of it have done so."""
        if delivery.custody is not None:  # others hold this delivery as well
            custody = SharedDebt(delivery.custody, 1)
            delivery = Delivery(delivery.batch, delivery.flow, custody)
        super().take(delivery)

    def begin(self, delivery: Delivery) -> Rest | None:
        """Begin to write a delivery, having said what is owed for it."""
        custody = delivery.custody
        assert custody is None or isinstance(custody, SharedDebt)  # as `take` has made it
        self._gathering.owe(custody)
        return super().begin(delivery)
