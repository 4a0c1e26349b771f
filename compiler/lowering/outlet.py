"""The end of a chain: a subject that shares each delivery among its observers.

The writers of outputs subscribe, and the inboxes of pipelines that read this one; disposing detaches them.
The library's `Subject` takes a lock per item and knows of no debts: two observers of one delivery would
settle it twice. Nothing ends here: a chain tells its pipeline of errors and of its completion, and who
reads a pipeline waits for the next one under its id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex.abc import DisposableBase
from reactivex.disposable import CompositeDisposable, Disposable

from headrace.compiler.delivery import Delivery

_T = TypeVar("_T")

OnNext = Callable[[Delivery], None]
"""Accepts a delivery, and calls its `done` once, there and then or later."""


class Outlet:
    """What a pipeline hands on is put in at `on_next`, and comes out at every observer."""

    __slots__ = ("_included", "_including", "_observers", "_sharing", "on_next")

    def __init__(self) -> None:
        self.on_next: OnNext = Delivery.done
        """Hands a delivery on. Looked up for each: to one observer it is that observer's own function,
        and to nobody, a delivery is done at once."""
        self._observers: list[OnNext] = []
        self._included: list[Outlet] = []
        self._including: list[Outlet] = []
        self._sharing: list[OnNext] = []

    @property
    def is_observed(self) -> bool:
        """Whether somebody has subscribed to this one itself."""
        return bool(self._observers)

    def subscribe(self, on_next: OnNext) -> DisposableBase:
        """Have an observer take its share of every delivery from now on."""
        return self._with(self._observers, on_next)

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
        others = (each for other in self._included for each in other._observers)
        self._sharing = sharing = [*self._observers, *others]
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
