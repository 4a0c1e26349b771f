"""Engines with a store, as far as the web asks for it: they tell what they are given and write nothing."""

from __future__ import annotations

from msgspec.structs import replace

from headrace.compiler.clock import Clock
from headrace.compiler.errors import StoredInUse, UnknownStored
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.monitoring.storedfigures import StoredPart, StoreFigures
from headrace.compiler.store.storeerrors import StoreFailed

AT = 1_770_000_000_000
"""When the oldest came. Units: milliseconds since 1970."""
PARTS = (
    StoredPart(
        1, "press-line", "http", "journal", 3, 120, AT, "open", False, aside=2, aside_bytes=30
    ),
    StoredPart(2, "alarms", "http", "journal", 0, 0, None, "full", left_over=False),
    StoredPart(
        3, "press-line", "http", "journal", 2, 50, AT + 1000, "open", left_over=True, ended=True
    ),
)
FIGURES = StoreFigures("open", 10_000, 4, 5, 1.5, 6, PARTS)


class Storing(Engine):
    """An engine with a store of which all that is not left over is in use."""

    def __init__(self, clock: Clock, figures: StoreFigures = FIGURES) -> None:
        super().__init__(clock)
        self.figures = figures
        self.asked: list[int] = []
        """What was to be discarded."""

    async def stored(self) -> StoreFigures:
        return self.figures

    async def discard_stored(self, id: int) -> None:
        self.asked.append(id)
        parts = {each.id: each for each in self.figures.parts}
        if id not in parts:
            raise UnknownStored(id)
        if not parts[id].left_over:
            raise StoredInUse(id, parts[id].pipeline)
        del parts[id]
        self.figures = replace(self.figures, parts=[*parts.values()])

    async def discard_aside(self, id: int) -> None:
        parts = {each.id: each for each in self.figures.parts}
        if id not in parts or not parts[id].aside:
            raise UnknownStored(id, is_aside=True)
        parts[id] = replace(parts[id], aside=0, aside_bytes=0)
        self.figures = replace(self.figures, parts=[*parts.values()])


class NotWriting(Storing):
    """One that cannot write."""

    async def discard_stored(self, id: int) -> None:
        raise StoreFailed("it cannot be written: disk I/O error")

    async def discard_aside(self, id: int) -> None:
        raise StoreFailed("it cannot be written: disk I/O error")
