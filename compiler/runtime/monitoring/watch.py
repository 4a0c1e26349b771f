"""One pipeline as the feed shows it: which passes are reported, and what was skipped between them.

A pass is reported at most once in 100 ms. The next one that is reported tells of what was skipped
before it; if none comes, an event without messages does, no later than 100 ms after the last of them.
Batches are shown while anybody wants to see them, failures told while anybody wants to hear of them.
The first of each failure is reported at once, those that are the same every 250 ms, with their number.
So a listener can add up everything, whenever it stops.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import TURN_SECONDS, are_small, beginning
from headrace.compiler.lowering.chainends import Counters
from headrace.compiler.runtime.monitoring.failures import MOST_BYTES, Repeats, cut
from headrace.compiler.runtime.monitoring.feed import Feed
from headrace.compiler.runtime.monitoring.liveevents import Event, Interest
from headrace.compiler.runtime.monitoring.signatures import ComponentKey

QUIET_SECONDS = 0.1
IDLE_SECONDS = 0.05
"""Without a pass for this long, none is waited for to tell of those that were skipped."""
FAILURE_PAUSES = (0.25,)
"""Seconds between two events of one failure."""


class Watch:
    """One pipeline as the feed sees it.

    The path asks two attributes and nothing else: `is_due` where a batch enters, `sees_output` where
    one leaves. Both are False while nobody looks and for 100 ms after a reported pass, longer where
    the feed has to rest. What was skipped meanwhile is the difference of counters that are kept anyway:
    no skipped pass does anything for it.
    """

    __slots__ = (
        "_failed",
        "_feed",
        "_hearers",
        "_is_passing",
        "_passed",
        "_pipeline",
        "_rendering",
        "_seq",
        "_shown",
        "_timers",
        "_viewers",
        "counters",
        "is_due",
        "lasts",
        "sees_output",
    )

    def __init__(self, pipeline: str, feed: Feed, counters: Counters) -> None:
        self._pipeline = pipeline
        self._feed = feed
        self.counters = counters
        self.is_due = self.sees_output = False
        self.lasts: Callable[[], bool] = bool  # which is False
        """Whether a pass goes on after it has returned, because a transform waits for somebody."""
        self._is_passing = False
        self._shown = self._counted()
        """The counters when it was told of them last."""
        self._passed = self._counted()
        """The counters some moments before the next pass is due."""
        self._seq = 0
        self._timers: tuple[asyncio.TimerHandle, ...] = ()
        self._rendering: deque[Iterator[None]] = deque()
        """Events that take a while, in steps, and those that came after them meanwhile."""
        self._failed = Repeats(feed.clock, FAILURE_PAUSES, self._tell)
        self._viewers = self._hearers = 0
        """How many different interests there are in its batches, and in its failures."""

    def attend(self, interest: Interest) -> None:
        """Somebody wants to be told of it: report the next pass, and count what is skipped from now."""
        if interest.shows(self._pipeline):
            self._viewers += 1
            if self._viewers == 1:
                self._shown = self._counted()
                self.is_due = self.sees_output = True
        self._hearers += interest.tells(self._pipeline)

    def ignore(self, interest: Interest) -> None:
        """Nobody has the interest any more."""
        self._viewers -= interest.shows(self._pipeline)
        self._hearers -= interest.tells(self._pipeline)
        if not self._hearers:
            self._failed.forget()
        if not self._viewers:
            self._look_away()

    def rest(self) -> None:
        """Report nothing any more."""
        self._viewers = self._hearers = 0
        self._look_away()
        self._failed.forget()

    def settle(self) -> None:
        """Tell whoever listens of all that they have not been told of."""
        if self._viewers:
            self._tell_skipped()
        self._failed.settle()
        for steps in self._rendering:
            deque(steps, 0)

    def _look_away(self) -> None:
        """Nobody is shown what is being rendered; failures that came after it are told now."""
        self.is_due = self.sees_output = False
        self._drop_timers()
        rendering = [*self._rendering]
        self._rendering.clear()
        for steps in rendering:
            deque(steps, 0)

    def entered(self, batch: Batch) -> None:
        """Report a batch that the pipeline takes in; the rest of this pass is reported as well."""
        self.is_due, self._is_passing = False, True
        self._show("input", batch)
        self._be_quiet()

    def passed(self) -> None:
        """The reported pass is over: what leaves from now on belongs to others, unless it lasts."""
        self._is_passing = False
        self.sees_output = self.is_due or self.lasts()

    def left(self, batch: Batch) -> None:
        """Report a batch that leaves the transforms."""
        self._show("output", batch)
        if not self._is_passing:  # released by a timer, or waited for: it comes with all its parts
            self._is_passing = True
            self._feed.clock.call_later(0.0, self._released)
            if self.is_due:
                self.is_due = False
                self._be_quiet()

    def _released(self) -> None:
        self._is_passing = False
        self.sees_output = self.is_due

    def failed(
        self, stage: Stage, component: int | None, message: str, input_index: int | None
    ) -> None:
        """Report a failure, now or with those that are the same, if anybody listens."""
        if self._hearers:
            self._failed.add(stage, component, message, input_index)

    def _tell(
        self, place: ComponentKey, count: int, input_index: int | None, *, is_more: bool
    ) -> None:
        stage, component, message = place
        which = {} if input_index is None else {"input_index": input_index}

        def publish() -> Iterator[None]:
            yield from ()
            event = self._event(stage, component, {"error": message}) | {"count": count} | which
            self._feed.publish(Event(encode(event)), self._feed.telling(self._pipeline))

        if self._rendering:
            self._rendering.append(publish())
        else:
            deque(publish(), 0)

    def _be_quiet(self) -> None:
        """Report nothing for a while, in which the feed rests."""
        self._drop_timers()
        seconds, later = max(QUIET_SECONDS, self._feed.rest), self._feed.clock.call_later
        self._timers = later(seconds - IDLE_SECONDS, self._look), later(seconds, self._due)

    def _look(self) -> None:
        self._passed = self._counted()

    def _counted(self) -> dict[Stage, int]:
        return {"input": self.counters.inbound, "output": self.counters.outbound}

    def _due(self) -> None:
        if self._rendering:
            self._be_quiet()
            return
        self._timers = ()
        self.is_due = self.sees_output = True
        passed = self._counted()
        if passed == self._shown:
            return
        if passed == self._passed:
            self._tell_skipped()
        else:  # there will hardly be nothing to show: the next pass tells of it as well
            self._timers = (self._feed.clock.call_later(IDLE_SECONDS, self._tell_skipped),)

    def _drop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = ()

    def _tell_skipped(self) -> None:
        for stage, count in self._counted().items():
            if count != self._shown[stage]:
                self._show(stage, [])

    def _show(self, stage: Stage, batch: Batch) -> None:
        count = self._counted()[stage]
        skipped = count - self._shown[stage] - len(batch)
        self._shown[stage] = count
        batch, total = batch[: max(self._feed.showing(self._pipeline))], len(batch)
        if not self._rendering and are_small(batch):
            with self._feed.working():
                deque(self._steps(stage, batch, total, skipped, encode), 0)
            return
        written = partial(beginning, most=MOST_BYTES)
        self._rendering.append(self._steps(stage, batch, total, skipped, written))
        if len(self._rendering) == 1:
            self._feed.clock.call_later(0.0, self._render)

    def _render(self) -> None:
        """Render what takes a while, until others have their turn."""
        monotonic = self._feed.clock.monotonic
        with self._feed.working():
            ends = monotonic() + TURN_SECONDS
            while self._rendering:
                for _ in self._rendering[0]:
                    if monotonic() >= ends:
                        self._feed.clock.call_later(0.0, self._render)
                        return
                self._rendering.popleft()

    def _steps(
        self,
        stage: Stage,
        batch: Batch,
        total: int,
        skipped: int,
        written: Callable[[JsonValue], bytes],
    ) -> Iterator[None]:
        """Show the first of ``total`` messages one by one, each as text of at most 2048 bytes.

        Each channel has as many of them as it wants. None has any when they have all left meanwhile.
        """
        messages: list[str] = []
        showing = self._feed.showing
        try:
            for message in batch:
                if not self._viewers:
                    return
                messages.append(cut(written(message).decode("utf-8")))
                yield
        except (ValueError, TypeError, RecursionError) as cause:
            # What JSON cannot hold is for the outputs to refuse; watching must not end a pipeline.
            self._seq += 1
            said = f"pipeline '{self._pipeline}' {stage}: {type(cause).__name__}: {cause}"
            self._feed.publish(
                Event(encode(said), "fault"), chain(*showing(self._pipeline).values())
            )
        else:
            preview = {"messages": messages, "total": total, "skipped_messages": skipped}
            event = self._event(stage, None, {"batch": preview})
            for most, channels in showing(self._pipeline).items():
                preview["messages"] = messages[:most]
                self._feed.publish(Event(encode(event)), channels)

    def _event(
        self, stage: Stage, component: int | None, payload: dict[str, Any]
    ) -> dict[str, Any]:
        self._seq += 1
        return {
            "pipeline_id": self._pipeline,
            "stage": stage,
            "ts": self._feed.clock.millis(),
            "seq": self._seq,
            "component": component,
            "payload": payload,
        }
