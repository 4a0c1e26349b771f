"""Large batches encoded a slice at a time, as large texts are decoded: the same bytes as at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar
from weakref import WeakSet

from headrace.compiler.clock import Clock
from headrace.compiler.delivery import Batch, parts
from headrace.compiler.jsontext import encode, encode_lines
from headrace.compiler.largejson.letting_go import LargeList

SLICE_MESSAGES = 64
"""Values that are worked on without a look at the time."""
ENCODED_AT_ONCE = 4
"""Messages that are encoded without one: each may be as large as a post."""
TURN_SECONDS = 0.002
"""How long a batch is worked on before others have their turn. Less would leave it behind all the others,
each of which works as long."""
SHORTEST_SECONDS = 0.0001
"""How long at least, however many there are."""

T = TypeVar("T")
M = TypeVar("M")


class WritingTurn:
    """The time until others have theirs. All who have one share it: each may be one of many outputs."""

    __slots__ = ("__weakref__", "_clock", "_ends")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        _TURNS.add(self)
        self._begin()

    def _begin(self) -> None:
        seconds = max(TURN_SECONDS / len(_TURNS), SHORTEST_SECONDS)
        self._ends = self._clock.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether it is time to let others run."""
        return self._clock.monotonic() >= self._ends

    async def end(self) -> None:
        """Let others run if it is time. Call it after each slice."""
        if self.is_over:
            await asyncio.sleep(0)
            self._begin()


_TURNS: WeakSet[WritingTurn] = WeakSet()


async def in_slices(items: list[T], work: Callable[[list[T]], M], clock: Clock) -> list[M]:
    """Return what ``work`` makes of each slice, in order. Raises what it does."""
    made, turn = [], WritingTurn(clock)
    for some in parts(items, SLICE_MESSAGES):
        made.append(work(some))
        await turn.end()
    return made


async def encode_large(
    batch: Batch, clock: Clock, *, begin: bytes = b"[", end: bytes = b"]"
) -> bytes:
    """Return what `encode` does of a batch; with other brackets around its messages, if that is wanted.

    Raises:
        ValueError, TypeError, RecursionError: as `encode` does.
    """
    if not batch:
        return begin + end
    return await _joined(batch, lambda some: encode(some)[1:-1], clock, (begin, b",", end))


async def encode_large_lines(
    batch: Batch, clock: Clock, encoded: Callable[[Batch], bytes] | None = None
) -> bytes:
    """Return what `encode_lines` does, or ``encoded`` of some messages. Raises what it does."""
    return await _joined(batch, encoded or encode_lines, clock, (b"", b"", b""))


async def _joined(
    batch: Batch,
    written: Callable[[Batch], bytes],
    clock: Clock,
    around: tuple[bytes, bytes, bytes],
) -> bytes:
    """Return the texts of all slices, with what stands before, between and behind them."""
    before, between, end = around
    texts: list[bytes] = []
    turn = WritingTurn(clock)
    joined = 0
    for some in parts(batch, ENCODED_AT_ONCE):
        texts += before, written(some)
        before = between
        if turn.is_over:  # few large pieces: those of one number each take a while to join
            texts[joined:] = [b"".join(texts[joined:])]
            joined = len(texts)
            await turn.end()
    whole = b"".join((*texts, end))
    await turn.end()
    return whole


async def encode_each(
    batch: Batch, clock: Clock, encoded: Callable[[Batch], Iterable[bytes]] | None = None
) -> list[bytes]:
    """Return what `encode` makes of each message, or ``encoded`` of some of them. Raises what it does."""
    made: list[bytes] = LargeList()
    turn = WritingTurn(clock)
    for some in parts(batch, ENCODED_AT_ONCE):
        made += map(encode, some) if encoded is None else encoded(some)
        await turn.end()
    return made
