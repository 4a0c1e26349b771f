"""The live feed: what the event stream shows, and what it leaves out.

The feed never holds a pipeline up. A pass through a pipeline is reported at most once in 100 ms; the
messages of the passes between are told as `skipped_messages`, after the last of them as well. A
listener that does not keep up loses its oldest events and learns how many. What nobody listens to is
not rendered: those who want the same are told of it together, and share what is made for them.

What all of it costs is bounded as well, whatever the number of pipelines and listeners: events are
told in rounds, and after whatever took a while the feed rests fifteen times as long. So many listeners
are told less often, more at once; and where that does not suffice, passes are reported less often.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.monitoring.channel import Channel
from headrace.compiler.runtime.monitoring.liveevents import ALL, Event, Interest, Lagged, Run
from headrace.compiler.runtime.monitoring.namedevents import NAMED_EVENTS, NamedEvent, StoreEvent

if TYPE_CHECKING:
    from headrace.compiler.runtime.monitoring.pulses import Pulses
    from headrace.compiler.runtime.monitoring.watch import Watch

MOST_BYTES = 8 * 1024 * 1024
"""Of events that wait for listeners, together: one may have a hundred times two kilobytes."""
REST = 15
"""How much longer than it works the feed rests: a sixteenth of the time is the most it takes."""
LONGEST_REST_SECONDS = 1.0
"""Nobody waits longer, also after a process was stopped in the middle of a round."""

_BYTES = attrgetter("bytes")


class Listener:
    """One reader of the feed. At most 1024 events wait for it, of 8 MiB with those of others; then the
    oldest go."""

    def __init__(self, feed: Feed, channel: Channel, pulses: Pulses[Any] | None) -> None:
        self._feed = feed
        self._closed = False
        self.channel = channel
        """Where what it wants to be told of waits."""
        self.pulses = pulses
        """What makes the pulses, of which it is told each, or else the next one whole."""
        self._pulse = 0
        self.told = asyncio.Event()
        """Set when there is something to look at."""
        self.at = channel.end
        """The number of the event it is told next."""

    @property
    def is_behind(self) -> bool:
        """Whether there is something that it has not been told."""
        return self.at < self.channel.end or (
            self.pulses is not None and self._pulse != self.pulses.number
        )

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
            round, channel = self._feed.round, self.channel
            if not self._closed and self.pulses is not None and self._pulse != self.pulses.number:
                pulse, self._pulse = self.pulses.since(self._pulse), self.pulses.number
                yield pulse
            # Who has to be waited for is told on in the next round: this one has to end.
            while not self._closed and self.at < channel.end and round == self._feed.round:
                if self.at < channel.oldest:
                    missed, self.at = channel.oldest - self.at, channel.oldest
                    yield Lagged(missed)
                else:
                    run = channel.run(self.at)
                    self.at += len(run.events)
                    yield run


class Feed:
    """Who listens to what, what they have still to be told, and the watches of the pipelines."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._listeners: set[Listener] = set()
        self._channels: dict[Interest, Channel] = {}
        """Those that anybody listens to."""
        self._waiting: set[Listener] = set()
        self._watches: set[Watch] = set()
        self._closed = False
        self._bytes = 0
        self._rested_at = 0.0
        self._is_telling = False
        self._began = 0.0
        self.round = 0
        """The number of the round that is going on, or else of the next one."""

    @property
    def rest(self) -> float:
        """For how many seconds the feed has still to rest."""
        return max(0.0, self._rested_at - self.clock.monotonic())

    def observe(self, interest: Interest = ALL, pulses: Pulses[Any] | None = None) -> Listener:
        """Return a new listener, to pulses as well if it is given what makes them.

        It starts with fresh counts.
        """
        if (channel := self._channels.get(interest)) is None:
            channel = Channel(interest)
        listener = Listener(self, channel, pulses)
        if self._closed:
            listener.close()
            return listener
        if not channel.listeners:
            self._channels[interest] = channel
            for watch in self._watches:
                watch.attend(interest)
        channel.listeners += 1
        if pulses is not None:
            pulses.join()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a listener."""
        if listener not in self._listeners:
            return
        self._listeners.discard(listener)
        self._waiting.discard(listener)
        if listener.pulses is not None:
            listener.pulses.leave()
        channel = listener.channel
        channel.listeners -= 1
        if not channel.listeners:
            del self._channels[channel.interest]
            self._bytes -= channel.bytes
            for watch in self._watches:
                watch.ignore(channel.interest)

    def join(self, watch: Watch) -> None:
        """Show a pipeline from now on."""
        self._watches.add(watch)
        for interest in self._channels:
            watch.attend(interest)

    def drop(self, watch: Watch) -> None:
        """Stop showing a pipeline, which is over: whoever listens is told what is left to tell."""
        watch.settle()
        self._watches.discard(watch)
        watch.rest()

    def showing(self, pipeline: str) -> Mapping[int, list[Channel]]:
        """Return the channels that show batches of a pipeline, by how many messages of each."""
        by_messages = defaultdict[int, list[Channel]](list)
        for interest, channel in self._channels.items():
            if interest.shows(pipeline):
                by_messages[interest.messages].append(channel)
        return by_messages

    def telling(self, pipeline: str) -> list[Channel]:
        """Return the channels that tell failures of a pipeline."""
        return [each for interest, each in self._channels.items() if interest.tells(pipeline)]

    def publish(self, event: Event, channels: Iterable[Channel]) -> None:
        """Have those who listen to some channels told of an event, in the next round."""
        for channel in channels:
            self._bytes += channel.add(event)
        while self._bytes > MOST_BYTES:
            self._bytes -= max(self._channels.values(), key=_BYTES).forget_oldest()
        self.tell()

    def publish_change(self, event: Event) -> None:
        """Have those told who want to know what somebody has changed."""
        self.publish(event, [each for each in self._channels.values() if each.interest.changes])

    def publish_named(self, event: NamedEvent) -> None:
        """Have those told who want to know that something waits, of dead letters, or of the store."""
        name = NAMED_EVENTS[type(event)]
        among: Iterable[Channel]
        if isinstance(event, StoreEvent):
            among = self._channels.values()  # the store is that of all pipelines
        else:
            among = self.telling(event.pipeline_id)
        wanting = [each for each in among if name in each.interest.named]
        if wanting:
            self.publish(Event(encode(event), name), wanting)

    def tell(self) -> None:
        """Begin a round, soon: there is something to tell."""
        if self._waiting:
            self._tell_soon()

    def wait(self, listener: Listener) -> None:
        """Wake a listener in the next round that has something for it."""
        self._waiting.add(listener)
        if listener.is_behind:
            self._tell_soon()

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        for listener in tuple(self._listeners):
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

    def _tell_soon(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            self.clock.call_later(self.rest, self._tell)

    def _tell(self) -> None:
        """Wake all who are behind. They write in turns of their own, which come before `_written`."""
        self._began = self.clock.monotonic()
        behind = {each for each in self._waiting if each.is_behind}
        self._waiting -= behind
        for listener in behind:
            listener.told.set()
        # What was written goes to the system when the loop has nobody else to call.
        self.clock.call_later(0.0, partial(self.clock.call_later, 0.0, self._written))

    def _written(self) -> None:
        self._worked(self.clock.monotonic() - self._began)
        self._is_telling = False
        self.round += 1
        if any(each.is_behind for each in self._waiting):
            self._tell_soon()
