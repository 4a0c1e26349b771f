"""The writer of an output that bridges outages."""

from __future__ import annotations

from headrace.compiler.delivery import Batch, Delivery
from headrace.compiler.edges import Rest, Sink
from headrace.compiler.errors import BatchFailed, FailureClass
from headrace.compiler.runtime.batchplaces import left_after
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.outage import OutageBridge, is_worth_it
from headrace.compiler.runtime.outputs import QueuedWriter
from headrace.compiler.runtime.retryingsink import RetryingSink


class RetryingWriter(QueuedWriter):
    """Hands batches to a sink again and again; what it gives up it has tried.

    So there is no backoff here: each batch that comes after an outage lasted too long is tried once.
    """

    def __init__(self, sink: Sink, place: ComponentContext, outage: OutageBridge) -> None:
        self._retrying = RetryingSink(sink, outage, self._next_passes)
        super().__init__(self._retrying, place)
        self._ahead: Delivery | None = None
        """What is written ahead of what it came behind, to know whether anything passes."""

    def begin(self, delivery: Delivery) -> Rest | None:
        """Begin to write a delivery, as any writer does; but nothing fails untried."""
        try:
            rest = self._retrying.begin(delivery.batch)
        except Exception as cause:
            self._failed(cause, delivery.batch)
            self.place.when_kept(delivery.done)
            return None
        if rest is None:
            delivery.done()
        return rest

    def waiting(self) -> int:
        """Return how many batches are being looked at or written, or wait for that."""
        return super().waiting() + (self._ahead is not None)

    def abandon(self) -> int:
        """End the workers, as any."""
        if self._ahead is not None:
            self._queue.appendleft(self._ahead)
        return super().abandon()

    def _left_of(self, batch: Batch) -> tuple[Batch, FailureClass]:
        return self._retrying.left_of(batch) or super()._left_of(batch)

    def _succeeded(self) -> None:
        """Whoever has tried again tells that it works."""

    def _failed(self, cause: Exception, lost: Batch) -> None:
        self.place.report(cause, lost)

    async def _next_passes(self) -> bool:
        """Write the batch that is next in the queue; return whether there was one and it passed."""
        if not self._queue:
            return False
        delivery = self._ahead = self._queue.popleft()
        try:
            await self._retrying.write_ahead(delivery.batch)
        except Exception as cause:
            if is_worth_it(cause):
                left = left_after(cause, delivery.batch)
                self._queue.appendleft(Delivery(left, delivery.flow, delivery.custody))
            else:
                self._failed(cause, delivery.batch)
                self.place.when_kept(delivery.done)
            return isinstance(cause, BatchFailed) and bool(cause.done)
        else:
            delivery.done()
            return True
        finally:
            self._ahead = None
