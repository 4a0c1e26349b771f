"""The numbers in the names of parts: no two outputs of this process give the same one to a name.

A store that does not know conditions looks first and puts then, and so do two outputs at a time: who
is second overwrites. So they do not meet.
"""

from __future__ import annotations

import random
from weakref import WeakValueDictionary

from headrace.connectors.parts import number_of, renumbered

MOST_TIMES = 10_000
"""Of how many seconds and places the numbers are remembered, for one bucket."""


FURTHEST = 1_000
"""How far an output goes out of the way of another server at a time."""


class Given:
    """The last number that was given out in each second and place of one bucket."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def next(self, stem: str, least: int) -> int:
        """Give out a number that is new there, and at least so large."""
        number = max(least, self._last.get(stem, 0) + 1)
        self.note(stem, number)
        return number

    def note(self, stem: str, number: int) -> None:
        """Give out no number there that is not larger."""
        self._last[stem] = max(number, self._last.get(stem, 0))
        if len(self._last) > MOST_TIMES:
            del self._last[next(iter(self._last))]


_GIVEN: WeakValueDictionary[tuple[str | None, str], Given] = WeakValueDictionary()


def given_in(endpoint: str | None, bucket: str) -> Given:
    """Return what all outputs to that bucket have in common, as long as there are any."""
    return _GIVEN.setdefault((endpoint, bucket), Given())


class Numbers:
    """The numbers of one output: from 1 on, without those that another one has given out."""

    def __init__(self, given: Given) -> None:
        self._given, self._last = given, 0

    def numbered(self, key: str) -> str:
        """Return the key of a part, whatever its number is, with the next one."""
        self._last = self._given.next(renumbered(key, 0), self._last + 1)
        return renumbered(key, self._last)

    def passed_on(self, key: str) -> str:
        """Return the key of a part whose name another server was faster to take.

        Some way on, where that one does not come soon: side by side, they would meet at every part.
        """
        self._last += random.randrange(FURTHEST)
        return self.numbered(key)

    def note(self, key: str) -> None:
        """Give no part the name of one that an earlier run has left."""
        if (number := number_of(key)) is not None:
            self._given.note(renumbered(key, 0), number)
