"""What a dry run answers: as much of what happened as an answer can hold.

Of a stage the first messages are shown, and of everything together so many bytes; where something
was left out, a note says so. Messages can share what they are made of, so that a small chain makes
what is too large for any answer: nothing is written out before it has been weighed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

from headrace.compiler.buckets import Bucket
from headrace.compiler.delivery import Batch, JsonValue
from headrace.compiler.runtime.rehearsal.chain import Rehearsal
from headrace.compiler.runtime.rehearsal.seat import Seat
from headrace.compiler.runtime.rehearsal.turn import Indices, Lot

MOST_SHOWN = 1000
"""Messages of one stage."""
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of all messages and values, about."""
MOST_ENTRIES = 200
"""Entries of the bucket."""
MOST_REASONS = 100
"""Reasons why one message came to nothing: each of the many that a script made of it can have its own."""


class Answer:
    """An answer while it is put together, and its notes on itself."""

    def __init__(self, notes: Iterable[str] = ()) -> None:
        self.notes = [*notes]
        self._bytes = MOST_BYTES

    def stages(self, seats: Iterable[Seat], *, is_traced: bool) -> list[dict[str, Any]]:
        """Return what each stage handed on: because messages came, and by itself."""
        return [self._stage(seat, is_traced) for seat in seats]

    def batches(self, seat: Seat) -> list[Batch]:
        """Return what one stage handed on."""
        return [batch for _, batch, _ in self._shown(seat)]

    def entries(self, bucket: Bucket | None) -> dict[str, Mapping[str, JsonValue]]:
        """Return what a bucket holds, the latest first."""
        if bucket is None:
            return {}
        shown: dict[str, Mapping[str, JsonValue]] = {
            key: values
            for key, values, _ in bucket.newest(MOST_ENTRIES)
            if self._has_room((key, values))
        }
        if (rest := len(bucket) - len(shown)) > 0:
            self.notes.append(f"bucket '{bucket.name}': {rest:,} more keys are not shown")
        return shown

    def left(self, rehearsal: Rehearsal) -> list[dict[str, Any]]:
        """Return which message of the request has gone no further than which stage, and why."""
        lost = rehearsal.left()
        some = chain.from_iterable(
            islice(of_one, MOST_REASONS) for _, of_one in groupby(lost, key=itemgetter(0))
        )
        told = [
            {"message": index, **_named(rehearsal.seats[each.at]), "why": each.why}
            for index, each in some
            if self._has_room(each.why)
        ]
        if rest := len(lost) - len(told):
            self.notes.append(f"'left': {rest:,} more reasons are not shown")
        return told

    def _stage(self, seat: Seat, is_traced: bool) -> dict[str, Any]:
        shown = self._shown(seat)
        stage: dict[str, Any] = {"index": seat.index, "kind": seat.tap.transform.kind}
        for key, is_flush in (("batches", False), ("on_flush", True)):
            stage[key] = [batch for lot, batch, _ in shown if lot.is_flush is is_flush]
        if is_traced:
            for key, is_flush in (("origins", False), ("on_flush_origins", True)):
                stage[key] = [of for lot, _, of in shown if lot.is_flush is is_flush]
        return stage

    def _shown(self, seat: Seat) -> list[tuple[Lot, Batch, Sequence[Indices]]]:
        """Return the lots of a stage, each with as much of it as is shown."""
        shown, left = list[tuple[Lot, Batch, Sequence[Indices]]](), MOST_SHOWN
        for lot in seat.tap.handed_on:
            count = self._fitting(lot, left)
            left -= count
            if count:
                shown.append((lot, lot.batch[:count], lot.origins[:count]))
            if count < len(lot.batch):
                break
        total = sum(len(lot.batch) for lot in seat.tap.handed_on)
        if rest := total - (MOST_SHOWN - left):
            self.notes.append(f"{seat.place}: {rest:,} more messages are not shown")
        return shown

    def _fitting(self, lot: Lot, most: int) -> int:
        """Return how many of a lot's messages are shown."""
        for count, message in enumerate(lot.batch[:most]):
            if not self._has_room((message, lot.origins[count : count + 1])):
                return count
        return min(len(lot.batch), most)

    def _has_room(self, value: Any) -> bool:
        """Take what a value needs. Once something is too large, there is no room for anything."""
        self._bytes -= weight(value, self._bytes)
        return self._bytes > 0


def weight(value: JsonValue, most: int) -> int:
    """Return about how many bytes a value is as JSON; beyond ``most`` it is not looked at further."""
    ahead, total = [value], 0
    while ahead and total < most:
        value = ahead.pop()
        if isinstance(value, str):
            total += len(value) + 3
        elif isinstance(value, dict):
            total += sum(map(len, value)) + 4 * len(value) + 2
            ahead += value.values()
        elif isinstance(value, list | tuple):
            total += 2
            ahead += value
        else:
            total += 3 + (value.bit_length() // 3 if isinstance(value, int) else 8)
    return total


def _named(seat: Seat) -> dict[str, Any]:
    return {"at": seat.index, "kind": seat.tap.transform.kind}
