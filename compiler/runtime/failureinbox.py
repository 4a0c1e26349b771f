"""The inbox of who reads failures of other pipelines. Nobody waits for it: what has no room is left out.

Failures are put in as they are reported. Messages come along as they are, shared and not copied; what is
counted of them is what keeping them costs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import islice
from sys import getsizeof
from typing import ClassVar

from headrace.compiler.component.buildcontext import WantedFailures
from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.edges import Arrival, QueueFill, Source
from headrace.compiler.runtime.monitoring.failures import cut
from headrace.compiler.runtime.monitoring.losses import LostData, LostMessages
from headrace.compiler.runtime.monitoring.weighing import Scale

MOST_MESSAGES = 1_000
"""Messages of one batch that are told of."""
MOST_VALUES = 20_000
"""Values in the messages of one batch that are looked at to count their bytes: some milliseconds."""
MOST_PAYLOAD = 65_536
"""Bytes of a payload that come along."""
TAKEN = 100
"""Failures that are taken out at once, as a batch."""
_BYTES = 1_000
"""Of one failure beside its message, roughly."""

Failed = dict[str, JsonValue]
"""A failure as a message, without the message that failed."""


class FailureInbox(Source):
    """What one pipeline reads of the failures of others."""

    is_raw: ClassVar[bool] = False

    def __init__(
        self,
        wanted: WantedFailures,
        left_out: Callable[[int], None],
        leave: Callable[[FailureInbox], None],
    ) -> None:
        """Take who is told how many failures are left out, and what has nothing more come."""
        self.wanted = wanted
        self._tell_left_out, self._leave = left_out, leave
        self._waiting: deque[tuple[Failed, int]] = deque()
        self._bytes = self._left_out = 0
        self._batch: object | None = None
        self._room, self._scale = MOST_MESSAGES, Scale(MOST_VALUES)
        self._arrived = asyncio.Event()
        self._stopping = False

    def take(self, failure: Failed, lost: LostData | None) -> None:
        """Put in one failure for each message that it cost, one with a payload, or one with neither."""
        if isinstance(lost, bytes) and self.wanted.messages:
            text = lost[:MOST_PAYLOAD].decode("utf-8", "replace")
            self._put({**failure, "payload": text}, _BYTES + getsizeof(text))
            return
        if not isinstance(lost, LostMessages) or not lost.size:
            self._put(failure, _BYTES)
            return
        if lost.batch is None or lost.batch is not self._batch:
            self._batch = lost.batch
            self._room, self._scale = MOST_MESSAGES, Scale(MOST_VALUES)
        told = min(lost.size, self._room)
        self._room -= told
        for message, at_fault, said in islice(lost.told(), told):
            each, takes = {**failure, "at_fault": at_fault}, _BYTES
            if said is not None:
                each["error"] = cut(" ".join(said.split()))
                takes += getsizeof(each["error"])
            size = self._scale.bytes_of(message) if self.wanted.messages else None
            if size is None:
                self._put(each, takes)
            else:
                self._put({**each, "message": message}, takes + size)
        self._leave_out(lost.size - told)

    def _put(self, failure: Failed, size: int) -> None:
        if self._bytes + size > self.wanted.max_queued_bytes:
            self._leave_out(1)
            return
        self._waiting.append(({**failure, "left_out": self._left_out}, size))
        self._bytes += size
        self._left_out = 0
        self._arrived.set()

    def _leave_out(self, count: int) -> None:
        if count > 0:
            self._tell_left_out(count)
            self._left_out += count

    def queue(self) -> QueueFill:
        """Return how much waits to be read."""
        return QueueFill("bytes", self._bytes, self.wanted.max_queued_bytes)

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Yield what has come in, some at a time."""
        while self._waiting or not self._stopping:
            if self._waiting:
                yield [(self._next(), None)]
            else:
                self._arrived.clear()
                await self._arrived.wait()

    def _next(self) -> Batch:
        taken = [self._waiting.popleft() for _ in range(min(TAKEN, len(self._waiting)))]
        self._bytes -= sum(size for _, size in taken)
        return [failure for failure, _ in taken]

    def stop(self) -> bool:
        """Take nothing more; what waits is read out, then the input ends."""
        self._stopping = True
        self._leave(self)
        self._arrived.set()
        return True

    def close(self) -> list[int]:
        """Let go of what nobody will read any more: it was told elsewhere as well, and is no loss."""
        self.stop()
        self._waiting.clear()
        self._bytes = 0
        return []


class FailureReaders:
    """Who reads failures, of all that runs."""

    def __init__(self) -> None:
        self._readers: list[FailureInbox] = []
        self.fed_by_them: frozenset[str] = frozenset()
        """Those that get something from one that reads the failures of all: it does not hear of them."""

    def __bool__(self) -> bool:
        return bool(self._readers)

    def join(self, reader: FailureInbox) -> None:
        """Have an inbox take failures from now on."""
        self._readers.append(reader)

    def leave(self, reader: FailureInbox) -> None:
        """Have it take no more, if it does."""
        self._readers[:] = [each for each in self._readers if each is not reader]

    def tell(self, pipeline: str, stage: Stage, failure: Failed, lost: LostData | None) -> None:
        """Put a failure in wherever it is wanted."""
        for each in self._readers:
            if each.wanted.wants(stage) and self._hears(each.wanted.upstreams, pipeline):
                each.take(failure, lost)

    def _hears(self, upstreams: Sequence[str], pipeline: str) -> bool:
        return pipeline in upstreams if upstreams else pipeline not in self.fed_by_them
