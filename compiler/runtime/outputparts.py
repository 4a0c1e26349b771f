"""The parts of an output, in the store of its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.compiler.component.partskeep import KeptPart, PartsKeep, TellKept
from headrace.compiler.runtime.keptqueue import AGAIN_SECONDS, KeptShelf
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.shelf import Shelf

NOT_OPEN = "what was kept before is not taken over yet"


class KeptParts(PartsKeep):
    """A shelf of the store, by the pipeline and what its output writes to."""

    def __init__(
        self, storage: Storage, place: ComponentContext, target: str, max_bytes: int
    ) -> None:
        """Take where it is kept, and how much of it may be."""
        self._place = place
        self._kept = KeptShelf(storage, place, target, "parts", max_bytes)
        self._shelf: Shelf | None = None
        self.why = NOT_OPEN

    async def open(self, most: int) -> list[KeptPart]:
        while True:
            self._shelf = (await self._kept.open(self._is_not_open)).journal
            try:
                listed = await self._shelf.listed(most)
            except StoreFailed as cause:
                self._is_not_open(str(cause))
                await self._place.clock.sleep(AGAIN_SECONDS)
            else:
                self.why = ""
                return [KeptPart(*each) for each in listed]

    def _is_not_open(self, why: str) -> None:
        self.why = why
        self._place.warn_once(f"nothing can be kept in the store: {why}")

    def has_room_for(self, size: int) -> bool:
        return self._shelf is not None and self._shelf.has_room_for(size)

    def put(self, part: bytes, tell: TellKept) -> None:
        def ended(number: int, cause: StoreFailed | None) -> None:
            if cause is None:
                tell(number, "")
            else:
                tell(None, str(cause))

        borrowed = self._kept.borrowed
        if self._shelf is None or borrowed is None:
            tell(None, self.why or NOT_OPEN)
            return
        try:
            self._shelf.put(part, ended)
        except StoreFailed as cause:
            borrowed.turned_down = len(part) if isinstance(cause, StoreFull) else None
            tell(None, str(cause))
        else:
            borrowed.turned_down = None

    async def read(self, number: int) -> bytes | None:
        assert self._shelf is not None  # it has told the number
        try:
            return await self._shelf.read(number)
        except StoreFailed:  # it is closed: the part comes again
            return None

    def let_go(self, number: int) -> None:
        if self._shelf is not None:
            self._shelf.let_go(number)
