"""Killed again and again while clients post: what was answered 202 is in the durable bucket as well."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.promises import promise
from tests.whole.durable import letsgoearly
from tests.whole.durable.customers import Customers, pause
from tests.whole.durable.lives import Lives, kill, pipeline
from tests.whole.figures import Figure

KILLS = int(os.environ.get("KILLS", "10"))
"""How often each server is killed."""
FEW = 3
CLIENTS = 8
LEAST = 200
"""Posts that are answered in each life."""
MOST_PAUSE = 0.2
"""Seconds after those until it is killed, at most."""
SYNC = pytest.mark.parametrize("sync", ["power", "process"])


def config() -> Any:
    """Return a pipeline that remembers each number under itself, in a bucket that is durable."""
    remembering = {"type": "remember", "remember": [{"field": "n", "as": "n"}]}
    state = {"bucket": "numbers", "key": "n"}
    return {
        "state": {"numbers": {"durable": True, "max_keys": 1_000_000}},
        "pipelines": [{**pipeline(remembering), "state": state}],
    }


def remembered(lives: Lives) -> set[int]:
    """Return the numbers that are in the store, each under itself; all is let go of there."""
    file = lives.folder / "data" / "store" / "0" / "store.db"
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute("SELECT key, substr(value, instr(value, '{')) FROM remembered")
        found = dict(rows.fetchall())
        assert database.execute("SELECT count(*) FROM entries").fetchone() == (0,)
    assert all(values == f'{{"n":{key}}}' for key, values in found.items())
    return {int(key) for key in found}


def survive(lives: Lives, kills: int) -> Customers:
    """Kill it so often under load; then have all of it written, and end in order."""
    customers = Customers(CLIENTS)
    for _ in range(kills):
        with lives.life() as server, customers.posting(server):
            customers.wait_for(customers.count + LEAST)
            pause(random.uniform(0, MOST_PAUSE))
            kill(server)
    with lives.life() as server:
        lives.wait_until_written(customers.confirmed)
        assert server.stop() == 0
    return customers


@promise("delivery.bucket.custody", "delivery.bucket.restart")
@pytest.mark.long
@SYNC
def test_what_was_answered_is_remembered_however_often_it_is_killed(
    tmp_path: Path, sync: str, figure: Figure
) -> None:
    lives = Lives(tmp_path, config(), sync=sync)

    customers = survive(lives, KILLS)

    missing = customers.confirmed - remembered(lives)
    figure("confirmed", customers.count)
    figure("not remembered", len(missing))
    figure("not written", len(customers.confirmed.difference(lives.written())))
    assert missing == set()
    assert customers.refused == []


@pytest.mark.long
def test_a_post_that_is_let_go_of_too_early_would_be_found(tmp_path: Path) -> None:
    lives = Lives(tmp_path, config(), script=Path(letsgoearly.__file__), sync="process")

    customers = survive(lives, FEW)

    assert customers.confirmed - remembered(lives)
