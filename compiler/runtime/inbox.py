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

from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.edges import INBOX_BATCHES, INBOX_TAKEN, Arrival, QueueFill, Source


class Inbox(Source):
    """What one pipeline reads of another."""

    is_raw: ClassVar[bool] = False
    merges_metadata: ClassVar[bool] = True

    def __init__(
        self,
        upstream: str,
        detach: Callable[[Inbox], None],
        waits_for: Callable[[str], str | None],
    ) -> None:
        """Take what ends its subscription, and what tells why an upstream hands nothing on."""
        self.upstream = upstream
        self.subscription: DisposableBase = Disposable()
        """To its upstream, once it has one."""
        self._detach, self._waits_for = detach, waits_for
        self._batches: deque[Batch] = deque()
        self._waiting: deque[Delivery] = deque()
        self._arrived = asyncio.Event()
        self._stopping = False

    def take(self, delivery: Delivery) -> None:
        """Accept a batch, or let it wait for room. After the end, settle it and forget it."""
        if self._stopping:
            delivery.done()
        elif len(self._batches) < INBOX_BATCHES:
            if not self._batches:  # otherwise nobody waits
                self._arrived.set()
            self._batches.append(delivery.batch)
            delivery.done()
        else:
            self._waiting.append(delivery)

    def queue(self) -> QueueFill:
        """Return how many batches wait to be read."""
        return QueueFill("batches", len(self._batches), INBOX_BATCHES)

    def waits_for(self) -> str | None:
        """Return that nobody hands anything on."""
        return self._waits_for(self.upstream)

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where it came from."""
        return {"upstream": self.upstream}

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Yield what has been accepted, a few batches at a time."""
        while self._batches or not self._stopping:
            if self._batches:
                yield [(self._next(), None) for _ in range(min(INBOX_TAKEN, len(self._batches)))]
            else:
                self._arrived.clear()
                await self._arrived.wait()

    def _next(self) -> Batch:
        batch = self._batches.popleft()
        if self._waiting:
            delivery = self._waiting.popleft()
            self._batches.append(delivery.batch)
            delivery.done()
        return batch

    def stop(self) -> bool:
        """Accept nothing more; what was accepted or waits is read out, then the input ends."""
        self._stopping = True
        self._detach(self)
        self._arrived.set()
        return True

    def close(self) -> int:
        """Settle what nobody will read any more, so that the upstream is not held up."""
        self.stop()
        lost = len(self._batches) + len(self._waiting)
        self._batches.clear()
        while self._waiting:
            self._waiting.popleft().done()
        return lost


class Peek(Inbox):
    """What a sample reads of a running pipeline: an inbox that nobody waits for.

    What it has no room for is dropped, and settled at once. So the upstream goes on as fast as without it,
    and acknowledges as soon.
    """

    def take(self, delivery: Delivery) -> None:
        """Accept a batch while there is room."""
        if len(self._batches) < INBOX_BATCHES:
            super().take(delivery)
        else:
            delivery.done()

    def close(self) -> int:
        """Let go of the upstream. What was not read is no loss."""
        super().close()
        return 0
