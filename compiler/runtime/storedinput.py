"""A durable input: one pump reads its source into a journal, another one the journal into the chain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import CompositeDisposable, Disposable

from headrace.compiler.delivery import Batch, Delivery, Window, parts
from headrace.compiler.edges import Arrival, QueueFill
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.intake import StoringIntake, messages_in
from headrace.compiler.runtime.monitoring.links import UP, LinkState
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.unpacking import Unpacked, Unpacking

STORED_TOGETHER = 256
"""Arrivals that are stored together at most."""


class Unchanged(Unpacking):
    """Makes batches of arrivals as they are: nothing is decoded before it is stored."""

    def count(self, batch: Batch) -> int:
        """Return how many messages the arrivals are."""
        return messages_in(batch)

    def batches(self, arrivals: Sequence[Arrival]) -> Iterator[Unpacked]:
        """Return batches whose messages are arrivals."""
        for some in parts(arrivals, STORED_TOGETHER):
            yield some, None


class StoredInput:
    """What reads a durable input, as `Pump` reads any other."""

    def __init__(
        self, taking: Pump, intake: StoringIntake, reading: Pump, broke: Callable[[Exception], None]
    ) -> None:
        """Take what reads the source, what stores that, and what reads what is stored."""
        self._taking, self._intake, self._reading, self._broke = taking, intake, reading, broke
        self.window = reading.window
        # What comes while that is stored waits in the pump, and is stored together.
        taking.window = Window(1)

    def observable(self) -> Observable[Delivery]:
        """Return the deliveries: cold until subscribed, and one subscriber only."""

        def subscribe(
            observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
        ) -> DisposableBase:
            intake = self._intake
            taken = self._taking.observable().subscribe(intake.take, on_completed=intake.end)
            storing = asyncio.ensure_future(self._store())

            def cancel() -> None:
                storing.cancel()
                intake.close()

            read = self._reading.observable().subscribe(observer, scheduler=scheduler)
            return CompositeDisposable(taken, Disposable(cancel), read)

        return Observable(subscribe)

    async def _store(self) -> None:
        """Store what is read, until there is nothing more; then what is stored is read to its end."""
        try:
            await self._intake.run()
        except Exception as cause:
            self._broke(cause)
        self._intake.close()
        self._reading.stop()

    async def open(self) -> None:
        """Connect the source, and have the journal. Raises what `Pump.open` does."""
        await self._taking.open()
        await self._reading.open()

    async def finish(self) -> None:
        """Let go of the broker, and of the journal."""
        await self._taking.finish()
        await self._reading.finish()

    async def forget(self) -> None:
        """Have the broker keep nothing for this input, unless another one goes on with it."""
        await self._taking.forget()

    def link(self, now: int) -> LinkState:
        """Return how the link to the source is, or why nothing of it can be stored."""
        state = self._taking.link(now)
        if state is not UP:
            return state
        if (why := self._intake.why) is not None:
            return LinkState("waiting", why)
        return self._reading.link(now)

    def queue(self) -> QueueFill | None:
        """Return how much is kept."""
        return self._reading.queue()

    def turned_down(self, cause: BuildRefused) -> None:
        """The other side says no, and is not tried again."""
        self._taking.turned_down(cause)

    def stop(self) -> None:
        """End politely: what was taken from the outside is stored; what is kept comes again."""
        self._intake.hurry()
        self._taking.stop()

    def discard(self) -> None:
        """End without ever having read."""
        self._taking.discard()
        self._reading.discard()
