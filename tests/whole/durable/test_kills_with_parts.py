"""Killed again and again while parts of an object store fill: whatever was answered 202 is uploaded."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.promises import promise
from tests.services.s3 import S3 as S3Server
from tests.services.s3 import SECRET
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import PIPELINE, Customers, pause, wait_until
from tests.whole.durable.lives import Lives, errors, kill, pipeline
from tests.whole.figures import Figure
from tests.whole.linking import Json, kept
from tests.whole.stores.kinds.every import S3

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("KILLS", "10"))
"""How often the server is killed."""
CLIENTS = 8
PART = 50
"""Messages of a part."""
LEAST = 6 * PART + 7
"""Posts that are answered in each life: no round number of parts."""
MOST_PAUSE = 0.3
LAKE = "p"
UNDER_WAY = 5
"""Parts that may be uploaded, or be on the disk, of which what they were made of was not let go of yet."""


class Lake:
    """An object store, and lives of a server that fills it."""

    def __init__(self, folder: Path, store: S3Server, **output: Json) -> None:
        self._store = store
        out = S3.output("lake", LAKE, rotate={"max_rows": PART}, **output)
        connections = {"lake": S3.connection(store)}
        self.lives = Lives(
            folder, [pipeline(outputs=[out])], connections=connections, sync="process"
        )
        self.customers = Customers(CLIENTS)

    def messages(self) -> Counter[int]:
        """Return how often each message is there."""
        return Counter(kept(self._store.objects / LAKE))

    def killed_under_load(self) -> None:
        """Run it under load, and kill it."""
        customers = self.customers
        with self.lives.life() as server, customers.posting(server):
            customers.wait_for(customers.count + LEAST)
            pause(random.uniform(0, MOST_PAUSE))
            kill(server)
            assert errors(server) == []

    def check(self, figure: Figure, kills: int) -> None:
        """Have all be uploaded that is kept, and compare it with what was answered."""
        with self.lives.life() as server:
            # The last part is not full: it is uploaded at the end.
            wait_until(
                lambda: figure_of(server, "headrace_stored_entries", pipeline=PIPELINE) < PART,
                "all parts that are full to leave",
            )
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=PIPELINE)
            assert server.stop() == 0
        found = self.messages()
        confirmed = self.customers.confirmed
        twice = found.total() - len(found)
        figure("confirmed", len(confirmed))
        figure("missing", len(confirmed - found.keys()))
        figure("twice", f"{twice} in {kills} kills")
        assert self.customers.refused == []
        assert confirmed - found.keys() == set()
        assert lost == 0
        assert twice <= kills * UNDER_WAY * PART


@promise("s3.output.written", "s3.output.twice", "http.durable.kill")
def test_whatever_was_answered_is_uploaded_however_often_it_is_killed(
    tmp_path: Path, figure: Figure
) -> None:
    with S3Server(tmp_path / "s3") as store:
        lake = Lake(tmp_path / "headrace", store)
        for _ in range(KILLS):
            lake.killed_under_load()

        lake.check(figure, KILLS)


@promise("s3.output.away", "delivery.queue.starts")
@pytest.mark.parametrize("queue", [None, True])
def test_whatever_was_answered_is_uploaded_though_the_store_is_away_over_kills(
    tmp_path: Path, queue: bool | None, figure: Figure
) -> None:
    options = {} if queue is None else {"queue": queue}
    with S3Server(tmp_path / "s3") as store:
        lake = Lake(tmp_path / "headrace", store, **options)
        for _ in range(KILLS):
            with lake.lives.life() as server, lake.customers.posting(server):
                lake.customers.wait_for(lake.customers.count + LEAST)
                store.kill()
                lake.customers.wait_for(lake.customers.count + LEAST)
                pause(random.uniform(0, MOST_PAUSE))
                kill(server)
                assert SECRET not in str(server.err)
            lake.killed_under_load()
            store.start()

        lake.check(figure, 2 * KILLS)
