"""The time: the only file that asks for it, and the only one that sleeps.

**The clock is the event loop's clock.** In production the wall time is taken once and carried on by
the monotonic clock, so that a corrected system time neither shortens a window nor repeats a second.
In tests and dry runs the loop is a `VirtualLoop`: instead of waiting it moves its time
to the next timer, and all that waits on the loop moves with it: `asyncio.sleep`,
`asyncio.wait_for`, the Rx scheduler.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from contextvars import Context
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from headrace.compiler.errors import HeadraceError

if TYPE_CHECKING:
    from reactivex.abc import SchedulerBase

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ScriptedStep = tuple[float, Callable[[], object]]
"""What a script has happen, and when: in seconds of the loop."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Clock:
    """The event loop's clock, with the wall time taken once and carried on by the monotonic clock.

    ``started_at`` is what the wall shows now; without it the system is asked, or the virtual loop.

    Units: seconds, unless the name says otherwise. Timers are as exact as their loop keeps them:
    uvloop rounds to the millisecond.
    """

    monotonic: Callable[[], float]
    """Return seconds since some moment, never going back. Cheap enough for every batch."""

    outside: Callable[[], AbstractContextManager[None]]
    """Return a context for awaiting what is not on this loop (a request to a server, a thread):
    virtual time stands still for it. Free where time is real."""

    within: Callable[[float], AbstractAsyncContextManager[asyncio.Timeout]]
    """Return the context for awaiting a server so many seconds: `outside` and `timeout` in one."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, started_at: datetime | None = None
    ) -> None:
        self._loop = loop
        if isinstance(loop, VirtualLoop):
            self.monotonic, self.outside, wall = loop.time, loop.outside, loop.wall
            self.within = loop.within
        else:
            # What loop.time() gives on asyncio's loops; uvloop's is the same clock cut to whole
            # milliseconds, too coarse for timestamps and for what a pump may spend at once.
            self.monotonic, self.outside = time.monotonic, nullcontext
            wall = partial(datetime.now, UTC)
            self.within = asyncio.timeout
        began = started_at or wall()
        self._origin = (began - EPOCH) // MICROSECOND - round(self.monotonic() * 1e6)
        self._second = -1
        self._second_text = ""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        return EPOCH + self.micros() * MICROSECOND

    def seconds(self) -> float:
        """Return the wall time as seconds since 1970."""
        return self.micros() / 1e6

    def micros(self) -> int:
        """Return the wall time as whole microseconds since 1970."""
        return self._origin + round(self.monotonic() * 1e6)

    def millis(self) -> int:
        """Return the wall time as whole milliseconds since 1970."""
        return self.micros() // 1000

    def at(self, monotonic: float) -> datetime:
        """Return the wall time of a reading of `monotonic`."""
        return EPOCH + (self._origin + round(monotonic * 1e6)) * MICROSECOND

    def reading(self, moment: datetime) -> float:
        """Return what `monotonic` reads at a wall time, to the microsecond: `at` the other way round."""
        return ((moment - EPOCH) // MICROSECOND - self._origin) / 1e6

    def micros_of(self, monotonic: float) -> int:
        """Return the wall time of a reading of `monotonic`, as whole microseconds since 1970."""
        return self._origin + round(monotonic * 1e6)

    def timestamp(self) -> str:
        """Return the wall time as RFC 3339 in UTC: ``2026-01-01T00:00:00.000000+00:00``."""
        second, micros = divmod(self.micros(), 1_000_000)
        if second != self._second:  # asked per batch: the calendar is consulted once a second
            self._second = second
            self._second_text = (EPOCH + timedelta(seconds=second)).isoformat()[:19]
        return f"{self._second_text}.{micros:06d}+00:00"

    async def sleep(self, seconds: float) -> None:
        """Wait; with 0, give everybody else on the loop a turn."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, action: Callable[[], object]) -> asyncio.TimerHandle:
        """Call ``action`` in so many seconds, unless the handle is cancelled before."""
        return self._loop.call_later(seconds, action)

    def call_at(self, when: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Call ``action`` when `monotonic` has reached ``when``: for deadlines, which sums miss."""
        return self._loop.call_later(max(0.0, when - self.monotonic()), action)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """Return the context that ends its block with `TimeoutError`; None is no limit."""
        return asyncio.timeout(seconds)

    @cached_property
    def scheduler(self) -> SchedulerBase:
        """The Rx scheduler over this clock. One per clock: a pipeline knows one time."""
        return _scheduling()(self._loop, self)


@cache
def _scheduling() -> Callable[[asyncio.AbstractEventLoop, Clock], SchedulerBase]:
    """Return the Rx scheduler that asks a clock, where Rx's own asks the system."""
    # Imported when the first pipeline is built: Rx takes a tenth of a second.
    from reactivex.scheduler.eventloop import AsyncIOScheduler

    class ClockScheduler(AsyncIOScheduler):
        """Rx's scheduler with another time."""

        def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
            super().__init__(loop)
            self._clock = clock

        @property
        def now(self) -> datetime:
            return self._clock.now()

    return ClockScheduler


def wall() -> datetime:
    """Return the wall time of the system, in UTC: for what begins now and goes on by itself."""
    return datetime.now(UTC)


def stopwatch() -> float:
    """Return seconds of real time since some moment: for telling how long something took."""
    return time.perf_counter()


def pause(seconds: float) -> None:
    """Hold this thread: for a command that looks again and again, and does nothing else."""
    time.sleep(seconds)


class Stalled(HeadraceError):
    """A virtual loop has no timer left and nothing came in: its tasks would wait for ever."""

    def __init__(self, waiting: Iterable[str]) -> None:
        self.waiting = sorted(waiting)
        what = ", ".join(self.waiting) or "no task"
        super().__init__(f"nothing is scheduled and nothing came in; waiting: {what}")


class TooManyMoments(HeadraceError):
    """Timers have moved on the time of a script as often as they may. Units: ``at`` in seconds."""

    def __init__(self, count: int, at: float) -> None:
        super().__init__(f"timers have moved the time on {count:,} times, up to {at:g} s")
        self.count, self.at = count, at


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that moves its time to the next timer instead of waiting for it.

    Time is kept in whole microseconds, as timestamps show it: deadlines are met to the digit and
    sums of 0.1 do not drift. Callbacks, sockets and threads work as on any loop; time moves only
    when none of them has anything to do.

    Work given to a thread, and whatever is awaited inside `outside`, takes no virtual time: the
    loop waits for it. Only when nothing at all has come in for ``patience`` real seconds does the
    next timer have its turn, so that a time limit still ends the wait for a peer that is gone. A
    socket that nobody declared is looked at but not waited for.

    Raises:
        Stalled: no timer is left, nothing is awaited from outside, and ``patience`` has passed.
    """

    def __init__(
        self, *, started_at: datetime | None = None, patience: float = 5.0, now: float = 0.0
    ) -> None:
        """Begin with a time of ``now``; ``started_at`` is what the wall shows at 0 s."""
        self._started_at = started_at or datetime(2026, 1, 1, tzinfo=UTC)
        self._skipping = _Skipping(patience)
        self._skipping.now = now
        super().__init__(self._skipping)
        # Half a tick: a timer is due at its own tick and not before. asyncio's nanosecond is lost
        # beside the seconds of a year, and a timer there would never be due.
        self._clock_resolution = 0.5e-6

    def time(self) -> float:
        """Return the virtual seconds: as many as it began with, and those since."""
        return self._skipping.now

    def wall(self) -> datetime:
        """Return the virtual wall time."""
        return self._started_at + timedelta(seconds=self.time())

    async def play(
        self, steps: Iterable[ScriptedStep], most: int | None = None, more: int = 0
    ) -> None:
        """Take steps, given in the order of their times; return when all that the last one caused is over.

        ``most`` is how many moments may pass at which timers are due, and ``more`` how many besides for
        each step that is taken; None: any number.

        A step is taken when nothing else is left to happen: what is due at its time comes first, and each
        is through before the next. Meanwhile sockets are looked at only while something is awaited
        outside.

        Raises:
            RuntimeError: steps are being taken already.
            TooManyMoments: more moments would pass than may.
            Exception: whatever a step raises; those behind it are not taken.
        """
        if self._skipping.script is not None:
            raise RuntimeError("a script is being played already")
        script = self._skipping.script = _Script(steps, self.create_future(), most, more)
        try:
            await script.over
        finally:
            self._skipping.script = None

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Hold the time while something is awaited that is not on this loop."""
        self._skipping.awaited += 1
        try:
            yield
        finally:
            self._skipping.awaited -= 1

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """Hold the time as `outside` does, until the wait is over or nothing has come in for long."""
        with self.outside():
            async with asyncio.timeout(seconds) as limit:
                yield limit

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule at the nearest tick; at the next one if that is all that ``when`` is ahead."""
        tick = round(when, 6)
        if tick <= self.time() < when:
            tick = round(self.time() + 1e-6, 6)  # else a loop of tiny waits would never end
        return super().call_at(tick, callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run ``func`` in a thread; virtual time stands still until its result is back."""
        future = super().run_in_executor(executor, func, *args)
        self._skipping.awaited += 1

        def returned(_: asyncio.Future[Any]) -> None:
            self._skipping.awaited -= 1

        future.add_done_callback(returned)
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """Wait for the threads. Newer Pythons set a time limit, which virtual time would jump."""
        with self.outside():
            await super().shutdown_default_executor(*args)


class _Script:
    """Steps that are taken one by one, and the future that is done when they are over."""

    __slots__ = ("_moments", "_more", "_most", "_next", "_steps", "over")

    def __init__(
        self,
        steps: Iterable[ScriptedStep],
        over: asyncio.Future[None],
        most: int | None,
        more: int,
    ) -> None:
        self._moments = 0
        self._most = sys.maxsize if most is None else most
        self._more = more
        self._steps = iter(steps)
        self._next: ScriptedStep | None = None
        self.over = over

    def go_on(self, clock: _Skipping, due: float | None) -> None:
        """Move the time to what is ``due``, or to the next step, and take that.

        A step is asked for no sooner: what it waits for itself may be what the one before has caused.
        """
        if self.over.done():  # who plays is about to hear it
            return
        try:
            if self._next is None:
                self._next = next(self._steps, None)
            if self._next is None:
                self.over.set_result(None)
                return
            at, do = self._next
            if due is not None and due <= at:
                if self._moments >= self._most:
                    raise TooManyMoments(self._moments, clock.now)
                self._moments += 1
                clock.now = due
                return
            self._next = None
            self._most += self._more
            clock.now = max(clock.now, at)
            do()
        except Exception as cause:
            self.over.set_exception(cause)


class _Skipping(selectors.DefaultSelector):
    """The selector of a virtual loop: it looks, and where it would wait it moves the time."""

    def __init__(self, patience: float) -> None:
        super().__init__()
        self.now = 0.0
        self.awaited = 0  # how much is awaited from outside the loop
        self.script: _Script | None = None
        self._patience = patience

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready. ``timeout`` is how far the next timer is, None without any."""
        if self.script is not None and not self.awaited:
            if timeout != 0:
                due = None if timeout is None else round(self.now + timeout, 6)
                self.script.go_on(self, due)
            return []
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.awaited:
            ready = super().select(self._patience)
        if not ready and timeout is not None:
            self.now = round(self.now + timeout, 6)  # the timer's own tick, to the digit
        elif not ready and not self.awaited:
            raise Stalled(map(_whereabouts, asyncio.all_tasks()))
        return ready


def _whereabouts(task: asyncio.Task[Any]) -> str:
    """Return a task's name and where it waits: ``pump (Pump.run:40 > Window.room:73)``."""
    awaited: Any = task.get_coro()
    frames = []
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        frames.append(f"{frame.f_code.co_qualname}:{frame.f_lineno}")
        awaited = awaited.cr_await
    return f"{task.get_name()} ({' > '.join(frames)})"


def run_virtual(
    main: Coroutine[Any, Any, T] | Callable[[], Coroutine[Any, Any, T]],
    *,
    started_at: datetime | None = None,
    patience: float = 5.0,
) -> T:
    """Run a coroutine, or a function that gives one, on a virtual loop of its own; close the loop.

    A `Clock` made inside starts at ``started_at``; without it, at the beginning of 2026.

    Raises:
        Stalled: nothing is scheduled, nothing came in, and ``main`` has not returned.
    """
    with asyncio.Runner(
        loop_factory=lambda: VirtualLoop(started_at=started_at, patience=patience)
    ) as runner:
        return runner.run(main() if callable(main) else main)
