"""What an engine is asked of dead letters: listed, read, deleted, whether or not their pipeline runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.compiler.errors import UnknownDeadLetter
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.configdigest import version_in
from headrace.compiler.runtime.monitoring.letterfigures import (
    DeadLetterEntry,
    DeadLetterPage,
    DeadLetterSignature,
    LetterStock,
    LettersWanted,
    StoredLetter,
    StoredPayload,
)
from headrace.compiler.runtime.queuedbatch import START
from headrace.compiler.runtime.storedarrival import origin_of_entry, start_of_payload

if TYPE_CHECKING:
    from headrace.compiler.runtime.storage import Storage
    from headrace.compiler.store.letterrecords import Records
    from headrace.compiler.store.letterrows import FoundLetter, LetterSignature


class StoredLetters:
    """The dead letters of a storage. Where no store is open there are none."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def _records(self) -> Records | None:
        return self._storage.records

    async def signatures(self, pipeline: str | None) -> list[DeadLetterSignature]:
        """Return what failed alike in a pipeline, None: in all, last seen first, and at most 1,000.

        Raises:
            StoreFailed: they cannot be read.
        """
        if (records := self._records) is None:
            return []
        return [_signature(each) for each in await records.signatures(pipeline)]

    async def page(
        self, pipeline: str, wanted: LettersWanted, before: int, limit: int
    ) -> DeadLetterPage:
        """Return letters of a pipeline, the newest first, those that come before an id.

        Raises:
            StoreFailed: they cannot be read.
        """
        if (records := self._records) is None:
            return DeadLetterPage(0, 0, truncated=False, next=None, damaged=(), entries=())
        page = await records.page(pipeline, wanted.stage, wanted.message, before, limit)
        return DeadLetterPage(
            page.total,
            page.bytes,
            page.is_truncated,
            page.before if page.is_truncated else None,
            page.damaged,
            [_entry(each) for each in page.letters],
        )

    async def letter(self, pipeline: str, id: int) -> StoredLetter:
        """Return one letter of a pipeline with its body.

        Raises:
            UnknownDeadLetter: the pipeline has none with that id, or nothing of it is known.
            StoreFailed: it cannot be read.
        """
        from headrace.compiler.store.letterrecords import storable

        records = self._records
        whole = None if records is None else await records.letter(id)
        if whole is None:
            raise UnknownDeadLetter(pipeline, id)
        if (found := whole.found) is None:
            raise UnknownDeadLetter(pipeline, id, is_damaged=True)
        if found.letter.pipeline != storable(pipeline):
            raise UnknownDeadLetter(pipeline, id)
        return stored_letter(found, whole.body)

    async def delete(self, pipeline: str, ids: Sequence[int]) -> int:
        """Delete those of some letters that are of a pipeline; return how many that were.

        Raises:
            StoreFailed: it cannot be written.
        """
        if (records := self._records) is None:
            return 0
        return (await records.delete(pipeline, ids)).letters

    async def delete_all(self, pipeline: str, wanted: LettersWanted) -> int:
        """Delete all letters of a pipeline that are meant; return how many that were.

        Raises:
            StoreFailed: it cannot be written; some may be gone.
        """
        if (records := self._records) is None:
            return 0
        return (await records.delete_all(pipeline, wanted.stage, wanted.message)).letters

    def stock(self) -> list[LetterStock]:
        """Return how much there is, by pipeline and stage, without a look at the disk."""
        if (records := self._records) is None:
            return []
        return [
            LetterStock(pipeline, stage, *amount)
            for pipeline in records.pipelines()
            for stage, amount in records.amounts(pipeline).items()
        ]


def stored_letter(found: FoundLetter, body: bytes | None) -> StoredLetter:
    """Return what is told of a letter and its body; None: that is damaged."""
    entry = _entry(found)
    if body is None or found.letter.component is not None:  # as `letterbody` has it
        return StoredLetter(entry, body, START, None)
    return StoredLetter(entry, body, *stored_payload(body))


def stored_payload(body: bytes) -> tuple[int, StoredPayload]:
    """Return where in an arrival its payload begins, and what is known of that."""
    start, is_message = start_of_payload(body)
    metadata = encode(origin_of_entry(0, body).describe())
    return start, StoredPayload(is_message, metadata)


def _signature(of: LetterSignature) -> DeadLetterSignature:
    return DeadLetterSignature(
        of.pipeline,
        of.stage,
        of.component,
        of.message,
        of.failure,
        max(0, of.letters),
        max(0, of.messages),
        max(0, of.bytes),
        _millis(of.first_seen),
        _millis(of.last_seen),
    )


def _entry(found: FoundLetter) -> DeadLetterEntry:
    letter = found.letter
    return DeadLetterEntry(
        found.id,
        letter.pipeline,
        letter.stage,
        letter.component,
        letter.input_index,
        letter.target,
        letter.failure,
        letter.message,
        letter.detail,
        _millis(letter.first_seen),
        _millis(letter.last_seen),
        letter.tries,
        letter.maybe_written,
        None if letter.received_at is None else _millis(letter.received_at),
        letter.config and version_in(letter.config),
        letter.messages,
        found.bytes,
    )


def _millis(seconds: float) -> int:
    return round(seconds * 1000)
