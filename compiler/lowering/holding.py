"""What a buffer holds: messages, the custody they are in, and the windows they came through.

The `buffer` transform and the buffer of an input hold in the same way and differ only in when they
let go. A batch that is held has left the chain, so its flow is closed, and a buffer of 1,000 behind a
window of 16 does not wait for itself. What is let go is charged to the windows of the inputs that it
came from, like a batch that arrives: outputs that block so stop the pumps, and with them the buffer.
Custody stays until the last message of its own delivery is out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from headrace.compiler.delivery import (
    LARGE_BATCH,
    Batch,
    Debt,
    Delivery,
    JsonValue,
    SharedDebt,
    Window,
    together,
)
from headrace.compiler.largejson import LargeList

if TYPE_CHECKING:
    from reactivex import Observable
    from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase

    from headrace.compiler.component.buildcontext import Context, Operator


class Holding:
    """Messages in the order they came, and what is owed for them.

    ``count`` is how many there are. What one costs does not grow with it: half a microsecond where
    messages come one by one, 15 ns where they come and go by the thousand.
    """

    __slots__ = ("_messages", "_segments", "_start", "count")

    def __init__(self) -> None:
        self.count = 0
        self._messages: Batch = []
        self._start = 0  # those before it are gone: a list is cut at its front only now and then
        self._segments: deque[_Segment] = deque()

    def take(self, delivery: Delivery) -> None:
        """Absorb a delivery: its flow is closed, its custody kept. An empty one is done at once."""
        batch, custody = delivery.batch, delivery.custody
        if not batch:
            delivery.done()
            return
        windows = tuple(delivery.flow.windows())
        delivery.flow.close()
        self._messages += batch
        self.count += len(batch)
        last = self._segments[-1] if custody is None and self._segments else None
        if last is not None and last.custody is None and last.windows == windows:
            last.count += len(batch)  # nobody needs to know where one ends
        else:
            self._segments.append(_Segment(len(batch), custody, windows))

    def cut(self, size: int) -> Delivery:
        """Return the ``size`` oldest messages, of at least as many, as one delivery.

        It is charged once to each window that any of them came through, and owes every custody that
        any of them is in.
        """
        custodies: list[Debt] = []
        windows: dict[Window, None] = {}
        left = size
        while left:
            segment = self._segments[0]
            windows |= dict.fromkeys(segment.windows)
            if segment.count > left:
                custody = segment.divide(left)
                left = 0
            else:
                custody = segment.custody
                left -= segment.count
                self._segments.popleft()
            if custody is not None:
                custodies.append(custody)
        for window in windows:
            window.take()
        self.count -= size
        return Delivery(
            self._oldest(size), together([*windows]), together(custodies) if custodies else None
        )

    def release(self) -> Delivery:
        """Return everything held (something is) as one delivery."""
        return self.cut(self.count)

    def drop(self) -> None:
        """Forget everything: flow is closed already, and custody is never settled."""
        self.count = self._start = 0
        self._messages = []
        self._segments.clear()

    def _oldest(self, size: int) -> Batch:
        messages, start, end = self._messages, self._start, self._start + size
        if end == len(messages):
            batch = messages[start:] if start else messages
            self._messages, self._start = [], 0
        else:
            batch = messages[start:end]
            self._start = end
            if end > len(messages) - end:
                # More is gone than is there, so what moves up is less than what made room for it.
                del messages[:end]
                self._start = 0
        if size <= LARGE_BATCH:
            return batch
        large = LargeList[JsonValue]()  # somebody frees all of it at once, the last to hold it
        large += batch
        return large


@dataclass(slots=True)
class _Segment:
    """Neighbouring messages that owe the same: those of one delivery, or of several in nobody's custody."""

    count: int
    custody: Debt | None
    windows: tuple[Window, ...]

    def divide(self, size: int) -> Debt | None:
        """Let ``size`` messages go while the rest stays; return the part of the custody they take along."""
        self.count -= size
        if isinstance(self.custody, SharedDebt):
            self.custody.parts += 1
        elif self.custody is not None:
            self.custody = SharedDebt(self.custody, 2)
        return self.custody


FARTHEST_SECONDS = 10**9
"""No timer is set for a time that is further than thirty years away: most cannot be."""


class Deadline:
    """When what is held has to go: so many seconds after it is started. Without seconds, never."""

    __slots__ = ("_action", "_at", "_scheduler", "_seconds", "_timer")

    def __init__(
        self, seconds: float | None, scheduler: SchedulerBase, action: Callable[[], None]
    ) -> None:
        self._seconds = None if seconds is None or seconds > FARTHEST_SECONDS else seconds
        self._scheduler = scheduler
        self._action = action
        self._at: datetime | None = None
        self._timer: DisposableBase | None = None

    def start(self) -> None:
        """Count from now, whatever was counted before."""
        if self._seconds is None:
            return
        self.stop()
        self._at = self._scheduler.now + timedelta(seconds=self._seconds)
        self._timer = self._scheduler.schedule_relative(self._seconds, lambda *_: self._action())

    def stop(self) -> None:
        """Run no clock."""
        if self._timer is not None:
            self._timer.dispose()
            self._timer = self._at = None

    def dispose(self) -> None:
        """Stop for good."""
        self._seconds = None
        self.stop()

    def is_past(self) -> bool:
        """Return whether it has passed, though its timer has not had its turn yet."""
        return self._at is not None and self._scheduler.now >= self._at


