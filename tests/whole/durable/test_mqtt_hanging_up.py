"""A message that its broker hangs up on, alone in its post: a dead letter, and what comes behind is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mqtt_sides import heard, somebody
from tests.promises import promise
from tests.server import serving
from tests.services.mosquitto import Mosquitto
from tests.stopwatch import Stopwatch
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
@pytest.mark.parametrize("qos", ["at_least_once", "exactly_once"])
def test_it_is_a_dead_letter_and_an_outage_costs_none(
    tmp_path: Path, qos: str, figure: Figure
) -> None:
    output = {"type": "mqtt", "connection": "broker", "topic": "t", "qos": qos, "retry": {}}
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
            watch = Stopwatch()
            put_down = lambda: figure_of(server, "headrace_dead_letters_stored", pipeline=PIPELINE)
            written = lambda: figure_of(
                server, "headrace_messages_total", pipeline=PIPELINE, stage="output"
            )
            wait_until(lambda: put_down() == 1 and written() >= BEHIND, "a dead letter", 60)
            figure("mqtt hanging up", f"a dead letter after {watch.seconds:.1f} s")

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
    assert (letter["stage"], letter["class"], letter["messages"]) == ("output", "invalid", 1)
    assert letter["message"].endswith("hangs up on what is published")
