"""What has arrived somewhere, known by its numbers, for whoever waits for more of it."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from time import monotonic
from typing import Any

from tests.clients import PATIENCE, Gone
from tests.server import Lines


class Arrived:
    """How often each number has arrived, and when it did first. Filled by one thread or many."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self.counts: Counter[int] = Counter()
        self.first: dict[int, float] = {}

    def add(self, numbers: Iterable[int]) -> None:
        """Count some."""
        now = monotonic()
        with self._news:
            for number in numbers:
                self.counts[number] += 1
                self.first.setdefault(number, now)
            self._news.notify_all()

    @property
    def duplicates(self) -> int:
        """How many arrived that had arrived before."""
        with self._news:
            return self.counts.total() - len(self.counts)

    def missing(self, numbers: Iterable[int]) -> list[int]:
        """Return those that have not arrived, in order."""
        with self._news:
            return sorted(set(numbers) - self.counts.keys())

    def wait_for(self, numbers: Collection[int], seconds: float = PATIENCE) -> None:
        """Wait until all of these have arrived."""
        self._wait(lambda: self.counts.keys() >= set(numbers), seconds)
        if missing := self.missing(numbers):
            raise Gone(f"{len(missing)} of {len(numbers)} did not arrive: {missing[:20]}")

    def wait_until_more(self, than: int, seconds: float = PATIENCE) -> None:
        """Wait until more numbers than so many have arrived."""
        self._wait(lambda: len(self.counts) > than, seconds)
        if len(self.counts) <= than:
            raise Gone(f"{len(self.counts)} numbers have arrived, and not more than {than}")

    def wait_for_count(self, number: int, count: int, seconds: float = PATIENCE) -> None:
        """Wait until a number has arrived so often."""
        self._wait(lambda: self.counts[number] >= count, seconds)
        if self.counts[number] < count:
            raise Gone(f"{number} has arrived {self.counts[number]} times, and not {count}")

    def wait_from(self, number: int, seconds: float = PATIENCE) -> None:
        """Wait until something from this number on has arrived."""
        seen = self.counts
        self._wait(lambda: any(each >= number for each in seen), seconds)
        if not any(each >= number for each in seen):
            raise Gone(
                f"nothing from {number} on has arrived; the last is {max(seen, default=None)}"
            )

    def wait_after(self, moment: float, seconds: float = PATIENCE) -> float:
        """Wait until something new has arrived after a moment; return when it did."""
        seen = self.first
        self._wait(lambda: any(when > moment for when in seen.values()), seconds)
        with self._news:
            later = [when for when in seen.values() if when > moment]
        if not later:
            raise Gone(f"{len(seen)} have arrived, and nothing since")
        return min(later)

    def _wait(self, is_there: Callable[[], bool], seconds: float) -> None:
        with self._news:
            self._news.wait_for(is_there, seconds)


class Printed(defaultdict[str, Arrived]):
    """What each pipeline of a server prints, by its id, as it comes."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(Arrived)
        self._lines = lines
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for line in self._lines.follow():
            try:
                told = json.loads(line)
            except ValueError:
                return  # a kill has cut it short, so it is the last
            self[told["pipeline"]].add(numbers(told["batch"]))


def numbers(batch: Iterable[Any]) -> list[int]:
    """Return the numbers of messages; what has none is none of ours."""
    return [
        message["n"]
        for message in batch
        if isinstance(message, dict) and message.get("n") is not None
    ]
