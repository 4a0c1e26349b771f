"""What state a store is in: whether it takes something, why not, and what was told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from headrace.compiler.store.disk import failed, is_damage
from headrace.compiler.store.storeerrors import StoreFailed, StoreFull

TAKES_AGAIN = "the store takes entries again"
"""What is told when it does."""

State = Literal["open", "full", "failing"]
StoreNews = Literal["open", "full", "failing", "damaged"]
"""What is heard of a store: a state that it has from now on, or that something of it is damaged."""


class StoreCondition:
    """The state of one store. Whoever finds that it changes says so here, where that is told once."""

    def __init__(
        self,
        tell: Callable[[str], None] = lambda _: None,
        hear: Callable[[StoreNews, str], None] = lambda *_: None,
    ) -> None:
        """Take who is told of damage and of changes of state, in words.

        ``hear`` hears of each of them once, and why; ``tell`` of the same state for another reason as well.
        """
        self.tell, self._hear = tell, hear
        self.state: State = "open"
        self.why = ""
        """Why it takes nothing, if it does not."""
        self._trouble = ""
        """The same, as it was told."""
        self._heard: StoreNews = "open"
        """The state that was heard of last."""
        self.failures = self.damaged = self.set_asides = 0
        """Commits and reads that failed; entries that were found damaged, or gone, and how often the
        database or its log was; how often something was set aside."""
        self.is_damaged = False
        """Whether the database has to be made anew of what can be read."""
        self.is_closing = False
        self.readable = asyncio.Event()
        """Set unless it is failing."""
        self.readable.set()

    @property
    def takes(self) -> bool:
        """Whether it takes something new."""
        return self.state == "open" and not self.is_closing

    def refusal(self) -> StoreFailed:
        """Return why nothing is taken."""
        if self.is_closing:
            return StoreFailed("the store is closed")
        return (StoreFull if self.state == "full" else StoreFailed)(self.why)

    def fails(self, cause: Exception) -> StoreFailed:
        """Take nothing until it can be written again; return what is told of it."""
        told = failed(cause)
        if not (isinstance(told, StoreFull) and self.state == "full"):  # that it still is
            self.failures += 1
        if self.is_closing:
            return told
        self.is_damaged |= is_damage(cause)
        # Where it fails, that the disk is full as well changes nothing.
        is_full = isinstance(told, StoreFull) and self.state != "failing"
        trouble = "full" if is_full else str(told)  # how full it is changes all the time
        if trouble != self._trouble:
            self.tell(f"the store takes nothing: {told}")
            self._trouble = trouble
        self.state, self.why = "full" if is_full else "failing", str(told)
        self._is_heard(self.state, self.why)
        if self.state == "failing":
            self.readable.clear()
        return told

    def can_be_read(self) -> None:
        """Take note that it can be read, and let go of; whether there is room is to be seen."""
        self.state = "full"
        self.readable.set()

    def takes_again(self) -> None:
        """Take something again."""
        self.state, self.why, self._trouble = "open", "", ""
        self.tell(TAKES_AGAIN)
        self._is_heard("open", TAKES_AGAIN)

    def closes(self) -> None:
        """Take nothing any more: whoever waits until it can be read hears that it is closed."""
        self.is_closing = True
        self.readable.set()

    def has_damaged(self, count: int, text: str) -> None:
        """_Tell of so many entries, or whatever it is, that are damaged or gone."""
        self.damaged += count
        self.tell(text)
        self._hear("damaged", text)

    def _is_heard(self, state: State, why: str) -> None:
        """Have a state heard of that was not the last one to be."""
        if state != self._heard:
            self._heard = state
            self._hear(state, why)
