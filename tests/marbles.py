"""What a marble test of an operator needs: lists in and out, and a broker to acknowledge to."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable
from reactivex import operators as ops

from headrace.compiler.component.buildcontext import Operator
from headrace.compiler.delivery import Acknowledgement, Batch, Delivery, JsonValue, Window


def over_lists(operator: Operator) -> Callable[[Observable[Batch]], Observable[Batch]]:
    """Return a delivery operator as one over plain lists, so that marbles can carry them.

    What comes out is done at once.
    """

    def settled(delivery: Delivery) -> Batch:
        delivery.done()
        return delivery.batch

    def operator_over_lists(source: Observable[Batch]) -> Observable[Batch]:
        return source.pipe(ops.map(Broker().deliver), operator, ops.map(settled))

    return operator_over_lists


class Broker:
    """A source with acknowledgements: remembers, batch by batch, what it need not send again."""

    def __init__(self, window: Window | None = None) -> None:
        self.window = window or Window()
        self.acknowledged: list[Batch] = []

    def deliver(self, batch: list[JsonValue]) -> Delivery:
        """Return a batch as a delivery that its window is charged with."""
        self.window.take()
        custody = Acknowledgement(lambda: self.acknowledged.append(batch))
        return Delivery(list(batch), self.window, custody)
