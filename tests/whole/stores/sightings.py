"""Who looks into a store beside headrace: which numbers are in it by now, over any outage."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from typing import Any

from tests.whole.arrived import Arrived
from tests.whole.aside import Aside, beats
from tests.whole.stores.kinds.kind import Store

PAUSE = 0.05
"""Seconds between two looks: what is seen was stored that much earlier, at most."""


class Sightings(Arrived):
    """The numbers that have been seen in a place, each as often as it is there."""

    def __init__(self, aside: Aside, kind: Store, server: Any, place: str) -> None:
        super().__init__()
        self._aside, self._kind, self._server, self._place = aside, kind, server, place
        self._watching: Future[None] = aside.begin(self._watch())

    def final(self) -> Counter[int]:
        """Return how often each number is there now, when nothing writes any more."""
        return stored(self._aside, self._kind, self._server, self._place)

    async def _watch(self) -> None:
        async for _ in beats(PAUSE):
            try:
                await self._look_on()
            except self._kind.lost:
                continue  # a server that is away is asked again

    async def _look_on(self) -> None:
        async with self._kind.dial(self._server, self._place) as look:
            async for _ in beats(PAUSE):
                new = Counter(await look()) - self.counts
                if new:
                    self.add(new.elements())


def stored(aside: Aside, kind: Store, server: Any, place: str) -> Counter[int]:
    """Return how often each number is in a place now."""

    async def looked() -> Counter[int]:
        async with kind.dial(server, place) as look:
            return Counter(await look())

    return aside.do(looked())
