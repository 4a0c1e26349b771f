"""A broker dies while a durable input reads it, and comes back: what waits there comes, and all goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.promises import promise
from tests.services.opcua import Opcua
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import MQTT, NATS, REDIS
from tests.whole.brokers.kinds.kind import Kind
from tests.whole.brokers.peers import Load
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import Lives, are_in_order, kill, twice
from tests.whole.figures import Figure
from tests.whole.linking import Json, filing
from tests.whole.stores.told import wait_until_taken

pytestmark = pytest.mark.long

RATE = 50
"""Messages a second."""
BURST = 5
IN_FLIGHT = 20
"""Messages that an MQTT broker sends before it waits for acknowledgements."""
HELD = range(10)


def reading(input: Json, *transforms: Json) -> list[Json]:
    """Return a pipeline that keeps what it reads, and writes it to files."""
    inputs = [{**input, "durable": True}]
    outputs = [filing("out")]
    return [
        {"id": PIPELINE, "inputs": inputs, "transforms": [*transforms], "outputs": outputs},
    ]


def input_of(kind: Kind) -> Json:
    """Return the input of a kind; what it is acknowledged by is that it is stored."""
    read = kind.input("broker", "in", max_batch=10)
    return {key: value for key, value in read.items() if key != "ack"}


def is_down(server: Any) -> bool:
    """Return whether its input has lost its connection."""
    [link] = server.get(f"/api/pipelines/{PIPELINE}").value["inputs"]
    return bool(link["state"] == "down")


@promise("nats.durable.away", "redis.durable.away", "mqtt.durable.away")
@pytest.mark.parametrize("kind", [NATS, REDIS, MQTT], ids=str)
def test_it_goes_on_when_its_broker_is_back(tmp_path: Path, kind: Kind, figure: Figure) -> None:
    with kind.lasting(tmp_path / "broker") as broker, Aside() as aside:
        connections = {"broker": kind.connection(broker)}
        lives = Lives(tmp_path / "headrace", reading(input_of(kind)), connections=connections)
        with lives.life() as server:
            load = Load(aside, kind, broker, "in", rate=RATE, burst=BURST)
            load.wait_for(RATE)
            before = {*load.promised}
            lives.wait_until_written(before)

            broker.kill()
            wait_until(lambda: is_down(server), "the connection is lost")
            broker.start()

            since = load.offered
            wait_until(lambda: max(lives.written()) >= since, "what is published now is written")
            published = load.stop()
            later = max(published)
            first = min(number for number in lives.written() if number >= since)
            due = published if kind.keeps else {n for n in published if first <= n <= later}
            lives.wait_until_written(due)
            assert server.stop() == 0

    written = lives.written()
    figure("published", len(published))
    figure("missing", len(published.difference(written)))
    figure("twice", len(twice(written)))
    assert are_in_order(written, published)
    # The burst that was confirmed last is published once more.
    assert len(twice(written)) <= BURST + (IN_FLIGHT if kind.keeps else 0)


@promise("opcua.durable.away", "opcua.durable.twice")
def test_nodes_say_that_their_plant_is_away_and_what_they_have_when_it_is_back(
    tmp_path: Path, opcua_server: Opcua
) -> None:
    opcua_server.tell("add('Away', 20.0)")
    nodes = {"nodes": [{"node_id": "ns=2;s=Away"}], "publish_interval_ms": 20}
    copies = [{"type": "copy", "from": "value", "as": "n"}]
    by_value = {"type": "map", "on_missing": "null", "mappings": copies}
    config = reading({"type": "opcua", "connection": "plant", **nodes}, by_value)
    connections = {"plant": {"type": "opcua", "endpoint": opcua_server.url}}
    lives = Lives(tmp_path / "headrace", config, connections=connections)
    with lives.life() as server:
        lives.wait_until_written([20.0])
        opcua_server.tell("write('Away', 21.0)")
        lives.wait_until_written([21.0])

        meanwhile = "asyncio.gather(write('Away', 22.0), write('Away', 23.0))"
        opcua_server.tell(f"plant.hang_up() or {meanwhile}")
        lives.wait_until_written([None, 23.0])
        opcua_server.tell("plant.hang_up()")

        wait_until(lambda: len(lives.written()) == 6, "what it has comes once more")
        assert server.stop() == 0

    assert lives.written() == [20.0, 21.0, None, 23.0, None, 23.0]


@pytest.mark.parametrize("kind", [NATS, MQTT], ids=str)
def test_what_is_stored_is_written_while_its_broker_is_away(tmp_path: Path, kind: Kind) -> None:
    with kind.server(tmp_path / "broker") as broker, Aside() as aside:
        connections = {"broker": kind.connection(broker)}
        holding = reading(input_of(kind), {"type": "buffer", "size": 2 * len(HELD)})
        lives = Lives(tmp_path / "headrace", holding, connections=connections)
        with lives.life() as server:
            load = Load(aside, kind, broker, "in", rate=1000, most=len(HELD))
            load.wait_for(len(HELD))
            wait_until_taken(server, PIPELINE, len(HELD))
            kill(server)
    assert lives.written() == []

    lives.config = reading(input_of(kind))
    with lives.life() as server:
        lives.wait_until_written(HELD)
        assert server.stop() == 0

    assert lives.written() == [*HELD]
