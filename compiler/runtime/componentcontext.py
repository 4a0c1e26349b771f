"""One component's view of the runtime while it is built, and afterwards when it has to speak.

The protocol it fulfils is `headrace.compiler.component.buildcontext.Context`; its docstrings say what each
part means.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.compiler.buckets import Bucket
from headrace.compiler.component.branches import SKIPPED
from headrace.compiler.component.buildcontext import (
    AwaitingStep,
    FailedMessages,
    Ingress,
    KeepBounds,
    KeptSource,
    Operator,
    PacedStep,
    PausingStep,
    Reading,
    Release,
    Step,
    WantedFailures,
)
from headrace.compiler.component.conditions import Condition
from headrace.compiler.component.families import Connection, Stage
from headrace.compiler.component.partsbridge import PartsBridge
from headrace.compiler.component.partskeep import PartsKeep
from headrace.compiler.component.pipelineconfig import LIST_OF
from headrace.compiler.component.retry import RetryOptions
from headrace.compiler.component.selection import Selection
from headrace.compiler.component.states import no_state
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Source
from headrace.compiler.errors import (
    BuildRefused,
    FailureClass,
    Stopped,
    class_of,
    is_foreseen,
    worded,
)
from headrace.compiler.formats import PayloadFormat
from headrace.compiler.httpexchange import ExchangeWith, ServerExchange
from headrace.compiler.lowering.lifting import awaiting, divided, pausing, per_batch
from headrace.compiler.lowering.lines import Pacing, SliceShare
from headrace.compiler.runtime.borrowed import EVERY_BYTE
from headrace.compiler.runtime.capturing.recorder import recorded
from headrace.compiler.runtime.deadletters import DeadLetters
from headrace.compiler.runtime.dependencies import read_now
from headrace.compiler.runtime.failedparts import FailedPlace
from headrace.compiler.runtime.failureinbox import FailureInbox
from headrace.compiler.runtime.keptbuckets import StoredFirst
from headrace.compiler.runtime.monitoring.failures import About, Failures, cut
from headrace.compiler.runtime.monitoring.links import Link
from headrace.compiler.runtime.monitoring.losses import (
    LossReason,
    LostData,
    LostMessages,
    lost_with,
)
from headrace.compiler.runtime.monitoring.namedevents import GoingOnEvent, WaitingEvent
from headrace.compiler.runtime.outage import OutageBridge, awaited_again
from headrace.compiler.runtime.outputparts import KeptParts
from headrace.compiler.runtime.partsoutage import PartsOutage
from headrace.compiler.runtime.registrations import Hold, Registrations
from headrace.compiler.runtime.selecting import Select, Selecting
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.storedbatches import StoredBatches
from headrace.compiler.runtime.wayin import FormattedWayIn, WayIn
from headrace.compiler.runtime.world import World
from headrace.compiler.schema.redaction import Redaction
from headrace.compiler.schema.secrets import Secret
from headrace.compiler.text.diagnostics import Fault

if TYPE_CHECKING:
    from headrace.compiler.runtime.keptqueue import KeptLent
    from headrace.compiler.store.group import Group

log = logging.getLogger("headrace.pipeline")

_C = TypeVar("_C", bound=Connection)
_R = TypeVar("_R")

NOTHING: Batch = []
"""No messages: nothing is lost by most failures of inputs."""
MOST_SAID = 100
"""Different texts that one component warns of once: some tell a place in what somebody sent."""


class ComponentContext:
    """Where one component stands: a `Context`, and the taker of what it raises."""

    def __init__(
        self, world: World, parts: Registrations, failures: Failures, stage: Stage, index: int
    ) -> None:
        self._world = world
        self._parts = parts
        self._failures = failures
        self.stage: Stage = stage
        self._redaction = Redaction()
        self._said: set[str] = set()
        self._claimed: list[str] = []
        self.pipeline = parts.pipeline
        self.index = index
        self.place = f"{LIST_OF[stage]}[{index}]"
        self.clock = world.clock
        self.random = world.environment.random
        self.data_dir = world.data_dir
        self.base = world.base
        self.state = parts.state
        self.decoding = parts.decoding
        self.pacing = Pacing(world.clock, parts.slices)
        self.kept_as = ""
        """What is kept for it is kept as: what tells it from other outputs of its pipeline."""
        self.link = Link()
        """Whether the other side is there, of an input or an output."""

    @property
    def exchange(self) -> ExchangeWith | None:
        # Made for who asks: most components ask no server, and a thousand idle ones have none of it.
        world = self._world
        exchange = world.environment.exchange(self.pipeline, self.place)
        if not world.environment.is_real:
            return exchange
        inner = exchange or partial(ServerExchange, world.clock)
        return recorded(world.captures, self.pipeline, self.place, inner)

    def bucket(self, name: str | None = None) -> Bucket:
        if name is None:
            if self.state is None:
                raise BuildRefused(no_state(f"'{self.place}'"))
            name = self.state.bucket
        found = self._world.buckets.get(name)
        assert found is not None  # as `missing` has seen
        self._parts.dependencies.buckets[name] = found
        return found

    def connection(self, kind: type[_C], name: str) -> _C:
        found = self._world.connections[name]
        assert isinstance(found, kind)  # as `missing` has seen
        self._parts.dependencies.connections[name] = found
        return found

    def reads(self, file: str) -> None:
        self._parts.dependencies.read(file, (self.base or Path()) / file)

    def read(self, reading: Reading[_R]) -> _R:
        base = self.base or Path()
        read = self._world.readings.get(reading) or read_now(reading, base)
        self._parts.dependencies.files.update(read.files)
        if read.refused is not None:
            raise BuildRefused(read.refused)
        made: _R = read.made
        return made

    def resolve(self, secret: Secret) -> str:
        secrets = self._world.secrets
        value = secrets.resolve(secret, self._parts.hidden)
        self._redaction.learn(secret.template, value, secrets.lookup)
        return value

    def hide(self, value: str) -> None:
        self._redaction.hide(value)
        self._parts.hidden.hide(value)  # for tracebacks, and what libraries log

    def redact(self, text: str) -> str:
        return self._redaction(text)

    def warn(self, text: str) -> None:
        self._world.environment.warned(self.pipeline, self.place, self._told(text))

    def note(self, text: str) -> None:
        self._world.environment.noted(self.pipeline, self.place, self._told(text))

    def _told(self, text: str) -> str:
        """Return what the log is told: cut, or who may post would decide how long it is."""
        return cut(self.redact(text))  # in this order, or half a secret could be left

    def warn_once(self, text: str) -> None:
        if text not in self._said and len(self._said) < MOST_SAID:
            self._said.add(text)
            self.warn(text)

    def skip(self, text: str) -> None:
        self._parts.counters.skipped += 1
        self.warn_once(text)

    def drop(self, text: str, count: int) -> None:
        self._parts.counters.skipped += count
        self._failures.losses.add(self.stage, self.index, "dropped", count)
        self.warn_once(text)

    def expect_losses(self, reason: LossReason) -> None:
        """Have what the component loses counted from nothing on."""
        self._failures.losses.expect(self.stage, self.index, reason)

    def leave_out(self, why: str, lost: LostData | None, about: About | None = None) -> None:
        """Skip what the input cannot read or hand on, and tell those who read failures.

        ``about`` returns what is told of where it came from.
        """
        self.skip(why)
        self._failures.left_out(self.redact(why), self.index, lost, about)

    def when_kept(self, action: Callable[[], None]) -> None:
        """Do something when what failed until now is on the disk, where it is kept: at once, mostly."""
        letters = self._parts.letters
        if letters is None:
            action()
        else:
            letters.keeping.when_kept(action)

    def keep_entry(self, why: str, entry: bytes, messages: int) -> Group | None:
        """Put down as a dead letter a stored entry that has ended the process again and again.

        Return what it is committed with; None: it is not, and is counted as lost.
        """
        self.fail(why)
        group = None
        if (letters := self._parts.letters) is not None:
            group = letters.keep_entry(FailedPlace(self.stage, self.index), why, entry, messages)
        if group is None:
            self._failures.losses.add(self.stage, self.index, "error", messages)
        return group

    @property
    def letters(self) -> DeadLetters | None:
        """What keeps what cannot be done; None: it is lost."""
        return self._parts.letters

    @property
    def most_refused(self) -> int | None:
        return None if self.letters is None else self.letters.most_in_a_row

    @property
    def stored_first(self) -> StoredFirst | None:
        """What waits for the disk, where its pipeline remembers in a durable bucket."""
        return self._parts.stored_first

    def has_warned(self, text: str) -> bool:
        return text in self._said

    def took(self, branch: str, *path: str | int) -> None:
        self._world.environment.took(self.pipeline, self.place, branch, path)

    def fail(self, message: str, failure: FailureClass = "invalid") -> None:
        if self.stage == "input":
            self._failures.report("input", None, self.redact(message), self.index, failure=failure)
        else:
            self._failures.report(self.stage, self.index, self.redact(message), failure=failure)

    def report(self, cause: BaseException, lost: Batch = NOTHING) -> None:
        """Count what the component raised; a fault of ours is logged with its traceback.

        ``lost`` is the batch that failed by it: what is not done of it is lost.
        """
        self._trace(cause)
        if lost and isinstance(cause, Stopped) and self.comes_again:
            return
        if lost:
            self._count_lost(worded(cause), class_of(cause), lost_with(cause, lost, self.redact))
        else:
            self.fail(worded(cause), class_of(cause))

    def report_unread(self, size: int) -> None:
        """Count a batch that an input has accepted and that nobody will read."""
        cause = Stopped("stopped before everything that was accepted went through", "unavailable")
        self.lose_count(worded(cause), size, cause.failure)

    def _count_lost(self, said: str, failure: FailureClass, lost: LostMessages) -> None:
        self._failures.report(self.stage, self.index, self.redact(said), lost=lost, failure=failure)

    def _trace(self, cause: BaseException) -> None:
        if not is_foreseen(cause):
            log.debug("pipeline '%s' %s", self.pipeline, self.place, exc_info=cause)

    def lose(self, failed: FailedMessages) -> None:
        batch = object()
        for said, (cause, messages) in failed.items():
            self._trace(cause)
            self._count_lost(said, class_of(cause), LostMessages(messages, "error", batch))
        self.took(SKIPPED)

    def lose_count(
        self, message: str, count: int, failure: FailureClass, reason: LossReason = "stopped"
    ) -> None:
        self.fail(message, failure)
        self._failures.losses.add(self.stage, self.index, reason, count)

    def report_lost(
        self, cause: BaseException, seconds: float | None = None, lost: Batch = NOTHING
    ) -> None:
        """Count what the component raised because the other side is not there."""
        self.report(cause, lost)
        self._note_lost(worded(cause), seconds)

    def disconnected(
        self, message: str, seconds: float | None = None, failure: FailureClass = "unavailable"
    ) -> None:
        self.fail(message, failure)
        self._note_lost(message, seconds)

    def _note_lost(self, message: str, seconds: float | None) -> None:
        self.link.lost(self._on_one_line(message))
        if seconds is not None:
            self.retries_in(seconds)

    def bridging(self, seconds: float | None, back: str) -> OutageBridge:
        """Return what bridges the outages of the component; see `OutageBridge`."""
        outage = OutageBridge(self, seconds, back)
        self._parts.outages.append(outage)
        return outage

    def bridge_parts(self, seconds: float | None) -> PartsBridge:
        outage = PartsOutage(self, seconds)
        self._parts.outages.append(outage)
        return outage

    def waits(self, failure: FailureClass, why: str) -> None:
        """Tell that the component waits, and for what."""
        said, at = self._on_one_line(why), self.clock.millis()
        self._parts.tell(WaitingEvent(self.pipeline, self.stage, self.index, failure, said, at))

    def needs_somebody(self, why: str) -> None:
        """Tell, as an error, that the component waits until somebody acts."""
        said = self._on_one_line(why)
        self._world.environment.needs_somebody(self.pipeline, self.place, said)

    def _on_one_line(self, text: str) -> str:
        return cut(" ".join(self.redact(text).split()))

    def goes_on(self) -> None:
        """Tell that it waits no longer."""
        self._parts.tell(GoingOnEvent(self.pipeline, self.stage, self.index, self.clock.millis()))

    def retries_in(self, seconds: float) -> None:
        """Tell when the other side is tried again."""
        self.link.retries(self.clock.millis() + round(seconds * 1000))

    def reconnected(self, text: str) -> None:
        self.note(text)
        self.link.connected()

    def lift(self, step: Step, paced: PacedStep | None = None) -> Operator:
        return per_batch(step, self.report, self.pacing, paced)

    def in_parts(self, operator: Operator) -> Operator:
        return divided(operator, self.report, self.pacing)

    def lift_awaiting(self, step: AwaitingStep, retry: RetryOptions | None = None) -> Operator:
        self._parts.awaits = True
        if retry is not None:
            step = awaited_again(step, self.bridging(retry.seconds, "answered again"))
        return awaiting(step, self.report, self.pacing.slices)

    def lift_pausing(self, step: PausingStep) -> Operator:
        return pausing(step, self.report, self.pacing)

    def admit(self, ingress: Ingress) -> None:
        large, format = self._world.large_posts, ingress.format
        self._parts.way_in = (
            WayIn(self.pipeline, ingress, large, self.clock)
            if format is None
            else FormattedWayIn(self.pipeline, ingress, large, format, self.clock)
        )

    @property
    def storage(self) -> Storage:
        """The store of the engine.

        Raises:
            BuildRefused: nothing can be kept here.
        """
        storage = self._world.storage
        if fault := storage.fault("durable" if self.stage == "input" else "queue"):
            raise BuildRefused(fault)
        return storage

    def keeps(self, lent: KeptLent[Any]) -> None:
        """Take note of what is kept on the disk for the component."""
        self._parts.kept.append(lent)

    def keep(self, target: str, bounds: KeepBounds, format: PayloadFormat | None) -> KeptSource:
        return StoredBatches(self.storage, self, target, bounds, format)

    def parts_keep(self, max_bytes: int | None = None) -> PartsKeep | None:
        storage = self._world.storage
        if not storage.has_folder:
            return None
        if storage.refusal is not None:
            raise BuildRefused(Fault("turned-away", storage.refusal))
        return KeptParts(
            storage, self, self.kept_as, EVERY_BYTE if max_bytes is None else max_bytes
        )

    @property
    def comes_again(self) -> bool:
        """Whether what its pipeline has no time left for comes again."""
        return self._parts.comes_again

    @property
    def is_deleted(self) -> bool:
        """Whether its pipeline ends as it is deleted or exchanged."""
        return self._parts.is_deleted

    @property
    def is_withdrawn(self) -> bool:
        """Whether its pipeline was refused, or given up before it ran."""
        return self._parts.is_withdrawn

    @property
    def is_disposed(self) -> bool:
        """Whether its pipeline ends as somebody has deleted it."""
        return self._parts.is_disposed

    def attach(
        self, upstream: str, wanted: Sequence[Condition] = (), *, on_delivery: bool = False
    ) -> Source:
        select = self.selecting(wanted) if wanted else None
        return self._world.attach(upstream, select, self if on_delivery else None)

    def selecting(self, wanted: Sequence[Condition]) -> Select:
        """Return what makes the way to the component, on which conditions are looked at."""
        own = copy(self)
        own.pacing = Pacing(self.clock, SliceShare(self._world.slices))
        operators = self._world.environment.select(Selection(when=tuple(wanted)), own)
        return partial(Selecting, operators, own.pacing.slices)

    def hear(self, wanted: WantedFailures) -> Source:
        def left_out(count: int) -> None:
            self._parts.counters.skipped += count
            self.warn_once("left out failures: more came than may wait, or be of one batch")

        inbox = FailureInbox(wanted, left_out, self._world.failure_readers.leave)
        self._world.listen(inbox)
        return inbox

    def holds(
        self, count: Callable[[], int], release: Release | None, most: int | None = None
    ) -> None:
        self._parts.holding.append(Hold(count, release, self.stage, self.index, most))

    def release(self) -> int:
        released = 0
        for each in reversed(self._parts.holding):  # a chain is subscribed from its end
            if each.release is not None and (count := each.count()):
                released += count
                each.release()
        return released + self._world.owing.release(self.pipeline)

    def held(self) -> int:
        return self._parts.held + self._world.owing.held(self.pipeline)

    def claim(self, key: str) -> None:
        called = f"'{self.pipeline}' {self.place}"
        self._parts.closing.append(self._world.claims.take(key, self._parts, called))
        self._claimed.append(key)

    @property
    def is_taken_over(self) -> bool:
        """Whether another pipeline is going to have what this component claimed."""
        claims = self._world.claims
        return any(claims.is_taken_over(key, self._parts) for key in self._claimed)

    def on_finish(self, action: Callable[[], Awaitable[None]]) -> None:
        self._parts.closing.append(action)
