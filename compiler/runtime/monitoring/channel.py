"""The events that wait for listeners who want to be told of the same.

They are numbered, and kept once for all of those listeners. Of what waits the oldest goes first.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from headrace.compiler.runtime.monitoring.liveevents import Event, Interest, Run

MOST_WAITING = 1024
RUN_BYTES = 128 * 1024
"""What a listener is told at once ends with the event that exceeds this; then it is told more, if it
can take more."""


class Channel:
    """The events of one interest, as long as anybody has it."""

    __slots__ = ("_kept", "_runs", "bytes", "interest", "listeners", "oldest")

    def __init__(self, interest: Interest) -> None:
        self.interest = interest
        self.listeners = 0
        """How many have it."""
        self.bytes = 0
        """Of the events that are kept."""
        self.oldest = 0
        """The number of the oldest event that is kept."""
        self._kept: deque[Event] = deque()
        self._runs: dict[int, Run] = {}

    @property
    def end(self) -> int:
        """The number of the event that is added next."""
        return self.oldest + len(self._kept)

    def add(self, event: Event) -> int:
        """Keep one more event; return by how many bytes there are more, which may be fewer."""
        before = self.bytes
        self._kept.append(event)
        self.bytes += len(event.data)
        self._runs.clear()
        if len(self._kept) > MOST_WAITING:
            self.forget_oldest()
        return self.bytes - before

    def forget_oldest(self) -> int:
        """Let go of the oldest event; return its bytes."""
        size = len(self._kept.popleft().data)
        self.bytes -= size
        self._runs.pop(self.oldest, None)
        self.oldest += 1
        return size

    def run(self, at: int) -> Run:
        """Return what is told at once to a listener that has come to an event which is kept."""
        if at not in self._runs:
            events, size = list[Event](), 0
            for event in islice(self._kept, at - self.oldest, None):
                events.append(event)
                size += len(event.data)
                if size > RUN_BYTES:
                    break
            self._runs[at] = Run(tuple(events))
        return self._runs[at]
