"""A pipeline ends with rows and parts pending: they are stored in time, or the log says what is not."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import Server, serving
from tests.stopwatch import Stopwatch
from tests.whole.aside import Aside
from tests.whole.figures import Figure
from tests.whole.linking import delete, linked
from tests.whole.stores.kinds.every import CLICKHOUSE, EVERY, POSTGRES, S3
from tests.whole.stores.kinds.kind import Json, Store
from tests.whole.stores.outages import halted
from tests.whole.stores.sightings import stored

pytestmark = pytest.mark.long

GRACE = 5.0
"""Seconds that a pipeline has to write what it holds."""
PROMPT = 4.0
"""Seconds for everything beside it, on a busy machine."""
HANGS = 2.0
"""Seconds that a store does nothing, and then goes on."""
COUNT, TOGETHER = 50, 10
UNWRITTEN = {
    POSTGRES: rf"messages lost, because not written in time: {COUNT} \(batches: \d+\)",
    CLICKHOUSE: rf"messages lost, because not written in time: {COUNT} \(batches: \d+\)",
    S3: f"lost, because not uploaded in time: .* with {COUNT} messages",
}

End = Callable[[Server], None]


def deleted(server: Server) -> None:
    """Delete all pipelines, then end the server."""
    with ThreadPoolExecutor(len(EVERY)) as clients:
        answers = clients.map(lambda kind: delete(server, f"to {kind}").status, EVERY)
        assert [*answers] == [204] * len(EVERY)
    assert server.stop() == 0


def terminated(server: Server) -> None:
    """End the server."""
    assert server.stop() == 0


EITHER_END = pytest.mark.parametrize("end", [deleted, terminated])


class Stores:
    """One of each kind, and a server that writes to all of them."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self._folder = folder / "headrace"
        self._running = running
        self._aside = running.enter_context(Aside())
        self.servers = {
            kind: running.enter_context(kind.server(folder / kind.name)) for kind in EVERY
        }
        self._connections = {
            kind.name: kind.connection(store) for kind, store in self.servers.items()
        }

    def serving(self, *, holding: bool, keeping: bool = False) -> Server:
        """Run a server with a pipeline for each kind; ``holding`` what it is sent until it ends."""
        options = linked(self._folder, self._connections)
        config = [pipeline(kind, holding) for kind in EVERY]
        kept = options if keeping else options[2:]
        return self._running.enter_context(serving(self._folder, config, *kept))

    def stored(self) -> dict[Store, list[int]]:
        """Return the numbers that are stored, by kind, in order."""
        return {
            kind: sorted(stored(self._aside, kind, store, "readings").elements())
            for kind, store in self.servers.items()
        }


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    with ExitStack() as running:
        yield Stores(tmp_path, running)


def pipeline(kind: Store, holding: bool) -> Json:
    """Return a pipeline that stores what is posted; what it holds goes with its end at the latest."""
    hold = [{"type": "buffer", "size": 10 * COUNT, "seconds": 3600}] if holding else []
    return {
        "id": f"to {kind}",
        "inputs": [{"type": "http"}],
        "transforms": hold,
        "outputs": [kind.output(kind.name, "readings")],
    }


def post(server: Server) -> None:
    """Post numbered messages to every pipeline, some at a time."""
    for kind in EVERY:
        client = server.client()
        for first in range(0, COUNT, TOGETHER):
            batch = [{"n": first + number} for number in range(TOGETHER)]
            assert client.post(f"to {kind}", batch).status == 202


@promise("delivery.case.pending")
@EITHER_END
def test_what_is_held_is_stored(stores: Stores, end: End) -> None:
    server = stores.serving(holding=True)
    post(server)
    assert not any(stores.stored().values())

    end(server)

    assert stores.stored() == {kind: [*range(COUNT)] for kind in EVERY}


@promise("delivery.case.pending")
@EITHER_END
def test_stores_that_go_on_in_time_get_everything(stores: Stores, end: End) -> None:
    server = stores.serving(holding=False)
    with ExitStack() as hanging:
        hanging.enter_context(halted(stores.servers))
        post(server)
        threading.Timer(HANGS, hanging.close).start()

        end(server)

    assert stores.stored() == {kind: [*range(COUNT)] for kind in EVERY}


@promise("delivery.case.pending")
@EITHER_END
def test_of_what_is_not_stored_in_time_the_log_tells(
    stores: Stores, end: End, figure: Figure
) -> None:
    server = stores.serving(holding=False)
    with halted(stores.servers):
        post(server)
        watch = Stopwatch()
        end(server)
        took = watch.seconds

    figure("ended after", took)
    assert took < GRACE + PROMPT
    for kind in EVERY:
        assert re.search(
            f"WARNING pipeline 'to {kind}' outputs.0.: {UNWRITTEN[kind]}", str(server.err)
        )


@promise("delivery.case.pending")
def test_a_part_that_is_not_stored_in_time_is_kept_for_the_next_start(stores: Stores) -> None:
    server = stores.serving(holding=False, keeping=True)
    with halted(stores.servers):
        post(server)
        terminated(server)

    terminated(stores.serving(holding=False, keeping=True))

    assert stores.stored()[S3] == [*range(COUNT)]
