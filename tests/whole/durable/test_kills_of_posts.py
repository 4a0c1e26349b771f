"""Killed again and again while clients post: whatever was answered 202 is in the files."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from headrace.compiler.delivery import BATCHES_UNDER_WAY
from tests.promises import promise
from tests.services.postgres import Postgres
from tests.whole.aside import Aside
from tests.whole.durable import answersearly
from tests.whole.durable.customers import PIPELINE, Customers, pause
from tests.whole.durable.lives import Lives, again, are_in_order, errors, kill, pipeline
from tests.whole.figures import Figure
from tests.whole.linking import filing
from tests.whole.stores.kinds.every import POSTGRES
from tests.whole.stores.sightings import stored

KILLS = int(os.environ.get("KILLS", "10"))
"""How often each server is killed."""
FEW = 5
"""The same, where it is not to take long."""
EARLY_KILLS = 4
"""How often a server is killed that answers too early: a few kills find it with nothing to store."""
CLIENTS = 8
SIZE = 100
"""Messages that the buffer holds."""
LEAST = 3 * SIZE
"""Posts that are answered in each life: what was held at the last kill has left then, and others are held.
What is held at two kills would come one message at a time."""
LAST = range(SIZE)
"""What is posted when nothing is killed any more."""
MOST_PAUSE = 0.3
"""Seconds after those until it is killed, at most."""
MOST_TWICE = 2 * SIZE + CLIENTS
"""Messages that one kill may bring twice: those that were written and whose going was not stored.

That goes with the next commit, and one that began before may be under way. Each of the two has at most one
post of each client, so the buffer lets go twice at most until both have ended. What was stored together
with some of it, a post of each client, comes again as well.
"""

SYNC = pytest.mark.parametrize("sync", ["power", "process"])
HOLD = {"type": "buffer", "size": SIZE}


def survive(lives: Lives, kills: int) -> Customers:
    """Kill it so often under load; then have it write all that it holds, and end in order."""
    customers = Customers(CLIENTS)
    for _ in range(kills):
        with lives.life() as server, customers.posting(server):
            customers.wait_for(customers.count + LEAST)
            pause(random.uniform(0, MOST_PAUSE))
            kill(server)
            assert errors(server) == []
    with lives.life() as server:
        # They leave the buffer behind all that was kept.
        assert server.post(PIPELINE, [{"n": number} for number in LAST]).status == 202
        lives.wait_until_written(LAST[:1])
        assert server.stop() == 0
    return customers


def check(lives: Lives, customers: Customers, figure: Figure, most_twice: int = MOST_TWICE) -> None:
    """Compare what is in the files with what was answered."""
    parts = lives.parts()
    written = [number for part in parts for number in part]
    assert written[-SIZE:] == [*LAST]
    missing, doubled = customers.confirmed.difference(written), again(parts)
    figure("confirmed", customers.count)
    figure("missing", len(missing))
    figure("written without an answer", len({*written} - customers.confirmed) - SIZE)
    figure("twice", f"{sum(doubled)}, at most {max(doubled)} a kill")
    figure("ready within", f"{max(lives.ready_seconds[1:]):.2f} s")
    assert missing == set()
    assert max(doubled) <= most_twice
    assert customers.refused == []
    for each in customers.each:
        assert are_in_order(written, each.confirmed)


@SYNC
def test_whatever_was_answered_is_in_the_files(tmp_path: Path, sync: str, figure: Figure) -> None:
    lives = Lives(tmp_path, [pipeline(HOLD)], sync=sync)

    customers = survive(lives, FEW)

    check(lives, customers, figure)


@promise("http.durable.kill", "http.durable.twice")
@pytest.mark.long
@SYNC
def test_whatever_was_answered_is_in_the_files_however_often_it_is_killed(
    tmp_path: Path, sync: str, figure: Figure
) -> None:
    lives = Lives(tmp_path, [pipeline(HOLD)], sync=sync)

    customers = survive(lives, KILLS)

    check(lives, customers, figure)


@promise("pipeline.on_delivery.kill", "pipeline.on_delivery.twice")
@pytest.mark.long
def test_whatever_was_answered_is_in_the_files_of_a_reader(tmp_path: Path, figure: Figure) -> None:
    reading = {"type": "pipeline", "upstream": PIPELINE, "upstream_ack": "on_delivery"}
    reader = {**pipeline(HOLD), "id": "reader", "inputs": [reading]}
    lives = Lives(tmp_path, [{**pipeline(), "outputs": []}, reader], sync="process")

    customers = survive(lives, KILLS)

    check(lives, customers, figure)


@pytest.mark.long
@SYNC
def test_two_outputs_have_whatever_was_answered(
    tmp_path: Path, postgres: Postgres, sync: str, figure: Figure
) -> None:
    table = f"kept_{sync}"
    columns = [{"name": "n", "type": "bigint", "nullable": False}]
    connections = {"database": POSTGRES.connection(postgres)}
    writing = {"type": "postgres", "connection": "database", "table": table, "columns": columns}
    config = pipeline(HOLD, outputs=[filing("out"), {**writing, "retry": {}}])
    lives = Lives(tmp_path, [config], connections=connections, sync=sync)

    customers = survive(lives, KILLS)

    # The file has what the table has not: as many batches as may be on their way.
    check(lives, customers, figure, MOST_TWICE + BATCHES_UNDER_WAY * SIZE)
    with Aside() as aside:
        rows = stored(aside, POSTGRES, postgres, table)
    figure("twice in the table", rows.total() - len(rows))
    assert customers.confirmed <= rows.keys()
    assert rows.keys() == {*lives.written()}


def test_an_answer_before_the_commit_would_be_found(tmp_path: Path) -> None:
    script = Path(answersearly.__file__)
    lives = Lives(tmp_path, [pipeline(HOLD)], script=script, sync="power")

    customers = survive(lives, EARLY_KILLS)

    assert customers.confirmed.difference(lives.written())
