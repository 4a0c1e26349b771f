"""Doubles of what a component is handed, and what a config object that is refused says."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, TypeVar, cast

from marshmallow import ValidationError

from headrace.compiler.buckets import Bucket
from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import (
    AwaitingStep,
    FailedMessages,
    Ingress,
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
from headrace.compiler.component.retry import RetryOptions
from headrace.compiler.component.states import PipelineState, no_state, undeclared_bucket
from headrace.compiler.config.connectionsfile import connection_fault
from headrace.compiler.datadir import DataDir
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.edges import Source
from headrace.compiler.errors import BuildRefused, FailureClass, class_of
from headrace.compiler.jsontext import Decoding
from headrace.compiler.lowering.lifting import awaiting, divided, pausing, per_batch
from headrace.compiler.lowering.lines import Pacing, SliceShare
from headrace.compiler.runtime.failureinbox import FailureInbox
from headrace.compiler.runtime.monitoring.links import Link
from headrace.compiler.runtime.partsoutage import PartsOutage
from headrace.compiler.schema.records import Record, faults_of
from headrace.compiler.schema.redaction import Redaction
from headrace.compiler.schema.secrets import Secret, Secrets
from headrace.compiler.text.diagnostics import path_text

_C = TypeVar("_C", bound=Connection)
_R = TypeVar("_R")


class TickingClock(Clock):
    """A clock that is a millisecond further at each look: so whoever takes turns has a short one."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self._looks = 0
        self.monotonic = self._look

    def _look(self) -> float:
        self._looks += 1
        return self._looks / 1000


