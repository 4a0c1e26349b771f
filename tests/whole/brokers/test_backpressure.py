"""An output that is blocked while its broker pushes: memory stays, and what can wait waits there."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import Server, serving
from tests.services.server import Service
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import EVERY, KAFKA, MQTT, NATS, REDIS
from tests.whole.brokers.kinds.kind import Kind
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.gate import Gate
from tests.whole.linking import linked, statuses
from tests.whole.memory import MIB, peak, resident

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("sys.platform != 'linux'", reason="needs /proc"),
]

BLOCKED = 30.0
"""Seconds that the output takes nothing."""
FILLING = 10_000
LATER = 1_000_000
"""The first number of what is published when the gate has been opened."""
RATES = {KAFKA: 500, MQTT: 100, NATS: 1000, REDIS: 1000}
"""Messages a second. Those of MQTT wait in the memory of the broker, so there are fewer."""
BOUNDS = {KAFKA: 64 * MIB, MQTT: 32 * MIB, NATS: 192 * MIB, REDIS: 32 * MIB}
"""How much a process may grow. In each, 16 batches of 100 are on their way. Nothing holds NATS up: there
64 MiB wait, and as much again is being handed on."""
FAILURES = {
    KAFKA: lambda lost: 0,
    MQTT: lambda lost: 0,
    NATS: lambda lost: lost,  # each message that is dropped
    REDIS: lambda lost: 1,  # the server hangs up on who does not read
}
"""What is counted for so many messages that are lost."""


class Line:
    """One kind, whose messages a server sends to the gate."""

    def __init__(self, aside: Aside, kind: Kind, broker: Service, server: Server) -> None:
        self.kind, self.server = kind, server
        self.before = resident(server)
        self.load = Load(aside, kind, broker, "in", rate=RATES[kind], burst=20, filling=FILLING)

    @property
    def grown(self) -> int:
        """How much more memory the server has ever had than before."""
        return peak(self.server) - self.before


@promise(
    "kafka.input.waits",
    "kafka.input.beyond",
    "mqtt.input.waits",
    "mqtt.input.beyond",
    "nats.input.waits",
    "redis.input.waits",
    "redis.input.beyond",
)
def test_memory_is_bounded_and_what_can_wait_waits_at_the_broker(
    tmp_path: Path, gate: Gate, figure: Figure
) -> None:
    with ExitStack() as running:
        brokers = {kind: running.enter_context(kind.server(tmp_path / kind.name)) for kind in EVERY}
        aside = running.enter_context(Aside())
        lines = []
        for kind, broker in brokers.items():
            kind.create(broker, "in")
            folder = tmp_path / f"headrace-{kind}"
            options = linked(folder, {"broker": kind.connection(broker)})
            pipeline = {
                "id": "p",
                "inputs": [kind.input("broker", "in", max_batch=100)],
                "outputs": [gate.output(kind.name)],
            }
            server = running.enter_context(serving(folder, [pipeline], *options))
            lines.append(Line(aside, kind, broker, server))
        for line in lines:
            gate.wait_until_asked(line.kind.name)

        opening = threading.Timer(BLOCKED, gate.is_open.set)
        opening.start()
        opening.join()

        for line in lines:
            offered, published = line.load.offered, line.load.stop()
            taken = gate.taken[line.kind.name]
            if line.kind.keeps:
                taken.wait_for(published, 120)
            else:
                later = Load(aside, line.kind, brokers[line.kind], "in", first=LATER)
                taken.wait_from(LATER)
                later.stop()
            lost = len(taken.missing(published))
            failed = line.server.metric("headrace_failures_total", pipeline="p", stage="input")
            pushed = offered * FILLING / MIB
            told = f"{line.grown / MIB:.0f} MiB more, {pushed:.0f} MiB pushed, {lost} lost"
            figure(str(line.kind), f"{told} of {len(published)}, {failed:.0f} failures")
            assert line.grown < BOUNDS[line.kind]
            assert failed == FAILURES[line.kind](lost)
            assert statuses(line.server) == {"p": "running"}
