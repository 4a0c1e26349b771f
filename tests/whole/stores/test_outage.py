"""A store dies under load and comes back: pipelines go on, and what is lost is known."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.promises import promise
from tests.server import serving
from tests.services.kafka import Kafka
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import KAFKA
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.linking import delete, linked, statuses
from tests.whole.stores.kinds.every import EVERY
from tests.whole.stores.kinds.kind import Json, Store
from tests.whole.stores.outages import GOES_ON, Outage
from tests.whole.stores.sightings import Sightings
from tests.whole.stores.told import failed, reasons, wait_until_through

pytestmark = [pytest.mark.long, pytest.mark.timed]

RATE, TOGETHER = 50, 10
"""Messages a second, and the most that are in a batch."""


class Line:
    """One store, and a topic whose messages are written into it and acknowledged on delivery."""

    def __init__(self, aside: Aside, kind: Store, store: Any, kafka: Kafka) -> None:
        self.kind, self._store = kind, store
        self.stored = Sightings(aside, kind, store, "readings")
        self.load = Load(aside, KAFKA, kafka, topic(kind), rate=RATE)

    def wait_until_writing(self) -> None:
        """Wait until a second's messages are stored."""
        self.stored.wait_until_more(RATE)

    def lose(self) -> None:
        """Have the store die; it comes back by itself."""
        self._outage = Outage(self._store)
        self._first = self.load.offered

    def recovery(self) -> float:
        """Return how many seconds after its return something was stored that was sent since it died."""
        back = self._outage.ended()
        self.stored.wait_from(self._first)
        return min(when for n, when in self.stored.first.items() if n >= self._first) - back


def topic(kind: Store) -> str:
    return f"to-{kind}"


def pipeline(kind: Store) -> Json:
    return {
        "id": f"to {kind}",
        "inputs": [KAFKA.input("kafka", topic(kind), group=f"for-{kind}", max_batch=TOGETHER)],
        "outputs": [kind.output(kind.name, "readings")],
    }


@promise(
    "postgres.output.away",
    "postgres.output.twice",
    "clickhouse.output.away",
    "s3.output.away",
    "delivery.store.killed",
    "delivery.case.store_back",
)
def test_pipelines_go_on_when_their_store_is_back(
    tmp_path: Path, kafka: Kafka, figure: Figure
) -> None:
    with ExitStack() as running:
        stores = {kind: running.enter_context(kind.server(tmp_path / kind.name)) for kind in EVERY}
        connections = {"kafka": KAFKA.connection(kafka)}
        for kind, store in stores.items():
            KAFKA.create(kafka, topic(kind))
            connections[kind.name] = kind.connection(store)
        folder = tmp_path / "headrace"
        options = linked(folder, connections)
        aside = running.enter_context(Aside())
        server = running.enter_context(serving(folder, [*map(pipeline, EVERY)], *options))
        lines = [Line(aside, kind, store, kafka) for kind, store in stores.items()]
        for line in lines:
            line.wait_until_writing()

        for line in lines:
            line.lose()
        took = {line.kind: line.recovery() for line in lines}
        figure("on after", took)
        assert max(took.values()) < GOES_ON

        assert set(statuses(server).values()) == {"running"}
        for line in lines:
            promised, id = line.load.stop(), f"to {line.kind}"
            wait_until_through(server, id, len(promised))
            told, count = reasons(server, id), failed(server, id)
            assert delete(server, id).status == 204
            stored = line.stored.final()
            lost, doubled = len(promised - stored.keys()), stored.total() - len(stored)
            figure(str(line.kind), f"{len(promised)}, {lost} lost, {doubled} twice, {told}")
            assert len(told) == 1
            assert doubled <= TOGETHER
            assert 0 <= lost <= (0 if line.kind.keeps else count * TOGETHER)
