"""A journal of batches: of posts as they came, and of what arrives as messages already.

A batch is handed on as it was decoded, where it is small and its pipeline keeps up; else it is decoded from
what is stored.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from headrace.compiler.component.buildcontext import KeepBounds, KeptSource
from headrace.compiler.delivery import Acknowledgement, Batch
from headrace.compiler.edges import Arrival
from headrace.compiler.formats import CountingIntake, FormatMisfit, Intake, PayloadFormat
from headrace.compiler.jsontext import NotJson, encode
from headrace.compiler.largejson import (
    LARGE,
    SLICE,
    DecodedBatch,
    WritingTurn,
    decode_large,
    takes_long,
)
from headrace.compiler.runtime.beingstored import STORED_SECONDS, BeingStored
from headrace.compiler.runtime.journalsource import SMALL, JournalSource
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.storedarrival import packed, payload_of
from headrace.compiler.runtime.wayin import PostBody, at_once

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.journal import StoredEntry

KEPT_MESSAGES = 8
"""Messages of an arrival that are held on to, decoded, until they are stored and handed on."""
KEPT_BYTES = 2**20
"""Of more messages, what is held on to, together with all that waits to be read; what is more is decoded
again then. A megabyte takes five in memory, which is about what the caches of a processor hold."""
DECODED_AT_ONCE = 32 * 1024
"""Bytes that are decoded before others may have their turn."""
NO_MESSAGE = "skipped what does not fit the format: no message can be made of it"
MOST_COUNTED, MOST_COUNTED_BYTES = 100_000, 2 * 2**20
"""Items of a list that are counted, and how long it may be: others wait meanwhile, some 20 ms at worst."""
SLOW = 8
"""How many times as long a text takes that takes long (`largejson.takes_long`)."""


class StoredBatches(JournalSource, KeptSource):
    """Reads a journal whose entries are batches each."""

    is_raw: ClassVar[bool] = False

    def __init__(
        self,
        storage: Storage,
        place: ComponentContext,
        target: str,
        bounds: KeepBounds,
        format: PayloadFormat | None,
    ) -> None:
        """Take where it is kept, and what makes messages of payloads; None: they are JSON."""
        super().__init__(storage, place, target, bounds.max_bytes)
        self._format = format
        self._most_arrivals = math.inf if bounds.most_arrivals is None else bounds.most_arrivals
        self._most_bytes = math.inf if bounds.most_bytes is None else bounds.most_bytes
        self._large = 0
        """Bytes of the large ones that are in memory."""
        self._freed = asyncio.Event()

    def has_room_for(self, size: int) -> bool:
        """Return whether so many bytes may be stored beside those that are; alone any may."""
        held = self._storing_bytes
        return not held or held + size <= self._most_bytes

    def store(
        self, payload: PostBody, about: dict[str, Any], batch: Batch, size: int, *, is_json: bool
    ) -> Awaitable[int]:
        """Have a post stored; what is returned is awaited until it is.

        Raises:
            NoRoom: it was not taken, and may be sent again.
            TooLargeToKeep: it is larger than all that may be kept.
        """
        if self._is_stopped:
            raise self._not_taken("it is being stopped")
        if self._storing >= self._most_arrivals:
            raise self._not_taken("too many posts wait to be stored")
        if self._storing_bytes + size > self._most_bytes and not self.has_room_for(size):
            raise self._not_taken("too many bytes wait to be stored")
        entry = packed(payload, about, self._clock.micros(), is_json=is_json)
        if len(entry) > self._largest:
            raise self._too_large(entry)
        if (borrowed := self._kept.borrowed) is not None:
            count = len(batch)
            is_small = count <= KEPT_MESSAGES and batch.__class__ is list
            made = batch if is_small else self._held(batch, size)
            return self._append(borrowed, entry, made, count, size)
        if self._kept.why:
            raise self._not_taken(self._kept.why)
        return self._stored_later(entry, batch, size)

    def put(self, payload: Batch, about: dict[str, Any]) -> BeingStored:
        """Have messages stored that arrived together; see `JournalSource.put`."""
        entry = packed(encode(payload), about, self._clock.micros(), is_json=True)
        return self._put(entry, self._held(payload, len(entry)), len(payload))

    async def _stored_later(self, entry: bytes, batch: Batch, size: int) -> int:
        """Store it as soon as the journal is open: the run before may have it yet."""
        self._count(1, size)
        try:
            async with self._clock.timeout(STORED_SECONDS):
                await self._kept.opened.wait()
        except TimeoutError:
            raise self._not_taken("what it kept is not taken over yet") from None
        finally:
            self._count(-1, -size)
        if self._kept.borrowed is None or self._is_stopped:
            raise self._not_taken(self._kept.why or "it is being stopped")
        made = self._held(batch, size)
        return await self._append(self._kept.borrowed, entry, made, len(batch), size)

    def _held(self, batch: Batch, size: int) -> Batch | None:
        """Return a batch that is held on to until it is stored, where that is worth it; else None."""
        if isinstance(batch, DecodedBatch):
            is_much = self._large and self._large + size > self._most_bytes
            if is_much or len(batch) > KEPT_MESSAGES:
                return None  # it is decoded again when there is room for it
            self._count_large(batch, size)
        elif len(batch) > KEPT_MESSAGES and (
            self._storing_bytes + self._ready_bytes + size > KEPT_BYTES
        ):
            return None
        return batch

    @property
    def _ready_bytes(self) -> int:
        """Bytes of what is stored and waits in memory to be read."""
        borrowed = self._kept.borrowed
        return 0 if borrowed is None else borrowed.journal.ready_bytes

    def _count_large(self, batch: DecodedBatch, size: int) -> None:
        """Count a large batch until nothing is left of it."""
        self._large += size
        batch.there.debt = Acknowledgement(partial(self._free, size))

    def _free(self, size: int) -> None:
        self._large -= size
        self._freed.set()

    async def _next(self, entries: deque[StoredEntry]) -> list[Arrival]:
        """Return what some entries are; what is large alone, of which nothing is held on to here."""
        arrivals: list[Arrival] = []
        decoded = 0
        while entries and decoded <= DECODED_AT_ONCE:
            entry = entries[0]
            _, whole, batch, deaths, _ = entry
            if arrivals and len(whole) >= LARGE:
                break
            if not deaths:
                entries.popleft()
            elif await self._take(entries) is None:
                continue
            if batch is None:
                payload, is_json = payload_of(whole)
                is_slow = takes_long(payload, self._place.decoding)
                decoded += len(payload) * (SLOW if is_slow else 1)
                batch = await self._decoded(payload, is_json=is_json)
            arrivals.append((batch, entry if len(whole) <= SMALL else self._origin(entry)))
            if batch.__class__ is not list and isinstance(batch, DecodedBatch):
                break
        return arrivals

    async def _decoded(self, payload: bytes, *, is_json: bool) -> Batch:
        """Return the messages of a payload; one that is none any more for this config is skipped."""
        size, decoding = len(payload), self._place.decoding
        format = None if is_json else self._format
        if size >= LARGE:
            await self._room_for(size)
        try:
            if format is None:
                if size >= SLICE:
                    batch: Batch = await decode_large(payload, decoding)
                else:
                    decoded = at_once(payload, decoding)
                    batch = decoded if isinstance(decoded, list) else [decoded]
            else:
                into, turn = Intake(size), WritingTurn(self._clock)
                for _ in format.slices(payload, into, decoding):
                    await turn.end()
                batch = into.batch
        except NotJson as cause:
            kind, _, _ = str(cause).partition(" (byte ")
            self._place.leave_out(f"skipped a payload that is not JSON: {kind}", payload)
            return []
        except FormatMisfit as cause:
            self._place.leave_out(f"skipped what does not fit the format: {cause.kind}", payload)
            return []
        if not batch and not is_json:  # a post without messages is not stored
            self._place.leave_out(NO_MESSAGE, payload)
        if isinstance(batch, DecodedBatch):
            self._count_large(batch, size)
        return batch

    async def _count_of(self, entry: StoredEntry) -> int:
        """Return how many messages are in an entry; see `JournalSource._count_of`."""
        payload, is_json = payload_of(entry.payload)
        if is_json or self._format is None:
            return _items_in(payload)
        into, turn = CountingIntake(), WritingTurn(self._clock)
        try:
            for _ in self._format.slices(payload, into, self._place.decoding):
                await turn.end()
        except FormatMisfit:
            return 1
        return into.messages or 1

    async def _room_for(self, size: int) -> None:
        """Wait until a large payload may be in memory beside those that are."""
        while self._large and self._large + size > self._most_bytes:
            if self._is_stopped and not self._drains:
                return
            self._freed.clear()
            await self._freed.wait()

    def stop(self) -> bool:
        """Take nothing more; see `JournalSource.stop`."""
        drains = super().stop()
        self._freed.set()
        return drains


def _items_in(text: bytes) -> int:
    """Return how many items a list has that is JSON, none of which is decoded; 1: it is none, or long."""
    if len(text) > MOST_COUNTED_BYTES or text.count(b",") >= MOST_COUNTED:
        return 1
    try:
        return len(msgspec.json.decode(text, type=list[msgspec.Raw])) or 1
    except (ValueError, RecursionError):
        return 1
