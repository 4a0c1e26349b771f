"""The live feed: what the event stream shows, and what it leaves out.

The feed never holds a pipeline up. A pass through a pipeline is reported at most once in 100 ms; the
messages of the passes between are told as `skipped_messages`. A listener that does not keep up loses
its oldest events and learns how many. While nobody listens, nothing is rendered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.counters import Counters
from headrace.compiler.runtime.failures import Stage, cut

MESSAGES_PER_BATCH = 100
MOST_WAITING = 1024
MOST_BYTES = 8 * 1024 * 1024
"""Of events that wait for a listener: one may have a hundred times two kilobytes."""
QUIET_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Event:
    """One event, rendered once for all who listen: the JSON of a UiEvent.

    One that could not be rendered has the name ``error`` and says why.
    """

    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Lagged:
    """How many events this listener has missed."""

    count: int


class Listener:
    """One reader of the feed. At most 1024 events of 8 MiB wait for it; then the oldest go."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._missed = 0
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def tell(self, event: Event) -> None:
        """Queue an event, dropping the oldest when too many wait."""
        self._events.append(event)
        self._bytes += len(event.data)
        while len(self._events) > MOST_WAITING or self._bytes > MOST_BYTES:
            self._oldest()
            self._missed += 1
        self._wake()

    def close(self) -> None:
        """End the iteration and leave the feed."""
        self._closed = True
        self._feed.leave(self)
        self._wake()

    def _oldest(self) -> Event:
        event = self._events.popleft()
        self._bytes -= len(event.data)
        return event

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def __aiter__(self) -> AsyncIterator[Event | Lagged]:
        while not self._closed:
            if self._missed:
                missed, self._missed = self._missed, 0
                yield Lagged(missed)
            elif self._events:
                yield self._oldest()
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
                self._waiter = None


class Feed:
    """Who listens, and the watches of the pipelines they listen to."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._listeners: set[Listener] = set()
        self._watches: set[Watch] = set()
        self._closed = False

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def observe(self) -> Listener:
        """Return a new listener; it starts with fresh counts."""
        listener = Listener(self)
        if self._closed:
            listener.close()
            return listener
        if not self._listeners:
            for watch in self._watches:
                watch.wake()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a listener."""
        self._listeners.discard(listener)
        if not self._listeners:
            for watch in self._watches:
                watch.rest()

    def join(self, watch: Watch) -> None:
        """Show a pipeline from now on."""
        self._watches.add(watch)
        if self._listeners:
            watch.wake()

    def drop(self, watch: Watch) -> None:
        """Stop showing a pipeline."""
        self._watches.discard(watch)
        watch.rest()

    def publish(self, event: Event) -> None:
        """Hand an event to everybody who listens."""
        for listener in self._listeners:
            listener.tell(event)

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        for listener in tuple(self._listeners):
            listener.close()


class Watch:
    """One pipeline as the feed sees it.

    The path asks two attributes and nothing else: `is_due` where a batch enters, `sees_output` where
    one leaves. Both are False while nobody listens and for 100 ms after a reported pass. What was
    skipped meanwhile is the difference of counters that are kept anyway.
    """

    __slots__ = (
        "_feed",
        "_inbound",
        "_is_passing",
        "_outbound",
        "_pipeline",
        "_seq",
        "_timer",
        "counters",
        "is_due",
        "lasts",
        "sees_output",
    )

    def __init__(self, pipeline: str, feed: Feed, counters: Counters) -> None:
        self._pipeline = pipeline
        self._feed = feed
        self.counters = counters
        self.is_due = False
        self.sees_output = False
        self.lasts: Callable[[], bool] = bool  # which is False
        """Whether a pass goes on after it has returned, because a transform waits for somebody."""
        self._is_passing = False
        self._inbound = self._outbound = 0
        self._seq = 0
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Somebody listens: report the next pass, and count what is skipped from now."""
        self._inbound, self._outbound = self.counters.inbound, self.counters.outbound
        self.is_due = self.sees_output = True

    def rest(self) -> None:
        """Nobody listens any more."""
        self.is_due = self.sees_output = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def entered(self, batch: Batch) -> None:
        """Report a batch that the pipeline takes in; the rest of this pass is reported as well."""
        self.is_due, self._is_passing = False, True
        skipped = self.counters.inbound - self._inbound - len(batch)
        self._inbound = self.counters.inbound
        self._show("input", batch, skipped)
        self._quiet()

    def passed(self) -> None:
        """The reported pass is over: what leaves from now on belongs to others, unless it lasts."""
        self._is_passing = False
        self.sees_output = self.is_due or self.lasts()

    def left(self, batch: Batch) -> None:
        """Report a batch that leaves the transforms."""
        skipped = self.counters.outbound - self._outbound - len(batch)
        self._outbound = self.counters.outbound
        self._show("output", batch, skipped)
        if not self._is_passing:  # released by a timer, or waited for: it comes with all its parts
            self.is_due, self._is_passing = False, True
            self._feed.clock.call_later(0.0, self._released)
            self._quiet()

    def _released(self) -> None:
        self._is_passing = False
        self.sees_output = self.is_due

    def failed(self, stage: Stage, component: int | None, message: str) -> None:
        """Report a failure, if anybody listens."""
        if self._feed.is_heard:
            self._publish(stage, component, {"error": message})

    def _quiet(self) -> None:
        if self._timer is None:
            self._timer = self._feed.clock.call_later(QUIET_SECONDS, self._due)

    def _due(self) -> None:
        self._timer = None
        self.is_due = self.sees_output = True

    def _show(self, stage: Stage, batch: Batch, skipped: int) -> None:
        try:
            payload = {"batch": preview(batch, skipped)}
        except (ValueError, TypeError, RecursionError) as cause:
            # What JSON cannot hold is for the outputs to refuse; watching must not end a pipeline.
            self._seq += 1
            said = f"pipeline '{self._pipeline}' {stage}: {type(cause).__name__}: {cause}"
            self._feed.publish(Event(encode(said), "error"))
        else:
            self._publish(stage, None, payload)

    def _publish(self, stage: Stage, component: int | None, payload: dict[str, Any]) -> None:
        self._seq += 1
        event = {
            "pipeline_id": self._pipeline,
            "stage": stage,
            "ts": self._feed.clock.millis(),
            "seq": self._seq,
            "component": component,
            "payload": payload,
        }
        self._feed.publish(Event(encode(event)))


def preview(batch: Batch, skipped: int) -> dict[str, Any]:
    """Return a BatchPreview: at most 100 messages, each as text of at most 2048 bytes."""
    return {
        "messages": [
            cut(encode(message).decode("utf-8")) for message in batch[:MESSAGES_PER_BATCH]
        ],
        "total": len(batch),
        "skipped_messages": skipped,
    }
