"""A buffer behind a durable `mqtt` input holds more than a broker sends without an acknowledgement."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.mqtt_sides import somebody
from tests.services.mosquitto import Mosquitto
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import MQTT
from tests.whole.durable.customers import PIPELINE
from tests.whole.durable.lives import Lives
from tests.whole.linking import filing
from tests.whole.stores.told import wait_until_taken

SIZE = 60
"""Three times as many as the broker has in flight."""
LAST = 2 * SIZE - 1
IN_FLIGHT = 10
"""Messages that are published at a time."""


async def published(broker: Mosquitto, numbers: Iterable[int], qos: int) -> None:
    """Publish numbers and wait until the broker has them."""
    async with somebody(broker, max_inflight_messages=IN_FLIGHT) as client:
        for number in numbers:
            await client.publish("in", b'{"n": %d}' % number, qos)


@pytest.mark.parametrize(("qos", "published_with"), [("at_least_once", 1), ("exactly_once", 2)])
def test_the_broker_goes_on_and_sends_nothing_twice(
    tmp_path: Path, qos: str, published_with: int
) -> None:
    reading = {"type": "mqtt", "connection": "broker", "topic": "in", "qos": qos, "durable": True}
    config = {
        "id": PIPELINE,
        "inputs": [reading],
        "transforms": [{"type": "buffer", "size": SIZE}],
        "outputs": [filing("out")],
    }
    with Mosquitto(tmp_path / "broker") as broker, Aside() as aside:
        connections = {"broker": MQTT.connection(broker)}
        lives = Lives(tmp_path / "headrace", [config], connections=connections)
        with lives.life() as server:
            aside.do(published(broker, range(SIZE - 1), published_with))
            wait_until_taken(server, PIPELINE, SIZE - 1)
            assert lives.written() == []
            assert server.stop() == 0  # which has the buffer hand on what it holds
        assert lives.written() == [*range(SIZE - 1)]
        aside.do(published(broker, range(SIZE - 1, LAST), published_with))
        with lives.life() as server:
            lives.wait_until_written(range(LAST))
            assert server.stop() == 0

    assert lives.written() == [*range(LAST)]
