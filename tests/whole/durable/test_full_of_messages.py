"""An output that is blocked, and no more room to keep anything: memory and disk are bounded, and each kind
does with what still comes what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.promises import promise
from tests.redis_sides import client
from tests.server import Server, serving
from tests.services.mosquitto import Mosquitto
from tests.services.nats import Nats
from tests.services.opcua import Opcua
from tests.services.redis import Redis
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import MQTT, NATS, REDIS
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.brokers.peers import Load
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import are_in_order
from tests.whole.figures import Figure
from tests.whole.gate import Gate
from tests.whole.linking import linked, statuses
from tests.whole.memory import MIB, peak, resident

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("sys.platform != 'linux'", reason="needs /proc"),
]

KEPT_BYTES = MIB
FILLING = 10_000
"""Bytes of a message."""
PATIENT = 60.0
LATER = 1_000_000
"""The first number of what is published when the gate has been opened."""
NODES, ROUNDS, EACH_SECONDS = 600, 40, 0.1
"""How many nodes there are, how often each changes, and what is between its changes."""


@dataclass(frozen=True)
class Blocked:
    """A server whose output waits, and that keeps little."""

    server: Server
    before: int
    """Bytes of memory that it had before anything came."""

    @property
    def grown(self) -> int:
        """How much more memory it has ever had than before."""
        return peak(self.server) - self.before

    @property
    def failures(self) -> int:
        """How many failures of its input were counted."""
        return int(self.server.metric("headrace_failures_total", pipeline=PIPELINE, stage="input"))

    @property
    def skipped(self) -> int:
        """How many messages were skipped."""
        return int(self.server.metric("headrace_messages_skipped_total", pipeline=PIPELINE))

    @property
    def dropped(self) -> int:
        """How many messages are lost for want of room."""
        where = {"pipeline": PIPELINE, "stage": "input", "reason": "dropped"}
        return int(self.server.metric("headrace_messages_lost_total", component="0", **where))

    @property
    def kept(self) -> int:
        """How many bytes are on the disk."""
        return int(self.server.metric("headrace_stored_bytes", pipeline=PIPELINE))

    def wait_until_full(self) -> None:
        """Wait until its input says that it can keep no more."""

        def is_full() -> bool:
            [link] = self.server.get(f"/api/pipelines/{PIPELINE}").value["inputs"]
            return link["state"] == "waiting" and "max_bytes" in link["why"]

        wait_until(is_full, "nothing more can be kept", PATIENT)
        assert 0 < self.kept <= KEPT_BYTES


@contextmanager
def blocked(
    folder: Path, gate: Gate, input: Json, connection: Json, *transforms: Json
) -> Iterator[Blocked]:
    """Have a server whose output waits until the gate is opened."""
    config = {
        "id": PIPELINE,
        "inputs": [{**input, "durable": {"max_bytes": KEPT_BYTES}}],
        "transforms": [*transforms],
        "outputs": [gate.output(PIPELINE)],
    }
    options = linked(folder, {"outside": connection})
    with serving(folder, [config], *options) as server:
        yield Blocked(server, resident(server))
        assert statuses(server) == {PIPELINE: "running"}


@contextmanager
def overfilled(
    folder: Path, gate: Gate, kind: Kind, broker: Nats | Redis | Mosquitto, rate: int
) -> Iterator[tuple[Blocked, Load]]:
    """Have somebody publish to one that has no more room."""
    read = kind.input("outside", "in", max_batch=100)
    input = {key: value for key, value in read.items() if key != "ack"}
    with Aside() as aside, blocked(folder, gate, input, kind.connection(broker)) as it:
        load = Load(aside, kind, broker, "in", rate=rate, burst=50, filling=FILLING)
        it.wait_until_full()
        yield it, load


def publish_later(kind: Kind, broker: Nats | Redis, gate: Gate) -> None:
    """Have something arrive that is published when the gate is open."""
    with Aside() as aside:
        later = Load(aside, kind, broker, "in", first=LATER)
        gate.taken[PIPELINE].wait_from(LATER, PATIENT)
        later.stop()


def tell(figure: Figure, it: Blocked, published: int, lost: int) -> None:
    """Report what was measured."""
    figure("MiB more", round(it.grown / MIB))
    figure("MiB published", round(published * FILLING / MIB))
    figure("lost", f"{lost} of {published}, {it.failures} failures")


@promise("mqtt.durable.waits", "mqtt.durable.beyond")
def test_what_there_is_no_room_for_waits_at_an_mqtt_broker(
    tmp_path: Path, gate: Gate, figure: Figure
) -> None:
    with (
        MQTT.server(tmp_path / "broker") as broker,
        overfilled(tmp_path / "headrace", gate, MQTT, broker, rate=500) as (it, load),
    ):
        load.wait_for(len(load.promised) + 500)
        published = load.stop()
        gate.is_open.set()
        taken = gate.taken[PIPELINE]
        taken.wait_for(published, PATIENT)

        tell(figure, it, len(published), 0)
        assert it.grown < 48 * MIB
        assert (it.failures, it.skipped, taken.duplicates) == (0, 0, 0)
    assert are_in_order(taken.first, published)


@promise("nats.durable.waits", "nats.durable.beyond")
def test_what_there_is_no_room_for_is_dropped_of_nats_and_counted(
    tmp_path: Path, gate: Gate, figure: Figure
) -> None:
    with (
        NATS.server(tmp_path / "broker") as broker,
        overfilled(tmp_path / "headrace", gate, NATS, broker, rate=5000) as (it, load),
    ):
        wait_until(lambda: it.failures > 0, "something is dropped", PATIENT)
        published = load.stop()
        gate.is_open.set()
        publish_later(NATS, broker, gate)

        taken = gate.taken[PIPELINE]
        lost = len(taken.missing(published))
        tell(figure, it, len(published), lost)
        assert it.grown < 192 * MIB
        assert it.failures == it.dropped == lost > 0
        assert taken.duplicates == 0
    assert are_in_order(taken.first, published)


@promise("redis.durable.waits", "redis.durable.beyond")
def test_what_there_is_no_room_for_waits_at_redis_until_that_hangs_up(
    tmp_path: Path, gate: Gate, figure: Figure
) -> None:
    limit = "client-output-buffer-limit pubsub 4mb 4mb 0"
    with (
        Redis(tmp_path / "broker", extra=[limit]) as broker,
        client(broker) as asking,
        overfilled(tmp_path / "headrace", gate, REDIS, broker, rate=1000) as (it, load),
    ):
        wait_until(lambda: asking.pubsub_numsub("in")[0][1] == 0, "the server hangs up", PATIENT)
        published = load.stop()
        gate.is_open.set()
        wait_until(lambda: it.failures > 0, "that is noticed", PATIENT)
        publish_later(REDIS, broker, gate)

        taken = gate.taken[PIPELINE]
        lost = len(taken.missing(published))
        tell(figure, it, len(published), lost)
        assert it.grown < 48 * MIB
        assert (it.failures, it.skipped, taken.duplicates) == (1, 0, 0)
        assert lost > 0
    assert are_in_order(taken.first, published)


@promise("opcua.durable.waits", "opcua.durable.beyond")
def test_what_there_is_no_room_for_is_dropped_of_a_plant_the_oldest_first(
    tmp_path: Path, opcua_server: Opcua, gate: Gate, figure: Figure
) -> None:
    input = {
        "type": "opcua",
        "connection": "outside",
        "browse": {"root": "ns=2;s=Dropped"},
        "publish_interval_ms": 100,
        "queue_size": 2 * ROUNDS,  # so that the server itself drops nothing
        "max_batch": 100,
    }
    by_value = {"type": "map", "mappings": [{"type": "copy", "from": "value", "as": "n"}]}
    opcua_server.tell(f"add_many({NODES}, 'Dropped', 'D')")
    connection = {"type": "opcua", "endpoint": opcua_server.url}
    with blocked(tmp_path / "headrace", gate, input, connection, by_value) as it:
        changes = opcua_server.tell(f"change({NODES}, {ROUNDS}, {EACH_SECONDS}, 'D')")
        it.wait_until_full()
        wait_until(lambda: it.skipped > 0, "something is dropped", PATIENT)
        grown = it.grown

        gate.is_open.set()
        taken = gate.taken[PIPELINE]
        taken.wait_for_count(ROUNDS, NODES, PATIENT)  # the last change of every node

        figure("MiB more", round(grown / MIB))
        figure("changes", f"{changes}, {taken.counts.total()} taken, {it.skipped} dropped")
        assert grown < 64 * MIB
        assert it.skipped == it.dropped == NODES + changes - taken.counts.total()
