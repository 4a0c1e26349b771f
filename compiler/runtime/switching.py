"""How soon a thread gives the interpreter up to the event loop, while anything computes beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_SECONDS = 0.0001
"""How soon, while there are such threads. With Python's 5 ms each of the few times that a request wakes
the server costs it so much. Shorter than what a thread works until it lets go for a moment by itself:
only who has waited for so long is sure to be next."""


class Switching:
    """Counts what computes beside the loop. To be told on the loop."""

    def __init__(self) -> None:
        self._running = 0
        self._usual = sys.getswitchinterval()

    def begin(self) -> None:
        """Have threads change more often from now on."""
        if not self._running:
            self._usual = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_SECONDS)
        self._running += 1

    def end(self) -> None:
        """Have them change as usual again, unless something else computes."""
        self._running -= 1
        if not self._running:
            sys.setswitchinterval(self._usual)

    @contextmanager
    def often(self) -> Iterator[None]:
        """Have threads change more often for as long as the block lasts."""
        self.begin()
        try:
            yield
        finally:
            self.end()


SWITCHING = Switching()
"""The one there is: so is the interpreter."""
