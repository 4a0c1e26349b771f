"""What goes into the database of a store, and what comes out of it: rows, queues, pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True)
class NewRow:
    """What one queue gets in one commit."""

    n: int
    queue: int
    first: int
    at: float
    payloads: list[bytes]
    is_taken: bool
    """Whether it is handed on as soon as it is there."""


@dataclass(slots=True)
class Changes:
    """What goes into one commit."""

    rows: list[NewRow] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    """The rows of which nothing is needed any more."""
    nexts: dict[int, int] = field(default_factory=dict)
    """The number of the entry that comes next, of each queue that rows go from."""

    @property
    def bytes(self) -> int:
        """How many bytes of payloads there are."""
        return sum(len(payload) for row in self.rows for payload in row.payloads)


class StoredRow(NamedTuple):
    """A row as it was read."""

    n: int
    first: int
    deaths: int
    """How often the process ended without a word while it was under way."""
    at: float
    payloads: list[bytes]


class DamagedRow(NamedTuple):
    """A row that is not what was written; the numbers may be wrong as well."""

    n: int
    first: int
    entries: int
    bytes: int


class StoredQueue(NamedTuple):
    """A queue with how much of it is there."""

    id: int
    pipeline: str
    target: str
    kind: str
    next: int
    rows: int
    entries: int
    bytes: int
    oldest: float | None
    """When the first of it was written. Units: seconds since 1970."""


class StoredPage(NamedTuple):
    """Some rows of a queue."""

    rows: list[StoredRow]
    damaged: list[DamagedRow]
    last: int
    """The first entry of the last row that was looked at: the next page begins behind it."""
    is_last: bool
    """Whether there is nothing behind it."""
