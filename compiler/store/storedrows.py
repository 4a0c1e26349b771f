"""What goes into the database of a store, and what comes out of it: rows, queues, pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.compiler.store.bucketrows import BucketChanges
from headrace.compiler.store.letterrows import (
    DroppedLetters,
    LetterAmounts,
    LetterRest,
    LetterTry,
    NewLetter,
)

BUCKET = "bucket"
"""The kind of a queue that is a bucket."""
ROW_BYTES = 64
"""What a row takes on the disk beside its entries, roughly."""
READY_ENTRIES = 1_024
"""Entries that wait in memory for a reader that keeps up; for their bytes see `READY_BYTES`."""
ALONE_FROM = 2
"""From so many ends of the process on, what was under way then is handed out alone, or of many some."""
SET_ASIDE_FROM = 3
"""From so many on it has ended the process alone: it is handed out to be set aside."""
TAKEN_TOGETHER, ENDED_TOGETHER = -2, -1
"""What a row has in place of `ALONE_FROM` where it was handed out with others, and when they have ended the
process: that adds one."""


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
    deaths: int = 0

    @property
    def key(self) -> tuple[int, int, int, int, float]:
        """What its checksum is of, beside its body."""
        return self.n, self.queue, self.first, len(self.payloads), self.at


Stretch = tuple[int, int]
"""Entries that follow each other: the number of the first, and how many."""


class Parts(NamedTuple):
    """What is put in the place of a row: rows of some of its entries."""

    queue: int
    n: int
    """The number of the first of these rows; the others follow."""
    runs: list[Stretch]
    """The entries of each."""


class EndedRow(NamedTuple):
    """A row of which nothing is needed any more."""

    n: int
    queue: int
    next: int
    """The number of the entry that comes next in its queue."""


@dataclass(slots=True)
class Changes:
    """What goes into one commit."""

    rows: list[NewRow] = field(default_factory=list)
    letters: list[NewLetter] = field(default_factory=list)
    rests: list[LetterRest] = field(default_factory=list)
    remembered: list[BucketChanges] = field(default_factory=list)
    """What has changed in buckets, which is asked for again where it cannot be committed."""
    rows_along: list[int] = field(default_factory=list)
    """The rows that go only together with what is new here."""
    letters_along: list[int] = field(default_factory=list)
    """The same of letters."""
    letters_gone: list[int] = field(default_factory=list)
    """The letters that nobody needs any more."""
    tried: dict[int, LetterTry] = field(default_factory=dict)
    """What became of letters, by their ids."""
    gone: list[int] = field(default_factory=list)
    """The rows of which nothing is needed any more."""
    aside: dict[int, float] = field(default_factory=dict)
    """The rows that are kept for somebody to look at before they go, and when that was said."""
    parts: dict[int, Parts] = field(default_factory=dict)
    """What is put in the place of rows."""
    taken: dict[int, float] = field(default_factory=dict)
    """The rows that are handed out as soon as that is written, and when that was said; those that are
    under way no more, and 0."""
    suspected: dict[int, int] = field(default_factory=dict)
    """What rows have as their ends of the process from then on: `ALONE_FROM`, or `TAKEN_TOGETHER`."""
    innocent: list[int] = field(default_factory=list)
    """The rows that were under way for so long that they have not ended the process, and will not."""
    nexts: dict[int, int] = field(default_factory=dict)
    """The number of the entry that comes next, of each queue that rows go from."""
    ended: dict[int, float] = field(default_factory=dict)
    """The queues that nobody takes up again, by their ids, and when that was said."""
    then: list[Callable[[], object]] = field(default_factory=list)
    """Called when it is committed."""
    deleted: LetterAmounts = field(default_factory=dict)
    """Known when it is committed: how much went of letters, with what was dropped."""
    dropped: list[DroppedLetters] = field(default_factory=list)
    """Known when it is committed: what went to make room."""

    @property
    def is_new(self) -> bool:
        """Whether there is something that needs room, and is turned down where there is none."""
        return bool(
            self.rows or self.letters or self.rests or any(each.is_new for each in self.remembered)
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be written."""
        changes = (
            self.rows,
            self.letters,
            self.rests,
            self.remembered,
            self.letters_gone,
            self.tried,
            self.gone,
            self.aside,
            self.parts,
            self.taken,
            self.innocent,
            self.ended,
        )
        return not any(changes)

    def is_of(self, queue: int) -> bool:
        """Return whether a queue is ended, or rows of it are replaced: nobody must open it before."""
        return queue in self.ended or any(parts.queue == queue for parts in self.parts.values())

    def before(self, later: Changes) -> Changes:
        """Return these, without what is new, and later ones: it is not there, and must not be.

        Letters that something went along with stay where they are there after all: it is gone then, and
        they are all that is left of it.
        """
        is_undone = not (self.rows_along or self.letters_along)
        undone = [each.id for each in self.letters] if is_undone else []
        return Changes(
            rows=later.rows,
            letters=later.letters,
            rests=later.rests,
            letters_gone=self.letters_gone + undone + later.letters_gone,
            tried=self.tried | later.tried,
            gone=self.gone + [row.n for row in self.rows] + later.gone,
            aside=self.aside | later.aside,
            parts=self.parts | later.parts,
            taken=self.taken | later.taken,
            suspected=self.suspected | later.suspected,
            innocent=self.innocent + later.innocent,
            nexts=self.nexts | later.nexts,
            ended=self.ended | later.ended,
            then=self.then + later.then,
        )

    @property
    def bytes(self) -> int:
        """How many bytes of payloads, letters and buckets there are."""
        payloads = sum(sum(map(len, row.payloads)) for row in self.rows)
        letters = sum(letter.size for letter in self.letters)
        rests = sum(len(rest.body) for rest in self.rests)
        return payloads + letters + rests + sum(each.bytes for each in self.remembered)


class StoredRow(NamedTuple):
    """A row as it was read."""

    n: int
    first: int
    deaths: int
    """How often the process ended without a word while it was under way."""
    at: float
    payloads: list[bytes]
    ended_together: bool = False
    """Whether it is one of several that were under way together when the process ended last."""

    @property
    def has_to_be_split(self) -> bool:
        """Whether its entries have to be handed out one at a time, of which each needs a row then."""
        return self.deaths >= ALONE_FROM and len(self.payloads) > 1


class RowBeginning(NamedTuple):
    """A row of one entry, of which only the beginning was read."""

    n: int
    number: int
    """Of its entry."""
    at: float
    size: int
    """How many bytes the entry has."""
    beginning: bytes


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
    ended: float | None
    """When its pipeline was deleted: nobody takes it up again. None: it goes on."""
    aside: int = 0
    """Entries of it that were set aside."""
    aside_bytes: int = 0


class StoredPage(NamedTuple):
    """Some rows of a queue; one that has to be split is alone in it."""

    rows: list[StoredRow]
    damaged: list[DamagedRow]
    last: int
    """The first entry of the last row that was looked at: the next page begins behind it."""
    is_last: bool
    """Whether there is nothing behind it."""
