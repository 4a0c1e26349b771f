"""Selecting: an output or a reader that wants some of the messages is handed those and no others.

That is looked at once, before the queue or the inbox: what is not wanted takes no place there and holds
nobody up. A large batch is looked at in slices, and what comes meanwhile waits behind it, its debts unpaid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from headrace.compiler.component.buildcontext import Operator
from headrace.compiler.delivery import Delivery
from headrace.compiler.lowering.chainends import OnNext
from headrace.compiler.lowering.lines import SliceShare

Broke = Callable[[Exception], None]
"""Is told that somebody behind has raised: a fault of ours, after which nothing is handed on any more."""
Select = Callable[[OnNext, Broke], "Selecting"]
"""Makes the way to somebody who takes some of what is handed on."""


class Selecting:
    """The way to somebody who wants some of the messages."""

    def __init__(
        self, operators: Sequence[Operator], slices: SliceShare, take: OnNext, broke: Broke
    ) -> None:
        """Take what looks at batches and its own ``slices``, and who is handed what is wanted.

        The slices are of nobody else: one output that is looking keeps no other one waiting, nor the chain.
        """
        self._slices, self._broke = slices, broke
        self._is_through = asyncio.Event()
        looking = Observable(self._enter).pipe(*operators)
        self._looking = looking.subscribe(take, self._on_error, self._is_through.set)

    def _enter(
        self, first: ObserverBase[Delivery], _: SchedulerBase | None = None
    ) -> DisposableBase:
        self._first = first
        return Disposable()

    def take(self, delivery: Delivery) -> None:
        """Hand on what is wanted of a batch, now or in its turn; settle it if none is."""
        # Others hold this one as well: what is made of it here is ours.
        self._first.on_next(Delivery(delivery.batch, delivery.flow, delivery.custody))

    def _on_error(self, cause: Exception) -> None:
        self._is_through.set()
        self._broke(cause)

    def waiting(self) -> int:
        """Return how many batches have come that are not through."""
        return sum(line.waiting() for line in self._slices.lines)

    async def drain(self) -> None:
        """Wait until all that has come is through. Nothing comes any more."""
        self._first.on_completed()
        await self._is_through.wait()

    def abandon(self) -> int:
        """Look no further: the time is over. Return how many messages nobody has looked at by that."""
        unseen = self._slices.abandon()
        self._looking.dispose()
        return unseen

    def close(self) -> list[int]:
        """Settle what nobody wants any more; return how many messages each batch of it had."""
        settled = [size for line in self._slices.lines for size in line.settle()]
        self._looking.dispose()
        return settled
