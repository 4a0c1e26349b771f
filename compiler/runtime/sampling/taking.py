"""One sample: an input built and read as in a pipeline, until there is enough, and let go of."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from headrace.compiler.component.families import Input
from headrace.compiler.component.pipelineconfig import PipelineConfig, generated_id
from headrace.compiler.delivery import Batch, Delivery, JsonValue
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import are_small
from headrace.compiler.runtime.ahead import read_ahead
from headrace.compiler.runtime.building import pump_over
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.componentcontext import World
from headrace.compiler.runtime.drivers import import_drivers
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.sampling.place import SamplePlace
from headrace.compiler.schema.redaction import Hidden
from headrace.compiler.text.diagnostics import Fault

if TYPE_CHECKING:
    from reactivex.abc import DisposableBase

MOST_BYTES = 8 * 1024 * 1024
"""Bytes of the messages of one sample together, as JSON."""

UNBUFFERED = "'buffer' is ignored: messages are shown as they arrive"
SHUTTING_DOWN = "the server is shutting down: the sample ended early"


class Sample(msgspec.Struct, frozen=True, tag=True):
    """What was read. ``notes`` tell what was different from a pipeline, and what went wrong."""

    messages: Batch
    notes: Sequence[str]
    seconds: float
    """How long that took."""


class Unbuilt(msgspec.Struct, frozen=True, tag=True):
    """Why the input could not be built. Texts are without secrets."""

    faults: Sequence[Fault]
    notes: Sequence[str]


class Unread(msgspec.Struct, frozen=True, tag=True):
    """Why nothing could be read, in one line without secrets."""

    reason: str
    notes: Sequence[str]


class Taking:
    """The taking of one sample. ``name`` is what its pipeline would be called, if it had one."""

    def __init__(
        self,
        component: Input,
        most: int,
        most_bytes: int,
        world: World,
        attach: Callable[[str], Source],
    ) -> None:
        self.name = f"sample-{generated_id()}"
        self._component = component
        self._world = world
        self._parts = BuiltComponents(self.name, hidden=Hidden(world.secrets.redact))
        self._place = SamplePlace(self._parts, world, attach, self._broke_off)
        self._notes: list[str] = [] if component.buffer is None else [UNBUFFERED]
        self._left = most
        self._most_bytes = most_bytes
        self._messages: Batch = []
        self._bytes = self._too_large = 0
        self._is_over = asyncio.Event()
        self._pump: Pump | None = None
        self._opening: asyncio.Task[None] | None = None
        self._taking: asyncio.Task[None] | None = None
        self._waiting: deque[Delivery] = deque()
        self._is_complete = False
        self._subscription: DisposableBase | None = None

    async def read(self, seconds: float) -> Sample | Unbuilt | Unread:
        """Return what arrives within so many seconds, as soon as there is enough of it."""
        config, world = PipelineConfig(inputs=(self._component,)), self._world
        await import_drivers([config], world.clock)
        world.readings = await read_ahead([config], world.connections, world.base, world.clock)
        faults = self._world.missing(self._component)
        source: Source | None = None
        if not faults:
            try:
                source, notes = self._component.sample_source(self._place)
                self._notes += notes
            except BuildRefused as cause:
                faults = [cause.fault]
        if source is None:
            return Unbuilt([self._shown(fault) for fault in faults], self._notes)
        return await self._read(source, seconds)

    def end(self) -> None:
        """Have it end now, with what there is."""
        self._notes.append(SHUTTING_DOWN)
        self._is_over.set()

    async def let_go(self) -> None:
        """Close what it has opened, and give back what it has claimed."""
        try:
            await self._close()
        finally:
            self._parts.hidden.let_go()

    async def _close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._subscription is not None:
            self._subscription.dispose()
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.wait([self._taking])
        for delivery in self._waiting:
            delivery.done()
        if self._pump is not None:
            await self._pump.finish()
            self._pump.discard()  # also when it has never read
        for action in self._parts.closing:
            await action()

    async def _read(self, source: Source, seconds: float) -> Sample | Unread:
        monotonic = self._world.clock.monotonic
        began = monotonic()
        self._pump = pump_over(
            source,
            self._component,
            self._place,
            self._parts,
            self._world,
            self._place.report,
            acknowledges=False,
        )
        self._opening = asyncio.ensure_future(self._open(self._pump))
        enough = asyncio.ensure_future(self._is_over.wait())
        try:
            await asyncio.wait([enough], timeout=seconds)
        finally:
            enough.cancel()
        return self._outcome(monotonic() - began)

    async def _open(self, pump: Pump) -> None:
        """Connect, and have what arrives taken."""
        try:
            await pump.open()
        except BuildRefused as cause:
            self._place.report(cause)
        else:
            self._subscription = pump.observable().subscribe(
                self._take, on_completed=self._completed
            )

    def _take(self, delivery: Delivery) -> None:
        """Take what is wanted of a batch; of large messages one in each turn of the loop."""
        if self._taking is None and are_small(delivery.batch[: self._left]):
            for message in delivery.batch[: self._left]:
                self._keep(message)
            self._taken(delivery)
            return
        self._waiting.append(delivery)
        if self._taking is None:
            self._taking = asyncio.ensure_future(self._take_waiting())

    async def _take_waiting(self) -> None:
        while self._waiting:
            delivery = self._waiting[0]
            for message in delivery.batch[: self._left]:
                self._keep(message)
                await asyncio.sleep(0)
            self._taken(self._waiting.popleft())
        self._taking = None
        if self._is_complete:
            self._is_over.set()

    def _keep(self, message: JsonValue) -> None:
        """Keep a message, as far as there is room for it in an answer."""
        self._left -= 1
        size = len(encode(message))
        if self._bytes + size > self._most_bytes:
            self._too_large += 1
        else:
            self._bytes += size
            self._messages.append(message)

    def _taken(self, delivery: Delivery) -> None:
        delivery.done()
        if not self._left:
            self._is_over.set()

    def _completed(self) -> None:
        """Note that nothing more arrives; what has arrived is still taken."""
        self._is_complete = True
        if self._taking is None:
            self._is_over.set()

    def _broke_off(self, cause: BaseException) -> None:
        """Go on only while nothing was read: after that, what comes could have been read before."""
        if self._messages or isinstance(cause, BuildRefused):
            self._is_over.set()

    def _outcome(self, seconds: float) -> Sample | Unread:
        notes = [*self._notes, *self._told()]
        reason = self._obstacle(seconds)
        if reason is None or self._messages:
            return Sample([*self._messages], notes, seconds)
        return Unread(reason, [note for note in notes if note != reason])

    def _obstacle(self, seconds: float) -> str | None:
        """Return why nothing can be read at the moment."""
        if self._opening is not None and not self._opening.done():
            # Whether there is a server that hangs, or another kind of server, or none, is not known.
            return (
                f"nothing that speaks '{self._component.kind}' has answered after {seconds:.1f} s"
            )
        return self._place.outage

    def _told(self) -> Iterator[str]:
        """Yield what was passed over, and all that went wrong."""
        if skipped := self._parts.counters.skipped:
            yield f"skipped {skipped} of what arrived"
        if self._too_large:
            most = f"{self._most_bytes >> 20} MiB are the most"
            yield f"left out {self._too_large} of what was read: {most}"
        yield from self._place.warnings
        yield from self._place.failed

    def _shown(self, fault: Fault) -> Fault:
        """Return a fault without secrets: some are in the words of a driver."""
        hide = self._place.without_secrets
        return replace(fault, message=hide(fault.message), found=fault.found and hide(fault.found))
