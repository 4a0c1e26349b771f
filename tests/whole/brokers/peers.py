"""Who publishes and who reads beside headrace: numbered messages, at a bounded rate, over any outage."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from time import monotonic
from typing import Any

from tests.clients import PATIENCE, Gone
from tests.whole.arrived import Arrived, numbers
from tests.whole.aside import Aside, beats
from tests.whole.brokers.kinds.kind import Channel, Kind

PAUSE = 0.02
"""Seconds between two tries to reach a broker that is away."""


class Load:
    """Publishes ``{"n": 0}``, ``{"n": 1}``, ... until it is stopped.

    Each burst is published until the broker has confirmed it; `promised` are the numbers that it has.
    When a connection is lost, the burst that was confirmed last is published once more: a broker that
    is killed may have confirmed it and not have written it down.

    ``rate`` is messages a second, at most; ``filling`` the size of each in bytes, about; the numbers
    begin with ``first`` and end before ``most``.
    """

    def __init__(
        self,
        aside: Aside,
        kind: Kind,
        server: Any,
        place: str,
        *,
        rate: int = 100,
        burst: int = 5,
        most: int = 10_000_000,
        filling: int = 0,
        first: int = 0,
    ) -> None:
        self._dial = lambda: kind.dial(server, place)
        self._lost = kind.lost
        self._rate, self._burst, self._most = rate, burst, most
        self._filling = {"filling": "x" * filling} if filling else {}
        self._stopping = threading.Event()
        self._confirmed: list[int] = []
        self._news = threading.Condition()
        self.promised: set[int] = set()
        self.offered = first
        self._publishing: Future[None] = aside.begin(self._publish())

    def wait_for(self, count: int, seconds: float = PATIENCE) -> None:
        """Wait until so many are promised."""
        with self._news:
            self._news.wait_for(lambda: len(self.promised) >= count, seconds)
        if len(self.promised) < count:
            raise Gone(f"{len(self.promised)} messages of {count} were published")

    def stop(self) -> set[int]:
        """Publish what was begun, and return all that is promised."""
        self._stopping.set()
        self._publishing.result(PATIENCE)
        return self.promised

    async def _publish(self) -> None:
        async with AsyncExitStack() as connected:
            channel: Channel | None = None
            async for _ in beats(self._burst / self._rate):
                if self._stopping.is_set() or self.offered >= self._most:
                    return
                burst = [*range(self.offered, self.offered + self._burst)]
                self.offered += self._burst
                channel = await self._confirm(burst, channel, connected)

    async def _confirm(
        self, burst: list[int], channel: Channel | None, connected: AsyncExitStack
    ) -> Channel:
        async for _ in beats(PAUSE):
            try:
                if channel is None:
                    channel = await connected.enter_async_context(self._dial())
                    await channel.send(self._payloads(self._confirmed))
                await channel.send(self._payloads(burst))
                break
            except self._lost:
                channel = None
                await _let_go(connected, self._lost)
        self._confirmed = burst
        with self._news:
            self.promised.update(burst)
            self._news.notify_all()
        assert channel is not None
        return channel

    def _payloads(self, burst: list[int]) -> list[bytes]:
        return [json.dumps({"n": number, **self._filling}).encode() for number in burst]


class Reader(Arrived):
    """Reads what is published, over any outage. It listens ``since`` when it connected last."""

    def __init__(self, aside: Aside, kind: Kind, server: Any, place: str) -> None:
        super().__init__()
        self._listens = threading.Event()
        self.since = 0.0
        self._reading: Future[None] = aside.begin(
            self._read(lambda: kind.listen(server, place, self._hear), kind.lost)
        )

    def _hear(self) -> None:
        self.since = monotonic()
        self._listens.set()

    def wait_until_listening(self) -> None:
        """Wait until whatever is published from then on arrives."""
        if not self._listens.wait(PATIENCE):
            raise Gone(f"nobody listens: {self._reading}")

    async def _read(self, listen: Callable[[], Any], lost: tuple[type[BaseException], ...]) -> None:
        async for _ in beats(PAUSE):
            arrivals = listen()
            try:
                async for payloads in arrivals:
                    self.add(numbers(map(json.loads, payloads)))
            except lost:
                self._listens.clear()
            finally:
                await arrivals.aclose()


async def _let_go(connected: AsyncExitStack, lost: tuple[type[BaseException], ...]) -> None:
    with suppress(*lost):  # who is gone is not taken leave of
        await connected.aclose()
