"""The distinct failures of one pipeline id: what failed how, when first and last, and how often.

A failure is known by its stage, component and message. A table holds 64: the one seen longest ago
makes room, and that is counted. One that has not been seen for as long as history goes back leaves by
itself, which is not. Which of the inputs failed so is kept beside it.
"""

from __future__ import annotations

from functools import reduce
from sys import getsizeof
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headrace.compiler.annotated import Count, Millis
from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Stage
from headrace.compiler.errors import FailureClass

ComponentKey = tuple[Stage, int | None, str]

MOST_SIGNATURES = 64

_SIGNATURE_BYTES = 500
"""Of a signature beside its text, roughly."""


class ErrorSignature(msgspec.Struct, frozen=True, rename={"failure": "class"}):
    """A distinct failure: what failed where, when first and last, and how often."""

    stage: Stage
    component: Annotated[Count | None, Meta(description="Index in the list of its stage.")]
    message: str
    first_seen: Millis
    last_seen: Millis
    count: Count
    failure: Annotated[
        FailureClass,
        Meta(
            description="Why, as it was last: time heals it, somebody has to act, it is the content, or "
            "nobody knows how far it came."
        ),
    ]
    input_index: (
        Annotated[Count, Meta(description="Of an input that failed; absent where several did.")]
        | UnsetType
    ) = UNSET

    def joined(self, other: ErrorSignature) -> ErrorSignature:
        """Return it with what was counted of the same failure elsewhere."""
        return ErrorSignature(
            *self.place,
            min(self.first_seen, other.first_seen),
            max(self.last_seen, other.last_seen),
            self.count + other.count,
            (other if other.last_seen >= self.last_seen else self).failure,
            self.input_index if self.input_index == other.input_index else UNSET,
        )

    @property
    def place(self) -> ComponentKey:
        """What it is known by."""
        return self.stage, self.component, self.message


class PipelineFailure(ErrorSignature, frozen=True, kw_only=True):
    """A distinct failure of one of several pipelines; that of each input by itself."""

    pipeline_id: str


class Signatures:
    """A table of failures, the one seen longest ago first. With 0 seconds it keeps none."""

    __slots__ = ("_clock", "_known", "_seconds", "dropped")

    def __init__(self, clock: Clock, seconds: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._known: dict[ComponentKey, dict[int | None, ErrorSignature]] = {}
        """By input, where it is one that failed; the one seen last is the last of them."""
        self.dropped = 0
        """How many made room for others."""

    def count(
        self,
        stage: Stage,
        component: int | None,
        message: str,
        input_index: int | None = None,
        failure: FailureClass = "invalid",
    ) -> None:
        """Count one failure, seen now."""
        if not self._seconds:
            return
        now, place = self._clock.millis(), (stage, component, message)
        self._expire(now)
        known = self._known.pop(place, {})
        before = known.pop(input_index, None)
        self._make_room(MOST_SIGNATURES - 1)
        # Last in order: what is first was seen longest ago.
        index = UNSET if input_index is None else input_index
        seen = ErrorSignature(*place, now, now, 1, failure, index)
        known[input_index] = seen if before is None else before.joined(seen)
        self._known[place] = known

    def absorb(self, other: Signatures) -> None:
        """Take on all that another table has counted."""
        self._expire(self._clock.millis())
        for place, others in other._known.items():
            known = self._known.setdefault(place, {})
            for index, each in others.items():
                known[index] = each.joined(known[index]) if index in known else each
            self._known[place] = dict(sorted(known.items(), key=lambda one: one[1].last_seen))
        self._known = dict(sorted(self._known.items(), key=lambda known: _last_seen(known[1])))
        self.dropped += other.dropped
        self._make_room(MOST_SIGNATURES)

    def latest(self) -> list[ErrorSignature]:
        """Return what failed, last seen first, then by message."""
        self._expire(self._clock.millis())
        joined = (reduce(ErrorSignature.joined, each.values()) for each in self._known.values())
        return sorted(joined, key=in_order)

    def by_input(self) -> list[ErrorSignature]:
        """Return what failed, that of each input by itself; in no order."""
        self._expire(self._clock.millis())
        return [each for known in self._known.values() for each in known.values()]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(
            _SIGNATURE_BYTES * len(known) + getsizeof(message)
            for (_, _, message), known in self._known.items()
        )

    def _expire(self, now: int) -> None:
        """Drop what was seen too long ago."""
        oldest = now - self._seconds * 1000
        while self._known:
            place = next(iter(self._known))
            if _last_seen(self._known[place]) >= oldest:
                return
            del self._known[place]

    def _make_room(self, most: int) -> None:
        """Drop what was seen longest ago until only so many are left."""
        while len(self._known) > most:
            del self._known[next(iter(self._known))]
            self.dropped += 1


def in_order(failure: ErrorSignature) -> tuple[int, str]:
    """Return what failures are ordered by where they are told: last seen first, then by message."""
    return -failure.last_seen, failure.message


def _last_seen(known: dict[int | None, ErrorSignature]) -> int:
    return next(reversed(known.values())).last_seen
