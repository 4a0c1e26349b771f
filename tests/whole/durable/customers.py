"""Clients that post beside each other as fast as they are answered, to one server after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from itertools import count

from tests.clients import PATIENCE, Client, Gone
from tests.server import Server
from tests.stopwatch import Stopwatch

PIPELINE = "p"
"""Where they post."""
APART = 10_000_000
"""Numbers that each of them has for itself."""
LOOKS_SECONDS = 0.02
"""Between two looks at whether something has happened."""


class Customer:
    """A client that posts numbers of its own, one at a time."""

    def __init__(self, first: int) -> None:
        self._numbers = count(first)
        self.confirmed: list[int] = []
        """Those that were answered 202, in order."""
        self.refused: list[tuple[int, str | None]] = []
        """What else was answered: the status, and after how many seconds it may be tried again."""

    def post(self, port: int, stopping: threading.Event) -> None:
        """Post until it is told to stop, or the server is gone."""
        client = Client(port)
        with suppress(OSError, HTTPException):
            while not stopping.is_set():
                number = next(self._numbers)
                answer = client.post(PIPELINE, {"n": number})
                if answer.status == 202:
                    self.confirmed.append(number)
                else:
                    self.refused.append((answer.status, answer.headers.get("retry-after")))
        client.close()


class Customers:
    """Several of them."""

    def __init__(self, count: int) -> None:
        self.each = [Customer(APART * which) for which in range(1, count + 1)]

    @property
    def count(self) -> int:
        """How many messages were answered 202."""
        return sum(len(each.confirmed) for each in self.each)

    @property
    def confirmed(self) -> set[int]:
        """The messages that were answered 202."""
        return {number for each in self.each for number in each.confirmed}

    @property
    def refused(self) -> list[tuple[int, str | None]]:
        """What else was answered."""
        return [answer for each in self.each for answer in each.refused]

    @contextmanager
    def posting(self, server: Server) -> Iterator[None]:
        """Have them post for as long as the block lasts."""
        stopping = threading.Event()
        threads = [
            threading.Thread(target=each.post, args=(server.port, stopping), daemon=True)
            for each in self.each
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopping.set()
            for thread in threads:
                thread.join(PATIENCE)

    def wait_for(self, count: int) -> None:
        """Wait until so many messages were answered 202."""
        wait_until(lambda: self.count >= count, f"{count:,} posts that are answered 202")


def wait_until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Look until something holds."""
    watch = Stopwatch()
    while not holds():
        if watch.seconds > seconds:
            raise Gone(f"{what}: not within {seconds:g} s")
        pause(LOOKS_SECONDS)


def pause(seconds: float) -> None:
    """Let time pass."""
    threading.Event().wait(seconds)
