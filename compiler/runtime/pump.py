"""The pump: one task per input that turns what a source reads into deliveries.

Reconnecting with backoff, the acknowledgement and the making of batches are here, once, and in no
connector. Back-pressure is the window: at 16 batches on their way, or 256 messages of a broker in smaller
batches, the pump stops reading.

A source that connects is read up to there while the pipeline is built, and lets go of its broker only
when all that it handed out has left the outputs: until then there is something to acknowledge.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from headrace.compiler.delivery import (
    BATCHES_UNDER_WAY,
    Acknowledgement,
    Debt,
    Delivery,
    Several,
    Window,
    is_large,
)
from headrace.compiler.edges import Arrival, QueueFill, Source
from headrace.compiler.errors import BuildRefused, Ended
from headrace.compiler.largejson import DecodedBatch
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.capturing.recorder import InputRecorder
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.monitoring.links import UP, LinkState
from headrace.compiler.runtime.turns import Turn, Turns
from headrace.compiler.runtime.unpacking import Unpacked, Unpacking

MESSAGES_UNDER_WAY = 256
"""What may be on its way of payloads that are coalesced to small batches: what confirms them takes about
as long for all of them as for one. Never fewer than the batches of a `Window`."""
SUSPENDED_SECONDS = 0.00005
"""A read that took longer than this has let others run; one that did not took a microsecond."""


def most_under_way(*, is_raw: bool, max_batch: int) -> int:
    """Return how many batches of an input may be on their way at once."""
    if not is_raw:
        return BATCHES_UNDER_WAY
    return max(BATCHES_UNDER_WAY, MESSAGES_UNDER_WAY // max(max_batch, 1))


class Pump:
    """Reads one source for as long as it lives."""

    def __init__(
        self,
        source: Source,
        unpacking: Unpacking,
        place: ComponentContext,
        turns: Turns,
        broke: Callable[[Exception], None],
        *,
        acknowledges: bool,
        on_delivery: bool,
        recorder: InputRecorder | None = None,
    ) -> None:
        """Take what makes batches of what is read, and who is told when the chain behind is broken.

        ``acknowledges``: the source is told of what arrived, with ``on_delivery`` when it has left the
        outputs. ``recorder`` is handed all that arrives, while anybody captures.
        """
        format = unpacking.format
        is_coalesced = source.is_raw and (format is None or format.is_one)
        self.window = Window(most_under_way(is_raw=is_coalesced, max_batch=source.max_batch))
        self.report = place.report
        self._source = source
        self._unpacking = unpacking
        self._place = place
        self._clock = place.clock
        self._broke = broke
        self._acknowledges = acknowledges
        self._acknowledge = source.acknowledge
        if on_delivery and place.stored_first is not None:
            when_stored, acknowledge = place.stored_first.when_stored, self._acknowledge
            self._acknowledge = lambda origins: when_stored(partial(acknowledge, origins))
        if place.letters is not None:
            self._acknowledge = partial(self._acknowledge_when_kept, self._acknowledge)
        self._on_delivery = on_delivery
        self._recorder = recorder
        self._reader: AsyncGenerator[Sequence[Arrival], None] | None = None
        self._backoff = Backoff(place.random)
        self._is_connected = self._is_down = False
        self._since = 0.0
        self._stopping = self._drains = self._interruptible = False
        self._unsent: Sequence[int] = ()
        """Of batches that were read and go no further: how many messages each has."""
        self._task: asyncio.Task[None] | None = None
        self._turn = Turn(turns)
        if not source.connects:
            place.link.connected()

    def observable(self) -> Observable[Delivery]:
        """Return the deliveries: cold until subscribed, and one subscriber only."""

        def subscribe(
            observer: ObserverBase[Delivery], _: SchedulerBase | None = None
        ) -> DisposableBase:
            task = self._task = asyncio.ensure_future(self._run(observer))

            def cancel() -> None:
                task.cancel()

            return Disposable(cancel)

        return Observable(subscribe)

    async def open(self) -> None:
        """Connect a source that does, ahead of reading it.

        Raises:
            BuildRefused: the broker says no.
        """
        if not self._source.connects or self._reader is not None:
            return
        self._reader = self._source.read()
        try:
            await anext(self._reader)
            self._is_connected, self._since = True, self._clock.monotonic()
            self._place.link.connected()
        except BuildRefused:
            raise
        except Exception as cause:
            self._lost(cause)
        finally:
            if not self._is_connected:
                await self.finish()

    async def finish(self) -> None:
        """Let go of the broker, when nobody reads any more and nothing is left to acknowledge."""
        if self._task is not None:
            await asyncio.wait([self._task])
        reader, self._reader = self._reader, None
        if self._is_connected and self._task is None:
            self._place.link.waits("until all outputs are up")
        self._is_connected = False
        if reader is not None:
            try:
                await reader.aclose()
            except Exception as cause:
                self.report(cause)

    async def forget(self) -> None:
        """Have the broker keep nothing for this input, unless another one goes on with it."""
        if not self._place.is_taken_over:
            await self._source.forget()

    def link(self, now: int) -> LinkState:
        """Return how its link is. Units: milliseconds since 1970."""
        state = self._place.link.state(now)
        why = self._source.waits_for() if state is UP else None
        return state if why is None else LinkState("waiting", why)

    def queue(self) -> QueueFill | None:
        """Return how full what the source holds for it is, if that is bounded."""
        return self._source.queue()

    def turned_down(self, cause: BuildRefused) -> None:
        """The other side says no, and is not tried again."""
        self._place.report_lost(cause)

    def stop(self) -> None:
        """End politely: what was taken from the outside still goes through, then completion."""
        self._stopping = True
        self._drains = self._source.stop()
        wakes = self._drains or (self._is_connected and self._source.connects)
        if self._interruptible and self._task is not None and not wakes:
            self._task.cancel()

    def discard(self) -> None:
        """End without ever having read."""
        self._source.stop()
        self._close()

    def _close(self) -> None:
        """Let go of the source; what it had accepted and nobody will see is counted as lost."""
        self._place.link.ended()
        lost = [*self._source.close(), *self._unsent]
        self._unsent = ()
        for size in lost:
            self._place.report_unread(size)

    async def _run(self, observer: ObserverBase[Delivery]) -> None:
        try:
            await self._live(observer.on_next)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            self._close()
        observer.on_completed()

    async def _live(self, emit: Callable[[Delivery], None]) -> None:
        """Read life after life of the connection until the source is gone."""
        while True:
            if self._is_down:
                self._interruptible = True
                pause = self._backoff.next()
                self._place.retries_in(pause)
                await self._clock.sleep(pause)
                self._interruptible = False
            try:
                await self._read(emit)
                return
            except Ended as cause:
                self._place.report_lost(cause)
                return
            except Exception as cause:
                self._lost(cause)
            if self._stopping:
                return

    def _lost(self, cause: Exception) -> None:
        """Note that a life has ended: whatever raised has closed the reader.

        After one that lasted the next begins soon; others wait longer and longer.
        """
        self._reader = None
        if self._is_connected:
            self._backoff.ended(self._clock.monotonic() - self._since)
        self._is_connected, self._is_down = False, True
        self._place.report_lost(cause)

    async def _read(self, emit: Callable[[Delivery], None]) -> None:
        """Read one life. Whatever ends it but a stop closes the reader."""
        monotonic, recorder = self._clock.monotonic, self._recorder
        reader = self._reader = self._reader or self._source.read()
        try:
            while not self._stopping or self._drains:
                asked = monotonic()
                self._interruptible = True
                arrivals = await anext(reader, None)
                self._interruptible = False
                if arrivals is None:
                    return
                if not self._is_connected:
                    if self._is_down:
                        self._place.reconnected("connected again")
                    else:
                        self._place.link.connected()
                    self._is_connected, self._is_down = True, False
                    self._since = monotonic()
                if monotonic() - asked > SUSPENDED_SECONDS:
                    self._turn.begin()
                if recorder is not None and recorder.captures.under_way:
                    await self._record(arrivals, recorder)
                await self._deliver(arrivals, emit)
                del arrivals  # the next ones may be long in coming, and these are through
        finally:
            if not (self._is_connected and self._stopping):
                await reader.aclose()

    async def _record(self, arrivals: Sequence[Arrival], recorder: InputRecorder) -> None:
        """Hand to those who capture what is about to be delivered."""
        try:
            await recorder.take(arrivals, self._turn)
        except asyncio.CancelledError:
            if not self._on_delivery:
                self._unsent = [self._size(each) for each, _ in arrivals]
            elif self._source.takes_back:
                self._source.take_back([origin for _, origin in arrivals])
            raise

    def _size(self, payload: Any) -> int:
        """Return how many messages arrived with a payload; one, where that is not known yet."""
        return 1 if self._source.is_raw else len(payload)

    async def _deliver(self, arrivals: Sequence[Arrival], emit: Callable[[Delivery], None]) -> None:
        """Send batch after batch down the chain, each as soon as the window has room."""
        window, turn, monotonic = self.window, self._turn, self._clock.monotonic
        unpacking = self._unpacking
        encloses = unpacking.enclose is not None and not unpacking.source.is_raw
        rest = iter(unpacking.batches(arrivals))
        for unpacked in rest:
            try:
                if unpacked is None:
                    if monotonic() > turn.ends:
                        await turn.give_way()
                    continue
                batch, origins = unpacked
                arrived = batch
                if window.used >= window.size:
                    await window.room()
                    turn.begin()
                if encloses and is_large(batch):
                    batch = await unpacking.enclosed_in_slices(batch, origins[0], turn)
            except asyncio.CancelledError:
                self._leave(chain((unpacked,), rest))
                raise
            custody: Debt | None = None
            if self._acknowledges:
                if self._on_delivery and batch:  # when all of it has left the outputs
                    custody = Acknowledgement(partial(self._acknowledge, origins))
                else:
                    self._acknowledge(origins)
            if not batch:
                continue
            window.take()
            flow: Debt = window
            if arrived.__class__ is DecodedBatch:  # whatever is made of it counts as it does
                flow = Several((window, arrived.under_way()))
            del arrived, unpacked
            try:
                emit(Delivery(batch, flow, custody))
            except Exception as cause:  # steps and sinks report their own: an operator is broken
                self._broke(cause)
                raise Ended("the chain broke") from cause
            if monotonic() > turn.ends:
                try:
                    await turn.give_way()
                except asyncio.CancelledError:
                    self._leave(rest)
                    raise

    def _leave(self, unpacked: Iterable[Unpacked | None]) -> None:
        """Note what goes no further, unless it comes again."""
        left = (each for each in unpacked if each is not None)
        if not self._on_delivery:
            self._unsent = [self._unpacking.count(batch) for batch, _ in left]
        elif self._source.takes_back:
            self._source.take_back([origin for _, origins in left for origin in origins])

    def _acknowledge_when_kept(
        self, acknowledge: Callable[[Sequence[Any]], None], origins: Sequence[Any]
    ) -> None:
        """Tell the source, when what failed of it is on the disk."""
        self._place.when_kept(partial(acknowledge, origins))
