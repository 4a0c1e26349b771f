"""A place for the parts of an output that outlasts its runs, as long as the test."""

from __future__ import annotations

import math

from headrace.compiler.component.partskeep import KeptPart, PartsKeep, TellKept


class PartsInMemory(PartsKeep):
    """Keeps parts until they are let go of.

    A disk that is `full` says so, ``most`` bytes are its room, and what is `damaged` is gone once read.
    """

    def __init__(self, most: float = math.inf) -> None:
        self.why, self.full, self.most = "", "", most
        self.parts: dict[int, bytes] = {}
        self.damaged: set[int] = set()
        self._next = 0

    @property
    def used(self) -> int:
        """How many bytes there are."""
        return sum(map(len, self.parts.values()))

    async def open(self, most: int) -> list[KeptPart]:
        return [KeptPart(number, each[:most], len(each)) for number, each in self.parts.items()]

    def has_room_for(self, size: int) -> bool:
        return self.used + size <= self.most

    def put(self, part: bytes, tell: TellKept) -> None:
        if self.full:
            tell(None, self.full)
            return
        number = self._next
        self._next += 1
        self.parts[number] = bytes(part)
        tell(number, "")

    async def read(self, number: int) -> bytes | None:
        if number in self.damaged:
            del self.parts[number]
        return self.parts.get(number)

    def let_go(self, number: int) -> None:
        del self.parts[number]
