"""An event loop in a thread of its own, for clients that go on whatever the test waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.clients import PATIENCE

T = TypeVar("T")

CANCEL_AGAIN = 1.0
"""Seconds until who was cancelled, and goes on, is cancelled once more."""


class Aside:
    """A loop that runs for as long as a block lasts; what still runs on it then is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have something done on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, T], seconds: float = PATIENCE) -> T:
        """Have something done on the loop, and return its result."""
        return self.begin(work).result(seconds)

    def call(self, action: Any, *arguments: Any) -> None:
        """Have a function called on the loop."""
        self._loop.call_soon_threadsafe(action, *arguments)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, _: TracebackType | None
    ) -> None:
        self.do(_cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


async def _cancel_all() -> None:
    """Cancel what else runs on this loop, and wait until it has ended.

    More than once: `asyncio.wait_for` of Python 3.11 drops a cancellation that comes together with what it
    waits for.
    """
    others = asyncio.all_tasks() - {asyncio.current_task()}
    while others:
        for task in others:
            task.cancel()
        _, others = await asyncio.wait(others, timeout=CANCEL_AGAIN)


async def beats(seconds: float) -> AsyncIterator[int]:
    """Yield numbers at a steady pace; who is late has lost a beat and no more."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    for number in count():
        beat = loop.create_future()
        loop.call_at(due, _ring, beat)
        await beat
        yield number
        due = max(due + seconds, loop.time())


def _ring(beat: asyncio.Future[None]) -> None:
    if not beat.done():
        beat.set_result(None)
