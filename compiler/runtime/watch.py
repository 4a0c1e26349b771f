"""One pipeline as the feed shows it: which passes are reported, and what was skipped between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.compiler.delivery import Batch
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.counters import Counters
from headrace.compiler.runtime.failures import cut
from headrace.compiler.runtime.feed import Event, Feed
from headrace.compiler.runtime.signatures import Stage

MESSAGES_PER_BATCH = 100
QUIET_SECONDS = 0.1


class Watch:
    """One pipeline as the feed sees it.

    The path asks two attributes and nothing else: `is_due` where a batch enters, `sees_output` where
    one leaves. Both are False while nobody listens and for 100 ms after a reported pass, longer where
    the feed has to rest. What was skipped meanwhile is the difference of counters that are kept anyway.
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
            seconds = max(QUIET_SECONDS, self._feed.rest)
            self._timer = self._feed.clock.call_later(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self.is_due = self.sees_output = True

    def _show(self, stage: Stage, batch: Batch, skipped: int) -> None:
        with self._feed.working():
            self._render(stage, batch, skipped)

    def _render(self, stage: Stage, batch: Batch, skipped: int) -> None:
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
