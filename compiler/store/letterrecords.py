"""The dead letters of a store: put down, listed, read, tried again, deleted.

What is in a body only those know who put it down and take it up again. Letters outlive the pipelines that
they are of. Each pipeline has as much room as whoever puts down says.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from headrace.compiler.store import lettertables
from headrace.compiler.store.group import Group
from headrace.compiler.store.letterrows import (
    LETTER_BYTES,
    DroppedLetters,
    FoundLetter,
    Letter,
    LetterAmount,
    LetterAmounts,
    LetterPage,
    LetterRest,
    LetterSignature,
    LetterTry,
    NewLetter,
    WholeLetter,
)
from headrace.compiler.store.lettertables import DELETED_LETTERS, LetterFilter
from headrace.compiler.store.openstore import Store
from headrace.compiler.store.storeerrors import StoreFull

MOST_LISTED = 200
"""Letters of a page."""
MOST_SIGNATURES_LISTED = 1_000
"""Signatures that are told at once, of one pipeline or all."""
ABOVE_ALL = 2**63 - 1
"""A number above those of all letters."""


class Records:
    """The dead letters of a store, of which there is one of these."""

    def __init__(
        self, store: Store, tell_dropped: Callable[[DroppedLetters], object] = lambda _: None
    ) -> None:
        """Take the store; ``tell_dropped`` hears of what has gone to make room for later ones."""
        self._store, self._tell_dropped = store, tell_dropped
        self._coming = Counter[str]()
        """By pipeline, what is being stored, without what goes for it. Units: bytes."""
        self._damaged: set[int] = set()
        """The letters of which it was told that they are damaged."""

    def append(
        self, letter: Letter, body: bytes, max_bytes: int, *, drops_oldest: bool = False
    ) -> Group:
        """Put a letter down; return what can be waited for until it is stored.

        ``max_bytes``: room for all letters of its pipeline. Where they have it, the oldest go if this
        one ``drops_oldest``; at most twice of what it takes itself, so a bound that is smaller than
        before is reached in steps.

        Raises:
            StoreFull: there is no room, here or on the disk.
            StoreFailed: the disk takes nothing now.
        """
        fields: list[Any] = [storable(each) if isinstance(each, str) else each for each in letter]
        letter = Letter(*fields)
        pipeline, size = letter.pipeline, room_for(letter, body)
        used = self.bytes(pipeline)
        over = used + size - max_bytes
        if over > 0 and (size > max_bytes or not drops_oldest):
            raise StoreFull(
                f"{used:,} of {max_bytes:,} bytes are in use, and {size:,} are needed (max_bytes)"
            )
        frees = min(max(over, 0), 2 * size)
        signature = lettertables.signature_of(letter)
        group = self._store.append_letter(NewLetter(letter, body, size, frees, signature))
        self._coming[pipeline] += size - frees
        group.tell.append(partial(self._ended, group, pipeline, size - frees))
        return group

    def _ended(self, group: Group, pipeline: str, size: int) -> None:
        """A letter is stored and counted, or is not."""
        self._coming[pipeline] -= size
        if not self._coming[pipeline]:
            del self._coming[pipeline]
        dropped, group.dropped = group.dropped, []
        for each in dropped:
            self._tell_dropped(each)

    def keep_rest(self, id: int, tried: LetterTry, messages: int, body: bytes) -> Group:
        """Have of a letter that was tried again only what is left of it: so many messages, a body.

        Return what can be waited for until that is stored. One that is gone meanwhile stays gone.

        Raises:
            StoreFailed: the disk takes nothing now.
        """
        return self._store.append_rest(LetterRest(id, tried, messages, body))

    def pipelines(self) -> list[str]:
        """Return the pipelines that have letters."""
        return self._store.letters.pipelines()

    def amounts(self, pipeline: str) -> Mapping[str, LetterAmount]:
        """Return how much of a pipeline is stored, by stage, without a look at the disk."""
        return self._store.letters.of(pipeline)

    def bytes(self, pipeline: str) -> int:
        """Return what the letters of a pipeline take, with those that are being stored."""
        stored = sum(each.bytes for each in self.amounts(pipeline).values())
        return stored + self._coming[pipeline]

    async def signatures(self, pipeline: str | None = None) -> list[LetterSignature]:
        """Return what failed alike, of one pipeline or all: the 1,000 that were seen last, these first.

        Raises:
            StoreFailed: they cannot be read.
        """
        found: list[LetterSignature] = []
        for each in self.pipelines() if pipeline is None else [storable(pipeline)]:
            read = partial(lettertables.signatures, pipeline=each, most=MOST_SIGNATURES_LISTED)
            found += await self._store.read(read)  # others have their turn in between
            found.sort(key=lambda each: (-each.last_seen, each.message))
            del found[MOST_SIGNATURES_LISTED:]
        return found

    async def page(
        self,
        pipeline: str,
        stage: str | None = None,
        message: str | None = None,
        before: int = ABOVE_ALL,
        limit: int = MOST_LISTED,
    ) -> LetterPage:
        """Return letters of a pipeline without their bodies, newest first, at most 200.

        ``before``: only those before the letter with that id.

        Raises:
            StoreFailed: they cannot be read.
        """
        of = _filter(pipeline, stage, message)
        before, limit = min(before, ABOVE_ALL), max(1, min(limit, MOST_LISTED))
        read = partial(lettertables.page, of=of, before=before, limit=limit)
        page = await self._store.read(read)
        for id in page.damaged:
            self._is_damaged(id)
        return page

    async def some(
        self,
        pipeline: str,
        ids: Iterable[int],
        stage: str | None = None,
        message: str | None = None,
    ) -> list[FoundLetter]:
        """Return those of some letters that are of a pipeline, without their bodies, oldest first.

        Others are not read, however many there are. What is not there, or damaged, is left out.

        Raises:
            StoreFailed: they cannot be read.
        """
        of, found = _filter(pipeline, stage, message), list[FoundLetter]()
        wanted = sorted(id for id in {*ids} if 0 < id < ABOVE_ALL)
        for start in range(0, len(wanted), MOST_LISTED):
            given = wanted[start : start + MOST_LISTED]
            read = await self._store.read(partial(lettertables.some, of=of, ids=given))
            for id in read.damaged:
                self._is_damaged(id)
            found += read.letters
        return found

    async def letter(self, id: int) -> WholeLetter | None:
        """Return a letter with its body; None: there is none. What is damaged is told, and never given.

        Raises:
            StoreFailed: it cannot be read.
        """
        if not 0 < id < ABOVE_ALL:
            return None
        whole = await self._store.read(partial(lettertables.one, id=id))
        if whole is not None and None in whole:
            self._is_damaged(id)
        return whole

    async def update(self, id: int, tries: int, last_seen: float, *, maybe_written: bool) -> None:
        """Say what became of a letter that was tried again, as soon as that can be written.

        Raises:
            StoreFailed: the store is closed.
        """
        self._store.changes.tried[id] = LetterTry(tries, last_seen, maybe_written)
        await self._store.written()

    async def written(self) -> None:
        """Wait until all that was said until now is on the disk, such as that letters are gone.

        Raises:
            StoreFailed: the store is closed.
        """
        await self._store.written()

    def let_go(self, ids: Collection[int], group: Group | None = None) -> None:
        """Have letters go, with the next commit.

        ``group``: they go in the same commit as what is put down there; if that fails, they stay.
        """
        if group is None:
            self._store.changes.letters_gone += ids
            self._store.soon()
        else:
            group.letters_along += ids

    async def delete(self, pipeline: str, ids: Iterable[int]) -> LetterAmount:
        """Delete those of some letters that are of a pipeline; return how much that was.

        Raises:
            StoreFailed: it cannot be written.
        """
        wanted, deleted = [*ids], LetterAmount()
        for start in range(0, len(wanted), DELETED_LETTERS):
            some = wanted[start : start + DELETED_LETTERS]
            work = partial(lettertables.delete_given, pipeline=storable(pipeline), ids=some)
            for amount in (await self._delete(work)).values():
                deleted = deleted.plus(amount)
        return deleted

    async def delete_all(
        self, pipeline: str, stage: str | None = None, message: str | None = None
    ) -> LetterAmount:
        """Delete all of a pipeline that are stored now, or of a stage or message; return how much that was.

        They go some at a time: where this is given up, or fails, some are left.

        Raises:
            StoreFailed: it cannot be written.
        """
        of = _filter(pipeline, stage, message)
        work = partial(lettertables.delete_some, of=of, last=self._store.last_letter)
        deleted = LetterAmount()
        while some := await self._delete(work):
            for amount in some.values():
                deleted = deleted.plus(amount)
        return deleted

    async def _delete(self, work: Callable[[sqlite3.Connection], LetterAmounts]) -> LetterAmounts:
        deleted = await self._store.write(work)
        self._store.letters.subtract(deleted)
        return deleted

    def _is_damaged(self, id: int) -> None:
        """Tell of a letter that is damaged, once."""
        if id not in self._damaged:
            self._damaged.add(id)
            self._store.condition.has_damaged(1, f"letter {id} is damaged")


def room_for(letter: Letter, body: bytes) -> int:
    """Return what a letter takes of the room of its pipeline. Units: bytes."""
    texts = (storable(each) for each in letter if isinstance(each, str))
    return len(body) + sum(len(each.encode()) for each in texts) + LETTER_BYTES


def storable(text: str) -> str:
    """Return a text as it can be written: with ``?`` for halves of characters."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _filter(pipeline: str, stage: str | None, message: str | None) -> LetterFilter:
    of_stage = None if stage is None else storable(stage)
    return LetterFilter(
        storable(pipeline), of_stage, None if message is None else storable(message)
    )
