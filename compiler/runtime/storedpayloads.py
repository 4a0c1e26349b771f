"""A journal of payloads as they came, which are decoded and put together as those of any other source."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from headrace.compiler.delivery import Batch
from headrace.compiler.edges import Arrival
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.beingstored import BeingStored
from headrace.compiler.runtime.journalsource import JournalSource
from headrace.compiler.runtime.storage import Storage
from headrace.compiler.runtime.storedarrival import packed, payload_of

if TYPE_CHECKING:
    from headrace.compiler.runtime.componentcontext import ComponentContext
    from headrace.compiler.store.journal import StoredEntry


class StoredPayloads(JournalSource):
    """Reads a journal whose entries are payloads each."""

    def __init__(
        self,
        storage: Storage,
        place: ComponentContext,
        target: str,
        max_bytes: int,
        max_batch: int,
    ) -> None:
        """Take where it is kept, and the most messages of a batch."""
        super().__init__(storage, place, target, max_bytes)
        self.max_batch = max(max_batch, 1)

    def put(self, payload: bytes | Batch, about: dict[str, Any]) -> BeingStored:
        """Have a payload stored, or what a test says has become of one; see `JournalSource.put`."""
        is_made = isinstance(payload, list)
        body = encode(payload) if isinstance(payload, list) else payload
        return self._put(packed(body, about, self._clock.micros(), is_json=is_made), None, 1)

    async def _next(self, entries: deque[StoredEntry]) -> list[Arrival]:
        """Return the payloads of all entries."""
        arrivals: list[Arrival] = []
        while entries:
            entry = entries[0]
            if not entry.deaths:
                entries.popleft()
            elif await self._take(entries) is None:
                continue
            payload, is_made = payload_of(entry.payload)
            arriving = self._place.decoding.decode(payload) if is_made else payload
            arrivals.append((arriving, self._origin(entry)))
        return arrivals

    async def _count_of(self, entry: StoredEntry) -> int:
        """Return 1: nobody has decoded it yet, and that may be what ended the process."""
        return 1
