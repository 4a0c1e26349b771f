"""The pump: one task per input that turns what a source reads into deliveries.

Reconnecting with backoff, decoding, skipping what cannot be read, coalescing, the envelope and the
acknowledgement are here, once, and in no connector. Back-pressure is the window: at 16 batches on
their way, or 256 messages of a broker in smaller batches, the pump stops reading.

A source that connects is read up to there while the pipeline is built, and lets go of its broker only
when all that it handed out has left the outputs: until then there is something to acknowledge.

A pass through the chain is synchronous, so a pump with always something to read would starve the
rest of the server: it takes turns (`turns.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import (
    Acknowledgement,
    Batch,
    Debt,
    Delivery,
    Flow,
    Window,
    is_large,
    parts,
)
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.errors import BatchFailed, BuildRefused, Ended
from headrace.compiler.jsontext import UNSEEN, Decoding, NotJson
from headrace.compiler.largejson import DecodedBatch, LargeList
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.counters import Counters
from headrace.compiler.runtime.envelope import Enclose
from headrace.compiler.runtime.turns import Turn, Turns

MESSAGES_UNDER_WAY = 256
"""What may be on its way of payloads that are coalesced to small batches: what confirms them takes about
as long for all of them as for one. Never fewer than the batches of a `Window`."""
SUSPENDED_SECONDS = 0.00005
"""A read that took longer than this has let others run; one that did not took a microsecond."""


class Pump:
    """Reads one source for as long as it lives."""

    def __init__(
        self,
        source: Source,
        *,
        clock: Clock,
        turns: Turns,
        counters: Counters,
        decoding: Decoding,
        acknowledges: bool,
        on_delivery: bool,
        enclose: Enclose | None,
        report: Callable[[BaseException], None],
        broke: Callable[[Exception], None],
        warn_once: Callable[[str], None],
        note: Callable[[str], None],
        is_taken_over: Callable[[], bool],
    ) -> None:
        self.window = Window()
        self.report = report
        if source.is_raw:
            self.window.size = max(self.window.size, MESSAGES_UNDER_WAY // max(source.max_batch, 1))
        self._source = source
        self._clock = clock
        self._acknowledges = acknowledges
        self._on_delivery = on_delivery
        self._enclose = enclose
        self._broke = broke
        self._warn_once = warn_once
        self._note = note
        self._is_taken_over = is_taken_over
        self._reader: AsyncGenerator[Sequence[Arrival], None] | None = None
        self._backoff = Backoff()
        self._is_connected = self._is_down = False
        self._since = 0.0
        self._stopping = self._drains = False
        self._interruptible = False
        self._unsent = 0
        self._task: asyncio.Task[None] | None = None
        self._turn = Turn(turns)
        self._counters = counters
        self._decoding = decoding
        self._batches: Callable[[Sequence[Arrival]], Iterable[tuple[Batch, Any]]]
        self._batches = self._decoded if source.is_raw else self._as_they_came
        self._encloses_batches = enclose is not None and not source.is_raw

    def observable(self) -> Observable[Delivery]:
        """Return the deliveries: cold until subscribed, and one subscriber only."""

        def subscribe(
            observer: ObserverBase[Delivery], _: SchedulerBase | None = None
        ) -> DisposableBase:
            self._task = asyncio.ensure_future(self._run(observer))
            return Disposable(self._cancel)

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
        self._is_connected = False
        if reader is not None:
            try:
                await reader.aclose()
            except Exception as cause:
                self.report(cause)

    async def forget(self) -> None:
        """Have the broker keep nothing for this input, unless another one goes on with it."""
        if not self._is_taken_over():
            await self._source.forget()

    def stop(self) -> None:
        """End politely: what was taken from the outside still goes through, then completion."""
        self._stopping = True
        self._drains = self._source.stop()
        wakes = self._drains or (self._is_connected and self._source.connects)
        if self._interruptible and self._task is not None and not wakes:
            self._task.cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def discard(self) -> None:
        """End without ever having read."""
        self._source.stop()
        self._close()

    def _close(self) -> None:
        """Let go of the source; what it had accepted and nobody will see is counted as lost."""
        lost = self._source.close() + self._unsent
        self._unsent = 0
        for _ in range(lost):
            self.report(BatchFailed("stopped before everything that was accepted went through"))

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
                await self._clock.sleep(self._backoff.next())
                self._interruptible = False
            try:
                await self._read(emit)
                return
            except Ended as cause:
                self.report(cause)
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
        self.report(cause)

    def _reached(self) -> None:
        """Note that a life has begun."""
        if self._is_down:
            self._note("connected again")
        self._is_connected, self._is_down = True, False
        self._since = self._clock.monotonic()

    async def _read(self, emit: Callable[[Delivery], None]) -> None:
        """Read one life. Whatever ends it but a stop closes the reader."""
        monotonic = self._clock.monotonic
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
                    self._reached()
                if monotonic() - asked > SUSPENDED_SECONDS:
                    self._turn.begin()
                await self._hand_on(arrivals, emit)
                del arrivals  # the next ones may be long in coming, and these are through
        finally:
            if not (self._is_connected and self._stopping):
                await reader.aclose()

    async def _hand_on(self, arrivals: Sequence[Arrival], emit: Callable[[Delivery], None]) -> None:
        """Send batch after batch down the chain, each as soon as the window has room."""
        window, turn, monotonic = self.window, self._turn, self._clock.monotonic
        rest = iter(self._batches(arrivals))
        for batch, origins in rest:
            arrived = batch
            try:
                if window.used >= window.size:
                    await window.room()
                    turn.begin()
                if self._encloses_batches and is_large(batch):
                    batch = await self._put_on_in_slices(batch, origins[0])
            except asyncio.CancelledError:
                self._unsent = 0 if self._on_delivery else 1 + sum(1 for _ in rest)
                raise
            custody = self._custody(batch, origins) if self._acknowledges else None
            if not batch:
                continue
            window.take()
            flow: Debt = window
            if arrived.__class__ is DecodedBatch:  # whatever is made of it counts as it does
                flow = Flow(window, arrived.under_way())
            del arrived
            try:
                emit(Delivery(batch, flow, custody))
            except Exception as cause:  # steps and sinks report their own: an operator is broken
                self._broke(cause)
                raise Ended("the chain broke") from cause
            if monotonic() > turn.ends:
                await turn.give_way()

    def _custody(self, batch: Batch, origins: Sequence[Any]) -> Acknowledgement | None:
        """Acknowledge what arrived, or say how: when all of the batch has left the outputs."""
        if self._on_delivery and batch:
            return Acknowledgement(lambda: self._source.acknowledge(origins))
        self._source.acknowledge(origins)
        return None

    def _as_they_came(self, arrivals: Sequence[Arrival]) -> Iterable[tuple[Batch, Any]]:
        """Return batches with their origins."""
        if self._enclose is None and not self._acknowledges:
            return arrivals  # nobody asks for origins
        return self._enclosed(arrivals)

    def _enclosed(self, arrivals: Sequence[Arrival]) -> Iterator[tuple[Batch, Sequence[Any]]]:
        for batch, origin in arrivals:
            is_sliced = is_large(batch)  # those have theirs put on in slices
            yield batch if is_sliced else self._put_on(batch, origin), (origin,)

    def _decoded(self, arrivals: Sequence[Arrival]) -> Iterator[tuple[Batch, Sequence[Any]]]:
        """Yield what payloads hold, coalesced up to `max_batch`, with their origins."""
        most = max(self._source.max_batch, 1)
        for start in range(0, len(arrivals), most):
            some = arrivals[start : start + most]
            yield self._messages(some), [origin for _, origin in some]

    def _messages(self, arrivals: Sequence[Arrival]) -> Batch:
        """Return the messages of some payloads; one that is not JSON is skipped with a warning."""
        if self._enclose is None:
            decode_usual, decode = self._decoding.decode_usual, self._decoding.decode
            try:
                return [
                    decode_usual(payload) if len(payload) <= UNSEEN else decode(payload)
                    for payload, _ in arrivals
                ]
            except ValueError:
                pass  # one of them is unusual; told below, if it has to be
        return [message for payload, origin in arrivals for message in self._one(payload, origin)]

    def _one(self, payload: bytes, origin: Any) -> Batch:
        try:
            message = self._decoding.decode(payload)
        except NotJson as cause:
            # Without the place of the fault: one warning for each kind, however many there are.
            kind, _, _ = str(cause).partition(" (byte ")
            self._warn_once(f"skipped a payload that is not JSON: {kind}")
            self._counters.skipped += 1
            return []
        return self._put_on([message], origin)

    def _put_on(self, batch: Batch, origin: Any) -> Batch:
        """Put the envelope on, and count what it does not fit."""
        if self._enclose is None:
            return batch
        enclosed = self._enclose.put_on(batch, self._enclose.metadata(origin))
        self._counters.skipped += len(batch) - len(enclosed)
        return enclosed

    async def _put_on_in_slices(self, batch: Batch, origin: Any) -> Batch:
        """Put the envelope on a large batch; others have their turns meanwhile."""
        assert self._enclose is not None
        about = self._enclose.metadata(origin)
        enclosed: Batch = LargeList()
        for part in parts(batch):
            enclosed += self._enclose.put_on(part, about)
            if self._clock.monotonic() > self._turn.ends:
                await self._clock.sleep(0)
                self._turn.begin()
        self._counters.skipped += len(batch) - len(enclosed)
        return enclosed
