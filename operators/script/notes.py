"""What a script may write to the log: so many lines a minute, and the others are counted.

Who posts messages decides how often a script runs, and so how often it prints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.compiler.clock import Clock

MOST_NOTES = 200
"""Lines of one script within `SECONDS`. More than a run or the loading of modules may print by itself
(the engine's bound), so that nothing is left out while there is no loop yet."""
SECONDS = 60


class ScriptLog:
    """The lines of one script; ``tell`` is given the number of those that were left out, a time at once."""

    def __init__(self, clock: Clock, tell: Callable[[int], None]) -> None:
        self._clock, self._tell = clock, tell
        self._began = -float("inf")
        self._written = self._left_out = 0
        self._telling: asyncio.TimerHandle | None = None

    def admits(self) -> bool:
        """Whether one more line is written."""
        now = self._clock.monotonic()
        if now >= self._began + SECONDS:
            self._began, self._written = now, 0
        if self._written < MOST_NOTES:
            self._written += 1
            return True
        self._left_out += 1
        if self._telling is None:
            self._telling = self._clock.call_later(self._began + SECONDS - now, self._told)
        return False

    def _told(self) -> None:
        left_out, self._left_out, self._telling = self._left_out, 0, None
        self._tell(left_out)
