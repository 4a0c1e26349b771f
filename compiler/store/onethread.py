"""A thread that does one thing after the other, as whoever is on the loop asks for it.

Not one of an executor: at the end of the process those are waited for, and a disk that hangs would keep
the process from ending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from headrace.compiler.store.storeerrors import StoreFailed

T = TypeVar("T")
Work = Callable[[], Any]


class OneThread:
    """Runs from when it is made until `stop`."""

    def __init__(self, name: str) -> None:
        self._asked: SimpleQueue[tuple[asyncio.Future[Any], Work] | None] = SimpleQueue()
        self._is_stopped = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def do(self, work: Callable[[], T]) -> T:
        """Return what ``work`` does, on the thread.

        Raises:
            StoreFailed: it was stopped.
        """
        if self._is_stopped:
            raise StoreFailed("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.put((future, work))
        return await future

    def stop(self) -> None:
        """End it when what was asked for is done."""
        self._is_stopped = True
        self._asked.put(None)

    def join(self) -> None:
        """Wait for its end, where nothing else may go on meanwhile."""
        self._thread.join()

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            future, work = asked
            result, cause = None, None
            try:
                result = work()
            except BaseException as raised:
                cause = raised
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                future.get_loop().call_soon_threadsafe(_tell, future, result, cause)
            del asked, future, work, result, cause


def _tell(future: asyncio.Future[Any], result: Any, cause: BaseException | None) -> None:
    if future.cancelled():
        return
    if cause is None:
        future.set_result(result)
    else:
        future.set_exception(cause)
