"""Samples: a few messages of an input that no pipeline reads, and no trace of having read them.

An input is built and read as in a pipeline, until there is enough, and let go of. A few samples are taken
at a time, and each is closed whatever became of who asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import msgspec
from reactivex.abc import DisposableBase

from headrace.compiler.component.conditions import Condition
from headrace.compiler.component.families import Input
from headrace.compiler.component.pipelineconfig import PipelineConfig, generated_id
from headrace.compiler.delivery import Batch, Delivery, JsonValue
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused, FailureClass, HeadraceError
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import are_small
from headrace.compiler.runtime.building import pump_over
from headrace.compiler.runtime.componentcontext import NOTHING, ComponentContext
from headrace.compiler.runtime.dependencies import prepare
from headrace.compiler.runtime.monitoring.failures import Failures, cut
from headrace.compiler.runtime.monitoring.signatures import Signatures
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.registrations import Registrations
from headrace.compiler.runtime.world import Attach, World
from headrace.compiler.schema.redaction import Hidden
from headrace.compiler.text.diagnostics import Fault

AT_ONCE = 8
"""How many are under way, those that are being closed included."""
CLOSE_SECONDS = 2.0
"""How long an answer waits until all is closed; what is not goes on closing."""
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of the messages of one sample together, as JSON."""

UNBUFFERED = "'buffer' is ignored: messages are shown as they arrive"
SHUTTING_DOWN = "the server is shutting down: the sample ended early"
MOST_KEPT = 10
"""Different warnings, and failures, that are told of one sample: the first ones."""

log = logging.getLogger("headrace.pipeline")


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


class TooManySamples(HeadraceError):
    """So many are under way that one more would be one too many."""

    def __init__(self) -> None:
        super().__init__(f"{AT_ONCE} samples are being taken already: try again later")


class Samples:
    """Takes samples of inputs as long as the engine lives."""

    def __init__(self, world: World, attach: Attach) -> None:
        """Take what is lent to components, and what reads along with another pipeline."""
        self._world = world
        self._attach = attach
        self._under_way: dict[Taking, asyncio.Task[None] | None] = {}
        """With what closes them, once something does."""

    async def take(
        self, component: Input, *, most: int, seconds: float, most_bytes: int = MOST_BYTES
    ) -> Sample | Unbuilt | Unread:
        """Read up to so many messages, of so many bytes, within so many seconds, and let go of the input.

        Raises:
            TooManySamples: `AT_ONCE` are under way.
        """
        if len(self._under_way) >= AT_ONCE:
            raise TooManySamples
        taking = Taking(component, most, most_bytes, self._world, self._attach)
        self._under_way[taking] = None
        try:
            return await taking.read(seconds)
        finally:
            closing = self._under_way[taking] = asyncio.ensure_future(self._let_go(taking))
            await asyncio.wait([closing], timeout=CLOSE_SECONDS)

    def end(self) -> None:
        """Have those that are under way end now."""
        for taking in self._under_way:
            taking.end()

    async def close(self) -> None:
        """End all, and wait until what they have opened is closed, but not for long."""
        self.end()
        if closing := [task for task in self._under_way.values() if task is not None]:
            await asyncio.wait(closing, timeout=CLOSE_SECONDS)

    async def _let_go(self, taking: Taking) -> None:
        try:
            await taking.let_go()
        except Exception:
            log.exception("pipeline '%s': could not be closed", taking.name)
        finally:
            del self._under_way[taking]