LetGo = Callable[[Holding], Iterable[Delivery]]
"""Says what leaves now. It is asked for the next one when the last one is through the chain."""
OnChange = Callable[[Callable[[], None]], Callable[[], None]]
"""Has something called whenever more may leave though nothing arrives; returns what ends that."""


class Gathering:
    """A subscription of a buffer: what it holds, and when that goes.

    Handing on can come back on the same stack: a `remember` further on writes what a gate watches,
    this one's or that of a buffer before it, which then lets go as well. Nothing more is handed on
    until the batch is through, and then all is looked at again: no batch overtakes another, and none
    leaves twice.
    """

    __slots__ = ("_deadline", "_is_handing_on", "_let_go", "_observer", "_on_time", "held")

    def __init__(
        self,
        observer: ObserverBase[Delivery],
        let_go: LetGo,
        seconds: float | None,
        scheduler: SchedulerBase,
        on_time: Callable[[], None],
    ) -> None:
        self.held = Holding()
        self._observer = observer
        self._let_go = let_go
        self._deadline = Deadline(seconds, scheduler, self._time_is_over)
        self._on_time = on_time
        self._is_handing_on = False

    def on_next(self, delivery: Delivery) -> None:
        """Hold a delivery, and hand on what leaves with it."""
        held = self.held
        if self._is_handing_on:
            held.take(delivery)
            return
        if self._deadline.is_past():  # a busy loop prefers its input to its timers
            self._on_time()
            self._release(self._everything())
        is_first = not held.count
        held.take(delivery)
        if (leaving := self._let_go(held)) or is_first:
            self._release(leaving, is_first)

    def look(self) -> None:
        """Hand on what leaves though nothing has arrived."""
        if self.held.count and not self._is_handing_on:
            self._unasked(self._let_go(self.held))

    def release(self) -> None:
        """Hand on everything."""
        self._unasked(self._everything())

    def on_error(self, cause: Exception) -> None:
        """Hand on everything, then the error."""
        self.release()
        self._observer.on_error(cause)

    def on_completed(self) -> None:
        """Hand on everything, then the end."""
        self.release()
        self._observer.on_completed()

    def dispose(self) -> None:
        """Hold nothing any more and run no clock."""
        self._deadline.dispose()
        self.held.drop()

    def _time_is_over(self) -> None:
        self._on_time()
        self.release()

    def _everything(self) -> Iterator[Delivery]:
        """Yield all of it as one, then what has come meanwhile and leaves as well."""
        if self.held.count:
            yield self.held.release()
        yield from self._let_go(self.held)

    def _unasked(self, leaving: Iterable[Delivery]) -> None:
        """Hand on though no batch has arrived: a fault of the chain is the stream's, not the caller's.

        The caller is a timer, or somebody who wrote to a bucket.
        """
        try:
            self._release(leaving)
        except Exception as cause:
            self._observer.on_error(cause)

    def _release(self, leaving: Iterable[Delivery], is_first: bool = False) -> None:
        """Hand on what leaves; set the clock for the rest, whose first message may have just come."""
        emit = self._observer.on_next
        self._is_handing_on = True
        try:
            for each in leaving:
                emit(each)
                is_first = True  # what stays after it arrived just now
        finally:
            self._is_handing_on = False
        if not self.held.count:
            self._deadline.stop()
        elif is_first:
            self._deadline.start()


def holding(
    let_go: LetGo,
    seconds: float | None,
    ctx: Context,
    watch: OnChange | None = None,
    *,
    on_time: Callable[[], None] = lambda: None,
    most: int | None = None,
) -> Operator:
    """Return the operator that holds deliveries; of ``most`` messages, if ``let_go`` bounds them.

    Each time a batch has arrived, or ``watch`` tells that it may be time, ``let_go`` says what leaves
    at once. The rest goes together: after ``seconds``, counted from the first message held, of which
    ``on_time`` is told, and when the source completes or breaks. Disposal drops the clock and what is
    held, and watches no longer; custody of what was held is then never settled, so that a broker delivers
    it again.

    Where a broker waits for what is held (`Context.release`), only what neither ``seconds`` nor
    ``watch`` would ever release goes early: a time ends the wait by itself, and windows stay as long as
    they were asked for.
    """
    from reactivex import Observable
    from reactivex.disposable import CompositeDisposable, Disposable

    def operator(source: Observable[Delivery]) -> Observable[Delivery]:
        def subscribe(
            observer: ObserverBase[Delivery], scheduler: SchedulerBase | None = None
        ) -> DisposableBase:
            it = Gathering(observer, let_go, seconds, scheduler or ctx.clock.scheduler, on_time)
            # A gate holds back on purpose, whatever becomes of the input.
            is_by_size_alone = seconds is None and watch is None
            ctx.holds(lambda: it.held.count, it.release if is_by_size_alone else None, most)
            ends = [it.dispose] if watch is None else [watch(it.look), it.dispose]
            upstream = source.subscribe(
                it.on_next, it.on_error, it.on_completed, scheduler=scheduler
            )
            return CompositeDisposable(upstream, *map(Disposable, ends))

        return Observable(subscribe)

    return operator
