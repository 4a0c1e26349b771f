"""Bringing a pipeline up: its inputs connect and its sinks start, before anything is read."""

from __future__ import annotations

import asyncio
from random import Random

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Stage
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.backoff import Backoff
from headrace.compiler.runtime.built import BuiltComponents

RefusedComponent = tuple[Stage, int, BuildRefused]
"""Which component was turned down, and why."""


class Opening:
    """Opens the components of one pipeline. Who does not answer is no refusal: an input is tried for ever,
    a sink by `bring_up`."""

    def __init__(self, parts: BuiltComponents, clock: Clock, random: Random) -> None:
        self._parts = parts
        self._clock, self._random = clock, random
        self._task: asyncio.Task[list[RefusedComponent]] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every sink is up."""
        return all(each.is_started for each in self._parts.writers)

    async def open(self, seconds: float, *, is_awaited: bool) -> list[RefusedComponent]:
        """Connect the inputs and start the sinks, within ``seconds``; return who was turned down.

        ``is_awaited``: somebody waits for the outcome, so sinks are tried as long as there is time. It
        ends early, without refusals, when it is cancelled meanwhile.
        """
        self._task = asyncio.ensure_future(self._open(seconds, is_awaited=is_awaited))
        try:
            await asyncio.wait([self._task])
        finally:
            await self.cancel()
        return [] if self._task.cancelled() else self._task.result()

    async def bring_up(self) -> list[RefusedComponent]:
        """Start the sinks that are not up until they are, or one is turned down; return which."""
        backoff = Backoff(self._random)
        while not self.is_complete:
            pause = backoff.next()
            self._tell_pause(pause)
            await self._clock.sleep(pause)
            if refused := await self._start_sinks():
                return refused
        return []

    async def cancel(self) -> None:
        """Have nothing opened any more."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def disconnect(self) -> None:
        """Let go of the brokers of all inputs."""
        await asyncio.gather(*(reader.finish() for reader in self._parts.readers))

    async def _open(self, seconds: float, *, is_awaited: bool) -> list[RefusedComponent]:
        connecting, starting = await asyncio.gather(
            self._connect(seconds), self._start(seconds, is_awaited=is_awaited)
        )
        if not self.is_complete:  # nobody would read what arrives
            await self.disconnect()
        return [*connecting, *starting]

    async def _connect(self, seconds: float) -> list[RefusedComponent]:
        tasks = [asyncio.ensure_future(reader.open()) for reader in self._parts.readers]
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

    async def _start(self, seconds: float, *, is_awaited: bool) -> list[RefusedComponent]:
        clock, backoff = self._clock, Backoff(self._random)
        ends = clock.monotonic() + seconds
        refused = await self._start_sinks(seconds)
        while is_awaited and not (refused or self.is_complete):
            pause = backoff.next()
            if clock.monotonic() + pause >= ends:
                break
            self._tell_pause(pause)
            await clock.sleep(pause)
            refused = await self._start_sinks(ends - clock.monotonic())
        return refused

    async def _start_sinks(self, seconds: float | None = None) -> list[RefusedComponent]:
        waiting = {
            asyncio.ensure_future(each.start()): (index, each)
            for index, each in enumerate(self._parts.writers)
            if not each.is_started
        }
        if not waiting:
            return []
        try:
            done, _ = await asyncio.wait(waiting, timeout=seconds)
        finally:
            for task in waiting:
                task.cancel()
        refused: list[RefusedComponent] = []
        for task, (index, writer) in waiting.items():
            cause = task.exception() if task in done else None
            if isinstance(cause, BuildRefused):
                refused.append(("output", index, cause))
            elif cause is not None:
                writer.place.report_lost(cause)
        return refused

    def _tell_pause(self, seconds: float) -> None:
        """Tell of the sinks that are not up when they are started again."""
        for each in self._parts.writers:
            if not each.is_started:
                each.place.retries_in(seconds)
