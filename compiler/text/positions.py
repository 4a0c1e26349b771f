"""Where the values of a document stand."""

from __future__ import annotations

import bisect
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

_BREAK = re.compile(r"\r\n|\r|\n")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as they are counted here, without their ends."""
    return _BREAK.split(text)


class LineIndex:
    """Turns an offset in a text into a line and a column, both counted from 1, and back.

    Lines are looked for when somebody asks, and no further than that takes: most texts have nothing
    to tell, and one may be nothing but line breaks.
    """

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._starts = array("I", [0])
        self._breaks = _BREAK.finditer(text)

    @property
    def known(self) -> int:
        """How many lines have been looked for."""
        return len(self._starts)

    def at(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character; those of the end for an offset beyond it."""
        offset = min(offset, self._length)
        while self._starts[-1] <= offset and self._has_another():
            pass
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a character; that of the line's last for a column beyond it."""
        while len(self._starts) <= line and self._has_another():
            pass
        if line > len(self._starts):
            return self._length
        ends = self._starts[line] - 1 if line < len(self._starts) else self._length
        return min(self._starts[line - 1] + column - 1, ends)

    def _has_another(self) -> bool:
        """Look for the next line; whether there is one."""
        found = next(self._breaks, None)
        if found is None:
            return False
        self._starts.append(found.end())
        return True


@dataclass(slots=True)
class Position:
    """The offset of a value, that of its key in the object it is in, and what is inside.

    ``spelt`` is where the value is written out, if it stands here under a name only (an alias).
    """

    offset: int
    key: int | None = None
    inside: dict[str, Position] | list[Position] | None = None
    spelt: int | None = None

    def member(self, step: str | int) -> Position | None:
        """Return the place of one member, or nothing if there is no such member."""
        if isinstance(self.inside, dict):
            return self.inside.get(step) if isinstance(step, str) else None
        if self.inside is None or isinstance(step, str):
            return None
        return self.inside[step] if 0 <= step < len(self.inside) else None

    def members(self) -> Iterator[tuple[Position, Position]]:
        """Yield each place inside, also further in, after the one around it; of aliases nothing."""
        waiting = [self]
        while waiting:
            around = waiting.pop()
            inside = around.inside
            if inside is None or around.spelt is not None:
                continue
            members = list(inside.values() if isinstance(inside, dict) else inside)
            yield from ((around, place) for place in members)
            waiting += members

    def scalars(self) -> int:
        """Return how many values that contain no others are inside; none of one that contains none."""
        return sum(place.inside is None for _, place in self.members())
