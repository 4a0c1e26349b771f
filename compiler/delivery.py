"""What travels a chain: a batch, and the two debts that it owes.

**Flow** is owed to the windows of the inputs the batch came from. It is closed when the batch has
left the chain (written, dropped, failed, or absorbed by a buffer). A full window makes its pump stop
reading, and that is the whole of back-pressure.

**Custody** is owed to the broker. It is closed when the last batch that carries any part of the
arrival has been written, so a buffer that holds messages holds their custody as well.

Both are debts: something with `close()`. A debt that several deliveries owe together is `SharedDebt`; one
that settles several others is `Several`. Most deliveries owe one window and nobody else, so the
window itself is their flow and nothing is allocated for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

JsonValue = Any
"""JSON as decoded: None, bool, int, float, str, list or dict."""
Batch = list[JsonValue]
"""Messages travelling together. Never changed once handed on: others may hold the same list."""

LARGE_BATCH = 2_048
"""Messages of a batch above which it is worked on in slices, between which others have their turn:
up to there a pass takes some milliseconds."""


SLOW_BATCH = 500
"""The same where something on the way takes microseconds for a message, such as the parsing of a text."""


def slow_batch(parts: int) -> int:
    """Return the same where so many parts of the way do; a message is always worked on at once."""
    return max(1, SLOW_BATCH // parts) if parts else LARGE_BATCH


def is_large(batch: Batch) -> bool:
    """Return whether a batch is worked on in slices: it has many messages, or comes from a large text.

    What comes from one, or is made of such a batch, is a list of a kind of its own (`largejson.LargeList`).
    """
    return len(batch) > LARGE_BATCH or batch.__class__ is not list


PART = 32
"""Messages of a large batch that are worked on before somebody looks whether the slice is over: each
may be as large as a post."""


def parts(items: Iterable[T], size: int | None = None) -> Iterator[list[T]]:
    """Yield many messages, or something else, in parts of ``size``, or of `PART`."""
    rest = iter(items)
    while part := [*islice(rest, size or PART)]:
        yield part


def at_once(slices: Generator[Any, None, T]) -> T:
    """Return what something makes that could be done in slices."""
    while True:
        try:
            next(slices)
        except StopIteration as done:
            made: T = done.value
            return made


class Debt(Protocol):
    """Something owed, settled by closing it once."""

    def close(self) -> None:
        """Settle it."""

    def windows(self) -> Iterable[Window]:
        """Return the windows that wait for it, if it is flow."""


BATCHES_UNDER_WAY = 16
"""Batches of one input that may be on their way at once."""


class Window:
    """How many batches of one input may be on their way at once.

    Shape: `take` one per batch that enters, `close` one per batch that has left. What a buffer releases
    is charged without asking, so `used` may exceed `size`; the pump reads on only below it.
    """

    __slots__ = ("_freed", "size", "used")

    def __init__(self, size: int = BATCHES_UNDER_WAY) -> None:
        self.size = size
        self.used = 0
        # There while it is waited for: thousands of windows stand open.
        self._freed: asyncio.Event | None = None

    def take(self) -> None:
        """Charge one batch."""
        self.used += 1

    def close(self) -> None:
        """Give one back, and wake the pump that waits for it."""
        self.used -= 1
        if self._freed is not None and self.used < self.size:
            self._freed.set()

    def windows(self) -> Iterable[Window]:
        """Return itself."""
        return (self,)

    async def room(self) -> None:
        """Wait until less than `size` is on its way. One waiter: the input's own pump."""
        while self.used >= self.size:
            self._freed = asyncio.Event()
            await self._freed.wait()
        self._freed = None


@dataclass(slots=True, eq=False)
class SharedDebt:
    """One debt owed by several: settled when all of them have closed their part."""

    debt: Debt
    parts: int

    def close(self) -> None:
        """Close one part."""
        self.parts -= 1
        if not self.parts:
            self.debt.close()

    def windows(self) -> Iterable[Window]:
        """Return the windows of the shared debt."""
        return self.debt.windows()


@dataclass(slots=True, eq=False)
class Several:
    """Several debts settled as one, in order: what a buffer releases owes everybody it held for."""

    debts: Sequence[Debt]

    def close(self) -> None:
        """Close every one of them."""
        for debt in self.debts:
            debt.close()

    def windows(self) -> Iterable[Window]:
        """Return the windows of all of them."""
        for debt in self.debts:
            yield from debt.windows()


@dataclass(slots=True, eq=False)
class Acknowledgement:
    """Owed to somebody who is told: custody of one arrival, of which the broker is."""

    close: Callable[[], None]

    def windows(self) -> tuple[Window, ...]:
        """Return nothing: custody bounds no flow."""
        return ()


def together(debts: Sequence[Debt]) -> Debt:
    """Return one debt that settles all of ``debts`` (at least one)."""
    return debts[0] if len(debts) == 1 else Several(debts)


@dataclass(slots=True, eq=False)
class Delivery:
    """A batch on its way, what it owes its inputs (`flow`) and its broker (`custody`)."""

    batch: Batch
    flow: Debt
    custody: Debt | None = None

    def done(self) -> None:
        """Settle both debts: the batch is written, dropped or failed."""
        self.flow.close()
        if self.custody is not None:
            self.custody.close()

    def share(self, parts: int) -> None:
        """Let ``parts`` holders each call `done` once; the debts are settled by the last."""
        self.flow = SharedDebt(self.flow, parts)
        if self.custody is not None:
            self.custody = SharedDebt(self.custody, parts)

    def part(self, batch: Batch) -> Delivery:
        """Return a delivery of what was made of a part of it; after `share`, while it is not done.

        It stays owed until its parts, and it itself, are done.
        """
        for debt in (self.flow, self.custody):
            if isinstance(debt, SharedDebt):
                debt.parts += 1
        return Delivery(batch, self.flow, self.custody)

    def split(self, batches: Sequence[Batch]) -> list[Delivery]:
        """Return one delivery per batch; together they owe what this one owed."""
        self.share(len(batches))
        return [Delivery(batch, self.flow, self.custody) for batch in batches]
