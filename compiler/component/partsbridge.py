"""How an output that hands over parts bridges outages: how long it pauses, and that others hear of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class PartsBridge(Protocol):
    """What is done about outages of an output with `retry` that tries its parts again by itself."""

    retries: int
    """How often something was tried again."""

    def begin(self, cause: Exception, delay: Callable[[], float]) -> float:
        """Return how long it is until the next try of what nothing is taken of now, having told of it.

        ``delay`` returns it where time heals it: where somebody has to act it is longer. Units: seconds.

        Raises:
            Exception: the cause, where the outage has lasted too long.
        """

    def over(self) -> None:
        """Note that something was taken."""

    def set_aside(self, part: object, cause: Exception) -> float:
        """Note that somebody has to act for one part, and others go on.

        Return how long it is until that is tried again. Units: seconds.
        """

    def ended(self, part: object) -> None:
        """Note that a part is handed over, or given up."""
