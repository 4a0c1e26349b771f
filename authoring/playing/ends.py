"""The ends of a played pipeline: a source that is told what arrives, a sink that keeps what is written."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from itertools import count
from typing import Any, ClassVar

from headrace.authoring.playing.scenario import Arriving, ServerOutage
from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Fits, Input, Output
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Arrival, AwaitingSink, InlineSink, Rest, Sink, Source
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.formats import FormatMisfit, decoded
from headrace.compiler.jsontext import encode

AWAY = "does not answer, as the test says"
LOST = "the connection is lost, as the test says"
REFUSED = "refused, as the test says"

Take = Callable[[Batch], None]


class ScriptedSource(Source):
    """Hands out payloads that are given to it. What is told of them is what its kind tells."""

    connects: ClassVar[bool] = True

    def __init__(
        self,
        component: Input,
        outages: Sequence[ServerOutage],
        ctx: Context,
        acknowledged: Callable[[int], None],
    ) -> None:
        self._acknowledged = acknowledged
        self._numbers = count()
        self._finished = set[int]()
        self._first_owed = 0
        self.max_batch = getattr(component, "max_batch", 1)
        self._is_kept = component.is_kept()
        self._format = component.payload_format()
        usual = component.usual
        self._known = {key: getattr(component, key, usual.get(key)) for key in component.attaches}
        self._outages, self._ctx = outages, ctx
        self._waiting: deque[Arrival] = deque()
        self._lost = ""
        """Why the connection is lost, since it was made last."""
        self._is_connected = self._is_stopping = False
        self._happened = asyncio.Event()

    def put(self, arriving: Arriving) -> None:
        """Have something arrive. What nobody keeps is gone while there is no connection."""
        if self._is_kept or (self._is_connected and not self._lost):
            for each in self.payloads(arriving):
                self._waiting.append((each, (next(self._numbers), arriving.meta)))
            self._happened.set()

    def payloads(self, arriving: Arriving) -> Iterable[Any]:
        """Yield what arrives, one by one."""
        payload = arriving.payload
        if isinstance(payload, bytes) or self._format is not None:
            return [payload]  # messages are what the format has made of one
        return map(encode, payload)

    def lose(self, cause: str) -> None:
        """Have the connection be lost, if there is one. It is tried again as any other."""
        if self._is_connected:
            self._lost = cause
            self._happened.set()

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Connect, then yield what has arrived."""
        now = self._ctx.clock.monotonic()
        if any(each.begins <= now < each.ends for each in self._outages):
            raise Unreachable(AWAY)
        self._is_connected, self._lost = True, ""
        try:
            yield ()
            while True:
                await self._something()
                if self._lost:
                    raise Unreachable(self._lost)
                some = [*self._waiting]
                self._waiting.clear()
                yield some
        finally:
            self._is_connected = False

    async def _something(self) -> None:
        """Wait until something is there, or the connection is not, or this is to stop."""
        while not (self._waiting or self._lost or self._is_stopping):
            self._happened.clear()
            await self._happened.wait()

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return what is told of an arrival: what the input knows, and what was given with it."""
        _, meta = origin
        return {**self._known, **meta}

    def acknowledge(self, origins: Sequence[Any]) -> None:
        """Tell which arrivals need not come again: each when none before it need, as brokers are told."""
        self._finished.update(number for number, _ in origins)
        while self._first_owed in self._finished:
            self._finished.remove(self._first_owed)
            self._acknowledged(self._first_owed)
            self._first_owed += 1

    def stop(self) -> bool:
        """Have `read` yield once more."""
        self._is_stopping = True
        self._happened.set()
        return False


class ScriptedBatches(ScriptedSource):
    """The same for an input that decodes nothing: what is given at once arrives as one batch."""

    is_raw: ClassVar[bool] = False

    def payloads(self, arriving: Arriving) -> Iterable[Any]:
        """Return the batch, decoded as the pipeline decodes; nothing of a payload that is refused."""
        decoding, payload = self._ctx.decoding, arriving.payload
        if not isinstance(payload, bytes):
            return [decoding.decode(encode(payload))]
        assert self._format is not None  # else no payload is given
        try:
            batch = decoded(self._format, payload, decoding)
        except FormatMisfit as cause:
            self._ctx.warn(f"refused a post: {cause}")
            return []
        return [batch] if batch else []


def scripted_source(
    component: Input,
    outages: Sequence[ServerOutage],
    ctx: Context,
    acknowledged: Callable[[int], None],
) -> ScriptedSource:
    """Return the source that stands for the server of an input.

    ``acknowledged`` is told of each arrival that need not come again, counted from 0.
    """
    source = ScriptedSource if component.is_raw else ScriptedBatches
    return source(component, outages, ctx, acknowledged)


def scripted_sink(
    component: Output, fits: Fits | None, outages: Sequence[ServerOutage], take: Take, clock: Clock
) -> Sink:
    """Return a sink that hands each batch to ``take`` which fits and is not in an outage."""
    if outages:
        return HinderedSink(component.outlasts_seconds(), fits, outages, take, clock)
    return KeepingSink(fits, take)


class KeepingSink(InlineSink):
    """Writes whatever fits."""

    def __init__(self, fits: Fits | None, take: Take) -> None:
        self._fits, self._take = fits, take

    def write(self, batch: Batch) -> None:
        """Keep it."""
        if self._fits is not None:
            self._fits(batch)
        self._take(batch)


class HinderedSink(AwaitingSink):
    """Writes as the other side lets it: in time, late, or not at all."""

    def __init__(
        self,
        outlasts_seconds: float,
        fits: Fits | None,
        outages: Sequence[ServerOutage],
        take: Take,
        clock: Clock,
    ) -> None:
        self._outlasts, self._fits, self._take, self._clock = outlasts_seconds, fits, take, clock
        self._outages = outages
        self._counts = [0] * len(outages)

    def begin(self, batch: Batch) -> Rest | None:
        """Write it now, unless something is wrong."""
        if self._fits is not None:
            self._fits(batch)
        if (outage := self._now()) is not None:
            return lambda: self._hindered(batch, outage)
        self._take(batch)
        return None

    async def write(self, batch: Batch) -> None:
        """Write it, now or later."""
        if (rest := self.begin(batch)) is not None:
            await rest()

    def _now(self) -> ServerOutage | None:
        now = self._clock.monotonic()
        for index, each in enumerate(self._outages):
            if each.begins <= now < each.ends:
                count = self._counts[index]
                self._counts[index] += 1
                if each.kind != "refuses" or count % each.of < each.refused:
                    return each
        return None

    async def _hindered(self, batch: Batch, outage: ServerOutage) -> None:
        if outage.kind == "refuses":
            raise BatchFailed(REFUSED)
        seconds = outage.seconds
        if outage.kind == "down":
            seconds = outage.ends - self._clock.monotonic()
            if seconds > self._outlasts:
                await self._clock.sleep(self._outlasts)
                raise Unreachable(AWAY)
        await self._clock.sleep(seconds)
        self._take(batch)
