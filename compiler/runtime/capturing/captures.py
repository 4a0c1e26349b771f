"""The captures that are under way: a few readers, each with what waits for it, and nothing else.

A capture never holds a pipeline up. What its reader does not take in time is dropped, counted and told in
the capture itself; so is a second large batch while one is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import HeadraceError
from headrace.compiler.jsontext import encode
from headrace.compiler.largejson import WritingTurn
from headrace.compiler.runtime.capturing.capturerecords import (
    CaptureEnd,
    CaptureGap,
    CaptureHeader,
    EndOfCapture,
    Exchanged,
    LargeLine,
    PayloadsArrived,
    Pieces,
    WaitingRecord,
    WrittenLine,
)
from headrace.compiler.runtime.capturing.capturewriting import CaptureWriter, batch_line, joined
from headrace.compiler.runtime.capturing.redactor import Redactor

AT_ONCE = 4
"""How many captures are under way."""
MOST_WAITING_BYTES = 8 * 1024 * 1024
"""Of what waits for one reader, beside a record that is larger by itself and one that is written."""
OVERHEAD = 256
"""Bytes that a record takes besides, while it waits."""
KEEP_ALIVE_SECONDS = 15.0
BLANK_LINE = b"\n"
"""What keeps an idle capture alive; it is no record."""
NOT_WRITTEN = (ValueError, TypeError, RecursionError)
"""What is raised of a value that is no JSON, which a source may have made."""

log = logging.getLogger("headrace.pipeline")


class TooManyCaptures(HeadraceError):
    """So many are under way that one more would be one too many."""

    def __init__(self) -> None:
        super().__init__(f"{AT_ONCE} captures are being taken already: try again later")


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What is to be captured: of which pipelines (none: all), how long, how much, and what is hidden."""

    pipelines: Sequence[str] = ()
    seconds: float = 600.0
    bytes: int = 64 * 1024 * 1024
    redact: Sequence[str] = ()


