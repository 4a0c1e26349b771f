"""A batch of which part is written: what is left of it, and which of it is at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy

from headrace.compiler.delivery import Batch, is_large
from headrace.compiler.errors import BatchFailed, class_of, worded
from headrace.compiler.largejson import LargeList
from headrace.compiler.runtime.outage import OutageBridge

WriteBatch = Callable[[Batch], Awaitable[None]]
Places = Sequence[int]
"""Indices in the whole batch."""

TRIES_ALONE = 5
"""Tries of one message alone that the other side answers, until it counts as at fault."""


class PartWritten:
    """A batch on its way to a sink. What it raises has the indices of the whole batch."""

    def __init__(self, batch: Batch, cause: Exception | None = None) -> None:
        """Take a batch, and what the first try of it raised."""
        self._batch = batch
        self._left: Places = range(len(batch))
        if isinstance(cause, BatchFailed):
            self._take_out(cause.done)

    async def rest(self, write: WriteBatch) -> None:
        """Write what is left of it, if anything is. Raises what the sink does."""
        if self._left:
            await self._some(write, self._left)

    async def apart(self, write: WriteBatch, outage: OutageBridge) -> None:
        """Write what is left in halves, down to single messages: one of them may be why all of it fails.

        An outage in between is waited for, and what was done by then stays done. What failed alone before
        others passed is tried anew: then it may have been an outage that is over now.

        Raises:
            BatchFailed: some messages fail for themselves, and others passed.
            Exception: none passed, so it was an outage after all; or one has lasted too long.
        """
        parts, tries = _halves(self._left), Counter[int]()
        before, refused = len(self._left), dict[int, str]()
        suspected = dict[int, str]()
        """Those that failed alone, and nothing has passed since."""
        cause: Exception | None = None
        while parts:
            places = parts.pop()
            try:
                await self._some(write, places)
            except Exception as failed:
                cause = failed
                places = self._still(places)
                is_of_content = class_of(cause) == "invalid"
                if len(places) > 1 and (is_of_content or _is_answered(cause)):
                    parts += _halves(places)
                elif is_of_content or _is_answered(cause):
                    [place] = places
                    tries[place] += 1
                    if is_of_content:
                        refused[place] = worded(cause)
                    elif tries[place] == TRIES_ALONE:
                        suspected[place] = worded(cause)
                    else:
                        await outage.pause(cause)
                        parts.append(places)
                else:
                    await outage.pause(cause)
                    parts.append(places)
            else:
                parts[:0] = [[place] for place in reversed(suspected)]
                tries.clear()
                suspected.clear()
        refused |= suspected
        if cause is not None and len(self._left) == before:
            raise cause
        if refused:
            said = next(iter(refused.values()))
            raise BatchFailed(said, "invalid", done=self._done(), refused=refused)

    async def _some(self, write: WriteBatch, places: Places) -> None:
        try:
            await write(self._messages(places))
        except BatchFailed as cause:
            self._take_out(places[at] for at in cause.done)
            refused = {places[at]: text for at, text in cause.refused.items()}
            raise self._of_all(cause, refused) from cause
        self._take_out(places)

    def _take_out(self, places: Iterable[int]) -> None:
        """Note that some are written."""
        written = frozenset(places)
        if written:
            self._left = [place for place in self._left if place not in written]

    def _messages(self, places: Places) -> Batch:
        if len(places) == len(self._batch):
            return self._batch
        some: Batch = LargeList() if is_large(self._batch) else []
        some += [self._batch[place] for place in places]
        return some

    def _still(self, places: Places) -> Places:
        """Return those of some that are left."""
        left = frozenset(self._left)
        return [place for place in places if place in left]

    def _done(self) -> Places:
        left = frozenset(self._left)
        return [place for place in range(len(self._batch)) if place not in left]

    def _of_all(self, cause: BatchFailed, refused: Mapping[int, str]) -> BatchFailed:
        """Return a failure of a part as one of the whole batch."""
        told = copy(cause)
        told.done, told.refused = self._done(), refused
        return told


def _is_answered(cause: Exception) -> bool:
    return isinstance(cause, BatchFailed) and cause.is_answered and cause.failure != "misconfigured"


def _halves(places: Places) -> list[Places]:
    """Return both halves, the first of them last: it is taken first."""
    middle = len(places) // 2
    return [half for half in (places[middle:], places[:middle]) if half]
