"""Killed again and again while some of what comes cannot be done: it is in the table, or a dead letter."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from headrace.compiler.runtime.storedarrival import payload_of
from tests.promises import promise
from tests.services.postgres import Postgres
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import PIPELINE, Customers, pause, wait_until
from tests.whole.durable.lives import Lives, kill, pipeline, twice
from tests.whole.figures import Figure
from tests.whole.stores.kinds.every import POSTGRES

pytestmark = [pytest.mark.long, pytest.mark.engine]

KILLS = int(os.environ.get("KILLS", "10"))
CLIENTS = 8
LEAST = 400
"""Posts that are answered in each life."""
MOST_PAUSE = 0.3
ENOUGH = 120.0
"""Seconds for all that is suspected at the end, if it is handed out one at a time."""
TABLE = "letters"
SCRIPT = 'if msg.n % 100 == 50 { throw "no such press" } emit(msg);'
TRANSFORMS = (
    {"type": "script", "source": {"type": "inline", "code": SCRIPT}},
    {"type": "buffer", "size": 50, "seconds": 1},
)
"""One message in a hundred fails before it is gathered, another one in the table."""


class PutDown(NamedTuple):
    """The numbers in one dead letter."""

    stage: str
    numbers: list[int]


def letters_below(folder: Path) -> Iterator[PutDown]:
    """Yield the dead letters in the store of a server that has ended."""
    path = folder / "data" / "store" / "0" / "store.db"
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT stage, body FROM letters JOIN bodies USING (id)")
        for stage, body in rows.fetchall():
            text = payload_of(body)[0] if stage == "process" else body[4:]
            found = json.loads(text)
            yield PutDown(
                stage, [each["n"] for each in (found if isinstance(found, list) else [found])]
            )


@promise("delivery.letters.transform", "delivery.letters.output", "delivery.letters.bisect")
def test_whatever_was_answered_is_in_the_table_or_a_dead_letter(
    tmp_path: Path, figure: Figure
) -> None:
    with Postgres(tmp_path / "postgres") as database, Aside() as aside:

        async def did(*statements: str) -> list[int]:
            client = await asyncpg.connect(database.url)
            try:
                for each in statements[:-1]:
                    await client.execute(each)
                return [row[0] for row in await client.fetch(statements[-1])]
            finally:
                client.terminate()

        made = f"create table {TABLE} (n bigint not null check (n % 100 <> 0), temp float8)"
        rows = f"select n from {TABLE}"
        aside.do(did(made, rows))
        output = POSTGRES.output("db", TABLE, create_table=False, retry={})
        config = {**pipeline(*TRANSFORMS, outputs=[output]), "dead_letters": True}
        connections = {"db": POSTGRES.connection(database)}
        customers = Customers(CLIENTS)
        for turn in range(KILLS):
            sync = ("process", "power")[turn % 2]
            lives = Lives(tmp_path / "headrace", [config], connections=connections, sync=sync)
            with lives.life() as server, customers.posting(server):
                customers.wait_for(customers.count + LEAST)
                pause(random.uniform(0, MOST_PAUSE))
                kill(server)
        with lives.life() as server:
            wait_until(
                lambda: not figure_of(server, "headrace_stored_entries", pipeline=PIPELINE),
                "all that was kept to leave",
                ENOUGH,
            )
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=PIPELINE)
            assert server.stop() == 0
        written = aside.do(did(rows))

    # What is being done at three kills in a row is suspected of them.
    put_down = {stage: Counter[int]() for stage in ("transform", "output", "process")}
    for stage, numbers in letters_below(lives.folder):
        put_down[stage].update(numbers)
    bad = {each for each in customers.confirmed if each % 100 in (0, 50)}
    figure("confirmed", f"{customers.count}, {len(bad)} of them cannot be done")
    figure("written twice", len(twice(written)))
    for stage, numbers in put_down.items():
        figure(f"letters of {stage}", f"{len(numbers)}, {numbers.total() - len(numbers)} twice")
    assert customers.refused == []
    assert lost == 0
    assert (customers.confirmed - bad).difference(written, put_down["process"]) == set()
    assert bad.difference(*put_down.values()) == set()
    assert {each % 100 for each in put_down["transform"]} == {50}
    assert {each % 100 for each in put_down["output"]} == {0}
