"""Parts that are closed and not in the store yet: sent in order, tried again, and kept at the end.

Those of an earlier run, and those that were refused, are sent beside the others and hold up none of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import HeadraceError, Unreachable, class_of
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.s3.objectkeys import PartNumbers
from headrace.connectors.s3.objectpart import (
    Declined,
    ObjectPart,
    Taken,
    UnsentFile,
    UnsentFolder,
    reason,
)
from headrace.connectors.s3.objectstore import S3Store
from headrace.connectors.s3.retries import AT_ONCE, RetryQueue, within
from headrace.connectors.s3.storefailures import FAILURES, NO_ANSWER

Keeping = asyncio.Future[UnsentFile] | None
"""What is being put on the disk, if anything is."""

# A pipeline has 3.5 s to end, and 1 s if something else took them.
FIRST_SECONDS = 0.5
"""How long the end waits for uploads before it puts what is left on the disk as well."""
FINISH_SECONDS = 2.5
"""How long it waits for them in all."""
STOP_SECONDS = 0.5
"""How long an upload may take to be given up."""
UNSENDABLE = "some of what an earlier run has kept cannot be sent"


class UploadQueue:
    """Sends what it is given until the store has it.

    While the store takes nothing, one part is tried at a time, on the backoff. A part that is not
    taken although others may be is set aside, and parts of an earlier run are sent there from the
    start: neither holds up others. Whoever gives parts has to look at how much is `held`.
    """

    def __init__(
        self,
        store: S3Store,
        folder: UnsentFolder | None,
        numbers: PartNumbers,
        ctx: Context,
    ) -> None:
        """Take where to keep what is left at the end, and the numbers for parts that need another."""
        self._store, self._folder, self._numbers, self._ctx = store, folder, numbers, ctx
        self.unsent: dict[ObjectPart, None] = {}
        """The parts that wait or are on their way."""
        self._queue: deque[ObjectPart] = deque()
        self._retries = RetryQueue(self._send_one, self._tell, ctx)
        self._sources: set[UnsentFile] = set()
        self.work: asyncio.Task[None] | None = None
        """What sends those that are not set aside, as long as there are any."""
        self._backoff = Backoff()
        self._is_failing = False
        self._hurry = asyncio.Event()
        self.news = asyncio.Event()
        """That less is held than when it was looked at, maybe."""
        self.held = 0
        """Bytes of the parts that wait in memory."""

    def add(self, part: ObjectPart) -> None:
        """Have a part sent after all others."""
        self.unsent[part] = None
        self._queue.append(part)
        self.held += part.size
        if not part.is_ready:  # now, not when its turn comes: it is smaller then
            part.compressing = asyncio.ensure_future(self._compress(part))
        if self.work is None:
            self.work = asyncio.ensure_future(self._send_all())

    async def add_kept(self) -> None:
        """Have those sent that an earlier end left on the disk, beside all others."""
        if self._folder is None:
            return
        found, wrong = await asyncio.to_thread(self._folder.parts)
        for each in wrong:
            self._ctx.warn(f"cannot send {each}")
        if wrong:
            self._ctx.fail(UNSENDABLE, "misconfigured")
        if found:
            self._ctx.note(f"{_amount(found)} of an earlier run are uploaded now")
        self._sources = {part.source for part in found if part.source is not None}
        for part in found:
            self._numbers.note(part.key)
            self.unsent[part] = None
            self._retries.add(part, is_refused=False)

    async def _send_all(self) -> None:
        try:
            while self._queue:
                # While the store takes nothing, one at a time.
                number = 1 if self._is_failing else min(AT_ONCE, len(self._queue))
                await self._send([self._queue.popleft() for _ in range(number)])
        finally:
            self.work = None
            self._is_less()  # or will not be, by this

    async def _send(self, parts: Sequence[ObjectPart]) -> None:
        """Send some parts, and wait before the next try if the store takes nothing."""
        said = await asyncio.gather(*map(self._send_one, parts), return_exceptions=True)
        out: dict[ObjectPart, Unreachable] = {}
        for part, cause in zip(parts, said, strict=True):
            match cause:
                case Unreachable():
                    out[part] = cause
                case Exception():
                    self._tell(part, cause)
                    self._retries.add(part, is_refused=True)
        if 1 < len(out) == len(parts):
            self._queue.extendleft(reversed(out))
        else:  # it may be for one of them that the store says no: after others
            self._queue.extend(out)
        if out:
            await self._failed(next(iter(out.values())))
        elif self._is_failing and None in said:
            self._is_failing = False
            self._backoff.reset()
            self._ctx.reconnected("written to again")

    async def _send_one(self, part: ObjectPart) -> None:
        try:
            if await self._is_prepared(part):
                await self._put(part)
                del self.unsent[part]
                if part.source is None:
                    self.held -= part.size
                else:
                    part.source.sent(part)
                self._is_less()
        finally:
            if part.source is not None:  # that is enough
                part.content = None

    async def _put(self, part: ObjectPart) -> None:
        while True:
            try:
                await self._store.send(part)
                return
            except Taken:
                self._ctx.warn_once(
                    "the name of a part was taken: another server writes to this prefix, and the"
                    " part gets a later number"
                )
                part.key = self._numbers.passed_on(part.key)

    async def _is_prepared(self, part: ObjectPart) -> bool:
        """Have the content as it is uploaded; return whether it is there."""
        if part.source is None:
            if part.compressing is None and not part.is_ready:  # the last try has failed
                part.compressing = asyncio.ensure_future(self._compress(part))
            compressing, part.compressing = part.compressing, None
            if compressing is not None:
                await compressing
            return True
        try:
            await asyncio.to_thread(part.prepare)
        except (OSError, ValueError) as cause:
            self._ctx.warn(f"a part in {part.source.place} cannot be read: {reason(cause)}")
            self._ctx.fail(UNSENDABLE, "misconfigured")
            del self.unsent[part]
            return False
        return True

    async def _compress(self, part: ObjectPart) -> None:
        """Compress a part in memory, and count it anew."""
        before = part.size
        await asyncio.to_thread(part.prepare)
        self.held += part.size - before
        self._is_less()

    def _is_less(self) -> None:
        """Wake whoever waits for news."""
        self.news.set()
        self.news = asyncio.Event()

    def _tell(self, part: ObjectPart, cause: Exception, seconds: float | None = None) -> None:
        """Report why a part was not taken, and if nobody answers, in how long they are asked again."""
        is_told = isinstance(cause, HeadraceError | OSError)
        told = str(cause) if is_told else f"{type(cause).__name__}: {cause}".rstrip(": ")
        if isinstance(cause, Unreachable):
            self._ctx.disconnected(told, seconds, cause.failure)
            return
        failure = cause.failure if isinstance(cause, Declined) else class_of(cause)
        self._ctx.fail(f"a part is set aside and tried again, and others go on: {told}", failure)
        if part.source is not None:
            self._ctx.warn_once(
                f"a part in {part.source.place} of --data-dir is not taken, and stays there: {told}"
            )

    async def _failed(self, cause: Unreachable) -> None:
        """Report it, and wait before the next try, unless the pipeline is ending."""
        pause = self._backoff.next()
        self._ctx.disconnected(str(cause), pause, cause.failure)
        self._is_failing = True
        await within(self._ctx.clock, pause, self._hurry.wait())
        self._hurry.clear()

    async def finish(self) -> None:
        """Have everything uploaded in the time there is; say what is not, and keep it if possible.

        It may be cancelled at any time: a part is then kept, or told of, all the same.
        """
        self._backoff.reset()
        self._hurry.set()
        self._retries.end()
        kept: Keeping = None
        try:
            await self._ended(FIRST_SECONDS)
            if self.unsent:
                kept = self._keep()
                await self._ended(FINISH_SECONDS - FIRST_SECONDS)
                await self.stop()
            if kept is not None:
                await asyncio.wait([kept])
        finally:
            # Nothing is awaited from here on: who is cancelled once may be cancelled again.
            for work in self._works():
                work.cancel()
            kept = kept or self._keep()
            if kept is None or kept.done():
                self._end(kept)
            else:
                kept.add_done_callback(self._end)

    async def _ended(self, seconds: float) -> None:
        """Wait until nothing is tried any more, but no longer than so long."""
        with suppress(TimeoutError):
            async with self._ctx.clock.timeout(seconds):
                while works := self._works():
                    await asyncio.wait(works)

    async def stop(self) -> None:
        """Give up what is being sent: pieces of it are removed from the store."""
        for work in (works := self._works()):
            work.cancel()
        if works:
            await within(self._ctx.clock, STOP_SECONDS, asyncio.wait(works))

    def _works(self) -> list[asyncio.Task[None]]:
        return [*self._retries.works(), *([] if self.work is None else [self.work])]

    def _keep(self) -> Keeping:
        """Begin to put on the disk what is in memory; None if there is nothing, or no disk."""
        if self._folder is None or not (left := _in_memory(self.unsent)):
            return None
        return asyncio.get_running_loop().run_in_executor(
            None, self._folder.keep, left, self._ctx.clock.now()
        )

    def _end(self, kept: Keeping) -> None:
        """Say what became of the parts that are not in the store, and leave those that are kept.

        In warnings, of which the log shows every one; of failures it shows some.
        """
        lost, why = _in_memory(self.unsent), "with --data-dir they would be kept"
        if kept is not None and (cause := kept.exception()) is not None:
            why = f"they cannot be kept in --data-dir: {reason(cause)}"
        elif kept is not None:
            if lost:
                kept.result().close()
            else:
                kept.result().remove()
            lost = []
        if lost:
            self._ctx.warn(f"lost, because not uploaded in time: {_amount(lost)}; {why}")
            said = "parts are lost: they could not be uploaded in time"
            count = sum(part.messages for part in lost)
            self._ctx.lose_count(said, count, FAILURES.of(NO_ANSWER))
        if safe := [part for part in self.unsent if part.source is not None or not lost]:
            assert self._folder is not None
            self._ctx.warn(
                f"not uploaded: {_amount(safe)}; kept in '{self._folder.place}' of --data-dir for the"
                " next output with this bucket and prefix"
            )
        for source in self._sources:
            source.close()
        self.unsent.clear()


def _in_memory(parts: Iterable[ObjectPart]) -> list[ObjectPart]:
    """Return the parts that are nowhere else."""
    return [part for part in parts if part.source is None]


def _amount(parts: Sequence[ObjectPart]) -> str:
    """Return how much some parts are, in words."""
    messages = sum(part.messages for part in parts)
    size = sum(part.length for part in parts)
    counted = [
        f"{number:,} {noun}{'' if number == 1 else 's'}"
        for number, noun in ((len(parts), "part"), (messages, "message"))
    ]
    return f"{' with '.join(counted)} ({size:,} bytes)"
