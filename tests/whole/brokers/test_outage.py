"""A broker dies under load and comes back: pipelines go on, and what can be kept is not lost."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import pytest

from tests.clients import PATIENCE
from tests.promises import promise
from tests.server import Server, serving
from tests.services.server import Service
from tests.whole.arrived import Arrived, Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import EVERY, MQTT
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.brokers.peers import Load, Reader
from tests.whole.figures import Figure
from tests.whole.linking import linked, statuses
from tests.whole.posting import Posts

pytestmark = [pytest.mark.long, pytest.mark.timed]

OUTAGE = 5.0
"""Seconds that a broker is away."""
GOES_ON = 3.0
"""Seconds after its return within which messages pass again."""
UNSAVED = 25
"""Messages, about: half a second of them. Mosquitto confirms each, and writes it down afterwards."""


class Line:
    """One kind under load: what is published is printed, and what is posted is published."""

    def __init__(self, aside: Aside, kind: Kind, broker: Service, server: Server) -> None:
        self.kind, self._broker = kind, broker
        self.reader = Reader(aside, kind, broker, "out")
        self.reader.wait_until_listening()
        self.load = Load(aside, kind, broker, "in", rate=50)
        self.posts = Posts(server, f"to {kind}", rate=50)
        self._returned = threading.Event()
        self._back = 0.0
        self.confirmed_last = range(0)
        """What was posted just before the kill, where the broker may have confirmed and not saved it."""

    def lose(self) -> None:
        """Kill the broker; it comes back by itself."""
        self._broker.kill()
        if self.kind is MQTT:
            self.confirmed_last = range(self.posts.offered - UNSAVED, self.posts.offered)
        threading.Timer(OUTAGE, self._return).start()

    def _return(self) -> None:
        self._broker.start()
        self._back = monotonic()
        self._returned.set()

    def recoveries(self, printed: Arrived) -> tuple[float, float]:
        """Return after how many seconds something new has passed, in and out."""
        assert self._returned.wait(PATIENCE)
        self.reader.wait_until_listening()
        heard = max(self._back, self.reader.since)  # as a witness it has to be there itself
        inward, outward = printed.wait_after(self._back), self.reader.wait_after(heard)
        return inward - self._back, outward - heard


def pipelines(kind: Kind) -> list[Json]:
    return [
        {
            "id": f"from {kind}",
            "inputs": [kind.input(kind.name, "in")],
            "outputs": [{"type": "stdout"}],
        },
        {
            "id": f"to {kind}",
            "inputs": [{"type": "http"}],
            "outputs": [kind.output(kind.name, "out")],
        },
    ]


def told(server: Server, pipeline: str) -> set[str]:
    """Return what the log says of a pipeline's failures, without how often."""
    place = rf"WARNING pipeline '{pipeline}' (?:inputs|outputs\[0\]): "
    return set(re.findall(rf"{place}(?:[\d,]+ more: )?(.*)", str(server.err)))


def tally(arrived: Arrived, wanted: set[int]) -> str:
    """Return what has become of messages, for whoever reads the report."""
    return f"{len(wanted)}, {len(arrived.missing(wanted))} lost, {arrived.duplicates} twice"


@promise(
    "kafka.on_delivery.away",
    "mqtt.on_delivery.away",
    "nats.input.away",
    "redis.input.away",
    "mqtt.output.away",
    "kafka.output.away",
    "delivery.case.broker_back",
)
def test_pipelines_go_on_when_their_broker_is_back(tmp_path: Path, figure: Figure) -> None:
    brokers = {kind: kind.lasting(tmp_path / kind.name) for kind in EVERY}
    options = linked(
        tmp_path / "headrace",
        {kind.name: kind.connection(broker) for kind, broker in brokers.items()},
    )
    config = [pipeline for kind in EVERY for pipeline in pipelines(kind)]
    with ExitStack() as running:
        for kind, broker in brokers.items():
            running.enter_context(broker)
            kind.create(broker, "in")
            kind.create(broker, "out")
        aside = running.enter_context(Aside())
        server = running.enter_context(serving(tmp_path / "headrace", config, *options))
        printed = Printed(server.out)
        lines = [Line(aside, kind, broker, server) for kind, broker in brokers.items()]
        for line in lines:
            line.load.wait_for(50)
            line.reader.wait_until_more(20)

        for line in lines:
            line.lose()
        took = {line.kind: line.recoveries(printed[f"from {line.kind}"]) for line in lines}

        published = {line.kind: line.load.stop() for line in lines}
        posted = {line.kind: line.posts.stop() for line in lines}
        for line in lines:
            kind, arrived = line.kind, printed[f"from {line.kind}"]
            if kind.keeps:
                arrived.wait_for(published[kind])
                line.reader.wait_for(posted[kind] - {*line.confirmed_last})
            figure(f"{kind}: on after, in and out", took[kind])
            figure(f"{kind}: in", tally(arrived, published[kind]))
            figure(f"{kind}: out", tally(line.reader, posted[kind]))
            for pipeline, stage in ((f"from {kind}", "input"), (f"to {kind}", "output")):
                # The batch that was just being confirmed may have a text of its own: what is known of
                # it is not what is known of those after it.
                texts = {each for each in told(server, pipeline) if "did not confirm" not in each}
                # On a busy machine nobody may answer in time where the connection is refused otherwise.
                texts = {each.removesuffix(": connection refused") for each in texts}
                assert len(texts) == 1
                assert server.metric("headrace_failures_total", pipeline=pipeline, stage=stage) > 1
            assert max(took[kind]) < GOES_ON
        assert set(statuses(server).values()) == {"running"}
