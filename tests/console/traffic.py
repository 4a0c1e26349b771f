"""Messages that keep coming while a test looks at the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any

from tests.clients import PATIENCE
from tests.server import Server


class Traffic:
    """What has been posted."""

    def __init__(self) -> None:
        self.posts = 0
        self._news = Condition()

    def count(self) -> None:
        """One more post was answered."""
        with self._news:
            self.posts += 1
            self._news.notify_all()

    def wait(self, posts: int) -> None:
        """Wait until there were so many more."""
        with self._news:
            wanted = self.posts + posts
            assert self._news.wait_for(lambda: self.posts >= wanted, PATIENCE)


@contextmanager
def passing(
    server: Server, pipeline: str, message: Any, *, each: int = 1, seconds: float = 0.1
) -> Iterator[Traffic]:
    """Post so many messages at once, again and again, so many seconds apart."""
    ended, traffic = Event(), Traffic()
    messages: Sequence[Any] = [message] * each

    def post() -> None:
        due = monotonic()
        while not ended.wait(max(0.0, due - monotonic())):
            server.post(pipeline, messages)
            traffic.count()
            due += seconds  # whatever a post takes: so many pass a second

    thread = Thread(target=post)
    thread.start()
    try:
        yield traffic
    finally:
        ended.set()
        thread.join()
