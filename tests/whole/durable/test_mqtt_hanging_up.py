"""A message that its broker hangs up on, alone in its batch: a dead letter, and others are written."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from tests.mqtt_sides import heard, somebody
from tests.promises import promise
from tests.server import serving
from tests.services.mosquitto import Mosquitto
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import figure_of
from tests.whole.brokers.kinds.every import MQTT
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.figures import Figure
from tests.whole.linking import linked

pytestmark = pytest.mark.long

LARGE, BEHIND, LAST = {"x": "x" * 5000}, 4, 9
LETTERS = f"/api/pipelines/{PIPELINE}/dead-letters"


@promise("mqtt.output.at_fault")
def test_it_is_a_dead_letter_and_an_outage_costs_none(tmp_path: Path, figure: Figure) -> None:
    sure = {"qos": "at_least_once", "retry": {}}
    output = {"type": "mqtt", "connection": "broker", "topic": "t", **sure}
    config = {
        "id": PIPELINE,
        "dead_letters": True,
        "inputs": [{"type": "http", "durable": True}],
        "outputs": [output],
    }
    folder = tmp_path / "headrace"
    with Mosquitto(tmp_path / "broker", extra=["max_packet_size 2000"]) as broker, Aside() as aside:

        async def heard_of(count: int) -> list[bytes]:
            async with somebody(broker, identifier="keeper", clean_session=False) as keeper:
                await keeper.subscribe("t", 2)
                return [each.payload for each in await heard(keeper, count)] if count else []

        aside.do(heard_of(0))
        given = linked(folder, {"broker": MQTT.connection(broker)})
        with serving(folder, [config], *given) as server:
            for message in (LARGE, *({"n": n} for n in range(BEHIND))):
                assert server.post(PIPELINE, message).status == 202
            began = monotonic()

            def written() -> int:
                name = "headrace_messages_total"
                return figure_of(server, name, pipeline=PIPELINE, stage="output")

            def has_letter() -> bool:
                return figure_of(server, "headrace_dead_letters_stored", pipeline=PIPELINE) == 1

            wait_until(lambda: has_letter() and written() >= BEHIND, "a dead letter", 60)
            figure("mqtt hanging up", f"a dead letter after {monotonic() - began:.1f} s")

            broker.stop()
            for n in range(BEHIND, LAST):
                assert server.post(PIPELINE, {"n": n}).status == 202
            wait_until(
                lambda: server.get(f"/api/pipelines/{PIPELINE}").value["health"] != "ok",
                "an outage",
            )
            broker.start()
            wait_until(lambda: written() >= LAST, "all that came meanwhile", 60)
            [letter] = server.get(LETTERS).value["entries"]

        came = aside.do(heard_of(LAST))

    assert sorted(came) == [b'{"n":%d}' % n for n in range(LAST)]
    assert (letter["stage"], letter["class"], letter["message_count"]) == ("output", "invalid", 1)
    assert letter["message"].endswith("hangs up on what is published")
