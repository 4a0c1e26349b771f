"""Turns on the loop: pumps work for a while, and then others do.

A pass through a chain is synchronous, so a busy pump could work on while nobody else on the loop gets
anything done: requests, timers, other pumps. It works for a turn and then gives way. All pumps
together work for about a millisecond, or as long as everybody else did when it was theirs: among many
clients that post, a millisecond would fill the queue of an input that could well keep up.
"""

from __future__ import annotations

import asyncio

from headrace.compiler.clock import Clock

TURN_SECONDS = 0.001
"""What the pumps may work, together, before the others have their turn."""
LONGEST_SECONDS = 0.01
"""What they may at most, however long the others took: nobody waits for longer."""
SHORTEST_SECONDS = 0.0001
"""What each may at least, however many they are: giving way costs some microseconds."""


class Turns:
    """What the pumps of one loop have worked, so that each knows what the others were."""

    __slots__ = ("given", "monotonic", "worked")

    def __init__(self, clock: Clock) -> None:
        self.monotonic = clock.monotonic
        self.worked = 0.0
        self.given = 0


class Turn:
    """One pump's turn. Over when the clock has passed ``ends``."""

    __slots__ = ("_began", "_turns", "ends")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._began = self.ends = 0.0

    def begin(self) -> None:
        """Begin one after a wait: whoever waited has let others work."""
        self._began = self._turns.monotonic()
        self.ends = self._began + TURN_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether it is time to give way."""
        return self._turns.monotonic() > self.ends

    async def give_way(self) -> None:
        """Give everybody else a turn, and begin one that is as long as theirs."""
        turns = self._turns
        left = turns.monotonic()
        turns.worked += left - self._began
        turns.given += 1
        worked, given = turns.worked, turns.given
        await asyncio.sleep(0)
        self._began = turns.monotonic()
        pumps = turns.given - given + 1
        others = self._began - left - (turns.worked - worked)
        share = min(max(others, TURN_SECONDS), LONGEST_SECONDS) / pumps
        self.ends = self._began + max(share, SHORTEST_SECONDS)
