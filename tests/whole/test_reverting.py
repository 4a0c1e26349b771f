"""A server goes back to its files while everything runs: brokers, files on the disk, posts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.forked import serving
from tests.server import Server, filed, written
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import KAFKA, MQTT
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.linking import filing, linked
from tests.whole.posting import Posts

STDOUT = {"type": "stdout"}


def revert(server: Server) -> None:
    answer = server.request("POST", "/api/config/revert")
    assert (answer.status, answer.body) == (204, b""), answer.body


def plan(server: Server) -> Any:
    return server.get("/api/config/plan").value["pipelines"]


def changed(server: Server) -> dict[str, list[str]]:
    """Return which pipelines a revert would restart, and why."""
    return {each["id"]: each["why"] for each in plan(server)["changed"]}


def test_an_mqtt_session_and_a_kafka_position_outlive_the_restart_of_their_inputs(
    tmp_path: Path, mosquitto: Mosquitto, kafka: Kafka, figure: Figure
) -> None:
    kafka.create_topic("reverted")
    connections = {
        "mqtt": MQTT.connection(mosquitto),
        "kafka": KAFKA.connection(kafka),
    }
    options = linked(tmp_path, connections)

    def config(size: int) -> list[Any]:
        # Another size is another pipeline: its inputs are let go of and connected anew.
        return [
            {
                "id": kind.name,
                "inputs": [kind.input(kind.name, "reverted", max_batch=10)],
                "transforms": [{"type": "buffer", "size": size, "seconds": 1}],
                "outputs": [STDOUT],
            }
            for kind in (MQTT, KAFKA)
        ]

    with Aside() as aside, serving(tmp_path, config(2), *options) as server:
        printed = Printed(server.out)
        loads = {
            kind.name: Load(aside, kind, broker, "reverted", rate=200)
            for kind, broker in ((MQTT, mosquitto), (KAFKA, kafka))
        }
        for name in loads:
            printed[name].wait_until_more(100)
        for size in (3, 4, 5):
            written(tmp_path, config(size))
            revert(server)
            for name in loads:
                printed[name].wait_until_more(len(printed[name].counts) + 50)
        for name, load in loads.items():
            printed[name].wait_for(load.stop())

        figure("duplicates", {name: printed[name].duplicates for name in loads})
        assert server.metric("headrace_failures_total", pipeline="mqtt", stage="input") == 0


def test_an_mqtt_input_that_is_gone_from_the_file_leaves_no_session(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    options = linked(tmp_path, {"mqtt": MQTT.connection(mosquitto)})

    def config(*topics: str) -> list[Any]:
        inputs = [MQTT.input("mqtt", topic, max_batch=10) for topic in topics]
        return [{"id": "p", "inputs": inputs, "outputs": [STDOUT]}]

    with Aside() as aside, serving(tmp_path, config("gone/a", "gone/b"), *options) as server:
        printed = Printed(server.out)
        written(tmp_path, config("gone/b"))
        revert(server)
        # What is published now is for nobody: a session would have kept it.
        lost = Load(aside, MQTT, mosquitto, "gone/a", first=1_000_000, most=1_000_020)
        lost.wait_for(20)
        lost.stop()

        written(tmp_path, config("gone/a", "gone/b"))
        revert(server)
        load = Load(aside, MQTT, mosquitto, "gone/a")
        printed["p"].wait_until_more(20)
        printed["p"].wait_for(load.stop())
        assert max(printed["p"].counts) < 1_000_000


@pytest.mark.long
def test_posts_and_files_over_ten_reverts(tmp_path: Path, figure: Figure) -> None:
    options = filed(tmp_path)

    def config(n: int) -> list[Any]:
        buffer = {"type": "buffer", "size": 5, "seconds": n}
        out = [{**filing("out"), "format": "json_array"}, STDOUT]
        return [
            {"id": "kept", "inputs": [{"type": "http"}], "outputs": [STDOUT]},
            {"id": "p", "inputs": [{"type": "http"}], "transforms": [buffer], "outputs": out},
            {
                "id": "q",
                "inputs": [{"type": "pipeline", "upstream": "kept"}],
                "transforms": [buffer],
                "outputs": [STDOUT],
            },
        ]

    with serving(tmp_path, config(100), *options) as server:
        printed = Printed(server.out)
        posts = {id: Posts(server, id) for id in ("kept", "p")}
        for n in range(10):
            for id in posts:
                printed[id].wait_until_more(len(printed[id].counts) + 20)
            written(tmp_path, config(101 + n))
            assert changed(server) == {
                "p": ["transforms[0].seconds"],
                "q": ["transforms[0].seconds"],
            }
            revert(server)
        accepted = {id: each.stop() for id, each in posts.items()}
        assert [each.refused for each in posts.values()] == [[], []]
        assert [each.offered for each in posts.values()] == [*map(len, accepted.values())]
        written(tmp_path, [])
        revert(server)  # which has everything released

        figure("posts", {id: len(numbers) for id, numbers in accepted.items()})
        for id, source in (("kept", "kept"), ("p", "p"), ("q", "kept")):
            printed[id].wait_for(accepted[source])
            assert printed[id].duplicates == 0
        parts = [*(tmp_path / "data" / "out").iterdir()]
    assert len(parts) >= 10
    stored = [message["n"] for part in parts for message in json.loads(part.read_text())]
    assert sorted(stored) == sorted(accepted["p"])
