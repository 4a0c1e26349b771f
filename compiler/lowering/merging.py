"""The two ends of a chain: inputs are merged, and what enters and leaves is counted and shown.

Rx's own `merge` takes a lock per item because its sources may live on several threads. Ours live on
one loop, and the head is passed by every batch, so it calls the chain directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import CompositeDisposable

from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.lowering.outlet import OnNext, Outlet


class PassCounters(Protocol):
    """What is counted on every pass."""

    inbound: int
    outbound: int


class PassWatch(Protocol):
    """Who is shown one pass in a while. The path asks two attributes, and nothing else."""

    is_due: bool
    """Whether the next pass is to be shown."""
    sees_output: bool
    """Whether what leaves now is."""

    def entered(self, batch: Batch) -> None:
        """Show a batch that comes in."""

    def passed(self) -> None:
        """Take note that the pass of that batch has returned."""

    def left(self, batch: Batch) -> None:
        """Show a batch that leaves."""


def entering(
    inputs: Sequence[Observable[Delivery]], counters: PassCounters, watch: PassWatch
) -> Observable[Delivery]:
    """Return what all ``inputs`` deliver; it completes when the last of them has."""

    def subscribe(
        observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
    ) -> DisposableBase:
        emit = observer.on_next
        left = len(inputs)

        def on_next(delivery: Delivery) -> None:
            counters.inbound += len(delivery.batch)
            if watch.is_due:
                watch.entered(delivery.batch)
                emit(delivery)
                watch.passed()
            else:
                emit(delivery)

        def on_completed() -> None:
            nonlocal left
            left -= 1
            if not left:
                observer.on_completed()

        return CompositeDisposable(
            [
                each.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler)
                for each in inputs
            ]
        )

    return Observable(subscribe)


def leaving(outlet: Outlet, counters: PassCounters, watch: PassWatch) -> OnNext:
    """Return what observes a chain: what leaves it goes to ``outlet``."""

    def on_next(delivery: Delivery) -> None:
        counters.outbound += len(delivery.batch)
        if watch.sees_output:
            watch.left(delivery.batch)
        outlet.on_next(delivery)

    return on_next
