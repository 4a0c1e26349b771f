"""The pulse: once a second, what pipelines have counted and how they are, of those where it has changed.

It is made once for all who listen to it, and not at all while nobody does. Whoever begins to listen is
told of all pipelines at once, and so is who has missed one; the counts are absolute, so nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count, Millis
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import TURN_SECONDS
from headrace.compiler.runtime.lifecycle import Status
from headrace.compiler.runtime.monitoring.feed import Feed
from headrace.compiler.runtime.monitoring.links import PipelineHealth
from headrace.compiler.runtime.monitoring.liveevents import Event, Run

PULSE_SECONDS = 1.0
T = TypeVar("T")


class StoredPulse(msgspec.Struct, frozen=True):
    """How much of a pipeline waits on the disk."""

    entries: Count
    bytes: Count
    oldest: Annotated[
        Millis | None,
        Meta(description="When the oldest entry came, in milliseconds since 1970. Null: none."),
    ]


class PipelinePulse(msgspec.Struct, frozen=True):
    """What a pipeline has counted since it was started, and how it is."""

    inbound: Annotated[Count, Meta(description="Messages that the inputs delivered.")] = (
        msgspec.field(name="in")
    )
    outbound: Annotated[Count, Meta(description="Messages that left the transforms.")] = (
        msgspec.field(name="out")
    )
    skipped: Annotated[Count, Meta(description="Messages that arrived and could not be read.")]
    failed: Annotated[Count, Meta(description="Failures, repeated ones included.")]
    held: Annotated[Count, Meta(description="Messages that buffers hold.")]
    in_flight: Annotated[Count, Meta(description="Batches on their way.")]
    status: Status
    health: PipelineHealth
    started_at: Annotated[
        Millis, Meta(description="Milliseconds since 1970. Another one: counts began anew.")
    ]
    stored: Annotated[
        StoredPulse | UnsetType,
        Meta(description="Of one that keeps on the disk what waits, by `durable` or `queue`."),
    ] = UNSET


class Pulse(msgspec.Struct):
    """The pipelines of which something has changed in the last second; at first, all of them."""

    ts: Millis
    pipelines: Mapping[str, PipelinePulse]
    gone: Annotated[
        list[str] | UnsetType, Meta(description="Pipelines that are there no more, if any.")
    ] = UNSET


class Pulses(Generic[T]):
    """Makes a pulse each second from what ``look`` tells of the pipelines by id, while anybody listens."""

    def __init__(
        self, feed: Feed, pipelines: Mapping[str, T], look: Callable[[T], PipelinePulse]
    ) -> None:
        self._feed, self._clock = feed, feed.clock
        self._pipelines, self._look = pipelines, look
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None
        self._forget()

    def _forget(self) -> None:
        self.number = 0
        """The number of the pulse that was made last; 0: none was."""
        self._ts = 0
        self._seen: dict[str, PipelinePulse] = {}
        self._entries: dict[str, bytes] = {}
        """What is told of each pipeline, as JSON with its id."""
        self._latest: Run | None = None
        self._whole: Run | None = None

    def join(self) -> None:
        """Somebody more listens."""
        self._listeners += 1
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    def leave(self) -> None:
        """Somebody listens no more."""
        self._listeners -= 1
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None
            self._forget()

    def since(self, number: int) -> Run:
        """Return what is told to who was told that pulse last: what has changed since, or all of it."""
        if number and number == self.number - 1 and self._latest is not None:
            return self._latest
        if self._whole is None:
            self._whole = self._rendered([*self._entries.values()])
        return self._whole

    async def _run(self) -> None:
        monotonic = self._clock.monotonic
        due = monotonic()
        while True:
            await self._make()
            due = max(due + PULSE_SECONDS, monotonic())
            await self._clock.sleep(due - monotonic())

    async def _make(self) -> None:
        """Look at all pipelines, in slices between which messages have their turns."""
        changed: list[bytes] = []
        left, monotonic = [*self._pipelines][::-1], self._clock.monotonic
        while left:
            with self._feed.working():
                ends = monotonic() + TURN_SECONDS
                while left and monotonic() < ends:
                    id = left.pop()
                    if id in self._pipelines and self._has_changed(id):
                        changed.append(self._entries[id])
            await self._clock.sleep(0)
        gone = [id for id in self._seen if id not in self._pipelines]
        for id in gone:
            del self._seen[id], self._entries[id]
        self.number += 1
        self._ts = self._clock.millis()
        self._latest, self._whole = self._rendered(changed, gone), None
        self._feed.tell()

    def _has_changed(self, id: str) -> bool:
        figures = self._look(self._pipelines[id])
        if figures == self._seen.get(id):
            return False
        self._seen[id] = figures
        self._entries[id] = b"%b:%b" % (encode(id), encode(figures))
        return True

    def _rendered(self, entries: list[bytes], gone: list[str] | None = None) -> Run:
        more = b',"gone":%b' % encode(gone) if gone else b""
        text = b'{"ts":%d,"pipelines":{%b}%b}' % (self._ts, b",".join(entries), more)
        return Run((Event(text, "pulse"),))
