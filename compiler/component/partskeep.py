"""Where an output keeps parts: what it has gathered and could not hand over yet, each by a number.

They outlast the process, and are there for the next output of its pipeline that writes to the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

TellKept = Callable[[int | None, str], None]
"""Is told the number of a part that is on the disk; None: it is not, and why, in words."""


class KeptPart(NamedTuple):
    """A part that was kept."""

    number: int
    beginning: bytes
    """Its first bytes, as many as were asked for."""
    size: int
    """How many bytes it has in all."""


class PartsKeep(Protocol):
    """A place on the disk for the parts of one output."""

    why: str
    """Why nothing is kept there now, in words; empty: it may be."""

    async def open(self, most: int) -> list[KeptPart]:
        """Return what is kept, in order, each with so many of its first bytes; as soon as that is known.

        The output before may have it yet, or the disk takes its time: nobody should wait for it.
        """

    def has_room_for(self, size: int) -> bool:
        """Return whether so many bytes may be kept beside what is."""

    def put(self, part: bytes, tell: TellKept) -> None:
        """Keep a part; ``tell`` is called once, now or when it is on the disk."""

    async def read(self, number: int) -> bytes | None:
        """Return a part; None: it cannot be read any more."""

    def let_go(self, number: int) -> None:
        """Keep a part no longer. One that nobody lets go of comes again."""
