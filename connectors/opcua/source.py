"""The `opcua` input at work: one life of a subscription after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, ClassVar

from headrace.compiler.edges import Arrival, Source
from headrace.compiler.errors import Unreachable
from headrace.compiler.language.context import Context
from headrace.connectors.opcua.items import Watching
from headrace.connectors.opcua.life import Change, Life
from headrace.connectors.opcua.security import Server
from headrace.connectors.refusal import CONNECT_SECONDS, Outage

PATIENT_SECONDS = 30.0
"""How long connecting, browsing and subscribing may take when no pipeline waits for it to be built."""
MOST_WAITING = 10_000
"""Changes that may wait to be read into the pipeline."""
PORTION = 500
"""Of them that are handed over at once, so that the others still count as waiting."""

DROPPED = (
    "dropped a change: they arrive faster than they are worked off, and of"
    f" {MOST_WAITING:,} that wait the oldest makes room for the newest"
)


class Changes:
    """A bounded list between the subscription and who reads: the oldest makes room for the newest."""

    def __init__(self, drop: Callable[[str], None]) -> None:
        self._drop = drop
        self._waiting = list[Change]()
        self._news = asyncio.Event()
        self._cause: Exception | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, changes: Sequence[Change]) -> None:
        """Add changes, unless it is broken off: what would still come is of a connection that is over."""
        if self._cause is not None:
            return
        self._waiting += changes
        excess = max(len(self._waiting) - MOST_WAITING, 0)
        del self._waiting[:excess]
        for _ in range(excess):
            self._drop(DROPPED)
        self._news.set()

    def break_off(self, cause: Exception) -> None:
        """Have `take` raise, when all that is here has been taken."""
        self._cause = self._cause or cause
        self._news.set()

    def wake(self) -> None:
        """Have a waiting `take` return, with nothing if there is nothing."""
        self._news.set()

    async def take(self) -> list[Change]:
        """Return the oldest changes, as soon as there are any."""
        if not self._waiting and self._cause is None:
            self._news.clear()
            await self._news.wait()
        taken = self._waiting[:PORTION]
        del self._waiting[:PORTION]
        if not taken and self._cause is not None:
            raise self._cause
        return taken


class OpcuaSource(Source):
    """A subscription for as long as its connection lives, and what it brought and nobody has read."""

    is_raw: ClassVar[bool] = False
    connects: ClassVar[bool] = True

    def __init__(
        self, server: Server, watching: Watching, connection: str, max_batch: int, ctx: Context
    ) -> None:
        self.max_batch = max(max_batch, 1)
        self._server, self._watching, self._ctx = server, watching, ctx
        self._connection = connection
        self._outage = Outage(server.where)
        self._changes: Changes | None = None
        self._seconds = CONNECT_SECONDS
        self._is_stopping = False

    async def read(self) -> AsyncGenerator[Sequence[Arrival], None]:
        """Subscribe, and yield the changes; when it is to stop, what has arrived by then.

        When the connection is lost, every node says so before that is raised.
        """
        changes = Changes(self._ctx.skip)
        life = Life(self._server, self._watching, self._outage, self._ctx)
        seconds, self._seconds = self._seconds, PATIENT_SECONDS
        await life.begin(changes.put, changes.break_off, seconds)
        try:
            self._changes = changes
            yield ()
            while len(changes) or not self._is_stopping:
                yield self._batches(await changes.take())
        except Unreachable:
            yield self._batches(life.lost())
            raise
        finally:
            self._changes = None
            await life.end()

    def _batches(self, changes: Sequence[Change]) -> list[Arrival]:
        most = self.max_batch
        return [
            (list(changes[start : start + most]), None) for start in range(0, len(changes), most)
        ]

    def describe(self, origin: Any) -> dict[str, Any]:
        """Return where it came from; the node is in the message itself."""
        return {"connection": self._connection}

    def stop(self) -> bool:
        """Take no more; what has arrived is read out, because it does not come again."""
        self._is_stopping = True
        if self._changes is None:
            return False
        self._changes.wake()
        return True

    def close(self) -> int:
        """Return how many batches have arrived that nobody will read."""
        waiting = 0 if self._changes is None else len(self._changes)
        return -(-waiting // self.max_batch)