class Taking:
    """The taking of one sample. ``name`` is what its pipeline would be called, if it had one."""

    def __init__(
        self,
        component: Input,
        most: int,
        most_bytes: int,
        world: World,
        attach: Attach,
    ) -> None:
        self.name = f"sample-{generated_id()}"
        self._component = component
        self._world = world
        self._parts = Registrations(self.name, hidden=Hidden(world.secrets.redact))
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
        world.readings = await prepare([config], world.connections, world.base, world.clock)
        faults = world.missing(self._component)
        if not faults:
            try:
                source, notes = self._component.sample_source(self._place)
            except BuildRefused as cause:
                faults = [cause.fault]
            else:
                self._notes += notes
                return await self._read(source, seconds)
        hide = self._place.without_secrets  # some are in the words of a driver
        shown = [
            replace(each, message=hide(each.message), found=each.found and hide(each.found))
            for each in faults
        ]
        return Unbuilt(shown, self._notes)

    def end(self) -> None:
        """Have it end now, with what there is."""
        self._notes.append(SHUTTING_DOWN)
        self._is_over.set()

    async def let_go(self) -> None:
        """Close what it has opened, and give back what it has claimed."""
        try:
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
        finally:
            self._parts.hidden.let_go()

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
        took = monotonic() - began
        notes = [*self._notes, *self._told()]
        reason = self._place.outage
        if not self._opening.done():
            # Whether there is a server that hangs, or another kind of server, or none, is not known.
            reason = f"nothing that speaks '{self._component.kind}' has answered after {took:.1f} s"
        if reason is None or self._messages:
            return Sample([*self._messages], notes, took)
        return Unread(reason, [note for note in notes if note != reason])

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
        if self._taking is None and are_small(wanted := delivery.batch[: self._left]):
            for message in wanted:
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

    def _told(self) -> Iterator[str]:
        """Yield what was passed over, and all that went wrong."""
        if skipped := self._parts.counters.skipped:
            yield f"skipped {skipped} of what arrived"
        if self._too_large:
            most = f"{self._most_bytes >> 20} MiB are the most"
            yield f"left out {self._too_large} of what was read: {most}"
        yield from self._place.warnings
        yield from self._place.failed


class SamplePlace(ComponentContext):
    """The context of an input that is sampled. Its failures are logged, and are those of no pipeline."""

    def __init__(
        self,
        parts: Registrations,
        world: World,
        attach: Attach,
        broke_off: Callable[[BaseException], None],
    ) -> None:
        """Take what gives the output of another pipeline, and who is told when reading breaks off."""
        table = Signatures(world.clock, 0)
        failures = Failures(parts.pipeline, world.clock, lambda *_: None, table)
        super().__init__(world, parts, failures, "input", 0)
        self.place = "input"
        self._attach, self._broke_off = attach, broke_off
        self.warnings: list[str] = []
        """What was warned of, without secrets."""
        self.failed: list[str] = []
        """What went wrong, without secrets."""
        self.outage: str | None = None
        """Why nothing can be read at the moment, without secrets."""

    def attach(
        self, upstream: str, wanted: Sequence[Condition] = (), *, on_delivery: bool = False
    ) -> Source:
        return self._attach(upstream, self.selecting(wanted) if wanted else None, None)

    def warn(self, text: str) -> None:
        super().warn(text)
        self._keep(text, self.warnings)

    def fail(self, message: str, failure: FailureClass = "invalid") -> None:
        """Log a failure the first time: it may come again with every try."""
        if self._keep(message, self.failed):
            super().fail(message, failure)

    def report(self, cause: BaseException, lost: Batch = NOTHING) -> None:
        """Take note that a life of the source is over, or never began."""
        super().report(cause, lost)
        self.outage = self._shown(str(cause) or type(cause).__name__)
        self._broke_off(cause)

    def reconnected(self, text: str) -> None:
        """Take note that another life has begun."""
        super().reconnected(text)
        self.outage = None

    def without_secrets(self, text: str) -> str:
        """Return a text without secrets, whosever they are."""
        return self._world.secrets.redact(self.redact(text))

    def _shown(self, text: str) -> str:
        return cut(" ".join(self.without_secrets(text).split()))

    def _keep(self, text: str, texts: list[str]) -> bool:
        text = self._shown(text)
        is_new = text not in texts and len(texts) < MOST_KEPT
        if is_new:
            texts.append(text)
        return is_new
