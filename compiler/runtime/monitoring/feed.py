"""The live feed: what the event stream shows, and what it leaves out.

The feed never holds a pipeline up. A pass through a pipeline is reported at most once in 100 ms; the
messages of the passes between are told as `skipped_messages`, after the last of them as well. A
listener that does not keep up loses its oldest events and learns how many. While nobody listens,
nothing is rendered.

What all of it costs is bounded as well, whatever the number of pipelines and listeners: events are
told in rounds, and after whatever took a while the feed rests fifteen times as long. So many listeners
are told less often, more at once; and where that does not suffice, passes are reported less often.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from headrace.compiler.clock import Clock

if TYPE_CHECKING:
    from headrace.compiler.runtime.monitoring.watch import Watch

MOST_WAITING = 1024
MOST_BYTES = 8 * 1024 * 1024
"""Of events that wait for listeners: one may have a hundred times two kilobytes."""
RUN_BYTES = 128 * 1024
"""What a listener is told at once ends with the event that exceeds this; then it is told more, if it
can take more."""
REST = 15
"""How much longer than it works the feed rests: a sixteenth of the time is the most it takes."""
LONGEST_REST_SECONDS = 1.0
"""Nobody waits longer, also after a process was stopped in the middle of a round."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, rendered once for all who listen: the JSON of a UiEvent.

    One that could not be rendered has the name ``fault`` and says why: ``error`` is what a browser calls
    a lost connection.
    """

    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Lagged:
    """How many events this listener has missed."""

    count: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Run:
    """Events one after the other, never none. All who are told the same are given the same run."""

    events: tuple[Event, ...]


class Listener:
    """One reader of the feed. At most 1024 events of 8 MiB wait for it; then the oldest go."""

    def __init__(self, feed: Feed, at: int) -> None:
        self._feed = feed
        self._closed = False
        self.told = asyncio.Event()
        """Set when there is something to look at."""
        self.at = at
        """The number of the event it is told next."""

    def close(self) -> None:
        """End the iteration and leave the feed."""
        self._closed = True
        self._feed.leave(self)
        self.told.set()

    async def __aiter__(self) -> AsyncIterator[Run | Lagged]:
        while not self._closed:
            self.told.clear()
            self._feed.wait(self)
            await self.told.wait()
            round = self._feed.round
            # Who has to be waited for is told on in the next round: this one has to end.
            while not self._closed and self.at < self._feed.end and round == self._feed.round:
                if self.at < self._feed.oldest:
                    missed, self.at = self._feed.oldest - self.at, self._feed.oldest
                    yield Lagged(missed)
                else:
                    run = self._feed.run(self.at)
                    self.at += len(run.events)
                    yield run


class Feed:
    """Who listens, what they have still to be told, and the watches of the pipelines.

    The events are numbered. Those that are kept are kept once, for all listeners.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.listeners: set[Listener] = set()
        """Who listens, if anybody does."""
        self._waiting: set[Listener] = set()
        self._watches: set[Watch] = set()
        self._closed = False
        self._kept: deque[Event] = deque()
        self._bytes = 0
        self._runs: dict[int, Run] = {}
        self.oldest = 0
        """The number of the oldest event that is kept."""
        self._rested_at = 0.0
        self._is_telling = False
        self._began = 0.0
        self.round = 0
        """The number of the round that is going on, or else of the next one."""

    @property
    def end(self) -> int:
        """The number of the event that is published next."""
        return self.oldest + len(self._kept)

    @property
    def rest(self) -> float:
        """For how many seconds the feed has still to rest."""
        return max(0.0, self._rested_at - self.clock.monotonic())

    def observe(self) -> Listener:
        """Return a new listener; it starts with fresh counts."""
        listener = Listener(self, self.end)
        if self._closed:
            listener.close()
            return listener
        if not self.listeners:
            for watch in self._watches:
                watch.wake()
        self.listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a listener."""
        self.listeners.discard(listener)
        self._waiting.discard(listener)
        if not self.listeners:
            while self._kept:
                self._forget_oldest()
            for watch in self._watches:
                watch.rest()

    def join(self, watch: Watch) -> None:
        """Show a pipeline from now on."""
        self._watches.add(watch)
        if self.listeners:
            watch.wake()

    def drop(self, watch: Watch) -> None:
        """Stop showing a pipeline, which is over: whoever listens is told what is left to tell."""
        watch.settle()
        self._watches.discard(watch)
        watch.rest()

    def publish(self, event: Event) -> None:
        """Have everybody who listens told of an event, in the next round."""
        if not self.listeners:
            return
        self._kept.append(event)
        self._bytes += len(event.data)
        self._runs.clear()
        while len(self._kept) > MOST_WAITING or self._bytes > MOST_BYTES:
            self._forget_oldest()
        if self._waiting:
            self._tell_soon()

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

    def wait(self, listener: Listener) -> None:
        """Wake a listener in the next round that has something for it."""
        self._waiting.add(listener)
        if listener.at < self.end:
            self._tell_soon()

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        for listener in tuple(self.listeners):
            listener.close()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count what is done within as work that the feed rests from."""
        began = self.clock.monotonic()
        yield
        self._worked(self.clock.monotonic() - began)

    def _worked(self, seconds: float) -> None:
        until = max(self._rested_at, self.clock.monotonic()) + seconds * REST
        self._rested_at = min(until, self.clock.monotonic() + LONGEST_REST_SECONDS)

    def _forget_oldest(self) -> None:
        self._bytes -= len(self._kept.popleft().data)
        self._runs.pop(self.oldest, None)
        self.oldest += 1

    def _tell_soon(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            self.clock.call_later(self.rest, self._tell)

    def _tell(self) -> None:
        """Wake all who are behind. They write in turns of their own, which come before `_written`."""
        self._began = self.clock.monotonic()
        behind = {each for each in self._waiting if each.at < self.end}
        self._waiting -= behind
        for listener in behind:
            listener.told.set()
        # What was written goes to the system when the loop has nobody else to call.
        self.clock.call_later(0.0, partial(self.clock.call_later, 0.0, self._written))

    def _written(self) -> None:
        self._worked(self.clock.monotonic() - self._began)
        self._is_telling = False
        self.round += 1
        if any(each.at < self.end for each in self._waiting):
            self._tell_soon()
