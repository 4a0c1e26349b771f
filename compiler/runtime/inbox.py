"""The bounded inbox between two pipelines.

It holds 100 batches. When it is full, what comes next waits with its debts unpaid, so the window of
the upstream's inputs closes and nothing is dropped. A reader keeps its inbox while its upstream is
away: deleted, it receives nothing; created again under its id, it goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, ClassVar

from reactivex.abc import DisposableBase
from reactivex.disposable import Disposable

from headrace.compiler.delivery import Acknowledgement, Batch, Delivery
from headrace.compiler.edges import INBOX_BATCHES, INBOX_TAKEN, Arrival, QueueFill, Source
from headrace.compiler.errors import Ended
from headrace.compiler.runtime.selecting import Select

OWED_TO_NOBODY = Acknowledgement(lambda: None)
"""The flow of what is read along with others: they wait for nothing."""


class Inbox(Source):
    """What one pipeline reads of another."""

    is_raw: ClassVar[bool] = False
    merges_metadata: ClassVar[bool] = True

    def __init__(
        self,
        upstream: str,
        detach: Callable[[Inbox], None],
        waits_for: Callable[[str], str | None],
        select: Select | None = None,
    ) -> None:
        """Take what ends its subscription, what tells why an upstream hands nothing on, what selects."""
        self.upstream = upstream
        self.subscription: DisposableBase = Disposable()
        """To its upstream, once it has one."""
        self._detach, self._waits_for = detach, waits_for
        self._accepted: deque[Any] = deque()
        """What waits to be read: batches."""
        self._waiting: deque[Delivery] = deque()
        self._arrived = asyncio.Event()
        self._stopping = False
        self._selecting = None if select is None else select(self._put, self._broke)
        self._broken: Exception | None = None

    def take(self, delivery: Delivery) -> None:
        """Accept what is wanted of a batch, now or as soon as there is room. After the end, settle it."""
        if self._stopping:
            delivery.done()
        elif self._selecting is not None:
            self._selecting.take(delivery)
        else:
            self._put(delivery)

    def _broke(self, cause: Exception) -> None:
        self._broken = cause
        self._arrived.set()

    def _put(self, delivery: Delivery) -> None:
        accepted = self._accepted
        if len(accepted) < INBOX_BATCHES:
            if not accepted:  # otherwise nobody waits
                self._arrived.set()
            accepted.append(delivery.batch)
            delivery.done()
        else:
            self._waiting.append(delivery)

    def _accept(self, delivery: Delivery) -> None:
        """Have a batch wait to be read, for which there is room."""
        self._accepted.append(delivery.batch)
        delivery.done()

    def queue(self) -> QueueFill:
        """Return how many batches wait to be read."""
        return QueueFill("batches", len(self._accepted), INBOX_BATCHES)

    def waits_for(self) -> str | None:
        """Return that nobody hands anything on."""
        return self._waits_for(self.upstream)

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where it came from."""
        return {"upstream": self.upstream}

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Yield what has been accepted, a few batches at a time."""
        accepted = self._accepted
        while accepted or not self._stopping:
            if accepted:
                yield [self._next() for _ in range(min(INBOX_TAKEN, len(accepted)))]
            else:
                self._arrived.clear()
                await self._arrived.wait()
            if self._stopping and self._selecting is not None:
                await self._selecting.drain()  # what is looked at has been accepted as well
            if self._broken is not None:
                raise Ended(f"nothing can be read any more: {self._broken}") from self._broken

    def _next(self) -> Arrival:
        """Take what is read next."""
        batch: Batch = self._accepted.popleft()
        if self._waiting:
            self._accept(self._waiting.popleft())
        return batch, None

    def stop(self) -> bool:
        """Accept nothing more; what was accepted or waits is read out, then the input ends."""
        self._stopping = True
        self._detach(self)
        self._arrived.set()
        return True

    def close(self) -> list[int]:
        """Settle what nobody will read any more, so that the upstream is not held up."""
        self.stop()
        lost = [*map(len, self._accepted), *(len(each.batch) for each in self._waiting)]
        if self._selecting is not None:
            lost += self._selecting.close()
        self._accepted.clear()
        while self._waiting:
            self._waiting.popleft().done()
        return lost


class Peek(Inbox):
    """What a sample reads of a running pipeline: an inbox that nobody waits for.

    What it has no room for is dropped, and settled at once. So the upstream goes on as fast as without it,
    and acknowledges as soon.
    """

    def take(self, delivery: Delivery) -> None:
        """Accept what is wanted of a batch while there is room."""
        looking = 0 if self._selecting is None else self._selecting.waiting()
        if len(self._accepted) + looking < INBOX_BATCHES:
            super().take(Delivery(delivery.batch, OWED_TO_NOBODY))
        delivery.done()

    def close(self) -> list[int]:
        """Let go of the upstream. What was not read is no loss."""
        super().close()
        return []