class Captures:
    """Those of one engine."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.under_way: tuple[Capture, ...] = ()

    def begin(self, request: CaptureRequest) -> Capture:
        """Begin one; it is under way until it is closed.

        Raises:
            TooManyCaptures: `AT_ONCE` are.
        """
        if len(self.under_way) >= AT_ONCE:
            raise TooManyCaptures
        capture = Capture(self, request, self.clock)
        self.under_way = (*self.under_way, capture)
        return capture

    def leave(self, capture: Capture) -> None:
        """Forget one."""
        self.under_way = tuple(each for each in self.under_way if each is not capture)

    def end(self) -> None:
        """Have all end now."""
        for each in self.under_way:
            each.end("stopped")

    def of(self, pipeline: str) -> list[Capture]:
        """Return those that take what happens in a pipeline."""
        return [each for each in self.under_way if each.takes(pipeline)]


class Capture:
    """One capture: a reader asks it for lines, and whoever records gives it what has happened."""

    def __init__(self, captures: Captures, request: CaptureRequest, clock: Clock) -> None:
        self.redactor = Redactor(request.redact) if request.redact else None
        self._captures, self._request, self._clock = captures, request, clock
        self._pipelines = frozenset(request.pipelines)
        self._began = clock.monotonic()
        self._started_at = clock.timestamp()
        self._writer = CaptureWriter(clock, self.redactor)
        self._waiting: deque[WaitingRecord] = deque()
        self._bytes = 0
        self._large: asyncio.Task[Pieces] | None = None
        self._dropped = self._untold = self._records = self._sent = 0
        self._end: EndOfCapture | None = None
        self._happened = asyncio.Event()
        self._timer = clock.call_later(request.seconds, self._is_over)

    @property
    def now(self) -> float:
        """Seconds since it began."""
        return self._clock.monotonic() - self._began

    def takes(self, pipeline: str) -> bool:
        """Return whether it takes what happens in a pipeline."""
        return self._end is None and (not self._pipelines or pipeline in self._pipelines)

    def payloads(
        self,
        to: str,
        payloads: Sequence[bytes],
        meta: Mapping[str, Any] | None,
        *,
        is_json: bool = True,
    ) -> None:
        """Take payloads that arrived at an input at once."""
        size = sum(map(len, payloads)) + OVERHEAD * len(payloads)
        self._take(PayloadsArrived(self.now, to, payloads, meta, size, is_json), len(payloads))

    def small_batch(self, to: str, batch: Batch, meta: Mapping[str, Any] | None) -> None:
        """Take a batch that is written at once, in a capture that is not redacted."""
        try:
            line = batch_line(self.now, to, batch, meta)
        except NOT_WRITTEN:
            self._drop(1)
        else:
            self._take(WrittenLine(line, len(line)))

    async def redacted_batch(self, to: str, batch: Batch, meta: Mapping[str, Any] | None) -> None:
        """Take a batch that is small, when it is written; others have their turns meanwhile."""
        try:
            line = b"".join(await self._writer.batch(self.now, to, batch, meta))
        except NOT_WRITTEN:
            self._drop(1)
        else:
            self._take(WrittenLine(line, len(line)))

    def large_batch(self, to: str, batch: Batch, meta: Mapping[str, Any] | None) -> None:
        """Take a batch that is written in slices, from now on: it must not be kept until somebody reads.

        One at a time, because nobody knows yet how many bytes it has.
        """
        if self._large is not None or self._end is not None:
            self._drop(1)
            return
        written = asyncio.ensure_future(self._writer.batch(self.now, to, batch, meta))
        # It may be let go of before anybody looks at what came of it.
        written.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._large = written
        self._take(LargeLine(written))

    def exchange(self, exchanged: Exchanged) -> None:
        """Take a request and its reply; a redacted capture has none, as nobody knows what is in them."""
        if self.redactor is None:
            self._take(exchanged)

    def end(self, why: EndOfCapture) -> None:
        """Have it end, with what waits."""
        if self._end is None:
            self._end = why
            self._happened.set()
        if why == "signed out":  # nothing more for them, not even what has happened before
            self._discard()

    def close(self) -> None:
        """Let go of it: nobody reads any more."""
        self.end("stopped")
        self._timer.cancel()
        self._discard()
        self._captures.leave(self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the text, in parts; a blank line now and then while there is nothing."""
        request = self._request
        yield self._told(
            CaptureHeader(
                started_at=self._started_at, pipelines=request.pipelines, redacted=request.redact
            )
        )
        while self._waiting or self._end is None:
            if not self._waiting:
                if not await self._something():
                    yield BLANK_LINE
                continue
            waiting = self._waiting.popleft()
            async for line in self._lines(waiting):
                turn = WritingTurn(self._clock)
                for part in joined(line):
                    yield part
                    await turn.end()  # a reader may take all of it without waiting
            self._let_go(waiting)
            if self._sent >= request.bytes:
                break
            if self._untold:
                yield self._gap()
        if self._untold:
            yield self._gap()
        why = self._end or "bytes"
        yield self._told(
            CaptureEnd(at=round(self.now, 6), end=why, records=self._records, dropped=self._dropped)
        )

    async def _something(self) -> bool:
        """Wait until something has happened; False after a while in which nothing has."""
        self._happened.clear()
        try:
            async with self._clock.timeout(KEEP_ALIVE_SECONDS):
                await self._happened.wait()
        except TimeoutError:
            return False
        return True

    async def _lines(self, waiting: WaitingRecord) -> AsyncIterator[Pieces]:
        """Yield lines as far as there is room for them."""
        try:
            async for line in self._writer.lines(waiting):
                size = sum(map(len, line))
                if self._sent + size > self._request.bytes:
                    self._sent = self._request.bytes
                    self._end = "bytes"
                    return
                self._sent += size
                self._records += 1
                yield line
        except NOT_WRITTEN as cause:
            log.debug("a record of a capture could not be written", exc_info=cause)
            self._drop(1)

    def _take(self, waiting: WaitingRecord, count: int = 1) -> None:
        if self._end is not None:
            return
        if self._bytes and self._bytes + waiting.size > MOST_WAITING_BYTES:
            self._drop(count)
            return
        self._bytes += waiting.size
        self._waiting.append(waiting)
        self._happened.set()

    def _discard(self) -> None:
        self._waiting.clear()
        if self._large is not None:
            self._large.cancel()

    def _let_go(self, waiting: WaitingRecord) -> None:
        self._bytes -= waiting.size
        if isinstance(waiting, LargeLine):
            self._large = None

    def _drop(self, count: int) -> None:
        self._dropped += count
        self._untold += count

    def _gap(self) -> bytes:
        dropped, self._untold = self._untold, 0
        return self._told(CaptureGap(at=round(self.now, 6), gap=dropped))

    def _told(self, line: msgspec.Struct) -> bytes:
        return encode(line) + b"\n"

    def _is_over(self) -> None:
        self.end("seconds")
