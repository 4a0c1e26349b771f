"""An outage: from the first failure that is worth another try until something works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Protocol

from headrace.compiler.clock import Clock
from headrace.compiler.component.buildcontext import AwaitingStep
from headrace.compiler.component.families import Stage
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, FailureClass, class_of, worded
from headrace.compiler.runtime.backoff import DELAYS, JITTER, Backoff

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

    def needs_somebody(self, why: str) -> None:
        """Tell, as an error, that it waits until somebody acts."""

    def goes_on(self) -> None:
        """Tell that it waits no longer."""


def is_worth_it(cause: Exception) -> bool:
    """Return whether another try may succeed with the same content."""
    return class_of(cause) != "invalid"


def is_answered(cause: Exception) -> bool:
    """Return whether the other side has answered, so that it is there, whatever it says."""
    return isinstance(cause, BatchFailed) and cause.is_answered


class OutageBridge:
    """The outages of one component: how long it pauses in one, and what is told of it."""

    def __init__(self, place: OutagePlace, seconds: float | None, back: str) -> None:
        """Take for how long an outage is bridged, None: for ever; and what is logged when it is over."""
        self.place, self._clock, self._seconds, self._back = place, place.clock, seconds, back
        self._backoff = Backoff(place.random)
        self._since: float | None = None
        """When it began that time would heal, without a word in between."""
        self.is_on = False
        """Whether something has failed, and nothing has worked since."""
        self._is_lost = self._is_ending = self._has_called = False
        self._hurried = asyncio.Event()
        self.waits_for: FailureClass | None = None
        """The class of the failure that it waits for the end of; None: it does not wait."""
        self.on_failure: Callable[[Exception], object] | None = None
        """Told of each failure that another try is waited for after."""
        self.retries = 0
        """How often something was tried again."""

    async def pause(self, cause: Exception, *, is_brief: bool = False) -> None:
        """Wait until it is time for the next try, having told of the failure.

        ``is_brief``: as after a first failure, however many there were.

        Raises:
            Exception: the cause, where it is no outage, or one that has lasted too long.
        """
        if not is_worth_it(cause):
            self.refused(cause)
            raise cause
        pause = self.begin(cause, self._brief if is_brief else self._backoff.next)
        with suppress(TimeoutError):
            async with self._clock.timeout(pause):
                await self._hurried.wait()
        self._hurried.clear()
        self.retries += 1

    def begin(self, cause: Exception, delay: Callable[[], float]) -> float:
        """Return how long it is until the next try, having told of the failure.

        ``delay`` returns it where time heals it: where somebody has to act it is longer.

        Raises:
            Exception: the cause, where the outage has lasted too long.
        """
        self.is_on = True
        failure = class_of(cause)
        pause = self._acting() if failure == "misconfigured" else self._backing_off(delay)
        if pause is None:
            self._tell(None, "")
            raise cause
        if self._is_ending:
            pause = min(pause, ENDING_SECONDS)
        self._is_lost = True
        if self.on_failure is not None:
            self.on_failure(cause)
        self.place.report_lost(cause, pause)
        self._tell(failure, worded(cause))
        return pause

    def worked(self) -> None:
        """Note that something worked, though there is more to be tried again."""
        self._since = None
        self._backoff.reset()

    def over(self) -> None:
        """Note that something worked, and that nothing waits any more."""
        if not self.is_on:
            return  # as for almost every batch
        self.is_on = False
        self.worked()
        self._has_called = False
        if self._is_lost:
            self._is_lost = False
            self.place.reconnected(self._back)
            self._tell(None, "")

    def refused(self, cause: Exception) -> None:
        """Note a failure that is no outage: where the other side has answered, there is none."""
        if is_answered(cause):
            self.over()

    def hurry(self) -> None:
        """Try now, and pause no longer than a moment from now on: the pipeline ends."""
        self._is_ending = True
        self._hurried.set()

    def close(self) -> None:
        """Wait no longer: the pipeline is over."""
        self._tell(None, "")

    def _acting(self) -> float:
        """Return the pause where somebody has to act, however long that takes."""
        self._since = None
        return self._acting_seconds()

    def _acting_seconds(self) -> float:
        return ACTS_SECONDS * self.place.random.uniform(1 - JITTER, 1 + JITTER)

    @staticmethod
    def _brief() -> float:
        return DELAYS[0]

    def _backing_off(self, delay: Callable[[], float]) -> float | None:
        """Return the pause where time heals it; None: it has had the time that it is given."""
        now = self._clock.monotonic()
        since = self._since = now if self._since is None else self._since
        pause = delay()
        if self._seconds is None:
            return pause
        left = since + self._seconds - now
        return None if left <= 0 else min(pause, left)

    def _tell(self, failure: FailureClass | None, why: str) -> None:
        """Tell that it waits, once for each class, or no longer."""
        if failure == self.waits_for:
            return
        self.waits_for = failure
        if failure is None:
            self.place.goes_on()
            return
        self.place.waits(failure, why)
        if failure == "misconfigured" and not self._has_called:
            self._has_called = True
            self.place.needs_somebody(why)


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
