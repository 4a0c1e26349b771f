"""Killed with messages on their way: rows come again, and so does what is in a part."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients import PATIENCE
from tests.promises import promise
from tests.server import serving
from tests.services.kafka import Kafka
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import KAFKA
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.linking import linked
from tests.whole.stores.kinds.every import EVERY, S3
from tests.whole.stores.kinds.kind import Json, Store
from tests.whole.stores.outages import halted
from tests.whole.stores.sightings import Sightings
from tests.whole.stores.told import wait_until_taken

pytestmark = pytest.mark.long

RATE = 100
KILLS = int(os.environ.get("KILLS", "10"))
"""How often all of it is done, each time with a topic and stores of its own."""
LONG, SHORT = 3600, 1
"""Seconds for which a part is open."""


def pipeline(kind: Store, topic: str, seconds: int) -> Json:
    """Return a pipeline from one topic; a part is open for so long."""
    reading = KAFKA.input("kafka", topic, group=f"{topic}-{kind}", max_batch=10)
    more = {"rotate": {"interval_secs": seconds}} if kind is S3 else {}
    return {
        "id": kind.name,
        "inputs": [reading],
        "outputs": [kind.output(kind.name, "readings", **more)],
    }


@promise(
    "s3.output.written", "s3.output.held", "delivery.store.headrace_killed", "delivery.case.killed"
)
@pytest.mark.parametrize("life", range(KILLS))
def test_rows_come_again_and_so_does_what_was_in_a_part(
    tmp_path: Path, kafka: Kafka, figure: Figure, life: int
) -> None:
    topic = f"killed-{life}"
    KAFKA.create(kafka, topic)
    with ExitStack() as running:
        stores = {kind: running.enter_context(kind.server(tmp_path / kind.name)) for kind in EVERY}
        aside = running.enter_context(Aside())
        connections = {kind.name: kind.connection(store) for kind, store in stores.items()}
        connections["kafka"] = KAFKA.connection(kafka)
        folder = tmp_path / "headrace"
        options = linked(folder, connections)[2:]  # without a directory to keep parts in
        stored = {kind: Sightings(aside, kind, store, "readings") for kind, store in stores.items()}
        load = Load(aside, KAFKA, kafka, topic, rate=RATE)

        config = [pipeline(kind, topic, LONG) for kind in EVERY]
        with serving(folder, config, *options) as server:
            for kind in EVERY:
                wait_until_taken(server, kind.name, RATE)
            load.wait_for(len(load.promised) + 2 * RATE)  # meanwhile offsets are committed
            with halted(stores):
                load.wait_for(len(load.promised) + RATE)  # these are read, and cannot be written
                server.signal(signal.SIGKILL)
                server.ended()
        promised = load.stop()
        config = [pipeline(kind, topic, SHORT) for kind in EVERY]
        with serving(folder, config, *options) as server:
            for kind in EVERY:
                # The group gives its dead member up after ten seconds.
                stored[kind].wait_for(promised, 2 * PATIENCE)
            assert server.stop() == 0

        for kind in EVERY:
            found = stored[kind].final()
            lost, doubled = len(promised - found.keys()), found.total() - len(found)
            figure(str(kind), f"{len(promised)}, {lost} lost, {doubled} twice")
            assert lost == 0
