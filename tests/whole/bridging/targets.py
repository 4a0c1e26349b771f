"""What is written to over an outage, whatever its kind: it goes away, comes back, tells what has come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from tests.services.server import Service
from tests.whole.arrived import Arrived
from tests.whole.aside import Aside
from tests.whole.bridging.taker import Taker
from tests.whole.brokers.kinds.every import KAFKA, MQTT, NATS, REDIS
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.brokers.peers import Reader
from tests.whole.stores.kinds.every import CLICKHOUSE, POSTGRES, S3
from tests.whole.stores.kinds.kind import Store
from tests.whole.stores.sightings import stored

PLACE = "readings"
TOGETHER = 10
"""The most messages that are in a batch."""
ON_THEIR_WAY = 256
"""Messages of a broker that may be on their way through a pipeline in such batches."""


class Target(ABC):
    """One server, and where in it something is written."""

    name: str
    is_ordered = True
    """Whether it tells in which order messages came."""
    forgets = False
    """Whether what comes to it while nobody listens there is gone."""
    most_twice = TOGETHER
    """How many messages an outage may bring twice: those of the writes that are under way at once."""

    @abstractmethod
    def connection(self) -> Json | None:
        """Return the connection to it, if its output names one."""

    @abstractmethod
    def output(self, **options: Any) -> Json:
        """Return the output that writes to it, with ``options`` of how it bridges an outage."""

    @abstractmethod
    def leave(self) -> None:
        """Be away."""

    @abstractmethod
    def come_back(self) -> None:
        """Be there again, with what it had."""

    @abstractmethod
    def arrived(self) -> Arrived:
        """Return what is there, in the order in which it came."""


class StoreTarget(Target):
    """A store; what is in it can be looked at at any time."""

    def __init__(self, aside: Aside, kind: Store, server: Any) -> None:
        self.name = kind.name
        self._aside, self._kind, self._server = aside, kind, server

    def connection(self) -> Json:
        return self._kind.connection(self._server)

    def output(self, **options: Any) -> Json:
        return self._kind.output(self.name, PLACE, **options)

    def leave(self) -> None:
        self._server.kill()

    def come_back(self) -> None:
        self._server.start()

    def arrived(self) -> Arrived:
        arrived = Arrived()
        arrived.add(self._numbers())
        return arrived

    def _numbers(self) -> Iterator[int]:
        return stored(self._aside, self._kind, self._server, PLACE).elements()


class PostgresTarget(StoreTarget):
    """Rows lie in the order in which they were inserted."""

    def _numbers(self) -> Iterator[int]:
        async def look() -> list[int]:
            client = await asyncpg.connect(self._server.url)
            try:
                asked = f"select n from {PLACE} order by ctid"
                return [row["n"] for row in await client.fetch(asked)]
            finally:
                client.terminate()

        return iter(self._aside.do(look()))


class ClickHouseTarget(StoreTarget):
    """Rows have the time of their insert, and the order that they had in it."""

    def _numbers(self) -> Iterator[int]:
        asked = f"SELECT n FROM {PLACE} ORDER BY received_at, _part, _part_offset"
        return (number for [number] in self._server.access.rows(asked))


class S3Target(StoreTarget):
    """Lines are in objects, whose names tell no order. A part is not open for long."""

    is_ordered = False

    def output(self, **options: Any) -> Json:
        return super().output(rotate={"max_rows": 20, "interval_secs": 1}, **options)


class BrokerTarget(Target):
    """A broker, and who reads what is published at it."""

    def __init__(self, aside: Aside, kind: Kind, server: Service) -> None:
        self.name = f"to {kind}"
        if kind.keeps:  # what is on its way goes out together, and the driver may send it again
            self.most_twice = ON_THEIR_WAY
        self.forgets = not kind.keeps
        self._aside, self._kind, self._server = aside, kind, server
        kind.create(server, PLACE)
        # Who reads a topic from its beginning is asked in the end: who is there all the time would read
        # some of it twice.
        self._reader = None if kind is KAFKA else self._reading()

    def _reading(self) -> Reader:
        reader = Reader(self._aside, self._kind, self._server, PLACE)
        reader.wait_until_listening()
        return reader

    def connection(self) -> Json:
        return self._kind.connection(self._server)

    def output(self, **options: Any) -> Json:
        return self._kind.output(self.name, PLACE, **options)

    def leave(self) -> None:
        if self._kind is MQTT:  # killed, it forgets what it has confirmed and not written down
            self._server.stop()
        else:
            self._server.kill()

    def come_back(self) -> None:
        self._server.start()
        if self._reader is not None:
            self._reader.wait_until_listening()

    def arrived(self) -> Arrived:
        if self._reader is None:
            self._reader = self._reading()
        return self._reader


class HttpTarget(Target):
    """An HTTP server; by batch, or by message."""

    def __init__(self, server: Taker, body: str) -> None:
        self.name = f"http by {body}"
        self._server, self._body = server, body

    def connection(self) -> None:
        return None

    def output(self, **options: Any) -> Json:
        return {"type": "http", "url": self._server.url, "body": self._body, **options}

    def leave(self) -> None:
        self._server.kill()

    def come_back(self) -> None:
        self._server.start()

    def arrived(self) -> Arrived:
        return self._server.taken


@contextmanager
def targets(aside: Aside, folder: Path) -> Iterator[list[Target]]:
    """Give one of each kind, started."""
    stores = ((POSTGRES, PostgresTarget), (CLICKHOUSE, ClickHouseTarget), (S3, S3Target))
    with ExitStack() as running:
        made: list[Target] = []
        for store, target in stores:
            server = running.enter_context(store.server(folder / store.name))
            made.append(target(aside, store, server))
        for kind in (KAFKA, MQTT, NATS, REDIS):
            broker = running.enter_context(kind.lasting(folder / f"to {kind}"))
            made.append(BrokerTarget(aside, kind, broker))
        made += [HttpTarget(running.enter_context(Taker()), body) for body in ("batch", "message")]
        yield made
