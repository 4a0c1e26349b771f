"""Parts that are closed and not in the object store yet: sent in order, tried again, and kept on the disk.

What is not sent soon is put into the store of the engine as well, if there is one, and so is what is left
at the end. Parts of an earlier run, and those that were refused, are sent beside the others and hold up
none of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.component.partskeep import PartsKeep
from headrace.compiler.component.queuedoutput import QueueOptions
from headrace.compiler.component.retry import RetryOptions
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import Unreachable
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.s3.objectkeys import PartNumbers
from headrace.connectors.s3.objectpart import ObjectPart, PartSource, Taken
from headrace.connectors.s3.objectstore import S3Store
from headrace.connectors.s3.partkeeper import DROPPED, PartKeeper
from headrace.connectors.s3.partsleft import amount, tell_of_the_rest
from headrace.connectors.s3.refusedparts import RefusedParts
from headrace.connectors.s3.retries import AT_ONCE, MOST_BYTES, RetryQueue, within
from headrace.connectors.s3.storelater import StoreLater
from headrace.connectors.s3.storeoutage import StoreOutage
from headrace.connectors.s3.unsentfolder import UnsentFile, UnsentFolder, reason

# A pipeline has 3.5 s to end, and 1 s if something else took them.
FIRST_SECONDS = 0.5
"""How long the end waits for uploads before it puts what is left on the disk as well."""
FINISH_SECONDS = 2.5
"""How long it waits for them in all."""
STOP_SECONDS = 0.5
"""How long an upload may take to be given up."""
OPEN_SECONDS = 2.0
"""How long a start waits to hear what is on the disk: then it is sent as soon as that is known."""
UNSENDABLE = "some of what an earlier run has kept cannot be sent"
DAMAGED = "a part that was kept is damaged"


class UploadQueue:
    """Sends what it is given until the store has it.

    While the store takes nothing, one part is tried at a time, on the backoff. A part that is not
    taken although others may be is set aside, or given up where it is at fault itself, and parts of an
    earlier run are tried beside the others from the start: neither holds up others. Whoever gives parts has
    to look at how much is `held`.
    """

    def __init__(
        self,
        store: S3Store | StoreLater,
        folder: UnsentFolder | None,
        keep: PartsKeep | None,
        numbers: PartNumbers,
        ctx: Context,
        queueing: QueueOptions | None = None,
        retry: RetryOptions | None = None,
    ) -> None:
        """Take where parts lie that an earlier run has left, and the numbers for parts that need another.

        ``keep``: where they are put on the disk. With ``queueing`` they leave the memory then, and where
        there is no room for what comes the oldest goes, if that is wanted. With ``retry`` others hear that
        the output waits, and what an outage has lasted too long for is given up.
        """
        self._frees = queueing is not None
        drops = queueing is not None and queueing.when_full == "drop_oldest"
        self._store, self._folder, self._numbers, self._ctx = store, folder, numbers, ctx
        self.unsent: dict[ObjectPart, None] = {}
        """The parts that wait or are on their way, the oldest first."""
        self._keeper = PartKeeper(
            keep, ctx, self.unsent, kept=self._is_kept, drop=self._drop if drops else None
        )
        self._queue: deque[ObjectPart] = deque()
        bridge = None if retry is None else ctx.bridge_parts(retry.seconds)
        self._outage = StoreOutage(ctx, bridge)
        self._refused = RefusedParts(ctx, bridge, self._forget)
        self._retries = RetryQueue(self._send_one, self._outage, self._refused, ctx)
        self._sources: set[UnsentFile] = set()
        self.work: asyncio.Task[None] | None = None
        """What sends those that are not set aside, as long as there are any."""
        self._opening: asyncio.Task[None] | None = None
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
        part.is_held = True
        self.held += part.size
        if not part.is_ready:  # now, not when its turn comes: it is smaller then
            part.compressing = asyncio.ensure_future(self._compress(part))
        if self.work is None:
            self.work = asyncio.ensure_future(self._send_all())
        if self._is_failing:
            self._keeper.keep([part])
        self._keeper.watch()

    async def add_kept(self) -> None:
        """Have those sent that an earlier run left on the disk, beside all others."""
        if self._keeper.has_place:
            self._opening = asyncio.ensure_future(self._open())
            await asyncio.wait([self._opening], timeout=OPEN_SECONDS)
        if self._folder is None:
            return
        found, wrong = await asyncio.to_thread(self._folder.parts)
        for each in wrong:
            self._ctx.warn(f"cannot send {each}")
        if wrong:
            self._ctx.fail(UNSENDABLE, "misconfigured")
        self._sources = {part.source for part in found if isinstance(part.source, UnsentFile)}
        self._add_found(found)

    async def _open(self) -> None:
        """Have those sent that are in the store of the engine."""
        found, wrong = await self._keeper.open()
        if wrong:
            self._ctx.warn(f"cannot send what is in the store and no part: entries: {wrong:,}")
            self._ctx.fail(UNSENDABLE, "misconfigured")
        self._add_found(found)

    def _add_found(self, found: Sequence[ObjectPart]) -> None:
        if found:
            self._ctx.note(f"{amount(found)} of an earlier run are uploaded now")
        for part in found:
            self._numbers.note(part.key)
            self.unsent[part] = None
            self._retries.add(part)

    async def _send_all(self) -> None:
        try:
            while self._queue:
                await self._send([self._queue.popleft() for _ in range(self._at_once())])
        finally:
            self.work = None
            self._is_less()  # or will not be, by this

    def _at_once(self) -> int:
        """Return how many parts are sent at a time: one, while the store takes nothing."""
        if self._is_failing:
            return 1
        count = size = 0
        for part in self._queue:
            size += 0 if part.is_held else part.length
            if count == AT_ONCE or (count and size > MOST_BYTES):
                break
            count += 1
        return count

    async def _send(self, parts: Sequence[ObjectPart]) -> None:
        """Send some parts, and wait before the next try if the store takes nothing."""
        if self._is_failing:
            self._outage.tries_again()
        said = await asyncio.gather(*map(self._send_one, parts), return_exceptions=True)
        out: dict[ObjectPart, Unreachable] = {}
        for part, cause in zip(parts, said, strict=True):
            match cause:
                case Unreachable():
                    out[part] = cause
                case Exception():
                    await self._retries.refused(part, cause)
                    self._keeper.keep([] if part.is_over else [part])
        if out:
            await self._failed(out, are_all=len(out) == len(parts))
        elif self._is_failing and None in said:
            self._is_failing = False
            self._backoff.reset()
            self._outage.over("written to again")

    async def _send_one(self, part: ObjectPart) -> None:
        if part.is_over:
            return
        part.is_on_its_way = True
        try:
            if await self._is_prepared(part):
                await self._put(part)
                self._refused.took(part)
                self._forget(part)
        finally:
            part.is_on_its_way = False
            if not part.is_held:  # that is enough
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

    def _forget(self, part: ObjectPart) -> None:
        """Keep a part no longer that is where it belongs, or is given up."""
        self._over(part)
        if part.source is not None:
            part.source.sent(part)

    def _over(self, part: ObjectPart) -> None:
        """Forget a part that nobody needs any more; who is owed for it is told."""
        self._refused.forget(part)
        part.is_over = True
        del self.unsent[part]
        if part.is_held:
            self.held -= part.size
            part.is_held = False
        part.settle()
        self._is_less()

    async def _is_prepared(self, part: ObjectPart) -> bool:
        """Have the content as it is uploaded; return whether it is there."""
        if part.content is None:
            assert part.source is not None
            try:
                part.content = await part.source.content(part)
            except (OSError, ValueError) as cause:
                self._cannot_read(part, part.source, cause)
                return False
        if part.compressing is None and not part.is_ready:  # or the last try has failed
            part.compressing = asyncio.ensure_future(self._compress(part))
        compressing, part.compressing = part.compressing, None
        if compressing is not None:
            await compressing
        return True

    def _cannot_read(self, part: ObjectPart, source: PartSource, cause: Exception) -> None:
        self._over(part)
        if source.is_old:
            self._ctx.warn(f"a part in {source.place} cannot be read: {reason(cause)}")
            self._ctx.fail(UNSENDABLE, "misconfigured")
        else:
            self._ctx.lose_count(DAMAGED, part.messages, "invalid")

    async def _compress(self, part: ObjectPart) -> None:
        """Compress a part in memory, and count it anew."""
        before = part.size
        await asyncio.to_thread(part.prepare)
        if part.is_held:
            self.held += part.size - before
            self._is_less()

    def _is_less(self) -> None:
        """Wake whoever waits for news."""
        self.news.set()
        self.news = asyncio.Event()

    async def _failed(self, out: dict[ObjectPart, Unreachable], *, are_all: bool) -> None:
        """Report it, and wait before the next try, unless the pipeline is ending.

        Where that has lasted too long, the parts are given up.
        """
        cause = next(iter(out.values()))
        self._is_failing = True
        pause = self._outage.pause(cause, self._backoff.next)
        if pause is None:
            for part in out:
                await self._refused.give_up(part, str(cause), cause.failure)
            return
        if are_all and len(out) > 1:
            self._queue.extendleft(reversed(out))
        else:  # it may be for one of them that the store says no: after others
            self._queue.extend(out)
        self._keeper.keep([*self.unsent])
        await within(self._ctx.clock, pause, self._hurry.wait())
        self._hurry.clear()

    def put_down(self) -> Iterable[Batch]:
        """Return the batches of which dead letters are being made, of parts that are here still."""
        return self._refused.becoming_letters.values()

    def make_room(self) -> None:
        """Have less held: what waits is put on the disk now, if it leaves the memory by that."""
        if self._frees:
            self._keeper.keep([*self.unsent])

    def _is_kept(self, part: ObjectPart) -> None:
        """Take note that a part is on the disk."""
        before = part.size
        part.settle()
        if part.is_held:
            self.held += part.size - before
            if self._frees:
                self.held -= part.size
                part.is_held = False
        if not (part.is_held or part.is_on_its_way):
            part.content = None
        self._is_less()

    def _drop(self, part: ObjectPart) -> None:
        """Give up a part that is on the disk."""
        assert part.source is not None
        self._forget(part)
        self._ctx.lose_count(DROPPED, part.messages, "unavailable", "dropped")

    async def finish(self) -> None:
        """Have everything uploaded in the time there is; say what is not, and keep it if possible.

        It may be cancelled at any time: a part is then kept, or told of, all the same.
        """
        self._backoff.reset()
        self._hurry.set()
        self._retries.end()
        if self._opening is not None:
            self._opening.cancel()
        try:
            await self._ended(FIRST_SECONDS)
            if self.unsent:
                self._keeper.keep([*self.unsent])
                await self._ended(FINISH_SECONDS - FIRST_SECONDS)
                await self.stop()
            await self._keeper.ended()
        finally:
            # Nothing is awaited from here on: who is cancelled once may be cancelled again.
            for work in self._works():
                work.cancel()
            self._keeper.keep_now([*self.unsent])
            self._keeper.then(self._end)

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

    def _end(self) -> None:
        """Say what became of the parts that are not in the store, and leave those that are kept."""
        tell_of_the_rest(self.unsent, self._keeper.why, self._ctx)
        for source in self._sources:
            source.close()
        self.unsent.clear()
