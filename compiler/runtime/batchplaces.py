"""A batch of which part is written: what has become of each message, by its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from itertools import compress

from headrace.compiler.delivery import Batch, at_once, is_large, parts
from headrace.compiler.errors import (
    BatchFailed,
    FailureClass,
    NotWritable,
    Unreachable,
    class_of,
    worded,
)
from headrace.compiler.largejson import LargeList

WriteBatch = Callable[[Batch], Awaitable[None]]
Places = Sequence[int]
"""Indices in the whole batch, in order."""

LEFT, DONE, REFUSED, ASIDE, GIVEN_UP = range(5)
"""What may have become of a message: it is still to be written; it is written; it is at fault; it is said
to be at fault; or it is no longer tried, and nobody knows."""

NOTED_AT_ONCE = 1_024
"""Messages of which something is noted in one turn."""


class BatchPlaces:
    """A batch on its way to a sink. What it raises has the indices of the whole batch.

    Some of it is a range of places, of which what is left is written. Nothing here takes more than some
    milliseconds for 100,000 messages.
    """

    def __init__(self, batch: Batch) -> None:
        """Take a batch of which nothing is written yet."""
        self.batch = batch
        self.whole = range(len(batch))
        self.failure: FailureClass = "unavailable"
        """Of what is left, if it is given up now: it is unclear while it is on its way."""
        self._states = bytearray(len(batch))
        self._refused: dict[int, str] = {}
        self.aside: dict[int, str] = {}
        """Those that are said to be at fault and do not count as refused yet, each with what is said."""

    @property
    def is_left(self) -> bool:
        """Whether anything is still to be written."""
        return LEFT in self._states

    def count_left(self, some: range) -> int:
        """Return how many of them are still to be written."""
        return self._states.count(LEFT, some.start, some.stop)

    def first_left(self) -> range | None:
        """Return the first message that is still to be written, as a range; None: none is."""
        place = self._states.find(LEFT)
        return None if place < 0 else range(place, place + 1)

    def left_in(self, some: range) -> Places:
        """Return those of them that are still to be written."""
        if self.count_left(some) == len(some):
            return some
        return [*compress(some, self._selecting(LEFT, some))]

    def halves(self, some: range) -> list[range]:
        """Return both halves of what is left of them, at least two; the one to be taken first last."""
        left = self.left_in(some)
        middle = left[len(left) // 2]
        return [range(middle, some.stop), range(some.start, middle)]

    def done(self) -> Places:
        """Return the places that are written."""
        return [*compress(self.whole, self._selecting(DONE, self.whole))]

    def set_aside(self, told: Mapping[int, str]) -> None:
        """Note messages that are said to be at fault, each with what is said of it."""
        for place in told:
            self._states[place] = ASIDE
        self.aside |= told

    def refuse(self, most: int | None = None) -> Places:
        """Count so many of those set aside as refused, or all; return the others, which are left again."""
        if most is None or most >= len(self.aside):
            self._become(ASIDE, REFUSED, self.whole)
            self._refused |= self.aside
            self.aside = {}
            return ()
        places = [*self.aside]
        for place in places[:most]:
            self._states[place] = REFUSED
            self._refused[place] = self.aside[place]
        self._become(ASIDE, LEFT, self.whole)
        self.aside = {}
        return places[most:]

    def give_up(self, some: range) -> None:
        """Leave alone what is left of them."""
        self._become(LEFT, GIVEN_UP, some)

    async def some(self, write: WriteBatch, some: range) -> None:
        """Write what is left of them.

        Raises:
            Exception: what the sink does, when what that says of single messages is noted: those that are
                said to be at fault are set aside.
        """
        self.failure = "unclear"
        try:
            await write(self.messages(some))
        except Exception as cause:
            self.failure = class_of(cause)
            await self.note(cause, some)
            raise
        self._become(LEFT, DONE, some)

    async def note(self, cause: Exception, some: range) -> None:
        """Note what a failure says of single messages; others have their turns meanwhile."""
        for _ in self._noting(cause, some):
            await asyncio.sleep(0)

    def note_at_once(self, cause: Exception) -> None:
        """Note what a failure of all of it says of single messages."""
        at_once(self._noting(cause, self.whole))

    def _noting(self, cause: Exception, some: range) -> Generator[None, None, None]:
        if not isinstance(cause, BatchFailed) or not (cause.done or cause.refused):
            return
        states, left = self._states, self.left_in(some)
        for told in parts(cause.refused.items(), NOTED_AT_ONCE):
            self.set_aside({left[at]: text for at, text in told})
            yield
        for done in parts(cause.done, NOTED_AT_ONCE):
            for at in done:
                states[left[at]] = DONE
            yield

    def end(self) -> None:
        """Tell what was at fault, now that everything else is written."""
        if self._refused:
            said = next(iter(self._refused.values()))
            raise BatchFailed(
                said, "invalid", done=self.done(), refused=self._refused, is_answered=True
            )

    def of_all(self, cause: Exception) -> Exception:
        """Return a failure of some of it as one of the whole batch."""
        done, refused, is_answered, was_alone = self.done(), self._refused, False, False
        is_other = bool(done or refused)
        if isinstance(cause, BatchFailed):
            is_other = is_other or bool(cause.done or cause.refused)
            is_answered, was_alone = cause.is_answered, cause.was_alone
        if not is_other:
            return cause
        kind = next(
            (each for each in (Unreachable, NotWritable) if isinstance(cause, each)), BatchFailed
        )
        return kind(
            worded(cause),
            class_of(cause),
            done=done,
            refused=refused,
            is_answered=is_answered,
            was_alone=was_alone,
        )

    def _become(self, state: int, another: int, some: range) -> None:
        """Note that those of them that are in one state are in another."""
        before = self._states[some.start : some.stop]
        self._states[some.start : some.stop] = before.translate(_CHANGE[state, another])

    def _selecting(self, state: int, some: range) -> bytearray:
        """Return a byte for each of them, which is 1 where it is in that state."""
        return self._states[some.start : some.stop].translate(_SELECT[state])

    def messages(self, some: range) -> Batch:
        """Return what is left of them as a batch; all of it is the batch itself."""
        count = self.count_left(some)
        if count == len(self.batch):
            return self.batch
        messages = self.batch[some.start : some.stop]
        left = messages if count == len(some) else compress(messages, self._selecting(LEFT, some))
        if is_large(self.batch):
            large: Batch = LargeList()
            large += left
            return large
        return [*left]


def left_after(cause: Exception, batch: Batch) -> Batch:
    """Return what is not written of a batch that failed: the batch itself, if nothing is, or all."""
    places = BatchPlaces(batch)
    places.note_at_once(cause)
    places.refuse(0)
    return places.messages(places.whole) if places.is_left else batch


_STATES = range(5)
_SELECT = [bytes(each == state for each in range(256)) for state in _STATES]
_CHANGE = {
    (state, another): bytes(another if each == state else each for each in range(256))
    for state in _STATES
    for another in _STATES
}
