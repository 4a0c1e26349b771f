"""An outage: from the first failure that is worth another try until something works."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Protocol

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import AwaitingStep
from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import FailureClass, class_of, worded
from headrace.compiler.runtime.backoff import JITTER, Backoff

ACTS_SECONDS = 30.0
"""How long between two tries where somebody has to act."""
ENDING_SECONDS = 0.5
"""The longest pause once the pipeline ends: it has few seconds left."""


class OutagePlace(Protocol):
    """Where the component stands that has the outage."""

    stage: Stage
    index: int
    clock: Clock
    random: Random

    def report_lost(self, cause: BaseException, seconds: float | None = None) -> None:
        """Count that the other side is not there."""

    def reconnected(self, text: str) -> None:
        """Log that it is there again."""

    def waits(self, failure: FailureClass, why: str) -> None:
        """Tell that it waits, and for what."""

    def goes_on(self) -> None:
        """Tell that it waits no longer."""


def is_worth_it(cause: Exception) -> bool:
    """Return whether another try may succeed with the same content."""
    return class_of(cause) != "invalid"


class OutageBridge:
    """The outages of one component: how long it pauses in one, and what is told of it."""

    def __init__(self, place: OutagePlace, seconds: float | None, back: str) -> None:
        """Take for how long an outage is bridged, None: for ever; and what is logged when it is over."""
        self.place, self._clock, self._seconds, self._back = place, place.clock, seconds, back
        self._backoff = Backoff(place.random)
        self._since: float | None = None
        self._is_ending = False
        self._hurried = asyncio.Event()
        self.waits_for: FailureClass | None = None
        """The class of the failure that it waits for the end of; None: it does not wait."""
        self.retries = 0
        """How often something was tried again."""

    async def pause(self, cause: Exception) -> None:
        """Wait until it is time for the next try, having told of the failure.

        Raises:
            Exception: the cause, where it is no outage, or one that has lasted too long.
        """
        if not is_worth_it(cause):
            raise cause
        now, failure = self._clock.monotonic(), class_of(cause)
        since = self._since = now if self._since is None else self._since
        if failure == "misconfigured":
            pause = ACTS_SECONDS * self.place.random.uniform(1 - JITTER, 1 + JITTER)
        else:
            pause = self._backoff.next()
            if self._seconds is not None:
                if now - since >= self._seconds:
                    self._tell(None, "")
                    raise cause
                pause = min(pause, since + self._seconds - now)
        if self._is_ending:
            pause = min(pause, ENDING_SECONDS)
        self.place.report_lost(cause, pause)
        self._tell(failure, worded(cause))
        with suppress(TimeoutError):
            async with self._clock.timeout(pause):
                await self._hurried.wait()
        self._hurried.clear()
        self.retries += 1

    def over(self) -> None:
        """Note that something worked."""
        if self._since is not None:
            self._since = None
            self._backoff.reset()
            if self.waits_for is not None:
                self.place.reconnected(self._back)
                self._tell(None, "")

    def hurry(self) -> None:
        """Try now, and pause no longer than a moment from now on: the pipeline ends."""
        self._is_ending = True
        self._hurried.set()

    def _tell(self, failure: FailureClass | None, why: str) -> None:
        """Tell that it waits, once for each class, or no longer."""
        if failure == self.waits_for:
            return
        self.waits_for = failure
        if failure is None:
            self.place.goes_on()
        else:
            self.place.waits(failure, why)


def awaited_again(step: AwaitingStep, outage: OutageBridge) -> AwaitingStep:
    """Return a step that is awaited again for as long as there is an outage."""

    async def again(batch: Batch) -> list[Batch]:
        while True:
            try:
                made = await step(batch)
            except Exception as cause:
                await outage.pause(cause)
            else:
                outage.over()
                return made

    return again
