"""From what a source has read to batches: decoded, coalesced, with the envelope of their input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from headrace.compiler.clock import Clock
from headrace.compiler.component.envelopes import PutOn
from headrace.compiler.delivery import Batch, is_large, parts
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.jsontext import UNSEEN, Decoding, NotJson
from headrace.compiler.largejson import LargeList
from headrace.compiler.runtime.monitoring.counters import Counters
from headrace.compiler.runtime.turns import Turn


class Enclose(NamedTuple):
    """How messages that share one origin get their metadata."""

    metadata: Callable[[Any], dict[str, Any]]
    """Return what is told of an origin, now."""
    put_on: PutOn


class Unpacking:
    """What one input does with arrivals, before anything is handed on.

    Payloads that are bytes are decoded and coalesced up to `max_batch` of the source; one that is not
    JSON is skipped with a warning. Batches stay as they are.
    """

    def __init__(
        self,
        source: Source,
        decoding: Decoding,
        enclose: Enclose | None,
        counters: Counters,
        clock: Clock,
        warn_once: Callable[[str], None],
        *,
        with_origins: bool,
    ) -> None:
        """Take how messages are decoded and enclosed; ``with_origins``: somebody asks for them."""
        self.encloses_in_slices = enclose is not None and not source.is_raw
        """Whether a large batch still needs `enclosed_in_slices`."""
        self._source = source
        self._decoding = decoding
        self._enclose = enclose
        self._counters = counters
        self._clock = clock
        self._warn_once = warn_once
        self.batches: Callable[[Sequence[Arrival]], Iterable[tuple[Batch, Any]]]
        """Return batches, and the origins of what each was made of; None where nobody asks for them."""
        if source.is_raw:
            self.batches = self._decoded
        else:
            self.batches = self._enclosed if with_origins or enclose else _as_they_came

    async def enclosed_in_slices(self, batch: Batch, origin: Any, turn: Turn) -> Batch:
        """Put the envelope on a large batch; others have their turns meanwhile."""
        assert self._enclose is not None
        about = self._enclose.metadata(origin)
        enclosed: Batch = LargeList()
        for part in parts(batch):
            enclosed += self._enclose.put_on(part, about)
            if self._clock.monotonic() > turn.ends:
                await self._clock.sleep(0)
                turn.begin()
        self._counters.skipped += len(batch) - len(enclosed)
        return enclosed

    def _enclosed(self, arrivals: Sequence[Arrival]) -> Iterator[tuple[Batch, Sequence[Any]]]:
        for batch, origin in arrivals:
            is_sliced = is_large(batch)  # those have theirs put on in slices
            yield batch if is_sliced else self._put_on(batch, origin), (origin,)

    def _decoded(self, arrivals: Sequence[Arrival]) -> Iterator[tuple[Batch, Sequence[Any]]]:
        """Yield what payloads hold, coalesced, with their origins."""
        most = max(self._source.max_batch, 1)
        for start in range(0, len(arrivals), most):
            some = arrivals[start : start + most]
            yield self._messages(some), [origin for _, origin in some]

    def _messages(self, arrivals: Sequence[Arrival]) -> Batch:
        """Return the messages of some payloads; one that is not JSON is skipped with a warning."""
        if self._enclose is None:
            decode_usual, decode = self._decoding.decode_usual, self._decoding.decode
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
            message = self._decoding.decode(payload)
        except NotJson as cause:
            # Without the place of the fault: one warning for each kind, however many there are.
            kind, _, _ = str(cause).partition(" (byte ")
            self._warn_once(f"skipped a payload that is not JSON: {kind}")
            self._counters.skipped += 1
            return []
        return self._put_on([message], origin)

    def _put_on(self, batch: Batch, origin: Any) -> Batch:
        """Put the envelope on, and count what it does not fit."""
        if self._enclose is None:
            return batch
        enclosed = self._enclose.put_on(batch, self._enclose.metadata(origin))
        self._counters.skipped += len(batch) - len(enclosed)
        return enclosed


def _as_they_came(arrivals: Sequence[Arrival]) -> Iterable[tuple[Batch, Any]]:
    return arrivals
