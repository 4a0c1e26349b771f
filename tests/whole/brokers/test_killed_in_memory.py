"""Killed with messages in memory that nobody keeps: they are gone, and nothing of them comes twice."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.compiler.clock import wall
from tests.promises import promise
from tests.server import Server, serving
from tests.services.opcua import Opcua
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import KAFKA, MQTT, NATS, REDIS
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.brokers.peers import Load
from tests.whole.linking import linked
from tests.whole.posting import Posts
from tests.whole.stores.told import wait_until_taken

pytestmark = pytest.mark.long

RATE = 50
LATER = 1_000_000
"""The first number of what is published when the server runs again."""
PATIENT = 60.0
"""A Kafka group gives its dead member up after ten seconds."""

NODES, ROUNDS = 10, 4
"""How many nodes there are, and how often each changes: the rounds are the values."""

NUMBERS = {"type": "map", "mappings": [{"type": "copy", "from": "current_time", "as": "n"}]}
VALUES = {"type": "map", "mappings": [{"type": "copy", "from": "value", "as": "n"}]}
HOLDS = {"type": "buffer", "size": 100_000}
HANDS_ON = {"type": "buffer", "size": 100_000, "seconds": 1}
PRINTS = {"outputs": [{"type": "stdout"}]}

ROWS: Mapping[str, tuple[Kind, Json]] = {
    "kafka.on_receipt": (KAFKA, {"ack": "on_receipt"}),
    "mqtt.on_receipt": (MQTT, {"ack": "on_receipt"}),
    "mqtt.qos_0": (MQTT, {"ack": "on_receipt", "qos": "at_most_once"}),
    "nats.input": (NATS, {}),
    "redis.input": (REDIS, {}),
}


def killed(server: Server) -> None:
    server.signal(signal.SIGKILL)
    server.ended()


@promise(
    "kafka.on_receipt.kill",
    "mqtt.on_receipt.kill",
    "mqtt.qos_0.kill",
    "nats.input.kill",
    "redis.input.kill",
    "mqtt.on_receipt.twice",
    "mqtt.qos_0.twice",
    "nats.input.twice",
    "redis.input.twice",
)
@pytest.mark.parametrize("row", ROWS)
def test_what_a_buffer_held_of_a_broker_is_gone(tmp_path: Path, row: str) -> None:
    kind, options = ROWS[row]

    def config(hold: Json) -> list[Json]:
        reading = kind.input("broker", "in", max_batch=10, **options)
        return [{"id": "p", "inputs": [reading], "transforms": [hold], **PRINTS}]

    with ExitStack() as running:
        broker = running.enter_context(kind.server(tmp_path / "broker"))
        aside = running.enter_context(Aside())
        kind.create(broker, "in")
        folder = tmp_path / "headrace"
        beside = linked(folder, {"broker": kind.connection(broker)})
        with serving(folder, config(HOLDS), *beside) as server:
            load = Load(aside, kind, broker, "in", rate=RATE)
            load.wait_for(RATE)
            wait_until_taken(server, "p", RATE)
            load.wait_for(len(load.promised) + 3 * RATE)  # meanwhile positions are committed
            killed(server)
        promised = load.stop()

        with serving(folder, config(HANDS_ON), *beside) as server:
            printed = Printed(server.out)["p"]
            later = Load(aside, kind, broker, "in", rate=RATE, first=LATER)
            printed.wait_from(LATER, PATIENT)
            later.stop()
            arrived, duplicates = {*printed.counts}, printed.duplicates

    early = {*range(RATE)}
    assert early <= promised
    assert arrived & early == set()
    assert duplicates == 0
    if not kind.keeps or kind is MQTT:  # Kafka has what was not committed yet
        assert arrived & promised == set()


@promise("http.input.kill", "http.input.twice", "pipeline.input.kill", "dummy.input.kill")
@promise("pipeline.input.twice", "dummy.input.twice")
def test_what_was_posted_and_what_a_reader_held_is_gone(tmp_path: Path) -> None:
    def config(hold: Json) -> list[Json]:
        return [
            {"id": "posted", "inputs": [{"type": "http"}], "transforms": [hold], **PRINTS},
            {"id": "read", "inputs": [{"type": "http"}]},
            {
                "id": "reader",
                "inputs": [{"type": "pipeline", "upstream": "read"}],
                "transforms": [hold],
                **PRINTS,
            },
            {
                "id": "made",
                "inputs": [{"type": "dummy", "duration": 1}],
                "transforms": [NUMBERS, hold],
                **PRINTS,
            },
        ]

    folder = tmp_path / "headrace"
    folder.mkdir()
    with serving(folder, config(HOLDS)) as server:
        posts = [Posts(server, "posted"), Posts(server, "read")]
        for name in ("posted", "reader"):
            wait_until_taken(server, name, RATE)
        wait_until_taken(server, "made", 1)
        accepted = [each.stop() for each in posts]
        killed(server)

    since = wall().isoformat()
    with serving(folder, config(HANDS_ON)) as server:
        printed = Printed(server.out)
        for number in (LATER, LATER):  # what a client posts again comes again
            assert server.post("posted", {"n": number}).status == 202
        assert server.post("read", {"n": LATER}).status == 202
        printed["posted"].wait_for_count(LATER, 2)
        printed["reader"].wait_for([LATER])
        printed["made"].wait_until_more(0)
        assert server.stop() == 0

    assert min(map(len, accepted)) >= RATE
    assert dict(printed["posted"].counts) == {LATER: 2}
    assert dict(printed["reader"].counts) == {LATER: 1}
    assert printed["made"].duplicates == 0
    assert min(map(str, printed["made"].counts)) > since


@promise("opcua.input.kill", "opcua.input.twice")
def test_changes_that_a_buffer_held_are_gone_and_the_current_values_come_again(
    tmp_path: Path,
) -> None:
    def config(hold: Json) -> list[Json]:
        reading = {
            "type": "opcua",
            "connection": "plant",
            "browse": {"root": "ns=2;s=Many"},
            "publish_interval_ms": 100,
            "queue_size": 100,
        }
        return [{"id": "p", "inputs": [reading], "transforms": [VALUES, hold], **PRINTS}]

    with Opcua(tmp_path / "plant") as plant:
        plant.tell(f"add_many({NODES})")
        folder = tmp_path / "headrace"
        beside = linked(folder, {"plant": {"type": "opcua", "endpoint": plant.url}})
        with serving(folder, config(HOLDS), *beside) as server:
            wait_until_taken(server, "p", NODES)
            plant.tell(f"change({NODES}, {ROUNDS}, 0.1)")
            wait_until_taken(server, "p", NODES * (1 + ROUNDS))
            killed(server)

        with serving(folder, config(HANDS_ON), *beside) as server:
            printed = Printed(server.out)["p"]
            printed.wait_for_count(ROUNDS, NODES)

    assert dict(printed.counts) == {ROUNDS: NODES}
