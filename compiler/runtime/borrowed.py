"""A queue of the store as one run has it: what is left in it outlives the run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeAlias, TypeVar

from headrace.compiler.edges import QueueFill
from headrace.compiler.runtime.monitoring.storedfigures import StoredPartKind
from headrace.compiler.store.storeerrors import StoreFailed

if TYPE_CHECKING:
    from headrace.compiler.store.journal import Journal
    from headrace.compiler.store.openstore import Store
    from headrace.compiler.store.shelf import Shelf

log = logging.getLogger("headrace.store")

EVERY_BYTE = 2**62
"""The bound of a queue that nothing bounds but the disk."""

QueueName = tuple[str, str, StoredPartKind]
"""Of a queue: the pipeline, what is read or written to, and which of them it is."""


class Lendable(Protocol):
    """A queue of the store: one run has it, and leaves it to the next."""

    @property
    def entries(self) -> int:
        """How many entries are not let go of."""

    @classmethod
    async def open(
        cls, store: Store, pipeline: str, target: str, kind: str, max_bytes: int
    ) -> Self:
        """Return the queue of a pipeline and target, with what is in it."""

    def fill(self) -> QueueFill:
        """Return how full it is."""

    def has_room_for(self, size: int) -> bool:
        """Return whether so many bytes more may be kept."""

    def oldest(self) -> float | None:
        """Return when the first was put down that is there. Seconds since 1970."""

    def stop(self) -> None:
        """Hand out nothing more when all is handed out."""

    async def close(self) -> None:
        """Leave it to others."""

    async def end(self) -> None:
        """Leave it to nobody."""


Q = TypeVar("Q", bound=Lendable)


class Lender(Protocol):
    """Who lends queues."""

    def returned(self, journal: Borrowed[Q]) -> bool:
        """Forget who has a queue; return whether that was known."""

    def changed(self) -> None:
        """Hear that a queue that was returned is left, or ended."""


class Borrowed(Generic[Q]):
    """A queue as one run has it, until it is given back."""

    def __init__(self, lender: Lender, name: QueueName, journal: Q) -> None:
        self._lender, self.name, self.journal = lender, name, journal
        self.ends = False
        """Whether nobody is to go on with it: its pipeline is deleted."""
        self.turned_down: int | None = None
        """Bytes of what came last, where it was turned down for want of room."""

    @property
    def is_full(self) -> bool:
        """Whether what came last was turned down for want of room."""
        return self.turned_down is not None

    @property
    def is_full_now(self) -> bool:
        """Whether that would be turned down again, for what else is kept within the bound."""
        size, journal = self.turned_down, self.journal
        return size is not None and journal.entries > 0 and not journal.has_room_for(size)

    async def give_back(self, *, ends: bool) -> None:
        """Leave what is in it to the next who borrows it; if it ``ends``, to nobody."""
        if not self._lender.returned(self):
            return
        self.journal.stop()
        try:
            await (self.journal.end() if ends or self.ends else self.journal.close())
        except StoreFailed as cause:
            log.warning("what is left of pipeline '%s' stays as it is: %s", self.name[0], cause)
        finally:
            self._lender.changed()


BorrowedJournal: TypeAlias = "Borrowed[Journal]"
BorrowedQueue: TypeAlias = "Borrowed[Journal] | Borrowed[Shelf]"
