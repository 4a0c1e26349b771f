"""A batch that is tried again: what is left of it, and which of it is at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, class_of, worded
from headrace.compiler.runtime.batchplaces import BatchPlaces, WriteBatch
from headrace.compiler.runtime.outage import OutageBridge

Neighbour = Callable[[], Awaitable[bool]]
"""Writes what comes behind a batch, and returns whether there was something and it passed."""

TRIES_ALONE = 5
"""Tries of one message alone that the other side answers, until it is suspected."""


class PartWritten(BatchPlaces):
    """A batch that is tried again and again, until what is left of it is written or at fault."""

    def __init__(self, batch: Batch, cause: Exception | None = None) -> None:
        """Take a batch, and what the first try of it raised."""
        super().__init__(batch)
        self._failed_alone: Counter[int] = Counter()
        self._is_doubted: set[int] = set()
        """The places that failed alone for as long as is tried, before something else passed."""
        if cause is not None:
            self.failure = class_of(cause)
            self.note_at_once(cause)
            self.refuse()

    async def rest(self, write: WriteBatch) -> None:
        """Write what is left of it, if anything is. Raises what the sink does."""
        if self.is_left:
            try:
                await self.some(write, self.whole)
            except Exception as cause:
                self.refuse()
                raise self.of_all(cause) from cause
        self.end()

    async def apart(self, write: WriteBatch, outage: OutageBridge, neighbour: Neighbour) -> None:
        """Write what is left in halves, down to single messages: one of them may be why all of it fails.

        An outage in between is waited for, and what was done by then stays done. A message is at fault if
        it fails alone again and again, and once more after something has passed, and something passes then:
        else it may have been an outage. Where nothing else is left, what comes behind the batch is tried.

        Raises:
            BatchFailed: some messages fail for themselves.
            Exception: nothing passes, so it was an outage after all; or one has lasted too long.
        """
        parts = self._parts(self.whole)
        suspected = dict[int, Exception]()
        while parts or suspected:
            if not parts:
                if not await neighbour():
                    raise self.of_all(next(iter(suspected.values())))
                parts = self._passed(suspected, outage)
                continue
            part = parts.pop()
            if not self.count_left(part):
                continue
            try:
                await self.some(write, part)
            except Exception as cause:
                if not self._failed(part, cause, parts, suspected):
                    try:
                        await outage.pause(cause, is_brief=may_be_content(cause))
                    except Exception as last:
                        raise self.of_all(last) from cause
                    parts.append(part)
            else:
                parts[:0] = self._passed(suspected, outage)
        self.end()

    def _failed(
        self, part: range, cause: Exception, parts: list[range], suspected: dict[int, Exception]
    ) -> bool:
        """Note what a failure says of some messages; return whether it says something, and is no outage."""
        is_told = bool(self.aside)
        self.refuse()
        is_of_content = class_of(cause) == "invalid"
        if not (is_of_content or may_be_content(cause)):
            return False
        if is_of_content and is_told:
            parts.append(part)  # the others may do
        elif self.count_left(part) > 1:
            parts += self.halves(part)
        elif self.count_left(part):
            [place] = self.left_in(part)
            if is_of_content:
                self._is_at_fault(place, cause)
                return True
            self._failed_alone[place] += TRIES_ALONE if was_alone(cause) else 1
            if self._failed_alone[place] < TRIES_ALONE:
                return False
            suspected[place] = cause
        return True

    def _passed(self, suspected: dict[int, Exception], outage: OutageBridge) -> list[range]:
        """Note that something has passed; return the messages that are to be tried once more."""
        outage.worked()
        again = list[range]()
        for place, cause in reversed(suspected.items()):
            if place in self._is_doubted:
                self._is_at_fault(place, cause)
            else:
                self._is_doubted.add(place)
                self._failed_alone[place] = TRIES_ALONE - 1
                again.append(range(place, place + 1))
        suspected.clear()
        return again

    def _is_at_fault(self, place: int, cause: Exception) -> None:
        self.set_aside({place: worded(cause)})
        self.refuse()

    def _parts(self, part: range) -> list[range]:
        """Return both halves of what is left of some messages, or what there is."""
        return self.halves(part) if self.count_left(part) > 1 else [part]


def may_be_content(cause: Exception) -> bool:
    """Return whether a failure that another try may end may be of the content all the same."""
    if not isinstance(cause, BatchFailed) or cause.failure == "misconfigured":
        return False
    return cause.is_answered or cause.failure == "unclear"


def was_alone(cause: Exception) -> bool:
    """Return whether what failed was tried one message at a time as often as that takes."""
    return isinstance(cause, BatchFailed) and cause.was_alone
