"""The disk of a database is full: batches are refused for that, until there is room again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.promises import promise
from tests.server import serving
from tests.whole.aside import Aside
from tests.whole.figures import Figure
from tests.whole.linking import linked, statuses
from tests.whole.stores.cramped import CrampedClickHouse, CrampedPostgres
from tests.whole.stores.kinds.every import CLICKHOUSE, POSTGRES
from tests.whole.stores.kinds.kind import Table
from tests.whole.stores.lines import Line

pytestmark = pytest.mark.long


async def on_the_small_disk(database: CrampedPostgres) -> None:
    """Have tables made on the small disk."""
    client = await asyncpg.connect(database.url)
    try:
        await client.execute(f"create tablespace small location '{database.small}'")
        await client.execute("alter database postgres set default_tablespace = small")
    finally:
        client.terminate()


def small_postgres(folder: Path, aside: Aside) -> CrampedPostgres:
    """Return a server that runs and has its tables on the small disk."""
    database = CrampedPostgres(folder).start()
    aside.do(on_the_small_disk(database))
    return database


def small_clickhouse(folder: Path, _: Aside) -> CrampedClickHouse:
    """Return a server that runs and has everything there."""
    return CrampedClickHouse(folder).start()


@promise("delivery.case.altered")
@pytest.mark.skipif("sys.platform != 'linux'", reason="needs namespaces")
@pytest.mark.parametrize(
    ("kind", "started", "text"),
    [
        (POSTGRES, small_postgres, "disk full (SQLSTATE 53100)"),
        (CLICKHOUSE, small_clickhouse, "NOT_ENOUGH_SPACE"),
    ],
    ids=["postgres", "clickhouse"],
)
def test_rows_are_refused_until_there_is_room_again(
    tmp_path: Path,
    kind: Table,
    started: Callable[[Path, Aside], Any],
    text: str,
    figure: Figure,
) -> None:
    with Aside() as aside:
        store = started(tmp_path / "store", aside)
        output = kind.output("store", "readings")
        config = [{"id": "p", "inputs": [{"type": "http"}], "outputs": [output]}]
        folder = tmp_path / "headrace"
        options = linked(folder, {"store": kind.connection(store)})
        try:
            with serving(folder, config, *options) as server:
                line = Line(aside, server, "p", kind, store, "readings")
                line.wait_until_writing()
                line.begin(lambda: store.disk.fill(store))
                line.end(lambda: store.disk.clear(store))

                figure(str(kind), f"{line.lost()} batches: {line.reason()}")
                assert text in line.reason()
                assert line.failures == line.lost()
                assert statuses(server) == {"p": "running"}
        finally:
            store.kill()
