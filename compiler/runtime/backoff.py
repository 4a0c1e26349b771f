"""How long to wait before the next try: one rule for every input and output (contract 8.4)."""

from __future__ import annotations

from random import Random

DELAYS = (0.25, 0.5, 1.0, *[2.0] * 8, 4.0, 8.0, 16.0, 30.0)
"""Seconds; the last one stays. Doubled each time, but for the first twenty seconds no longer than two: a
restart of the other side takes that long, and the pipeline is to go on within three of its return."""
JITTER = 0.2
"""Share of a delay by which it is varied either way, so that many clients do not come back at once."""

CHANCE = Random()
"""By which delays are varied, unless something else is wanted."""

LASTING_SECONDS = 1.0
"""What worked for less than this did not work: two who cut each other off would else never tire of it."""


class Backoff:
    """Growing delays, until something works."""

    __slots__ = ("_random", "_tries")

    def __init__(self, random: Random = CHANCE) -> None:
        self._random = random
        self._tries = 0

    def next(self) -> float:
        """Return the seconds to wait now; the one after is longer, up to the last."""
        delay = DELAYS[min(self._tries, len(DELAYS) - 1)]
        self._tries += 1
        return delay * self._random.uniform(1 - JITTER, 1 + JITTER)

    def reset(self) -> None:
        """Start over: something worked."""
        self._tries = 0

    def ended(self, seconds: float) -> bool:
        """Start over if something worked for a while, now that it is over; return whether it did."""
        if is_lasting := seconds >= LASTING_SECONDS:
            self.reset()
        return is_lasting