class StubContext:
    """A `Context` made of what a test hands in; keeps what the component says.

    The clock is that of the running loop, so it is virtual in a test that is. References are
    looked up in ``secrets`` alone, never in the environment.
    """

    def __init__(
        self,
        *,
        pipeline: str = "p1",
        place: str = "outputs[0]",
        clock: Clock | None = None,
        data_dir: Path | None = None,
        connections: Mapping[str, Connection] | None = None,
        secrets: Mapping[str, str] | None = None,
        upstreams: Mapping[str, Source] | None = None,
        state: PipelineState | None = None,
        buckets: Mapping[str, Bucket] | None = None,
        base: Path | None = None,
        decoding: Decoding | None = None,
        parts: PartsKeep | None = None,
        most_refused: int | None = None,
    ) -> None:
        self.pipeline, self.place, self.index = pipeline, place, 0
        self.data_dir = None if data_dir is None else DataDir(data_dir)
        self.state, self.base = state, base
        self.stage: Stage = "output"
        self.random = Random(1)
        self.exchange = None
        self.decoding = decoding or Decoding()
        self._buckets = buckets or {}
        self._clock = clock
        self._connections = connections or {}
        self._secrets = Secrets(secrets or {}, {})
        self._upstreams = upstreams or {}
        self._parts = parts
        self.most_refused = most_refused
        self.letters_of: list[Batch] = []
        """The batches that became dead letters, where there may be some."""
        self.waited_for: list[FailureClass | None] = []
        """What the component has told that it waits for; None: nothing any more."""
        self.called: list[str] = []
        """Why somebody has to act."""
        self._redaction = Redaction()
        self.warnings: list[str] = []
        self.failures: list[str] = []
        self.classes: list[FailureClass] = []
        """Of the failures, in the same order; those of messages that are left out alone have none."""
        self.notes: list[str] = []
        self.lost: Counter[str] = Counter()
        self.claims: list[str] = []
        self.taken: list[tuple[str, tuple[str | int, ...]]] = []
        self.files: list[str] = []
        self.released = 0
        self.letters = None
        self.skipped = 0
        self.ingress: Ingress | None = None
        self.holding: list[Callable[[], int]] = []
        self.releases: list[Release | None] = []
        self.link = Link()
        self.comes_again = False
        self.closing: list[Callable[[], Awaitable[None]]] = []

    @cached_property
    def clock(self) -> Clock:
        """The clock handed in, or one over the running loop."""
        return self._clock or Clock(asyncio.get_running_loop())

    @cached_property
    def pacing(self) -> Pacing:
        """How large batches take turns. Without a loop nobody sends one."""
        with suppress(RuntimeError):
            return Pacing(self.clock, SliceShare())
        return Pacing(cast(Clock, None), SliceShare())

    def bucket(self, name: str | None = None) -> Bucket:
        if name is None:
            if self.state is None:
                raise BuildRefused(no_state(f"'{self.place}'"))
            name = self.state.bucket
        if name not in self._buckets:
            raise BuildRefused(undeclared_bucket(name, self._buckets))
        return self._buckets[name]

    def connection(self, kind: type[_C], name: str) -> _C:
        found = self._connections.get(name)
        if isinstance(found, kind):
            return found
        fault = connection_fault(name, kind.kind, self._connections)
        assert fault is not None
        raise BuildRefused(fault)

    def reads(self, file: str) -> None:
        self.files.append(file)

    def read(self, reading: Reading[_R]) -> _R:
        self.files += reading.files
        return reading.made(self.base or Path())

    def resolve(self, secret: Secret) -> str:
        value = self._secrets.resolve(secret)
        self._redaction.learn(secret.template, value, self._secrets.lookup)
        return value

    def hide(self, value: str) -> None:
        self._redaction.hide(value)

    def redact(self, text: str) -> str:
        return self._redaction(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def warn_once(self, text: str) -> None:
        if not self.has_warned(text):
            self.warnings.append(text)

    def skip(self, text: str) -> None:
        self.skipped += 1
        self.warn_once(text)

    def expect_losses(self, reason: str) -> None:
        """Count nothing before it is lost."""

    def drop(self, text: str, count: int) -> None:
        """Count what is dropped as skipped, and as lost."""
        self.skipped += count
        self.lost[text] += count
        self.warn_once(text)

    def took(self, branch: str, *path: str | int) -> None:
        self.taken.append((branch, path))

    def when_kept(self, action: Callable[[], None]) -> None:
        action()

    def has_warned(self, text: str) -> bool:
        return text in self.warnings

    def fail(self, message: str, failure: FailureClass = "invalid") -> None:
        self.failures.append(message)
        self.classes.append(failure)

    def report(self, cause: BaseException, lost: Sequence[JsonValue] = ()) -> None:
        """Keep what the component raised among its failures."""
        self.fail(str(cause) or type(cause).__name__, class_of(cause))
        if lost and self.most_refused is not None:
            self.letters_of.append([*lost])

    def bridge_parts(self, seconds: float | None) -> PartsBridge:
        """Return what bridges outages, and tells this of them."""
        self.outage = PartsOutage(self, seconds)
        return self.outage

    def waits(self, failure: FailureClass, why: str) -> None:
        self.waited_for.append(failure)

    def goes_on(self) -> None:
        self.waited_for.append(None)

    def needs_somebody(self, why: str) -> None:
        self.called.append(why)

    def lose(self, failed: FailedMessages) -> None:
        """Keep what is told among its failures, and how many messages it has cost."""
        for said, (_, messages) in failed.items():
            self.lost[said] += len(messages)
            self.failures.append(said)

    def lose_count(
        self, message: str, count: int, failure: FailureClass, reason: str = "stopped"
    ) -> None:
        """Keep what is told among its failures, and how many messages it has cost."""
        self.lost[message] += count
        self.fail(message, failure)

    def lift(self, step: Step, paced: PacedStep | None = None) -> Operator:
        return per_batch(step, self.report, self.pacing, paced)

    def in_parts(self, operator: Operator) -> Operator:
        return divided(operator, self.report, self.pacing)

    def lift_awaiting(self, step: AwaitingStep, retry: RetryOptions | None = None) -> Operator:
        self.retry = retry
        return awaiting(step, self.report)

    def lift_pausing(self, step: PausingStep) -> Operator:
        return pausing(step, self.report, self.pacing)

    def admit(self, ingress: Ingress) -> None:
        self.ingress = ingress

    def parts_keep(self, max_bytes: int | None = None) -> PartsKeep | None:
        return self._parts

    def attach(
        self, upstream: str, wanted: Sequence[Condition] = (), *, on_delivery: bool = False
    ) -> Source:
        return self._upstreams[upstream]

    def hear(self, wanted: WantedFailures) -> Source:
        """Return an inbox that nobody puts anything in."""

        def left_out(count: int) -> None:
            self.skipped += count

        return FailureInbox(wanted, left_out, lambda _: None)

    def holds(
        self, count: Callable[[], int], release: Release | None, most: int | None = None
    ) -> None:
        self.holding.append(count)
        self.releases.append(release)

    def release(self) -> int:
        self.released += 1
        return 0

    def let_go(self) -> None:
        """Have what is held on purpose go, where it may."""
        for each in self.releases:
            if each is not None:
                each()

    def held(self) -> int:
        return sum(count() for count in self.holding)

    def claim(self, key: str) -> None:
        self.claims.append(key)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def report_lost(
        self, cause: BaseException, seconds: float | None = None, lost: Sequence[JsonValue] = ()
    ) -> None:
        """Keep what the component raised because the other side is not there."""
        self.report(cause)
        self.link.lost(self.failures[-1])
        if seconds is not None:
            self.retries_in(seconds)

    def retries_in(self, seconds: float) -> None:
        self.link.retries(self.clock.millis() + round(seconds * 1000))

    def disconnected(
        self, message: str, seconds: float | None = None, failure: FailureClass = "unavailable"
    ) -> None:
        self.fail(message, failure)
        self.link.lost(message)

    def reconnected(self, text: str) -> None:
        self.note(text)
        self.link.connected()

    def on_finish(self, action: Callable[[], Awaitable[None]]) -> None:
        self.closing.append(action)

    async def finish(self) -> None:
        """Do what the component wanted done at the end of its pipeline."""
        for action in self.closing:
            await action()


def refusals(record: type[Record], document: dict[str, Any]) -> list[str]:
    """Return why a config object is refused, as ``path: message``; empty when it loads."""
    try:
        record.load(document)
    except ValidationError as error:
        return [f"{path_text(fault.path)}: {fault.message}" for fault in faults_of(error)]
    return []
