"""Unpacking: what a source reads becomes batches of messages, with their envelopes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from headrace.compiler.clock import Clock
from headrace.compiler.component.envelopes import PutOn
from headrace.compiler.delivery import Batch, is_large, parts
from headrace.compiler.edges import Arrival, Source
from headrace.compiler.formats import FormatMisfit, Intake, PayloadFormat, joined
from headrace.compiler.jsontext import Decoding, NotJson
from headrace.compiler.largejson import LargeList
from headrace.compiler.runtime.monitoring.failures import About
from headrace.compiler.runtime.monitoring.losses import LostData
from headrace.compiler.runtime.turns import Turn
from headrace.compiler.slownumbers import UNSEEN


class Enclose(NamedTuple):
    """How messages that share one origin get their metadata."""

    metadata: Callable[[Any], dict[str, Any]]
    """Return what is told of an origin, now."""
    put_on: PutOn


AT_ONCE = 4 * 1024
"""Bytes of payloads that are decoded before somebody looks whether the turn is over, of more than one: the
worst of them, of numbers near the ends of the range of doubles, take 6 to 14 ms."""

ENCLOSED_AT_ONCE = 256
"""Messages that an envelope is put on before others may have their turn."""

Unpacked = tuple[Batch, Any]
"""A batch, and the origins of what it was made of; None where nobody asks for them."""


@dataclass(frozen=True, slots=True)
class Unpacking:
    """What one input makes of arrivals, before anything is handed on: batches with their envelopes.

    Payloads that are bytes are decoded and coalesced up to `max_batch` of the source; one that is not
    JSON is skipped with a warning. Batches stay as they are.
    """

    source: Source
    decoding: Decoding
    enclose: Enclose | None
    clock: Clock
    with_origins: bool
    """Whether somebody asks where a batch came from."""
    leave_out: Callable[[str, LostData | None, About | None], None]
    """Is told why a payload or a part of one is skipped, of that, where it is known, and of where from."""
    format: PayloadFormat | None = None
    """What makes messages of payloads; None: they are JSON."""

    def count(self, batch: Batch) -> int:
        """Return how many messages a batch is that it has made."""
        return len(batch)

    def batches(self, arrivals: Sequence[Arrival]) -> Iterable[Unpacked | None]:
        """Return batches, and None in between wherever others may have a turn."""
        if not self.source.is_raw:
            if self.enclose is not None:
                return self._enclosed(arrivals)
            return (
                [(batch, (origin,)) for batch, origin in arrivals]
                if self.with_origins
                else arrivals
            )
        return self._coalesced(arrivals) if self.format is None else self._formatted(arrivals)

    def _coalesced(self, arrivals: Sequence[Arrival]) -> Iterator[Unpacked | None]:
        """Yield up to `max_batch` payloads as a batch, decoded in parts: each may be a large text."""
        most = max(self.source.max_batch, 1)
        for start in range(0, len(arrivals), most):
            some = arrivals[start : start + most]
            at_once = _at_once(some)
            if len(some) <= at_once:
                messages = self._messages(some)
            else:
                messages = []
                for part in parts(some, at_once):
                    messages += self._messages(part)
                    yield None
            yield messages, [origin for _, origin in some]

    def _formatted(self, arrivals: Sequence[Arrival]) -> Iterator[Unpacked | None]:
        """Yield the messages of up to `max_batch` payloads as a batch, each payload decoded in slices."""
        assert self.format is not None
        most = max(self.source.max_batch, 1)
        for start in range(0, len(arrivals), most):
            some = arrivals[start : start + most]
            messages: Batch | None = None
            for payload, origin in some:
                if isinstance(payload, list):  # a test gives what has come of one
                    batch = self._put_on(payload, origin)
                else:
                    left_out = partial(self._left_out, origin)
                    into = Intake(len(payload), left_out)
                    try:
                        for _ in self.format.slices(payload, into, self.decoding):
                            yield None
                    except FormatMisfit as cause:
                        left_out(cause, bytes(payload))
                        continue
                    batch = into.batch
                    if self.enclose is not None:
                        batch = yield from self._put_on_parts(batch, origin)
                messages = batch if messages is None else joined(messages, batch)
                yield None
            yield [] if messages is None else messages, [origin for _, origin in some]

    def _put_on_parts(self, batch: Batch, origin: Any) -> Generator[None, None, Batch]:
        """Put the envelope on a batch, of a large one part after part."""
        if not is_large(batch):
            return self._put_on(batch, origin)
        enclosed: Batch = LargeList()
        for part in parts(batch, ENCLOSED_AT_ONCE):
            enclosed += self._put_on(part, origin)
            yield None
        return enclosed

    def _left_out(self, origin: Any, cause: FormatMisfit, part: bytes | None) -> None:
        """Tell of what does not fit: one warning for each kind, however many there are."""
        said = f"skipped what does not fit the format: {cause.kind}"
        self.leave_out(said, part, partial(self.source.describe, origin))

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
            said = f"skipped a payload that is not JSON: {kind}"
            self.leave_out(said, payload, partial(self.source.describe, origin))
            return []
        return self._put_on([message], origin)

    def _put_on(self, batch: Batch, origin: Any) -> Batch:
        """Put the envelope on."""
        if self.enclose is None:
            return batch
        return self.enclose.put_on(batch, self.enclose.metadata(origin))


def _at_once(arrivals: Sequence[Arrival]) -> int:
    """Return how many payloads may be decoded before somebody looks whether the turn is over."""
    if len(arrivals) == 1:
        return 1
    return max(AT_ONCE // max(max([len(payload) for payload, _ in arrivals]), 1), 1)
