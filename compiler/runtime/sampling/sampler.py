"""The samples of an engine: a few at a time, and each is closed whatever became of who asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from headrace.compiler.component.families import Input
from headrace.compiler.edges import Source
from headrace.compiler.errors import HeadraceError
from headrace.compiler.runtime.componentcontext import World
from headrace.compiler.runtime.sampling.taking import MOST_BYTES, Sample, Taking, Unbuilt, Unread

AT_ONCE = 8
"""How many are under way, those that are being closed included."""
CLOSE_SECONDS = 2.0
"""How long an answer waits until all is closed; what is not goes on closing."""

log = logging.getLogger("headrace.pipeline")


class TooManySamples(HeadraceError):
    """So many are under way that one more would be one too many."""

    def __init__(self) -> None:
        super().__init__(f"{AT_ONCE} samples are being taken already: try again later")


class Samples:
    """Takes samples of inputs as long as the engine lives."""

    def __init__(self, world: World, attach: Callable[[str], Source]) -> None:
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
