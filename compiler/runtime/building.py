"""Building: from a checked config to parts. May refuse; opens nothing, starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from reactivex import Observable

from headrace.compiler.component.buildcontext import Context, KeepBounds, KeptSource, Operator
from headrace.compiler.component.durable import DurableOptions, durable_of
from headrace.compiler.component.durableinput import DurableInput
from headrace.compiler.component.families import Component, Input, Output
from headrace.compiler.component.inputbuffers import SIZE, WINDOW, InputBuffer
from headrace.compiler.component.pipelineconfig import FAMILY_OF, PipelineConfig
from headrace.compiler.component.queuedoutput import QueuedOutput
from headrace.compiler.delivery import Delivery, JsonValue
from headrace.compiler.durablebucket import DurableBucket
from headrace.compiler.edges import AwaitingSink, GatheringSink, Source
from headrace.compiler.errors import BuildRefused
from headrace.compiler.lowering.chain import PlacedTransform, RefusedTransforms, assemble
from headrace.compiler.lowering.chainends import PassWatch
from headrace.compiler.lowering.holding import Holding, holding
from headrace.compiler.runtime.bisectingsink import BisectingSink
from headrace.compiler.runtime.built import BuiltComponents, InputReader
from headrace.compiler.runtime.capturing.recorder import InputRecorder
from headrace.compiler.runtime.componentcontext import ComponentContext
from headrace.compiler.runtime.earlierbatches import EarlierBatches
from headrace.compiler.runtime.gatheringwriter import GatheringWriter
from headrace.compiler.runtime.intake import StoringIntake
from headrace.compiler.runtime.journalsource import JournalSource
from headrace.compiler.runtime.keptbuckets import StoredFirst
from headrace.compiler.runtime.keptparts import kept_as
from headrace.compiler.runtime.keptqueue import KeptQueue
from headrace.compiler.runtime.monitoring.failures import Failures
from headrace.compiler.runtime.monitoring.losses import LostMessages
from headrace.compiler.runtime.outputqueue import OutputQueue
from headrace.compiler.runtime.outputs import Writer, writer
from headrace.compiler.runtime.pump import Pump
from headrace.compiler.runtime.registrations import Registrations
from headrace.compiler.runtime.retryingwriter import RetryingWriter
from headrace.compiler.runtime.storedbatches import StoredBatches
from headrace.compiler.runtime.storedinput import StoredInput, Unchanged
from headrace.compiler.runtime.storedpayloads import StoredPayloads
from headrace.compiler.runtime.unpacking import Enclose, Unpacking
from headrace.compiler.runtime.world import World
from headrace.compiler.text.diagnostics import Diagnostic, Fault

_C = TypeVar("_C", bound=Component)
_T = TypeVar("_T")


class Builder:
    """Builds the parts of one pipeline and collects every refusal on the way."""

    def __init__(
        self,
        config: PipelineConfig,
        parts: BuiltComponents,
        world: World,
        failures: Failures,
        broke: Callable[[Exception], None],
        watch: PassWatch,
    ) -> None:
        self.counters, self.watch = parts.counters, watch
        self._config = config
        self._parts = parts
        self._world = world
        self._failures = failures
        self._broke = broke
        self._refused: list[Diagnostic] = []

    def build(self) -> list[Diagnostic]:
        """Build transforms, inputs, outputs, in this order; return why it is refused, or nothing."""
        config, parts = self._config, self._parts
        faults = [] if config.state is None else self._world.missing(config.state)
        if faults:  # whatever uses it could only say the same again
            return [config.diagnose(fault, ("state",)) for fault in faults]
        if config.letters is not None and (fault := self._world.storage.fault("dead_letters")):
            self._refused.append(config.diagnose(fault))
        if config.state is not None and any(each.remembers for each in config.transforms):
            bucket = self._world.buckets.get(config.state.bucket)
            if isinstance(bucket, DurableBucket):
                late = any(each.is_durable or each.is_acknowledged_late for each in config.inputs)
                parts.stored_first = StoredFirst(bucket, is_waited_for=late)
        parts.chain = assemble(config, self)
        parts.writers += self.each("outputs", config.outputs, self._writer)
        self._expect_losses()
        return self._refused

    def _expect_losses(self) -> None:
        """Have counted from nothing on what may be lost: who watches a figure has to see it change."""
        for index, each in enumerate(self._config.transforms):
            self.place("transforms", index).expect_losses("batch")
            if each.skips_failing:
                self.place("transforms", index).expect_losses("error")
        for index in range(len(self._config.outputs)):
            self.place("outputs", index).expect_losses("batch")

    def each(
        self, family: str, components: Iterable[_C], make: Callable[[_C, int], _T]
    ) -> list[_T]:
        """Return what is made of each component, by its index; refuse those that cannot be built.

        One that names what is not there is not even tried: building it could only say the same again.
        """
        made = []
        for index, component in enumerate(components):
            faults = self._world.missing(component)
            for fault in faults:
                self._object(family, index, fault)
            if not faults:
                try:
                    made.append(make(component, index))
                except BuildRefused as cause:
                    self.refuse(family, index, cause)
        return made

    def refuse(self, family: str, index: int, cause: BuildRefused) -> None:
        """Take why a component cannot be built."""
        self._object(family, index, cause.fault)

    def _object(self, family: str, index: int, fault: Fault) -> None:
        self._refused.append(self._config.diagnose(fault, (family, index)))
        self._world.environment.refused(self._parts.pipeline, FAMILY_OF[family], index, fault)

    def lower(
        self, stages: Sequence[PlacedTransform], refusals: RefusedTransforms
    ) -> list[Operator]:
        """Return the operators of the transforms."""
        return self._world.environment.lower(stages, refusals)

    def place(self, family: str, index: int) -> ComponentContext:
        """Return the context of a component."""
        return ComponentContext(self._world, self._parts, self._failures, FAMILY_OF[family], index)

    def arriving(self, component: Input, index: int) -> Observable[Delivery]:
        """Return what an input delivers, through its own buffer."""
        place = self.place("inputs", index)
        source = self._world.environment.source(component, place)
        reader: InputReader
        if isinstance(component, DurableInput) and (durable := durable_of(component.durable)):
            reader = self._kept(component, durable, source, place)
        else:
            reader = self._pump(
                source,
                component,
                place,
                acknowledges=component.acknowledges or component.is_acknowledged_late,
            )
        buffers = [] if component.buffer is None else [input_buffer(component.buffer, place)]
        self._parts.readers.append(reader)
        return reader.observable().pipe(*buffers)

    def _pump(
        self, source: Source, component: Input, place: ComponentContext, *, acknowledges: bool
    ) -> Pump:
        """Return what reads a source into the chain."""
        self._parts.coming_again.append(source.comes_again)
        return pump_over(
            source,
            component,
            place,
            self._parts,
            self._world,
            self._broke,
            acknowledges=acknowledges,
            recorder=_recorder(source, component, place, self._world),
        )

    def _kept(
        self,
        component: DurableInput,
        durable: DurableOptions,
        source: Source,
        place: ComponentContext,
    ) -> InputReader:
        """Return what reads a durable input: what its source reads is stored first, if it is not yet."""
        if isinstance(source, KeptSource):
            return self._pump(source, component, place, acknowledges=True)
        reading = self.place("inputs", place.index)  # it has a link of its own
        target = kept_as(component, self._config.inputs[: place.index])
        kept: JournalSource
        if source.is_raw:
            kept = StoredPayloads(
                place.storage, reading, target, durable.max_bytes, source.max_batch
            )
        else:
            bounds = KeepBounds(durable.max_bytes)
            kept = StoredBatches(place.storage, reading, target, bounds, None)
        return StoredInput(
            Pump(
                source,
                Unchanged(source, self._parts.decoding, None, place.clock, False, place.leave_out),
                place,
                self._world.turns,
                self._broke,
                acknowledges=False,
                on_delivery=component.acknowledges,
            ),
            StoringIntake(
                source,
                kept,
                place,
                tells=component.envelope is not None,
                is_sent_again=component.acknowledges,
            ),
            self._pump(kept, component, reading, acknowledges=True),
            self._broke,
        )

    def _writer(self, component: Output, index: int) -> Writer:
        place = self.place("outputs", index)
        if isinstance(component, QueuedOutput):
            place.kept_as = kept_as(component, self._config.outputs[:index])
        sink = inner = self._world.environment.sink(component, place)
        if (letters := self._config.letters) is not None and isinstance(sink, AwaitingSink):
            sink = BisectingSink(sink, letters.most_in_a_row)
        if isinstance(sink, AwaitingSink) and isinstance(inner, GatheringSink):
            storage, earlier = self._world.storage, None
            if component.leaves_parts and storage.has_folder and storage.refusal is None:
                earlier = EarlierBatches(storage, place)
            made: Writer = GatheringWriter(sink, place, inner, earlier)  # waits and keeps by itself
        elif (retry := component.retrying()) is None:
            made = writer(sink, place)
        else:
            outage = place.bridging(retry.seconds, "written to again")
            made = RetryingWriter(sink, place, outage)
            if isinstance(component, QueuedOutput) and (queueing := component.queueing) is not None:
                size = queueing.max_bytes
                kept = KeptQueue(place.storage, place, place.kept_as, "queue", size)
                made = OutputQueue(made, place, kept, queueing, self._broke)
                outage.on_failure = made.failed
        if component.wanted:
            made.select(place.selecting(component.wanted), self._broke)
        return made


def pump_over(
    source: Source,
    component: Input,
    place: ComponentContext,
    parts: Registrations,
    world: World,
    broke: Callable[[Exception], None],
    *,
    acknowledges: bool,
    recorder: InputRecorder | None = None,
) -> Pump:
    """Return what reads ``source`` as an input is to be read, its envelope included.

    ``received_at`` is when a message arrived here: an input buffer behind this does not change it, nor does
    a restart where it was kept.
    """
    enclose: Enclose | None = None
    if component.envelope is not None:

        def metadata(origin: Any) -> dict[str, Any]:
            about = {"pipeline": place.pipeline, "input": component.kind, **source.describe(origin)}
            if not component.is_durable:
                about["received_at"] = world.clock.timestamp()
            return about

        def skip(why: str, message: JsonValue, about: dict[str, Any]) -> None:
            own = {key: about[key] for key in about if key not in ("pipeline", "input")}
            place.leave_out(why, LostMessages([message], "error"), lambda: own)

        put_on = component.envelope.putting(place.warn_once, skip, is_added=source.merges_metadata)
        enclose = Enclose(metadata, put_on)
    if source.is_raw or (component.envelope is not None and not component.envelope.wraps):
        place.expect_losses("error")
    unpacking = Unpacking(
        source,
        parts.decoding,
        enclose,
        world.clock,
        with_origins=acknowledges,
        leave_out=place.leave_out,
        format=component.payload_format() if source.is_raw else None,
    )
    return Pump(
        source,
        unpacking,
        place,
        world.turns,
        broke,
        acknowledges=acknowledges,
        on_delivery=component.is_durable or component.is_acknowledged_late,
        recorder=recorder,
    )


def _recorder(
    source: Source, component: Input, place: ComponentContext, world: World
) -> InputRecorder | None:
    """Return what hands to captures what comes from outside; what else comes, a replay has by itself."""
    if component.fed_by not in ("server", "posts"):
        return None
    return InputRecorder(
        world.captures,
        place.pipeline,
        place.place,
        source,
        tells=component.envelope is not None,
        is_json=component.payload_format() is None,
    )


def input_buffer(buffer: InputBuffer, ctx: Context) -> Operator:
    """Return the operator that hands on everything held at its size or after its seconds.

    An input that breaks or ends hands on what is held first. What a window gathers is bounded by what its
    source delivers while it is open.
    """
    size, seconds = buffer.limits

    def let_go(held: Holding) -> Iterable[Delivery]:
        # With no seconds at all a batch ends as it begins, and no timer could say so sooner.
        is_full = seconds == 0 or (size is not None and held.count >= size)
        if not is_full or not held.count:
            return ()
        ctx.took(WINDOW if seconds == 0 else SIZE, "buffer")
        return [held.release()]

    def is_over() -> None:
        ctx.took(WINDOW, "buffer")

    return holding(let_go, seconds, ctx, most=size, on_time=is_over)
