"""All that happens to an operator, one after the other: every row is there, or is a dead letter.

PostgreSQL under load with one bad row in each hundred: the table is dropped and made again, the server is
away, the disk is full once, and headrace is killed three times meanwhile. What could not be written is
replayed from the console when the table takes it.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest
from playwright.sync_api import expect

from headrace.web.console import assets
from tests.console.browser import chromium
from tests.server import Server
from tests.services.postgres import Postgres
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import PIPELINE, Customers, pause, wait_until
from tests.whole.durable.lives import Lives, kill, pipeline, twice
from tests.whole.figures import Figure
from tests.whole.stores.kinds.every import POSTGRES

pytestmark = pytest.mark.long

AWAY_SECONDS = float(os.environ.get("AWAY_SECONDS", "10"))
"""How long the server is away; an operator's five minutes: ``AWAY_SECONDS=300``."""
CLIENTS = 4
SOME = 400
"""Posts that are answered between two events."""
ALL_BUT_BAD = "create table readings (n bigint not null check (n % 100 <> 0), temp float8)"
AS_BEFORE = (
    "begin",
    "lock table readings in access exclusive mode",
    "create table before as select n from readings",
    "drop table readings",
    "commit",
)
"""Drop the table; what was written stays in another one."""
ROWS = "select n from readings"
ALL_ROWS = f"{ROWS} union all select n from before"


class Table:
    """The table, and what was in it before it was dropped."""

    def __init__(self, database: Postgres, aside: Aside) -> None:
        self._database, self._aside = database, aside

    def do(self, *statements: str) -> list[int]:
        """Execute statements, and return the first column of the last."""

        async def did() -> list[int]:
            client = await asyncpg.connect(self._database.url)
            try:
                for each in statements[:-1]:
                    await client.execute(each)
                return [row[0] for row in await client.fetch(statements[-1])]
            finally:
                client.terminate()

        return self._aside.do(did())


@contextmanager
def full_disk(server: Server, folder: Path) -> Iterator[None]:
    """Have no file of a server grow for as long as the block lasts: `RLIMIT_FSIZE`."""
    log = folder / "data" / "store" / "0" / "store.db-wal"
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(
        server.process.pid, resource.RLIMIT_FSIZE, (min(log.stat().st_size, 2**16), hard)
    )
    yield
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


def is_waiting(server: Server, why: str) -> bool:
    """Return whether the output waits for something of a class."""
    return figure_of(server, "headrace_output_waiting", **{"class": why}) == 1


def replay(server: Server) -> str:
    """Have all dead letters replayed from the console, and return what it says of it at the end."""
    if assets.page("") is None:
        pytest.fail("the console is not built: run 'make console'")
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.port}/#/letters/{PIPELINE}")
        page.get_by_role("link", name="open the dead letters").first.click()
        page.get_by_role("button", name="Replay all").click()
        page.get_by_role("dialog").get_by_role("button", name="Replay").click()
        said = page.get_by_label("replay", exact=True)
        expect(said).to_contain_text("and are deleted", timeout=120_000)
        return said.inner_text()


def test_every_row_is_there_or_a_dead_letter_with_its_reason_and_replayed_is_there_as_well(
    tmp_path: Path, figure: Figure
) -> None:
    with Postgres(tmp_path / "postgres") as database, Aside() as aside:
        table = Table(database, aside)
        table.do(ALL_BUT_BAD, ROWS)
        output = POSTGRES.output("db", "readings", create_table=False, retry={})
        config = pipeline({"type": "buffer", "size": 50, "seconds": 1}, outputs=[output])
        connections = {"db": POSTGRES.connection(database)}
        lives = Lives(
            tmp_path / "headrace", [{**config, "dead_letters": True}], connections=connections
        )
        customers = Customers(CLIENTS)

        with lives.life() as server, customers.posting(server):
            customers.wait_for(customers.count + SOME)
            kill(server)

        with lives.life() as server, customers.posting(server):
            customers.wait_for(customers.count + SOME)
            table.do(*AS_BEFORE, "select 1")
            wait_until(lambda: is_waiting(server, "misconfigured"), "the table is missed")
            customers.wait_for(customers.count + SOME)
            table.do(ALL_BUT_BAD, ROWS)
            kill(server)

        with lives.life() as server, customers.posting(server):
            customers.wait_for(customers.count + SOME)
            database.stop()
            wait_until(lambda: is_waiting(server, "unavailable"), "the server is missed")
            customers.wait_for(customers.count + SOME)
            pause(AWAY_SECONDS / 2)
            kill(server)

        with lives.life() as server, customers.posting(server):
            pause(AWAY_SECONDS / 2)
            database.restart()
            assert customers.refused == []
            with full_disk(server, lives.folder):
                wait_until(lambda: bool(customers.refused), "a post that is refused")
                pause(2)
            taken = customers.count
            customers.wait_for(taken + SOME)

        # The block has stopped it in order; what it had not written by then is read again.
        with lives.life() as server:
            kept = {"pipeline": PIPELINE, "part": "journal"}
            wait_until(
                lambda: not figure_of(server, "headrace_stored_entries", **kept),
                "all to leave",
                120,
            )
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=PIPELINE)
            told = server.get("/api/dead-letters").value
            written = table.do(ALL_ROWS)
            table.do("alter table readings drop constraint readings_n_check", "select 1")
            said = replay(server)
            left = server.get("/api/dead-letters").value
        replayed = table.do(ALL_ROWS)

    bad = {each for each in customers.confirmed if each % 100 == 0}
    figure("confirmed", f"{customers.count}, {len(bad)} of them cannot be written")
    figure("refused while the disk was full", len(customers.refused))
    figure("written twice", len(twice(written)))
    figure("letters", sum(each["count"] for each in told))
    figure("replay", " ".join(said.split()))
    assert {status for status, _ in customers.refused} == {503}
    assert lost == 0
    assert (customers.confirmed - bad).difference(written) == set()
    assert bad.intersection(written) == set()
    assert {(each["stage"], each["class"]) for each in told} == {("output", "invalid")}
    assert all("readings_n_check" in each["message"] for each in told)
    assert left == []
    assert customers.confirmed.difference(replayed) == set()
