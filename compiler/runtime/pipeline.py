"""One pipeline: brought up, subscribed, ended.

Its end comes from its inputs (the last one is gone: `failed`) or from outside (`stop`). Either way
completion runs through the chain, so what is held is released through the rest of it; the writers
drain; and every output is finished once.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Literal

from reactivex.abc import DisposableBase
from reactivex.disposable import CompositeDisposable

from headrace.compiler.errors import BuildRefused
from headrace.compiler.jsontext import encode
from headrace.compiler.language.config import PipelineConfig
from headrace.compiler.language.diagnostics import Diagnostic
from headrace.compiler.language.redaction import Hidden
from headrace.compiler.lowering.lines import Slices
from headrace.compiler.lowering.merging import leaving
from headrace.compiler.lowering.outlet import Outlet
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.building import Builder
from headrace.compiler.runtime.context import World
from headrace.compiler.runtime.failures import Failures
from headrace.compiler.runtime.feed import Feed
from headrace.compiler.runtime.history import History, Life
from headrace.compiler.runtime.parts import Parts
from headrace.compiler.runtime.signatures import Stage
from headrace.compiler.runtime.watch import Watch

log = logging.getLogger("headrace.pipeline")

Status = Literal["starting", "running", "stopped", "failed"]
Refusal = tuple[Stage, int, BuildRefused]
"""Which component could not be opened, and why."""

LAST_SECONDS = 1.0
"""What the outputs and brokers together get to finish after the grace is over."""
FORGET_SECONDS = 0.5
"""What a broker gets to drop what it keeps for a deleted pipeline."""


class Pipeline:
    """A pipeline of the running graph; the observers of ``readers`` take what it hands on as well."""

    def __init__(
        self,
        id: str,
        config: PipelineConfig,
        world: World,
        feed: Feed,
        history: History,
        readers: Outlet,
    ) -> None:
        self.id = id
        self.config = config
        self.status: Status = "starting"
        hidden = Hidden(world.secrets.redact)
        self.parts = Parts(id, config.state, slices=Slices(world.slices), hidden=hidden)
        self.counters = self.parts.counters
        self._world = world
        self._feed = feed
        self._history = history
        self._life: Life | None = None
        self._watch = Watch(id, feed, self.counters)
        self.failures = Failures(id, world.clock, self._watch.failed, history.signatures())
        self._readers = readers
        self._subscription: DisposableBase | None = None
        self._opening: asyncio.Task[list[Refusal]] | None = None
        self._refusals: list[Refusal] = []
        self._bringing: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._stopping = self._is_deleted = False
        self.is_settled = False
        """Whether it is there to stay: one that is being created may still be refused."""
        self._text: tuple[PipelineConfig, bytes] | None = None
        self.lost = 0
        """Messages that outputs had not written when its time to end was over, one for each output."""

    @property
    def in_flight(self) -> int:
        """Batches on their way."""
        return sum(pump.window.used for pump in self.parts.pumps)

    @property
    def held(self) -> int:
        """Messages held on purpose by buffers."""
        return self.parts.held

    def text(self) -> bytes:
        """Return its id and config as JSON, secrets as templates. Encoded once: no config changes."""
        if self._text is None or self._text[0] is not self.config:
            dumped = {"id": self.id, "config": self.config.dump(self.id)}
            self._text = self.config, encode(dumped)
        return self._text[1]

    def build(self) -> list[Diagnostic]:
        """Make every component; return why it is refused, or nothing."""
        builder = Builder(
            self.config, self.parts, self._world, self.failures, self._broke, self._watch
        )
        builder.build()
        return builder.refused

    async def open(self, seconds: float, *, is_awaited: bool = False) -> list[Diagnostic]:
        """Connect the inputs and start the sinks, within ``seconds``; return the refusals.

        Who does not answer is no refusal: `run` brings a sink up, and an input is tried for ever.
        ``is_awaited``: somebody waits for the outcome, so sinks are tried as long as there is time. It
        ends early, without refusals, when the pipeline is stopped meanwhile.
        """
        if self._stopping:
            return []
        self._opening = asyncio.ensure_future(self._open(seconds, is_awaited=is_awaited))
        try:
            await asyncio.wait([self._opening])
        finally:
            await self._stop_opening()
        self._refusals = [] if self._opening.cancelled() else self._opening.result()
        return [
            self.config.diagnose(cause.fault, (f"{stage}s", index))
            for stage, index, cause in self._refusals
        ]

    async def _stop_opening(self) -> None:
        """Have nothing brought up any more."""
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])

    async def _open(self, seconds: float, *, is_awaited: bool) -> list[Refusal]:
        connecting, starting = await asyncio.gather(
            self._connect(seconds), self._start(seconds, is_awaited=is_awaited)
        )
        if not self._is_up:  # nobody would read what arrives
            await self._disconnect()
        return [*connecting, *starting]

    async def _connect(self, seconds: float) -> list[Refusal]:
        """Have the inputs connect that do; return those that are refused."""
        tasks = [asyncio.ensure_future(pump.open()) for pump in self.parts.pumps]
        if not tasks:
            return []
        try:
            await asyncio.wait(tasks, timeout=seconds)
        finally:
            for task in tasks:
                task.cancel()
            said = await asyncio.gather(*tasks, return_exceptions=True)
        return [
            ("input", index, cause)
            for index, cause in enumerate(said)
            if isinstance(cause, BuildRefused)
        ]

    async def _disconnect(self) -> None:
        await asyncio.gather(*(pump.finish() for pump in self.parts.pumps))

    async def _start(self, seconds: float, *, is_awaited: bool) -> list[Refusal]:
        clock, backoff = self._world.clock, Backoff()
        ends = clock.monotonic() + seconds
        refused = await self._start_sinks(seconds)
        while is_awaited and not (refused or self._is_up or self._stopping):
            pause = backoff.next()
            if clock.monotonic() + pause >= ends:
                break
            await clock.sleep(pause)
            refused = await self._start_sinks(ends - clock.monotonic())
        return refused

    async def _start_sinks(self, seconds: float | None = None) -> list[Refusal]:
        waiting = {
            asyncio.ensure_future(each.start()): (index, each)
            for index, each in enumerate(self.parts.writers)
            if not each.is_started
        }
        if not waiting:
            return []
        try:
            done, _ = await asyncio.wait(waiting, timeout=seconds)
        finally:
            for task in waiting:
                task.cancel()
        refused: list[Refusal] = []
        for task, (index, writer) in waiting.items():
            cause = task.exception() if task in done else None
            if isinstance(cause, BuildRefused):
                refused.append(("output", index, cause))
            elif cause is not None:
                writer.report(cause)
        return refused

    @property
    def _is_up(self) -> bool:
        return all(each.is_started for each in self.parts.writers)

    def run(self) -> None:
        """Subscribe now, or as soon as every sink has answered; not when it was stopped meanwhile."""
        self.is_settled = True
        if self._stopping:
            return
        self._life = self._history.begin(self.id, self.counters, self.failures)
        if not self._is_up:
            self._bringing = asyncio.ensure_future(self._bring_up())
        else:
            self._subscribe()

    async def _bring_up(self) -> None:
        backoff = Backoff()
        while not self._is_up:
            await self._world.clock.sleep(backoff.next())
            if refused := await self._start_sinks():
                self._refuse(refused)
                return
        self._subscribe()

    def give_up(self) -> None:
        """Be `failed` instead of running, because of what `open` was told."""
        self.is_settled = True
        if not self._stopping:
            self._life = self._history.begin(self.id, self.counters, self.failures)
            self._refuse(self._refusals)

    def _refuse(self, refused: list[Refusal]) -> None:
        """The other side says no, too late to refuse anything: there are the failures to tell."""
        for stage, index, cause in refused:
            opened = self.parts.pumps if stage == "input" else self.parts.writers
            opened[index].report(cause)
        self._bringing = None
        self._discard()
        self._end("failed")

    def _subscribe(self) -> None:
        self._bringing = None
        self.status = "running"
        self._watch.lasts = self.parts.lasts
        self._feed.join(self._watch)
        assert self.parts.chain is not None  # a pipeline that was refused never runs
        outlet = Outlet()
        self._subscription = CompositeDisposable(
            *(outlet.subscribe(writer.take) for writer in self.parts.writers),
            outlet.include(self._readers),
            self.parts.chain.subscribe(
                leaving(outlet, self.counters, self._watch),
                self._broke,
                self._completed,
                scheduler=self._world.clock.scheduler,
            ),
        )

    def _broke(self, cause: Exception) -> None:
        """An operator raised or ended the stream: a fault of ours, so it is logged whole."""
        log.error("pipeline '%s' broke", self.id, exc_info=cause)
        said = self._world.secrets.redact(f"{type(cause).__name__}: {cause}")
        self.failures.report("transform", None, said)
        if self._subscription is not None:
            self._subscription.dispose()
        self._end("failed")

    def _completed(self) -> None:
        if not self._stopping:
            self.failures.report("input", None, "the last input ended")
        self._end("stopped" if self._stopping else "failed")

    def _end(self, status: Status) -> None:
        self.status = status
        self.parts.ingress = None  # nobody reads what would be posted
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._finish())

    async def _finish(self) -> None:
        for each in self.parts.writers:
            await each.drain()
        await self._close()
        self.parts.hidden.let_go()  # not before: a sink may still fail as it finishes
        self._over.set()

    async def _close(self) -> None:
        await asyncio.gather(*(each.finish() for each in self.parts.writers), self._disconnect())
        if self._subscription is not None:
            self._subscription.dispose()
        if self._is_deleted:
            await self._forget()
        closing, self.parts.closing = self.parts.closing, []
        for action in closing:
            try:
                await action()
            except Exception as cause:
                said = self._world.secrets.redact(f"{type(cause).__name__}: {cause}")
                self.failures.report("transform", None, said)
        self.failures.settle()
        self._feed.drop(self._watch)

    async def _forget(self) -> None:
        """Have brokers keep nothing for the inputs. What they were sent is not asked for any more."""
        try:
            async with self._world.clock.timeout(FORGET_SECONDS):
                await asyncio.gather(*(pump.forget() for pump in self.parts.pumps))
        except Exception as cause:
            why = self._world.secrets.redact(str(cause)) or "it does not answer"
            log.warning("pipeline '%s': a broker may keep what it had for it: %s", self.id, why)

    async def stop(self, seconds: float, *, is_deleted: bool = False) -> None:
        """End politely, within ``seconds``; then end whatever still hangs.

        Inputs stop reading, what was taken goes through, held messages are released, outputs drain and
        finish. What is not out by then is lost and counted. ``is_deleted``: it will not come back, so
        brokers need keep nothing for it.
        """
        self._stopping, self._is_deleted = True, is_deleted
        try:
            await self._stop(seconds)
        finally:
            self.parts.hidden.let_go()
            if self._life is not None:
                self._history.end(self._life)

    async def _stop(self, seconds: float) -> None:
        if self._over.is_set():
            await self._close()
            return
        if self._subscription is None and self._ending is None:
            await self._abort()
            return
        if self._ending is None:
            self.status = "stopped"
            for pump in self.parts.pumps:
                pump.stop()
        try:
            async with self._world.clock.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            await self._force()

    async def _abort(self) -> None:
        """End before anything ran: sinks that came up are finished, inputs were never read."""
        if self._bringing is not None:
            self._bringing.cancel()
        await self._stop_opening()
        self.status = "stopped"
        self._discard()
        await self._close()

    def _discard(self) -> None:
        for pump in self.parts.pumps:
            pump.discard()

    async def _force(self) -> None:
        self.lost += self.parts.slices.abandon()
        if self._subscription is not None:
            self._subscription.dispose()
        if self._ending is not None:
            self._ending.cancel()
        self.lost += sum(each.abandon() for each in self.parts.writers)
        try:
            async with self._world.clock.timeout(LAST_SECONDS):
                await self._close()
        except TimeoutError:
            log.warning("pipeline '%s': an output did not finish in time", self.id)
