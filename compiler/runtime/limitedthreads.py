"""Work beside the event loop: in a thread of its own, a few at a time, for so long and no longer.

A dry run needs an event loop whose time is its own, and it computes for as long as its author says.
So it has a thread, and the server's loop shares nothing with it but the interpreter. When its time is
up it is cancelled where it waits, and what computes without ever waiting is interrupted.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from headrace.compiler.clock import Clock
from headrace.compiler.errors import HeadraceError
from headrace.compiler.runtime.switching import SWITCHING

T = TypeVar("T")

AT_ONCE = 2
"""How many run at the same time; the others wait for their turn."""
MOST_WAITING = 100
"""How many wait: what was asked for is kept meanwhile, and who comes later gets no answer in time."""
MOST_SECONDS = 10.0
"""How long one may take, from the reading of its request on."""
LAST_SECONDS = 1.0
"""How long one that was cancelled, and then one that was interrupted, gets to end."""


class TookTooLong(HeadraceError):
    """The time of a dry run was over before there was anything to tell about it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"what was asked for takes more than {seconds:g} seconds")


class TooMany(HeadraceError):
    """So many wait already that one more would not have its turn in time."""

    def __init__(self, waiting: int, what: str = "dry runs") -> None:
        super().__init__(f"{waiting} {what} are waiting already: try again later")


class Interrupted(KeyboardInterrupt):
    """Raised in the middle of whatever runs too long.

    A `KeyboardInterrupt`, because that is what ends an event loop from inside any of its callbacks.
    """


class TimeLimit:
    """What work in a thread is stopped with, after so many ``seconds``. Any thread may pull it."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self.seconds = seconds
        self.is_over = False
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._cancel: Callable[[], object] | None = None

    def attach(self) -> None:
        """Hold the thread that calls this."""
        self._thread = threading.get_ident()

    def hold(self) -> None:
        """Hold the task that calls this: it is what is cancelled.

        Raises:
            Interrupted: it is too late to begin.
        """
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        loop.set_exception_handler(_unless_interrupted)
        cancel = partial(loop.call_soon_threadsafe, task.cancel)
        with self._lock:
            self._cancel = cancel
        if self.is_over:
            raise Interrupted

    def detach(self) -> None:
        """Let go of the thread, whose number another one may have next."""
        with self._lock:
            self._thread = self._cancel = None

    def expire(self) -> None:
        """Cancel the task, where it waits or will wait next."""
        with self._lock:
            self.is_over = True
            if self._cancel is not None:
                with suppress(RuntimeError):  # its loop is closed
                    self._cancel()

    def interrupt(self) -> None:
        """Interrupt the thread at the next step that Python makes in it.

        Only after `expire` was of no use: whatever it does, a lock it has just taken for instance, it
        may leave half done.

        Source: `PyThreadState_SetAsyncExc` of the C API.
        """
        with self._lock:
            if self._thread is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(Interrupted)
                )


def _unless_interrupted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Pass over what was interrupted: that it ended so is no news."""
    if not isinstance(context.get("exception"), Interrupted):
        loop.default_exception_handler(context)


class LimitedThreads:
    """Runs work in threads, `AT_ONCE` at a time, each for so many ``seconds`` at most.

    ``what`` the pieces of work are called where there are too many.
    """

    def __init__(
        self,
        clock: Clock,
        seconds: float = MOST_SECONDS,
        most_waiting: int = MOST_WAITING,
        what: str = "dry runs",
    ) -> None:
        self._clock, self._what = clock, what
        self._seconds = seconds
        self._most_waiting = most_waiting
        self._room = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def run(self, work: Callable[[TimeLimit], T]) -> T:
        """Return what ``work`` returns, in a thread of its own, for so long.

        When its time is up the limit expires, and work that sees it coming returns what it has. A
        place is free again when the thread is over, not when somebody has given up waiting for it.

        Raises:
            TooMany: as many wait for their turn as may.
            TookTooLong: it did not return in time, nor when it was stopped.
        """
        await self._turn()
        SWITCHING.begin()
        run = _Run(work, TimeLimit(self._seconds), self._clock, self._is_over)
        try:
            return await asyncio.shield(run.outcome)
        finally:
            # Else the request is gone, and how its work ends is nobody's business.
            if not run.outcome.done():
                run.limit.expire()
                run.outcome.cancel()

    async def _turn(self) -> None:
        """Wait for a place."""
        if self._waiting >= self._most_waiting:
            raise TooMany(self._waiting, self._what)
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1

    def _is_over(self) -> None:
        SWITCHING.end()
        self._room.release()


class _Run:
    """One piece of work, its thread, and the times at which it is stopped."""

    def __init__(
        self,
        work: Callable[[TimeLimit], Any],
        limit: TimeLimit,
        clock: Clock,
        released: Callable[[], None],
    ) -> None:
        self.limit = limit
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self._loop.create_future()
        self._work = work
        self._released = released
        self._timers = [
            clock.call_later(limit.seconds, limit.expire),
            clock.call_later(limit.seconds + LAST_SECONDS, limit.interrupt),
            clock.call_later(limit.seconds + 2 * LAST_SECONDS, self._give_up),
        ]
        # A daemon: a process that is to end does not wait for a dry run.
        threading.Thread(target=self._run, name="dry-run", daemon=True).start()

    def _run(self) -> None:
        self.limit.attach()
        result: Any = None
        cause: Exception | None = None
        try:
            try:
                result = self._work(self.limit)
            finally:
                self.limit.detach()
        except (asyncio.CancelledError, Interrupted):
            cause = TookTooLong(self.limit.seconds)
        except Exception as raised:
            cause = raised
        with suppress(RuntimeError):  # the server's loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._is_over, result, cause)

    def _is_over(self, result: Any, cause: Exception | None) -> None:
        """Tell the outcome, on the server's loop."""
        for timer in self._timers:
            timer.cancel()
        self._released()
        if self.outcome.done():
            return
        if cause is None:
            self.outcome.set_result(result)
        else:
            self.outcome.set_exception(cause)

    def _give_up(self) -> None:
        """Answer without the thread, which computes where nothing can interrupt it."""
        if not self.outcome.done():
            self.outcome.set_exception(TookTooLong(self.limit.seconds))
