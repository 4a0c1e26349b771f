"""A batch of which part is written: what is left of it, and which of it is at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence

from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.errors import (
    BatchFailed,
    FailureClass,
    NotWritable,
    Unreachable,
    class_of,
    worded,
)
from headrace.compiler.largejson import LargeList
from headrace.compiler.runtime.outage import OutageBridge

WriteBatch = Callable[[Batch], Awaitable[None]]
Neighbour = Callable[[], Awaitable[bool]]
"""Writes what comes behind a batch, and returns whether there was something and it passed."""
Places = Sequence[int]
"""Indices in the whole batch."""

TRIES_ALONE = 5
"""Tries of one message alone that the other side answers, until it is suspected."""


class PartWritten:
    """A batch on its way to a sink. What it raises has the indices of the whole batch."""

    def __init__(self, batch: Batch, cause: Exception | None = None) -> None:
        """Take a batch, and what the first try of it raised."""
        self.batch = batch
        self._left = dict.fromkeys(range(len(batch)))
        """The places that are still to be written, in order."""
        self._refused: dict[int, str] = {}
        self._failed_alone: Counter[int] = Counter()
        self._is_doubted: set[int] = set()
        """The places that failed alone for as long as is tried, before something else passed."""
        self.failure: FailureClass = "unavailable" if cause is None else class_of(cause)
        """Of what is left, if it is given up now: it is unclear while it is on its way."""
        if isinstance(cause, BatchFailed):
            self._take_out(cause.done)

    @property
    def is_left(self) -> bool:
        """Whether anything is still to be written."""
        return bool(self._left)

    def done(self) -> Places:
        """Return the places that are written."""
        return [
            place
            for place in range(len(self.batch))
            if place not in self._left and place not in self._refused
        ]

    async def rest(self, write: WriteBatch) -> None:
        """Write what is left of it, if anything is. Raises what the sink does."""
        places = [*self._left]
        try:
            if places:
                await self._some(write, places)
        except Exception as cause:
            raise self._of_all(cause, places) from cause
        self._end()

    async def apart(self, write: WriteBatch, outage: OutageBridge, neighbour: Neighbour) -> None:
        """Write what is left in halves, down to single messages: one of them may be why all of it fails.

        An outage in between is waited for, and what was done by then stays done. A message is at fault if
        it fails alone again and again, and once more after something has passed, and something passes then:
        else it may have been an outage. Where nothing else is left, what comes behind the batch is tried.

        Raises:
            BatchFailed: some messages fail for themselves.
            Exception: nothing passes, so it was an outage after all; or one has lasted too long.
        """
        parts = _halves([*self._left])
        suspected = dict[int, Exception]()
        while parts or suspected:
            if not parts:
                if not await neighbour():
                    raise self._of_all(next(iter(suspected.values())), ())
                parts = self._passed(suspected, outage)
                continue
            places = parts.pop()
            try:
                await self._some(write, places)
            except Exception as cause:
                places = [place for place in places if place in self._left]
                if not await self._failed(places, cause, parts, suspected):
                    try:
                        await outage.pause(cause, is_brief=may_be_content(cause))
                    except Exception as last:
                        raise self._of_all(last, ()) from cause
                    parts.append(places)
            else:
                parts[:0] = self._passed(suspected, outage)
        self._end()

    async def _failed(
        self,
        places: Places,
        cause: Exception,
        parts: list[Places],
        suspected: dict[int, Exception],
    ) -> bool:
        """Note what a failure says of some messages; return whether it says something, and is no outage."""
        is_of_content = class_of(cause) == "invalid"
        if not (is_of_content or may_be_content(cause)):
            return False
        if len(places) > 1:
            parts += _halves(places)
        elif is_of_content:
            self._refuse(places[0], cause)
        elif places:
            [place] = places
            self._failed_alone[place] += 1
            if self._failed_alone[place] < TRIES_ALONE:
                return False
            suspected[place] = cause
        return True

    def _passed(self, suspected: dict[int, Exception], outage: OutageBridge) -> list[Places]:
        """Note that something has passed; return the messages that are to be tried once more."""
        outage.worked()
        again = list[Places]()
        for place, cause in reversed(suspected.items()):
            if place in self._is_doubted:
                self._refuse(place, cause)
            else:
                self._is_doubted.add(place)
                self._failed_alone[place] = TRIES_ALONE - 1
                again.append([place])
        suspected.clear()
        return again

    def _refuse(self, place: int, cause: Exception) -> None:
        self._refused[place] = worded(cause)
        self._take_out((place,))

    async def _some(self, write: WriteBatch, places: Places) -> None:
        """Write some of it; what is done in spite of a failure is taken out."""
        self.failure = "unclear"
        try:
            await write(self._messages(places))
        except Exception as cause:
            self.failure = class_of(cause)
            if isinstance(cause, BatchFailed):
                self._take_out([places[at] for at in cause.done])
            raise
        self._take_out(places)

    def _messages(self, places: Places) -> Batch:
        if len(places) == len(self.batch):
            return self.batch
        some: Batch = LargeList() if is_large(self.batch) else []
        some += [self.batch[place] for place in places]
        return some

    def _take_out(self, places: Iterable[int]) -> None:
        for place in places:
            self._left.pop(place, None)

    def _end(self) -> None:
        """Tell what was at fault, now that everything else is written."""
        if self._refused:
            said = next(iter(self._refused.values()))
            raise BatchFailed(
                said, "invalid", done=self.done(), refused=self._refused, is_answered=True
            )

    def _of_all(self, cause: Exception, places: Places) -> Exception:
        """Return a failure of some of it, by their places, as one of the whole batch."""
        refused = dict(self._refused)
        if isinstance(cause, BatchFailed):
            refused |= {places[at]: text for at, text in cause.refused.items()} if places else {}
        done = self.done()
        if not (done or refused):
            return cause
        kind = next(
            (each for each in (Unreachable, NotWritable) if isinstance(cause, each)), BatchFailed
        )
        answered = isinstance(cause, BatchFailed) and cause.is_answered
        return kind(
            worded(cause), class_of(cause), done=done, refused=refused, is_answered=answered
        )


def may_be_content(cause: Exception) -> bool:
    """Return whether a failure that another try may end may be of the content all the same."""
    if not isinstance(cause, BatchFailed) or cause.failure == "misconfigured":
        return False
    return cause.is_answered or cause.failure == "unclear"


def _halves(places: Places) -> list[Places]:
    """Return both halves, the first of them last: it is taken first."""
    middle = len(places) // 2
    return [half for half in (places[middle:], places[:middle]) if half]
