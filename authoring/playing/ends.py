"""The ends of a played pipeline: a source that is told what arrives, a sink that keeps what is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any, ClassVar

from headrace.authoring.playing.outside import (
    AWAY,
    UNANSWERED,
    PlayedBroker,
    PlayedServer,
    Take,
    refusal,
)
from headrace.authoring.playing.scenario import Arriving, ServerOutage
from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.families import Fits, Input, Output
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Arrival, AwaitingSink, Rest, Sink, Source
from headrace.compiler.errors import BatchFailed, Unreachable
from headrace.compiler.formats import FormatMisfit, decoded
from headrace.compiler.jsontext import encode


class ScriptedSource(Source):
    """Hands out payloads that are given to it. What is told of them is what its kind tells."""

    connects: ClassVar[bool] = True

    def __init__(
        self,
        component: Input,
        outages: Sequence[ServerOutage],
        ctx: Context,
        broker: PlayedBroker,
        acknowledged: Callable[[int], None],
    ) -> None:
        self._broker, self._acknowledged = broker, acknowledged
        self.max_batch = getattr(component, "max_batch", 1)
        self._is_kept = broker.is_kept = component.is_kept()
        self._format = component.payload_format()
        usual = component.usual
        self._known = {key: getattr(component, key, usual.get(key)) for key in component.attaches}
        self._outages, self._ctx = outages, ctx
        self._lost = ""
        """Why the connection is lost, since it was made last."""
        self._is_connected = self._is_stopping = False
        self._happened = asyncio.Event()
        missed, broker.missed = broker.missed, []
        for each in missed:
            self.put(each)

    def put(self, arriving: Arriving) -> None:
        """Have something arrive. What nobody keeps is gone while there is no connection."""
        if self._is_kept or (self._is_connected and not self._lost):
            for each in self.payloads(arriving):
                self._broker.put(each, arriving.meta)
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
                yield self._broker.hand_out()
        finally:
            self._is_connected = False

    async def _something(self) -> None:
        """Wait until something is there, or the connection is not, or this is to stop."""
        while not (self._broker.waiting or self._lost or self._is_stopping):
            self._happened.clear()
            await self._happened.wait()

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return what is told of an arrival: what the input knows, and what was given with it."""
        _, meta = origin
        return {**self._known, **meta}

    def acknowledge(self, origins: Sequence[Any]) -> None:
        """Tell the broker which arrivals need not come again."""
        for number in self._broker.acknowledge([number for number, _ in origins]):
            self._acknowledged(number)

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
    broker: PlayedBroker,
    acknowledged: Callable[[int], None],
) -> ScriptedSource:
    """Return the source that stands for the server of an input, which has a ``broker`` behind it.

    ``acknowledged`` is told of each arrival that need not come again, counted from 0.
    """
    source = ScriptedSource if component.is_raw else ScriptedBatches
    return source(component, outages, ctx, broker, acknowledged)


def scripted_sink(
    component: Output, fits: Fits | None, server: PlayedServer, take: Take, clock: Clock
) -> Sink:
    """Return a sink that hands each batch to ``take`` which fits and which its server takes."""
    if server.has_faults:
        return HinderedSink(component, fits, server, take, clock)
    return KeepingSink(fits, take)


class KeepingSink(AwaitingSink):
    """Writes whatever fits, at once."""

    def __init__(self, fits: Fits | None, take: Take) -> None:
        self._fits, self._take = fits, take

    def begin(self, batch: Batch) -> Rest | None:
        """Keep it."""
        if self._fits is not None:
            self._fits(batch)
        self._take(batch)
        return None

    async def write(self, batch: Batch) -> None:
        """Keep it."""
        self.begin(batch)


class HinderedSink(AwaitingSink):
    """Writes as the other side lets it: in time, late, or not at all."""

    def __init__(
        self, component: Output, fits: Fits | None, server: PlayedServer, take: Take, clock: Clock
    ) -> None:
        self._outlasts, self._how = component.outlasts_seconds(), component.told_apart()
        self._fits, self._server, self._take, self._clock = fits, server, take, clock
        self._tells_apart = False

    def tell_apart(self) -> None:
        """Write what is not at fault, where the kind is told who is."""
        self._tells_apart = True

    def begin(self, batch: Batch) -> Rest | None:
        """Write it now, unless something is wrong."""
        if self._fits is not None:
            self._fits(batch)
        outage = self._server.fault(self._clock.monotonic(), batch)
        if outage is not None:
            return lambda: self._hindered(batch, outage)
        self._take(batch)
        return None

    async def write(self, batch: Batch) -> None:
        """Write it, now or later."""
        if (rest := self.begin(batch)) is not None:
            await rest()

    async def _hindered(self, batch: Batch, outage: ServerOutage) -> None:
        if outage.kind == "refuses":
            at_fault = self._server.refused(outage, batch)
            take = self._take if self._tells_apart else None
            raise refusal(outage, batch, at_fault, self._how, take)
        if outage.kind == "unanswered":
            self._take(batch)
            raise BatchFailed(UNANSWERED, "unclear")
        seconds = outage.seconds
        if outage.kind == "down":
            seconds = outage.ends - self._clock.monotonic()
            if seconds > self._outlasts:
                await self._clock.sleep(self._outlasts)
                raise Unreachable(AWAY)
        await self._clock.sleep(seconds)
        self._take(batch)
