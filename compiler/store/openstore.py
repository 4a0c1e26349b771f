"""A store that is open, as the loop knows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headrace.compiler.clock import Clock
from headrace.compiler.store.alone import Alone
from headrace.compiler.store.database import Sync
from headrace.compiler.store.group import Group
from headrace.compiler.store.letterrows import LetterFigures, LetterRest, NewLetter
from headrace.compiler.store.medium import DiskMedium, Medium, MemoryMedium
from headrace.compiler.store.memorydisk import MemoryDisk
from headrace.compiler.store.openqueues import OpenQueues
from headrace.compiler.store.queuerows import QueueRows
from headrace.compiler.store.room import KEEP_FREE_BYTES, RESERVE_BYTES, Room
from headrace.compiler.store.storecondition import StoreCondition, StoreNews
from headrace.compiler.store.writer import StoreWriter


class Store(StoreWriter):
    """A store that is open. Made by `Store.open`, ended by `close`."""

    def __init__(self, clock: Clock, medium: Medium, condition: StoreCondition) -> None:
        super().__init__(clock, medium, condition)
        alone = Alone(clock)
        self._room: Room = medium.room
        self.queues = OpenQueues(self, medium.room, alone)
        self.rows = QueueRows(self, medium.room, alone)

    @classmethod
    async def open(
        cls,
        clock: Clock,
        folder: Path | None = None,
        *,
        sync: Sync = "power",
        keep_free_bytes: int = KEEP_FREE_BYTES,
        reserve_bytes: int = RESERVE_BYTES,
        tell: Callable[[str], None] = lambda _: None,
        hear: Callable[[StoreNews, str], None] = lambda *_: None,
        disk: MemoryDisk | None = None,
    ) -> Store:
        """Open the store of a folder, or one in memory; ``tell`` hears of damage and of changes of state.

        ``hear`` hears of each of them once, and why; `tell` of the same state for another reason as well.
        ``disk``: what one in memory is kept on, if it is to outlive the store.

        Raises:
            StoreRefused: it cannot be opened; nothing was touched.
        """
        medium: Medium
        if folder is None:
            medium = MemoryMedium(clock, disk or MemoryDisk(), sync)
        else:
            medium = DiskMedium(clock, folder, sync, keep_free_bytes, reserve_bytes)
        store = cls(clock, medium, StoreCondition(tell, hear))
        await store.begin(watches=folder is not None)
        return store

    @property
    def id(self) -> str:
        """What tells its entries from those of any other store: 32 hexadecimal digits, for good."""
        return self.database.id

    def free_bytes(self) -> int | None:
        """Return how many bytes are free on its disk; None: it is in memory, or its folder is gone."""
        try:
            return self._room.free_bytes()
        except OSError:
            return None

    @property
    def letters(self) -> LetterFigures:
        """How much there is of letters."""
        return self.database.letters

    @property
    def last_letter(self) -> int:
        """The id of the letter that was put down last."""
        return self.next_letter - 1

    def append_letter(self, letter: NewLetter) -> Group:
        """Put down a letter, which is given its id; return the group that it is committed with.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        group = self.group()
        letter.id = self.next_letter
        self.next_letter += 1
        group.letters.append(letter)
        group.add(letter.size)
        self.go_on()
        return group

    def append_rest(self, rest: LetterRest) -> Group:
        """Have of a letter only what is left of it; return the group that this is committed with.

        Raises:
            StoreFailed: the store takes nothing now.
        """
        group = self.group()
        group.rests.append(rest)
        group.add(len(rest.body))
        self.go_on()
        return group
