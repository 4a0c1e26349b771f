"""Parts that are closed and not in the store yet: sent in order, tried again, and kept at the end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, takewhile

from headrace.compiler.errors import HeadraceError
from headrace.compiler.language.context import Context
from headrace.compiler.runtime.backoff import Backoff
from headrace.connectors.drivers.s3_kept import Kept, Shelf, reason
from headrace.connectors.drivers.s3_parts import Part, Store, Taken
from headrace.connectors.parts import renumbered

Keeping = asyncio.Future[Kept] | None
"""What is being put on the disk, if anything is."""

AT_ONCE = 4
"""Parts that are uploaded at a time, as long as nothing goes wrong."""

# A pipeline has 3.5 s to end, and 1 s if something else took them.
FIRST_SECONDS = 0.5
"""How long the end waits for uploads before it puts what is left on the disk as well."""
FINISH_SECONDS = 2.5
"""How long it waits for them in all."""
STOP_SECONDS = 0.5
"""How long an upload may take to be given up."""


class Outbox:
    """Sends what it is given until the store has it.

    When a part cannot be sent, it is tried again on the backoff, and only when it is through do the
    others follow. Whoever gives parts has to look at how much is `held`.
    """

    def __init__(
        self, store: Store, shelf: Shelf | None, numbers: Iterator[int], ctx: Context
    ) -> None:
        """Take where to keep what is left at the end, and the numbers for parts that need another."""
        self._store, self._shelf, self._numbers, self._ctx = store, shelf, numbers, ctx
        self._parts: deque[Part] = deque()
        self._work: asyncio.Task[None] | None = None
        self._backoff = Backoff()
        self._is_failing = False
        self._hurry = asyncio.Event()
        self._news = asyncio.Event()
        self.held = 0
        """Bytes of the parts that wait in memory."""

    @property
    def is_sending(self) -> bool:
        """Whether there are parts that wait or are on their way."""
        return self._work is not None

    def add(self, part: Part) -> None:
        """Have a part sent after all others."""
        self._parts.append(part)
        if part.source is None:
            self.held += part.size
            if not part.is_ready:  # now, not when its turn comes: it is smaller then
                part.preparing = asyncio.ensure_future(self._prepare(part))
        if self._work is None:
            self._work = asyncio.ensure_future(self._send_all())

    async def add_kept(self) -> None:
        """Have those sent that an earlier end left on the disk."""
        if self._shelf is None:
            return
        found, wrong = await asyncio.to_thread(self._shelf.parts)
        for each in wrong:
            self._ctx.fail(f"cannot send {each}")
        if found:
            self._ctx.note(f"{amount(found)} of an earlier run are uploaded now")
        for part in found:
            self.add(part)

    async def news(self) -> None:
        """Wait until less is held than now, maybe."""
        await self._news.wait()

    async def _send_all(self) -> None:
        try:
            while self._parts:
                if (cause := await self._send(self._next())) is None:
                    self._succeeded()
                else:
                    await self._failed(cause)
        finally:
            self._work = None

    def _next(self) -> list[Part]:
        """Return the parts to send at a time: one that is known to fail, or has to be read, alone."""
        if self._is_failing or self._parts[0].source is not None:
            return [self._parts[0]]
        return list(takewhile(lambda part: part.source is None, islice(self._parts, AT_ONCE)))

    async def _send(self, parts: Sequence[Part]) -> Exception | None:
        """Send some parts; return the first thing that went wrong."""
        said = await asyncio.gather(*map(self._send_one, parts), return_exceptions=True)
        return next((cause for cause in said if isinstance(cause, Exception)), None)

    async def _send_one(self, part: Part) -> None:
        if not await self._is_prepared(part):
            return
        while True:
            try:
                await self._store.send(part)
                break
            except Taken:
                self._ctx.warn_once(
                    "the name of a part was taken: another output writes to this prefix, and the"
                    " part gets the next number"
                )
                part.key = renumbered(part.key, next(self._numbers))
        self._remove(part)
        if part.source is not None:
            part.source.sent(part)

    async def _is_prepared(self, part: Part) -> bool:
        """Have the content as it is uploaded; return whether it is there."""
        if part.preparing is not None:
            await part.preparing
        elif not part.is_ready:
            try:
                await asyncio.to_thread(part.prepare)
            except (OSError, ValueError) as cause:
                self._ctx.fail(f"a part of an earlier run cannot be read: {reason(cause)}")
                self._remove(part)
                return False
        return True

    async def _prepare(self, part: Part) -> None:
        """Have a part in memory compressed."""
        before = part.size
        await asyncio.to_thread(part.prepare)
        self.held += part.size - before
        self._is_less()

    def _remove(self, part: Part) -> None:
        self._parts.remove(part)
        if part.source is None:
            self.held -= part.size
        self._is_less()

    def _is_less(self) -> None:
        """Wake whoever waits for news."""
        self._news.set()
        self._news = asyncio.Event()

    def _succeeded(self) -> None:
        if self._is_failing:
            self._is_failing = False
            self._backoff.reset()
            self._ctx.note("written to again")

    async def _failed(self, cause: Exception) -> None:
        """Report it, and wait before the next try, unless the pipeline is ending."""
        is_told = isinstance(cause, HeadraceError | OSError)
        self._ctx.fail(str(cause) if is_told else f"{type(cause).__name__}: {cause}")
        self._is_failing = True
        with suppress(TimeoutError):
            async with self._ctx.clock.timeout(self._backoff.next()):
                await self._hurry.wait()
        self._hurry.clear()

    async def finish(self) -> None:
        """Have everything uploaded in the time there is; say what is not, and keep it if possible.

        It may be cancelled at any time: a part is then kept, or told of, all the same.
        """
        self._backoff.reset()
        self._hurry.set()
        keeping: Keeping = None
        try:
            if not await self._is_empty(FIRST_SECONDS):
                keeping = self._keep()
                await self._is_empty(FINISH_SECONDS - FIRST_SECONDS)
                await self.stop()
            if keeping is not None:
                await asyncio.wait([keeping])
        finally:
            # Nothing is awaited from here on: who is cancelled once may be cancelled again.
            if self._work is not None:
                self._work.cancel()
            keeping = keeping or self._keep()
            if keeping is None or keeping.done():
                self._end(keeping)
            else:
                keeping.add_done_callback(self._end)

    async def _is_empty(self, seconds: float) -> bool:
        """Wait until all parts are sent, but no longer than so long."""
        with suppress(TimeoutError):
            async with self._ctx.clock.timeout(seconds):
                while self._parts:
                    await self.news()
        return not self._parts

    async def stop(self) -> None:
        """Give up what is being sent: pieces of it are removed from the store."""
        if self._work is not None:
            self._work.cancel()
            with suppress(TimeoutError):
                async with self._ctx.clock.timeout(STOP_SECONDS):
                    await asyncio.wait([self._work])

    def _keep(self) -> Keeping:
        """Begin to put on the disk what is in memory; None if there is nothing, or no disk."""
        parts = self._in_memory()
        if self._shelf is None or not parts:
            return None
        loop, now = asyncio.get_running_loop(), self._ctx.clock.now()
        return loop.run_in_executor(None, self._shelf.keep, parts, now)

    def _in_memory(self) -> list[Part]:
        return [part for part in self._parts if part.source is None]

    def _end(self, keeping: Keeping) -> None:
        """Say what became of the parts that are not in the store.

        As warnings, of which the log shows every one; of failures it shows some.
        """
        lost, why = self._in_memory(), "with --data-dir they would be kept"
        if keeping is not None and (cause := keeping.exception()) is not None:
            why = f"they cannot be kept in --data-dir: {reason(cause)}"
        elif keeping is not None:
            if lost:
                keeping.result().close()
            else:
                keeping.result().remove()
            lost = []
        if lost:
            self._ctx.warn(f"lost, because not uploaded in time: {amount(lost)}; {why}")
            self._ctx.fail("parts are lost: they could not be uploaded in time")
        if kept := [part for part in self._parts if part.source is not None or not lost]:
            assert self._shelf is not None
            self._ctx.warn(
                f"not uploaded: {amount(kept)}; kept in '{self._shelf.place}' of --data-dir for the"
                " next output with this bucket and prefix"
            )
        for source in {part.source for part in kept if part.source is not None}:
            source.close()
        self._parts.clear()


def amount(parts: Sequence[Part]) -> str:
    """Return how much some parts are, in words."""
    messages = sum(part.messages for part in parts)
    size = sum(part.length for part in parts)
    return f"{_counted(len(parts), 'part')} with {_counted(messages, 'message')} ({size:,} bytes)"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
