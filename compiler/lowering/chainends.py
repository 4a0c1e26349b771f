"""The two ends of a chain: inputs are merged, and an outlet shares what leaves; both are counted and shown.

Rx's own `merge` takes a lock per item because its sources may live on several threads. Ours live on
one loop, and the head is passed by every batch, so it calls the chain directly.

The outlet is a subject. The writers of outputs subscribe, and the inboxes of pipelines that read this one;
disposing detaches them. The library's `Subject` takes a lock per item and knows of no debts: two observers
of one delivery would settle it twice. Nothing ends here: a chain tells its pipeline of errors and of its
completion, and who reads a pipeline waits for the next one under its id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import CompositeDisposable, Disposable

from headrace.compiler.delivery import Batch, Delivery

_T = TypeVar("_T")

OnNext = Callable[[Delivery], None]
"""Accepts a delivery, and calls its `done` once, there and then or later."""


class Counters:
    """Messages in and out. Plain integers: they are written on every pass.

    ``inbound`` counts what the inputs delivered, after envelope and input buffer; ``outbound`` what
    leaves the transforms, once, whatever the number of outputs; ``skipped`` what arrived and is in
    neither: payloads that are not JSON, and messages that an envelope could not be put on.
    """

    __slots__ = ("inbound", "outbound", "skipped")

    def __init__(self) -> None:
        self.inbound = self.outbound = self.skipped = 0


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
    inputs: Sequence[Observable[Delivery]], counters: Counters, watch: PassWatch
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


class Outlet:
    """What a pipeline hands on is put in at `on_next`, and comes out at every observer."""

    __slots__ = ("_included", "_including", "_sharing", "observers", "on_next")

    def __init__(self) -> None:
        self.on_next: OnNext = Delivery.done
        """Hands a delivery on. Looked up for each: to one observer it is that observer's own function,
        and to nobody, a delivery is done at once."""
        self.observers: list[OnNext] = []
        """Who has subscribed to this one itself."""
        self._included: list[Outlet] = []
        self._including: list[Outlet] = []
        self._sharing: list[OnNext] = []

    def subscribe(self, on_next: OnNext) -> DisposableBase:
        """Have an observer take its share of every delivery from now on."""
        return self._with(self.observers, on_next)

    def include(self, other: Outlet) -> DisposableBase:
        """Have the observers of another outlet, now and later, be observers of this one as well."""
        return CompositeDisposable(
            other._with(other._including, self), self._with(self._included, other)
        )

    def _with(self, among: list[_T], item: _T) -> DisposableBase:
        def leave() -> None:
            among.remove(item)
            self._settle()

        among.append(item)
        self._settle()
        return Disposable(leave)

    def _settle(self) -> None:
        """Be what the observers there are by now want."""
        others = (each for other in self._included for each in other.observers)
        self._sharing = sharing = [*self.observers, *others]
        self.on_next = self._share
        if len(sharing) < 2:
            self.on_next = sharing[0] if sharing else Delivery.done
        for each in self._including:
            each._settle()

    def _share(self, delivery: Delivery) -> None:
        sharing = self._sharing  # another list when somebody comes or goes meanwhile
        delivery.share(len(sharing))
        for on_next in sharing:
            on_next(delivery)


def leaving(outlet: Outlet, counters: Counters, watch: PassWatch) -> OnNext:
    """Return what observes a chain: what leaves it goes to ``outlet``."""

    def on_next(delivery: Delivery) -> None:
        counters.outbound += len(delivery.batch)
        if watch.sees_output:
            watch.left(delivery.batch)
        outlet.on_next(delivery)

    return on_next
