"""How long to wait before the next try: one rule for every input and output (contract 8.4)."""

from __future__ import annotations

import random

FIRST, CAP, JITTER = 0.25, 30.0, 0.2
"""Seconds, seconds, share of the delay by which it is varied either way."""


class Backoff:
    """Doubling delays, varied so that many clients do not come back at once."""

    __slots__ = ("_delay",)

    def __init__(self) -> None:
        self._delay = FIRST

    def next(self) -> float:
        """Return the seconds to wait now; the one after is twice as long, up to the cap."""
        delay = self._delay
        self._delay = min(delay * 2, CAP)
        return delay * random.uniform(1 - JITTER, 1 + JITTER)

    def reset(self) -> None:
        """Start over: something worked."""
        self._delay = FIRST
