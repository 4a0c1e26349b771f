"""Parts that a store refuses though it takes others: they wait, or are given up as what they are.

What somebody can mend is held and tried again. What the store would refuse for ever becomes dead letters,
where the pipeline keeps them, and is counted as lost where it does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.partsbridge import PartsBridge
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed, FailureClass, HeadraceError, class_of
from headrace.compiler.runtime.refusalbrake import RefusalBrake
from headrace.connectors.s3.objectpart import Declined, ObjectPart
from headrace.connectors.s3.partmessages import messages_of

SUSPECTED_SECONDS = 60.0
"""For how long a store has to refuse a part with a code that nobody knows, until it is at fault if others
pass."""


@dataclass(slots=True)
class Suspicion:
    """A part that is refused, and may be at fault."""

    since: float
    """When it was refused first."""
    taken: int
    """How many parts the store had taken by then."""


class RefusedParts:
    """Knows which parts are at fault themselves.

    A code that is about the part says so at once; any other one when it comes for long, and the store
    has taken another part meanwhile. Where as many were given up in a row as may be, and none was
    taken, it is hardly the parts: what is refused then waits for somebody.
    """

    def __init__(
        self, ctx: Context, bridge: PartsBridge | None, given_up: Callable[[ObjectPart], None]
    ) -> None:
        """Take what bridges outages, None: nothing does; and who forgets a part that is given up."""
        self._ctx, self._bridge, self._given_up = ctx, bridge, given_up
        self._brake = RefusalBrake(ctx.most_refused or 1)
        self._taken = 0
        self._suspected: dict[ObjectPart, Suspicion] = {}
        self.becoming_letters: dict[int, Batch] = {}
        """By their ids as objects: the batches of which dead letters are being made."""

    def took(self, part: ObjectPart) -> None:
        """Take note that the store has a part."""
        self._taken += 1
        self._brake.in_a_row = 0
        self.forget(part)

    def forget(self, part: ObjectPart) -> None:
        """Take note that nobody needs a part any more."""
        self._suspected.pop(part, None)
        if self._bridge is not None:
            self._bridge.ended(part)

    async def pause(
        self, part: ObjectPart, cause: Exception, delay: Callable[[], float]
    ) -> float | None:
        """Return how long it is until a part is tried again, having told; None: it is given up.

        ``delay`` returns it where nobody has to act. Units: seconds.
        """
        failure = cause.failure if isinstance(cause, Declined) else class_of(cause)
        is_told = isinstance(cause, HeadraceError | OSError)
        said = str(cause) if is_told else f"{type(cause).__name__}: {cause}".rstrip(": ")
        if failure == "invalid" and self._is_at_fault(part, cause):
            self._brake.in_a_row += 1
            await self.give_up(part, f"a part is refused for what it is: {said}", failure)
            return None
        if failure == "invalid" and self._brake.is_on:
            said = f"no part was taken between {self._brake.most:,} that were given up and this one: {said}"
            failure = "misconfigured"
        told = f"a part is set aside and tried again, and others go on: {said}"
        self._ctx.fail(told, failure)
        if part.source is not None and part.source.is_old:
            self._ctx.warn_once(
                f"a part in {part.source.place} of --data-dir is not taken, and stays there: {said}"
            )
        if self._bridge is not None and failure == "misconfigured":
            return self._bridge.set_aside(part, BatchFailed(told, failure))
        return delay()

    def _is_at_fault(self, part: ObjectPart, cause: Exception) -> bool:
        """Return whether another try would end as this one, and others do not."""
        if self._brake.is_on or not isinstance(cause, Declined):  # else it is a fault of ours
            return False
        if cause.is_certain:
            return True
        now = self._ctx.clock.monotonic()
        suspicion = self._suspected.setdefault(part, Suspicion(now, self._taken))
        return now - suspicion.since >= SUSPECTED_SECONDS and self._taken > suspicion.taken

    async def give_up(self, part: ObjectPart, said: str, failure: FailureClass) -> None:
        """Have the messages of a part be dead letters, or count them as lost; nobody needs it then.

        What it is owed for is settled when that is on the disk. Where it takes no letters, this waits.
        """
        was_on_its_way, part.is_on_its_way = part.is_on_its_way, True
        try:
            done = (
                0 if self._ctx.most_refused is None else await self._put_down(part, said, failure)
            )
            if done < part.messages:
                self._ctx.lose_count(said, part.messages - done, failure, "batch")
            self._given_up(part)
        finally:
            part.is_on_its_way = was_on_its_way

    async def _put_down(self, part: ObjectPart, said: str, failure: FailureClass) -> int:
        """Have its messages be dead letters, one after the other; return how many could be read back."""
        content = part.content
        if content is None:
            assert part.source is not None
            try:
                content = await part.source.content(part)
            except (OSError, ValueError):
                return 0
        count = 0
        async for batch in messages_of(part, content, self._ctx.decoding):
            self.becoming_letters[id(batch)] = batch
            try:
                kept = asyncio.Event()
                self._ctx.report(BatchFailed(said, failure), batch)
                self._ctx.when_kept(kept.set)
                await kept.wait()
            finally:
                del self.becoming_letters[id(batch)]
            count += len(batch)
        return count
