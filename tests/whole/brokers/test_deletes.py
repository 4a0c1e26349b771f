"""A pipeline is deleted with the load on, its output blocked and its broker dead: nobody waits for long."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import Server, serving
from tests.stopwatch import Stopwatch
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import EVERY, KAFKA, MQTT
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.brokers.peers import Load, Reader
from tests.whole.figures import Figure
from tests.whole.gate import Gate
from tests.whole.linking import create, delete, filing, linked
from tests.whole.posting import Posts

pytestmark = pytest.mark.long

MOST_SECONDS = 5.0


def reading(kind: Kind, *outputs: Json) -> Json:
    return {
        "id": f"from {kind}",
        "inputs": [kind.input(kind.name, "in", max_batch=10)],
        "outputs": [*outputs],
    }


def writing(kind: Kind) -> Json:
    return {
        "id": f"to {kind}",
        "inputs": [{"type": "http"}],
        "outputs": [kind.output(kind.name, "out")],
    }


def deleted(server: Server, pipeline: str) -> tuple[int, float]:
    """Delete a pipeline; return the status of the answer and how long it took."""
    watch = Stopwatch()
    answer = delete(server, pipeline)
    return answer.status, watch.seconds


@promise("delivery.case.deleted", "delivery.case.session")
@pytest.mark.parametrize("dies", [False, True], ids=["the broker lives", "the broker is dead"])
def test_a_delete_is_answered_and_what_was_not_written_comes_again(
    tmp_path: Path, gate: Gate, dies: bool, figure: Figure
) -> None:
    with ExitStack() as running:
        brokers = {
            kind: running.enter_context(kind.lasting(tmp_path / kind.name)) for kind in EVERY
        }
        connections = {kind.name: kind.connection(broker) for kind, broker in brokers.items()}
        for kind, broker in brokers.items():
            kind.create(broker, "in")
            kind.create(broker, "out")
        options = linked(tmp_path / "headrace", connections)
        blocked = [reading(kind, gate.output(kind.name)) for kind in EVERY]
        config = [*blocked, *map(writing, EVERY)]
        aside = running.enter_context(Aside())
        server = running.enter_context(serving(tmp_path / "headrace", config, *options))
        readers = {kind: Reader(aside, kind, broker, "out") for kind, broker in brokers.items()}
        for reader in readers.values():
            reader.wait_until_listening()
        loads = {kind: Load(aside, kind, broker, "in") for kind, broker in brokers.items()}
        posts = {kind: Posts(server, f"to {kind}") for kind in EVERY}
        for kind in EVERY:
            gate.wait_until_asked(kind.name)
            loads[kind].wait_for(100)
            readers[kind].wait_until_more(10)

        for broker in brokers.values() if dies else ():
            broker.kill()
        with ThreadPoolExecutor(len(config)) as clients:
            ids = [pipeline["id"] for pipeline in config]
            answers = [*clients.map(lambda id: deleted(server, id), ids)]

        figure("seconds", dict(zip(ids, answers, strict=True)))
        assert [status for status, _ in answers] == [204] * len(config)
        assert max(took for _, took in answers) < MOST_SECONDS
        accepted = {kind: posts[kind].stop() for kind in EVERY}
        for broker in brokers.values() if dies else ():
            broker.start()
        published = {kind: loads[kind].stop() for kind in EVERY}
        # Nothing was taken, so nothing may have been acknowledged.
        assert [gate.taken[kind.name].counts.total() for kind in EVERY] == [0] * len(EVERY)
        assert "Received PUBACK from headrace-" not in brokers[MQTT].log()
        if not dies:
            for kind in EVERY:
                readers[kind].wait_for(accepted[kind])
        # A broker of MQTT that was told of the delete has dropped the session, and what was in it.
        keeping = (KAFKA, MQTT) if dies else (KAFKA,)
        for kind in keeping:
            successor = reading(kind, filing(kind.name), {"type": "stdout"})
            assert create(server, successor).status == 201
        printed = Printed(server.out)
        for kind in keeping:
            printed[f"from {kind}"].wait_for(published[kind])
        assert ("Received PUBACK from headrace-" in brokers[MQTT].log()) is dies
