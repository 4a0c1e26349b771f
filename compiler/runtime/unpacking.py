"""Unpacking: what a source reads becomes batches of messages, with their envelopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.compiler.clock import Clock
from headrace.compiler.component.envelopes import PutOn
from headrace.compiler.delivery import Batch, is_large, parts
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.jsontext import UNSEEN, Decoding, NotJson
from headrace.compiler.largejson import LargeList
from headrace.compiler.lowering.chainends import Counters
from headrace.compiler.runtime.turns import Turn


class Enclose(NamedTuple):
    """How messages that share one origin get their metadata."""

    metadata: Callable[[Any], dict[str, Any]]
    """Return what is told of an origin, now."""
    put_on: PutOn


@dataclass(frozen=True, slots=True)
class Unpacking:
    """What one input makes of arrivals, before anything is handed on: batches with their envelopes.

    Payloads that are bytes are decoded and coalesced up to `max_batch` of the source; one that is not
    JSON is skipped with a warning. Batches stay as they are.
    """

    source: Source
    decoding: Decoding
    enclose: Enclose | None
    counters: Counters
    clock: Clock
    warn_once: Callable[[str], None]
    with_origins: bool
    """Whether somebody asks where a batch came from."""

    def batches(self, arrivals: Sequence[Arrival]) -> Iterable[tuple[Batch, Any]]:
        """Return batches, and the origins of what each was made of; None where nobody asks for them."""
        if not self.source.is_raw:
            return self._enclosed(arrivals) if self.with_origins or self.enclose else arrivals
        most = max(self.source.max_batch, 1)
        coalesced = (arrivals[start : start + most] for start in range(0, len(arrivals), most))
        return ((self._messages(some), [origin for _, origin in some]) for some in coalesced)

    async def enclosed_in_slices(self, batch: Batch, origin: Any, turn: Turn) -> Batch:
        """Put the envelope on a large batch; others have their turns meanwhile."""
        assert self.enclose is not None
        about = self.enclose.metadata(origin)
        enclosed: Batch = LargeList()
        for part in parts(batch):
            enclosed += self.enclose.put_on(part, about)
            if self.clock.monotonic() > turn.ends:
                await self.clock.sleep(0)
                turn.begin()
        self.counters.skipped += len(batch) - len(enclosed)
        return enclosed

    def _enclosed(self, arrivals: Sequence[Arrival]) -> Iterator[tuple[Batch, Sequence[Any]]]:
        for batch, origin in arrivals:
            # A large one has its envelope put on in slices.
            yield batch if is_large(batch) else self._put_on(batch, origin), (origin,)

    def _messages(self, arrivals: Sequence[Arrival]) -> Batch:
        """Return the messages of some payloads; one that is not JSON is skipped with a warning."""
        if self.enclose is None:
            decode_usual, decode = self.decoding.decode_usual, self.decoding.decode
            try:
                return [
                    decode_usual(payload) if len(payload) <= UNSEEN else decode(payload)
                    for payload, _ in arrivals
                ]
            except ValueError:
                pass  # one of them is unusual; told below, if it has to be
        return [message for payload, origin in arrivals for message in self._one(payload, origin)]

    def _one(self, payload: bytes, origin: Any) -> Batch:
        try:
            message = self.decoding.decode(payload)
        except NotJson as cause:
            # Without the place of the fault: one warning for each kind, however many there are.
            kind, _, _ = str(cause).partition(" (byte ")
            self.warn_once(f"skipped a payload that is not JSON: {kind}")
            self.counters.skipped += 1
            return []
        return self._put_on([message], origin)

    def _put_on(self, batch: Batch, origin: Any) -> Batch:
        """Put the envelope on, and count what it does not fit."""
        if self.enclose is None:
            return batch
        enclosed = self.enclose.put_on(batch, self.enclose.metadata(origin))
        self.counters.skipped += len(batch) - len(enclosed)
        return enclosed
