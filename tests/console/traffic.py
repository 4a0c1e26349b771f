"""Messages that keep coming while a test looks at the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any

from tests.server import Server


@contextmanager
def passing(
    server: Server, pipeline: str, message: Any, *, each: int = 1, seconds: float = 0.1
) -> Iterator[None]:
    """Post so many messages at once, again and again, so many seconds apart."""
    ended = Event()
    messages: Sequence[Any] = [message] * each

    def post() -> None:
        due = monotonic()
        while not ended.wait(max(0.0, due - monotonic())):
            server.post(pipeline, messages)
            due += seconds  # whatever a post takes: so many pass a second

    thread = Thread(target=post)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
