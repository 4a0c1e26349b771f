"""A queue of the store as one component of one run has it: borrowed as it opens, given back at its end."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic

from headrace.compiler.runtime.borrowed import Borrowed, Q, QueueName
from headrace.compiler.runtime.monitoring.storedfigures import StoredPartKind
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.store.storeerrors import StoreFailed

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.journal import Journal
    from headrace.compiler.store.shelf import Shelf

AGAIN_SECONDS = 1.0
"""How often a store is tried that cannot be read."""


class KeptLent(Generic[Q]):
    """Something of the store, by the pipeline and what its component reads or writes to."""

    def __init__(
        self,
        storage: Storage,
        place: ComponentContext,
        target: str,
        kind: StoredPartKind,
        max_bytes: int,
    ) -> None:
        """Take where it is kept, and how much of it may be."""
        self.storage, self._place = storage, place
        self.name: QueueName = (place.pipeline, target, kind)
        self.max_bytes = max_bytes
        self.borrowed: Borrowed[Q] | None = None
        """What is borrowed, while it is open."""
        self.opened = asyncio.Event()
        """Set when it is open, or could not be opened."""
        self.why = ""
        """Why it could not be opened, if it was tried."""
        storage.expect(self.name, self)
        place.keeps(self)
        place.on_finish(self._give_back)

    @property
    def is_queue(self) -> bool:
        """Whether it is that of an output."""
        return self.name[2] == "queue"

    @property
    def index(self) -> int:
        """The index of its component in the list of its stage."""
        return self._place.index

    @property
    def is_gone(self) -> bool:
        """Whether its pipeline ends for good, and no other one goes on with what is kept."""
        place = self._place
        return place.is_disposed or (
            place.is_deleted and not self.storage.is_expected(self.name, self)
        )

    @abstractmethod
    async def borrow(self) -> Borrowed[Q]:
        """Return it. Raises a `StoreFailed` where the store takes nothing now."""

    async def open(self, tell: Callable[[str], None] | None = None) -> Borrowed[Q]:
        """Return it as soon as the store can be read; ``tell`` hears why it cannot.

        Else the other side of the component counts as lost for so long.
        """
        while self.borrowed is None:
            try:
                self.borrowed = await self.borrow()
                self.why = ""
            except StoreFailed as cause:
                self.why = str(cause)
                self.opened.set()
                if tell is None:
                    self._place.disconnected(self.why, AGAIN_SECONDS)
                else:
                    tell(self.why)
                await self._place.clock.sleep(AGAIN_SECONDS)
        self.opened.set()
        return self.borrowed

    async def end(self) -> None:
        """Have it be no more: nothing is in it, and nothing comes."""
        borrowed, self.borrowed = self.borrowed, None
        if borrowed is not None:
            await borrowed.give_back(ends=True)

    async def _give_back(self) -> None:
        """Leave what is kept to the next run, unless its pipeline was deleted."""
        place = self._place
        self.storage.expect_no_more(self.name, self)
        borrowed, self.borrowed = self.borrowed, None
        if borrowed is None:
            return
        is_gone = self.is_gone
        entries, size = borrowed.journal.entries, borrowed.journal.fill().used
        await borrowed.give_back(ends=is_gone and (place.is_disposed or not entries))
        if is_gone and entries:
            place.warn(f"left over in the store: entries: {entries:,} ({size:,} bytes)")
        if not is_gone:  # it may have failed, and be deleted later
            place.on_finish(self._end_what_is_left)

    async def _end_what_is_left(self) -> None:
        """Leave what is kept to nobody, where somebody has deleted the pipeline since."""
        if self._place.is_disposed:
            await self.storage.end(self.name)


class KeptQueue(KeptLent["Journal"]):
    """A queue: entries are handed out in order."""

    async def borrow(self) -> Borrowed[Journal]:
        """Return it. Raises a `StoreFailed` where the store takes nothing now."""
        return await self.storage.borrow(self.name, self.max_bytes)


class KeptShelf(KeptLent["Shelf"]):
    """A shelf: entries are read by their numbers."""

    async def borrow(self) -> Borrowed[Shelf]:
        """Return it. Raises a `StoreFailed` where the store takes nothing now."""
        return await self.storage.borrow_shelf(self.name, self.max_bytes)
