"""What may have ended the process, of one queue: it is handed out alone, or of many a hundred together.

One alone may be under way for as long as a window of a buffer, so of ten thousand the last would wait for
hours. A hundred that have ended the process together are handed out alone after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING

from headrace.compiler.store.storedrows import ALONE_FROM, SET_ASIDE_FROM

if TYPE_CHECKING:
    from headrace.compiler.store.journal import StoredEntry

FEW = 8
"""Where no more follow each other, each is handed out alone."""
TOGETHER = 100
"""Where more do, so many are handed out together first."""


class Suspects:
    """What of one queue is ready to be handed out and may have ended the process."""

    def __init__(self) -> None:
        self.count = 0
        """How many there are."""
        self.left = 0
        """How many of them are still to be handed out together with one that is."""
        self._ended_together: set[int] = set()
        """The numbers of those that have ended the process together with others."""

    def add(self, numbers: Collection[int], *, ended_together: bool) -> None:
        """Have some more be among them, which come last."""
        self.count += len(numbers)
        if ended_together:
            self._ended_together.update(numbers)

    def choose(self, ready: deque[StoredEntry]) -> list[int]:
        """Return the numbers of those that are under way together next; the first that is ready is one."""
        chosen: list[int] = []
        for entry in islice(ready, TOGETHER):
            is_one = ALONE_FROM <= entry.deaths < SET_ASIDE_FROM
            if not is_one or entry.number in self._ended_together:
                break
            chosen.append(entry.number)
        return chosen if len(chosen) > FEW else [ready[0].number]

    def take(self, ready: deque[StoredEntry], most: int) -> list[StoredEntry]:
        """Take some of those that are under way together from what is ready."""
        taken = [ready.popleft() for _ in range(min(most, self.left))]
        self.left -= len(taken)
        self.count -= len(taken)
        self._ended_together.difference_update([each.number for each in taken])
        return taken
