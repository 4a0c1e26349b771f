"""One pipeline: brought up, subscribed, ended.

Its end comes from its inputs (the last one is gone: `failed`) or from outside (`stop`). Either way
completion runs through the chain, so what is held is released through the rest of it; the writers
drain; and every output is finished once. Its brokers are let go of when those have written it who read it
and have it wait for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from hashlib import blake2b

from reactivex.abc import DisposableBase
from reactivex.disposable import CompositeDisposable, Disposable

from headrace.compiler.component.families import Stage
from headrace.compiler.component.pipelineconfig import LIST_OF, PipelineConfig
from headrace.compiler.errors import FailureClass
from headrace.compiler.jsontext import encode
from headrace.compiler.lowering.chainends import Outlet, leaving
from headrace.compiler.lowering.lines import SliceShare
from headrace.compiler.runtime.building import Builder
from headrace.compiler.runtime.built import BuiltComponents
from headrace.compiler.runtime.configdigest import digest_of
from headrace.compiler.runtime.deadletters import DeadLetters
from headrace.compiler.runtime.failedparts import targets_of
from headrace.compiler.runtime.lifecycle import Lifecycle, Phase, Status
from headrace.compiler.runtime.monitoring.failures import Failures
from headrace.compiler.runtime.monitoring.feed import Feed
from headrace.compiler.runtime.monitoring.losses import LostData, reason_of
from headrace.compiler.runtime.monitoring.pipelinehistory import History, Life
from headrace.compiler.runtime.monitoring.watch import Watch
from headrace.compiler.runtime.opening import Opening, RefusedComponent
from headrace.compiler.runtime.world import World
from headrace.compiler.schema.redaction import Hidden
from headrace.compiler.text.diagnostics import Diagnostic

log = logging.getLogger("headrace.pipeline")

LAST_SECONDS = 1.0
"""What the outputs and brokers together get to finish after the grace is over."""
CLOSING_SECONDS = 2.5
"""What each thing gets that a component has done at the end, such as to close a client."""
FORGET_SECONDS = 0.5
"""What a broker gets to drop what it keeps for a deleted pipeline."""


class Pipeline:
    """A pipeline of the running graph; the observers of ``downstream`` take what it hands on as well."""

    def __init__(
        self,
        id: str,
        config: PipelineConfig,
        world: World,
        feed: Feed,
        history: History,
        downstream: Outlet,
    ) -> None:
        self.id = id
        self.config = config
        self.started_at = world.clock.millis()
        """When it was made, and began to count. Units: milliseconds since 1970."""
        self.lost = 0
        """Messages that outputs had not written when its time to end was over, one for each output."""
        hidden = Hidden(world.secrets.redact)
        self.parts = BuiltComponents(
            id, config.state, slices=SliceShare(world.slices), hidden=hidden
        )
        self.parts.tell = feed.publish_named
        self.counters = self.parts.counters
        self.clock = world.clock
        self._world = world
        self._feed = feed
        self._history = history
        self._downstream = downstream
        self._recorded: Life | None = None
        self.watch = Watch(id, feed, self.counters)
        self.outlet = Outlet()
        """What hands on what leaves the transforms."""
        self.ending: list[Callable[[], None]] = []
        """Called as soon as it begins to end."""
        self.failures = Failures(
            id,
            world.clock,
            self._failed,
            history.signatures(),
            is_logged=world.environment.is_told,
            hear=self._hear,
        )
        if config.letters is not None:
            self.parts.letters = letters = DeadLetters(
                id,
                config.letters,
                world.storage,
                world.clock,
                self.failures.losses,
                self.warned,
                feed.publish_named,
            )
            self.failures.keep = letters.take
        self._lifecycle = Lifecycle()
        self._opening = Opening(self.parts, world.clock, world.environment.random)
        self._refusals: list[RefusedComponent] = []
        self._bringing_up: asyncio.Task[None] | None = None
        self._subscription: DisposableBase = Disposable()
        self._finishing: asyncio.Task[None] | None = None
        self._is_drained, self._is_finished = asyncio.Event(), asyncio.Event()
        self._text: tuple[PipelineConfig, bytes] | None = None

    @property
    def status(self) -> Status:
        """What others are told of how it is."""
        return self._lifecycle.status

    @property
    def is_settled(self) -> bool:
        """Whether it is there to stay: one that is being created may still be refused."""
        return self._lifecycle.phase is not Phase.NEW

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, and has let go of its brokers."""
        return self._is_finished.is_set()

    @property
    def in_flight(self) -> int:
        """Batches on their way."""
        return sum(reader.window.used for reader in self.parts.readers)

    def text(self) -> bytes:
        """Return its id and config as JSON, secrets as templates. Encoded once: no config changes."""
        if self._text is None or self._text[0] is not self.config:
            dumped = {"id": self.id, "config": self.config.dump(self.id)}
            self._text = self.config, encode(dumped)
        return self._text[1]

    @property
    def version(self) -> str:
        """What tells its config from any other that has run, or will run, under its id."""
        return blake2b(self.text(), digest_size=12).hexdigest()

    @property
    def digest(self) -> str:
        """Its version, and what tells in which of its settings another one differs."""
        return digest_of(self.version, self.config.dump(self.id))

    def build(self) -> list[Diagnostic]:
        """Make every component; return why it is refused, or nothing."""
        return Builder(
            self.config, self.parts, self._world, self.failures, self._broke, self.watch
        ).build()

    async def open(self, seconds: float, *, is_awaited: bool = False) -> list[Diagnostic]:
        """Connect the inputs and start the sinks, within ``seconds``; return the refusals (`Opening`)."""
        if self._lifecycle.phase is not Phase.NEW:
            return []
        self._refusals = await self._opening.open(seconds, is_awaited=is_awaited)
        return [
            self.config.diagnose(cause.fault, (LIST_OF[stage], index))
            for stage, index, cause in self._refusals
        ]

    def run(self) -> None:
        """Subscribe now, or as soon as every sink has answered; be `failed` if `open` was told no.

        Nothing of that when it was stopped meanwhile.
        """
        if self._lifecycle.is_over:
            return
        self._recorded = self._history.begin(self.id, self.counters, self.failures)
        if self._refusals:
            self._turned_down(self._refusals)
        elif self._opening.is_complete:
            self._subscribe()
        else:
            self._lifecycle.start()
            self._bringing_up = asyncio.ensure_future(self._bring_up())

    async def _bring_up(self) -> None:
        if refused := await self._opening.bring_up():
            self._turned_down(refused)
        else:
            self._subscribe()

    def _turned_down(self, refused: list[RefusedComponent]) -> None:
        """The other side says no, too late to refuse anything: there are the failures to tell."""
        for stage, index, cause in refused:
            opened = self.parts.readers if stage == "input" else self.parts.writers
            opened[index].turned_down(cause)
        self._discard()
        self._fail()

    def _subscribe(self) -> None:
        self._lifecycle.run()
        if self.parts.letters is not None:
            self.parts.letters.begin(self.digest, targets_of(self.config))
        self.watch.lasts = self.parts.lasts
        self._feed.join(self.watch)
        assert self.parts.chain is not None  # a pipeline that was refused never runs
        outlet = self.outlet
        self._subscription = CompositeDisposable(
            *(outlet.subscribe(writer.entrance()) for writer in self.parts.writers),
            outlet.include(self._downstream),
            self.parts.chain.subscribe(
                leaving(outlet, self.counters, self.watch),
                self._broke,
                self._completed,
                scheduler=self._world.clock.scheduler,
            ),
        )

    def _broke(self, cause: Exception) -> None:
        """An operator raised or ended the stream: a fault of ours, so it is logged whole."""
        log.error("pipeline '%s' broke", self.id, exc_info=cause)
        self._report(cause)
        self._subscription.dispose()
        if not self._lifecycle.is_over:
            self._fail()

    def _failed(
        self, stage: Stage, component: int | None, message: str, input_index: int | None
    ) -> None:
        self.watch.failed(stage, component, message, input_index)
        index = input_index if component is None else component
        self._world.environment.failed(self.id, stage, index, message)

    def _hear(
        self,
        stage: Stage,
        component: int | None,
        message: str,
        failure_class: FailureClass,
        input_index: int | None,
        lost: LostData | None,
    ) -> None:
        """Tell those of it who read failures."""
        readers = self._world.failure_readers
        if not readers:
            return
        index = input_index if component is None else component
        parts = getattr(self.config, LIST_OF[stage])
        failure = {
            "pipeline_id": self.id,
            "stage": stage,
            "component": component,
            "input_index": input_index,
            "kind": None if index is None else parts[index].kind,
            "error": message,
            "class": failure_class,
            "reason": reason_of(lost),
            "at_fault": None if lost is None else isinstance(lost, bytes) or None,
            "at": self.clock.timestamp(),
        }
        readers.tell(self.id, stage, failure, lost)

    def warned(self, text: str) -> None:
        """Tell of what became of dead letters."""
        self._world.environment.warned(self.id, "dead_letters", text)

    def _report(self, cause: Exception) -> None:
        said = self._world.secrets.redact(f"{type(cause).__name__}: {cause}")
        self.failures.report("transform", None, said)

    def _completed(self) -> None:
        if self._lifecycle.phase is Phase.STOPPING:
            self._lifecycle.end()
            self._finish()
        else:
            self.failures.report("input", None, "the last input ended", failure="misconfigured")
            self._fail()

    def _fail(self) -> None:
        self._lifecycle.fail()
        way_in = self.parts.way_in
        self._finish()
        if way_in is not None:
            self.parts.way_in = way_in.failed()

    def _finish(self) -> None:
        self._begin_to_end()
        self.parts.way_in = None  # nobody reads what would be posted
        self._finishing = asyncio.ensure_future(self._drain_and_close())

    async def _drain_and_close(self) -> None:
        for each in self.parts.writers:
            await each.drain()
        await self._kept()
        if self._world.owing.owes(self.id):
            self._is_drained.set()
            await self._world.owing.written(self.id)
        await self._close()
        self.parts.hidden.let_go()  # not before: a sink may still fail as it finishes
        self._end_of_all()

    async def _kept(self) -> None:
        """Wait until dead letters, and what was remembered, are on the disk."""
        if self.parts.letters is not None:
            await self.parts.letters.keeping.drained()
        if self.parts.stored_first is not None:
            await self.parts.stored_first.drained()

    def _end_of_all(self) -> None:
        self._is_drained.set()
        self._is_finished.set()

    async def _close(self) -> None:
        self._subscription.dispose()
        try:
            await self._finish_and_disconnect()
            if self.parts.is_deleted:
                await self._forget()
        finally:  # also where an output hangs: others wait for what is given back here
            await self._let_go()

    async def _finish_and_disconnect(self) -> None:
        """Finish the outputs, then let go of the brokers, where those may have to tell them something."""
        finishing = [asyncio.ensure_future(each.finish()) for each in self.parts.writers]
        late = [
            task
            for task, each in zip(finishing, self.parts.writers, strict=True)
            if each.settles_late
        ]

        async def disconnect() -> None:
            try:
                if late:
                    await asyncio.wait(late)
                    await self._kept()  # what is told only then, they are to hear
            finally:  # also where the time is over
                await self._opening.disconnect()

        await asyncio.gather(*finishing, disconnect())

    async def _let_go(self) -> None:
        """Give back what its components have, and have others hear no more of it."""
        closing = self.parts.closing
        # Some have themselves done once more, should it be closed again.
        for _ in range(len(closing)):
            action = closing.pop(0)
            try:
                async with self._world.clock.timeout(CLOSING_SECONDS):
                    await action()
            except Exception as cause:
                self._report(cause)
        for outage in self.parts.outages:
            outage.close()
        if self.parts.letters is not None:
            self.parts.letters.close()
        self.failures.settle()
        self._feed.drop(self.watch)

    async def _forget(self) -> None:
        """Have brokers keep nothing for the inputs. What they were sent is not asked for any more."""
        try:
            async with self._world.clock.timeout(FORGET_SECONDS):
                await asyncio.gather(*(reader.forget() for reader in self.parts.readers))
        except Exception as cause:
            why = self._world.secrets.redact(str(cause)) or "it does not answer"
            log.warning("pipeline '%s': a broker may keep what it had for it: %s", self.id, why)

    async def stop(
        self, seconds: float, *, is_deleted: bool = False, is_disposed: bool = False
    ) -> None:
        """End politely, within ``seconds``; then end whatever still hangs.

        Inputs stop reading, what was taken goes through, held messages are released, outputs drain and
        finish. What is not out by then is lost and counted. Where readers have it wait until they have
        written what it handed on, `let_go` is what ends it. ``is_deleted``: it will not come back, so
        brokers need keep nothing for it; ``is_disposed``: because somebody has deleted it.
        """
        self.parts.is_deleted, self.parts.is_disposed = is_deleted or is_disposed, is_disposed
        try:
            if self._is_finished.is_set():
                await self._close()
            elif self._lifecycle.phase in (Phase.NEW, Phase.STARTING):
                await self._abort()
            else:
                await self._stop(seconds)
        finally:
            if self._is_finished.is_set():
                self.parts.hidden.let_go()
            if self._recorded is not None:
                self._history.end(self._recorded)

    async def let_go(self, seconds: float) -> None:
        """After `stop`: end when those have written it who read it, within ``seconds``."""
        for most in (seconds, LAST_SECONDS):
            try:
                async with self.clock.timeout(most):
                    await self._is_finished.wait()
                return
            except TimeoutError:
                if self._world.owing.owes(self.id):
                    break
        await self._force()
        self.parts.hidden.let_go()

    async def _abort(self) -> None:
        """End before anything ran: sinks that came up are finished, inputs were never read."""
        self._lifecycle.end()
        if self._bringing_up is not None:
            self._bringing_up.cancel()
        await self._opening.cancel()
        self._discard()
        await self._close()
        self._end_of_all()

    def _begin_to_end(self) -> None:
        ending, self.ending = self.ending, []
        for each in ending:
            each()

    async def _stop(self, seconds: float) -> None:
        self._begin_to_end()
        if self._lifecycle.phase is Phase.RUNNING:
            self._lifecycle.stop()
            for reader in self.parts.readers:
                reader.stop()
        for outage in self.parts.outages:
            outage.hurry()
        try:
            async with self._world.clock.timeout(seconds):
                await self._is_drained.wait()
        except TimeoutError:
            await self._force()

    async def _force(self) -> None:
        """Take what is still on its way for lost: the time is over."""
        abandoned = self.parts.slices.abandon()
        self._subscription.dispose()
        if self._finishing is not None:
            self._finishing.cancel()
        abandoned += sum(each.abandon() for each in self.parts.writers)
        if self.parts.letters is not None:
            abandoned += self.parts.letters.keeping.abandon(
                comes_again=self.parts.comes_again,
                queued={id(batch) for each in self.parts.writers for batch in each.queued()},
            )
        if self.parts.stored_first is not None:
            self.parts.stored_first.abandon()
        if not self.parts.comes_again:
            self.lost += abandoned
        if self._lifecycle.phase is Phase.STOPPING:
            self._lifecycle.end()
        try:
            async with self._world.clock.timeout(LAST_SECONDS):
                await self._close()
        except TimeoutError:
            log.warning("pipeline '%s': an output did not finish in time", self.id)
        finally:
            self._end_of_all()

    def _discard(self) -> None:
        for reader in self.parts.readers:
            reader.discard()
