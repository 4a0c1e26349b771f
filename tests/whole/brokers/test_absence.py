"""A broker that is not there yet refuses nothing: pipelines wait for it and then run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients import PATIENCE
from tests.promises import promise
from tests.server import Server, serving
from tests.services.server import Service
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import EVERY
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.brokers.peers import Load, Reader
from tests.whole.linking import create, linked, statuses, wait_for_status

pytestmark = pytest.mark.long

READING = [
    {"id": f"from {kind}", "inputs": [kind.input(kind.name, "in")], "outputs": [{"type": "stdout"}]}
    for kind in EVERY
]
WRITING = [
    {"id": f"to {kind}", "inputs": [{"type": "http"}], "outputs": [kind.output(kind.name, "out")]}
    for kind in EVERY
]

Begun = Callable[[Path, list[str]], Any]


@contextmanager
def from_a_file(folder: Path, options: list[str]) -> Iterator[Server]:
    """Start with a config."""
    with serving(folder, [*READING, *WRITING], *options) as server:
        yield server


@contextmanager
def by_posts(folder: Path, options: list[str]) -> Iterator[Server]:
    """Start with nothing, and create every pipeline."""
    with serving(folder, [], *options) as server, ThreadPoolExecutor(len(EVERY)) as clients:
        answers = clients.map(lambda pipeline: create(server, pipeline), [*READING, *WRITING])
        assert [answer.status for answer in answers] == [201] * 2 * len(EVERY)
        yield server


@promise("delivery.case.late")
@pytest.mark.parametrize("begun", [from_a_file, by_posts])
def test_pipelines_wait_for_brokers_that_come_later(tmp_path: Path, begun: Begun) -> None:
    brokers: dict[Kind, Service] = {kind: kind.server(tmp_path / kind.name) for kind in EVERY}
    connections: dict[str, Json] = {
        kind.name: kind.connection(broker) for kind, broker in brokers.items()
    }
    options = linked(tmp_path / "headrace", connections)
    with begun(tmp_path / "headrace", options) as server, ExitStack() as running:
        printed = Printed(server.out)
        waiting = statuses(server)
        for kind in EVERY:
            server.post(f"to {kind}", {"n": -1})  # taken, and sent when the broker is there

        for broker in brokers.values():
            running.enter_context(broker)
        aside = running.enter_context(Aside())

        assert waiting == {
            **{f"from {kind}": "running" for kind in EVERY},
            **{f"to {kind}": "starting" for kind in EVERY},
        }
        readers = [Reader(aside, kind, brokers[kind], "out") for kind in EVERY]
        loads = [Load(aside, kind, brokers[kind], "in") for kind in EVERY]
        for kind, reader in zip(EVERY, readers, strict=True):
            wait_for_status(server, f"to {kind}", "running")
            reader.wait_until_listening()
            server.post(f"to {kind}", {"n": 1})
            reader.wait_for({1})
        for kind in EVERY:
            printed[f"from {kind}"].wait_until_more(20, PATIENCE)
        for load in loads:
            load.stop()
