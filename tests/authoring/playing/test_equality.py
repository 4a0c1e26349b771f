"""What is played is what the installed command does, a process of its own, on a real loop, in real time.

The graphs of an example run side by side on one server, as it is real seconds that pass. A broker's word
counts for what was acknowledged: when the server was killed, what it still has is what was not.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from secrets import randbits
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import strategies as st

from tests.authoring.playing.answering import answering
from tests.authoring.playing.drawngraphs import (
    DrawnArrival,
    DrawnGraph,
    accepted,
    graphs,
    posts,
    published,
)
from tests.authoring.playing.reality import CameOf, Round, simulated
from tests.clients import PATIENCE, Client
from tests.examples import examples
from tests.server import Server
from tests.services.mosquitto import Mosquitto

pytestmark = pytest.mark.long

AT_ONCE = 50
"""Graphs on one server."""
TRIES = 4
HTTP = {"type": "http"}
MQTT = {
    "type": "mqtt",
    "connection": "bus",
    "topic": "of/{id}",
    "qos": "at_least_once",
    "ack": "on_delivery",
}
SEED: int | None = None
"""What graphs are drawn with; None: another one each time, which is printed, to be put here."""


def rounds(count: int, fed: Any, what: st.SearchStrategy[Any]) -> Iterator[list[DrawnGraph]]:
    """Yield graphs of which each has a name, as many as run at once; ``count`` of them in all.

    Each is an example of its own: of many graphs together Hypothesis draws none but the smallest, as they
    take more choices than one example may have.
    """
    found: dict[str, DrawnGraph] = {}
    drawn_with = randbits(32) if SEED is None else SEED
    print(f"the seed of these graphs is {drawn_with}")

    @seed(drawn_with)
    # Half as many again, since some come twice: those that are run all differ.
    @examples(
        count * 3 // 2,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(graph=accepted(graphs(fed, what)))
    def draw(graph: DrawnGraph) -> None:
        found.setdefault(str(graph), graph)

    draw()
    wanted = examples(count).max_examples
    assert len(found) >= wanted
    different = [*found.values()][:wanted]
    named = [graph.named(f"g{index}") for index, graph in enumerate(different)]
    for start in range(0, len(named), AT_ONCE):
        yield named[start : start + AT_ONCE]


def compare(
    some: Sequence[DrawnGraph],
    is_ended: bool,
    run: Callable[[Sequence[DrawnGraph]], tuple[Sequence[CameOf], float]],
) -> None:
    """Have graphs run, and see that what comes is what came of playing them.

    Those of which something else comes run again, without the others: on a busy machine a second lasts
    longer here and there, and what was meant for one side of an edge comes on the other. What differs
    each time is a difference.
    """
    for _ in range(TRIES):
        real, late = run(some)
        played = [simulated(graph, is_ended=is_ended) for graph in some]
        wrong = {
            index: [*_differing(*sides), *_moved(*sides)]
            for index, sides in enumerate(zip(some, played, real, strict=True))
        }
        wrong = {index: told for index, told in wrong.items() if told}
        for told in wrong.values():
            print(f"differs, where arrivals were {late:.2f} s late at most:", *told, sep="\n")
        some = [some[index] for index in wrong]
        if not some:
            return
    assert wrong == {}


def _moved(graph: DrawnGraph, played: CameOf, real: CameOf) -> Iterator[str]:
    if [*_differing(graph, played, real)]:
        return  # what differs stands at no moment of the other
    for id, at, meant in real.late(played):
        yield f"{json.dumps(graph.pipelines)}\n{id} wrote at {at}, and at {meant} when played"


def _differing(graph: DrawnGraph, played: CameOf, real: CameOf) -> Iterator[str]:
    ours, theirs = played.content(), real.content()
    for what in ours:
        if ours[what] != theirs[what]:
            yield "\n".join(
                [
                    json.dumps(graph.pipelines),
                    *map(str, graph.arrivals),
                    f"{what} when played: {ours[what]}",
                    f"{what} in reality:  {theirs[what]}",
                ]
            )


def stop(server: Server) -> None:
    """End it in order."""
    assert server.stop() == 0


def kill(server: Server) -> None:
    """End it there and then."""
    server.signal(signal.SIGKILL)
    server.ended()


def test_what_is_posted_comes_to_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    with answering() as address:
        for some in rounds(200, HTTP, posts):
            here = [each.asking(address) for each in some]
            compare(here, True, partial(posted, tmp_path_factory))


def posted(
    folders: pytest.TempPathFactory, here: Sequence[DrawnGraph]
) -> tuple[Sequence[CameOf], float]:
    """Return what comes of graphs that are posted to, and how late something was."""
    clients: dict[int, Client] = {}

    def post(server: Server, arrival: DrawnArrival) -> None:
        if server.port not in clients:
            clients[server.port] = server.client()
        assert clients[server.port].post(arrival.to, arrival.payload).status == 202

    it = Round(folders.mktemp("posted") / "server", here)
    return it.came({}, post, stop), it.late


def test_what_is_acknowledged_is_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    with answering() as address:
        for some in rounds(100, MQTT, published):
            here = [each.asking(address) for each in some]
            compare(here, False, partial(delivered, tmp_path_factory))


def delivered(
    folders: pytest.TempPathFactory, here: Sequence[DrawnGraph]
) -> tuple[Sequence[CameOf], float]:
    """Return what comes of graphs that a broker feeds, what it still has, and how late something was."""
    folder = folders.mktemp("published")
    with Mosquitto(folder / "broker") as broker:
        with connected(broker, "publisher") as (publisher, _):

            def publish(_: Server, arrival: DrawnArrival) -> None:
                sent = publisher.publish(f"of/{arrival.to}", arrival.payload, qos=1)
                sent.wait_for_publish(PATIENCE)

            bus = {"type": "mqtt", "host": broker.host, "port": broker.port}
            it = Round(folder / "server", here)
            came = it.came({"bus": bus}, publish, kill, is_ended=False)
        for graph, each in zip(here, came, strict=True):
            for id in {pipeline["id"] for pipeline in graph.pipelines if reads(pipeline)}:
                each.owed[id] = left(broker, id)
    return came, it.late


def reads(pipeline: Any) -> bool:
    """Return whether a pipeline reads from the broker."""
    return any(each["type"] == "mqtt" for each in pipeline["inputs"])


@contextmanager
def connected(
    broker: Mosquitto, name: str, topic: str | None = None
) -> Iterator[tuple[mqtt.Client, SimpleQueue[bytes]]]:
    """Give a plain client with what it is sent; the broker has kept its session."""
    came: SimpleQueue[bytes] = SimpleQueue()
    is_there: SimpleQueue[None] = SimpleQueue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, name, clean_session=False)
    client.on_message = lambda _client, _data, message: came.put(message.payload)
    client.on_connect = lambda *_: is_there.put(None)
    client.connect(broker.host, broker.port)
    client.loop_start()
    try:
        is_there.get(timeout=PATIENCE)
        yield client, came
    finally:
        client.disconnect()
        client.loop_stop()


def left(broker: Mosquitto, id: str) -> list[bytes]:
    """Return what a broker sends again to who has the session of a pipeline, in its order."""
    end = b"nothing is behind this"
    with connected(broker, f"headrace-{id}-of/{id}") as (client, came):
        client.publish(f"of/{id}", end, qos=1)
        return [*iter(partial(came.get, timeout=PATIENCE), end)]
