"""A table of ClickHouse and a bucket that are not what they were, until somebody mends that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import serving
from tests.services.clickhouse import Access
from tests.whole.aside import Aside
from tests.whole.figures import Figure
from tests.whole.linking import linked, statuses
from tests.whole.stores.kinds.every import CLICKHOUSE, S3
from tests.whole.stores.lines import Line

pytestmark = pytest.mark.long

Change = Callable[[Access], list[int] | None]
"""Changes a table; returns the numbers that were in it, if they are there no more."""


def by(statement: str) -> Change:
    """Return a change that a statement makes."""

    def change(access: Access) -> None:
        access.ask(statement)

    return change


def drop(access: Access) -> list[int]:
    """Drop a table; it is out of reach before anybody looks what is in it."""
    access.ask("RENAME TABLE dropped TO gone")
    numbers = [number for [number] in access.rows("SELECT n FROM gone")]
    access.ask("DROP TABLE gone")
    return numbers


CREATE = "CREATE TABLE dropped (n Int64, temp Nullable(Float64)) ENGINE = MergeTree ORDER BY n"
TROUBLES: dict[str, tuple[Change, Change, str]] = {
    "dropped": (drop, by(CREATE), "UNKNOWN_TABLE"),
    "renamed": (
        by("ALTER TABLE renamed RENAME COLUMN temp TO heat"),
        by("ALTER TABLE renamed RENAME COLUMN heat TO temp"),
        "NO_SUCH_COLUMN_IN_TABLE",
    ),
}
"""By the table: what is done to it, how it is undone, and the name of the error."""


@promise("delivery.case.altered")
def test_rows_for_clickhouse_are_refused_for_one_reason_until_it_is_mended(
    tmp_path: Path, figure: Figure
) -> None:
    with CLICKHOUSE.server(tmp_path / "clickhouse") as store, Aside() as aside:
        config = [
            {
                "id": table,
                "inputs": [{"type": "http"}],
                "outputs": [CLICKHOUSE.output("store", table)],
            }
            for table in TROUBLES
        ]
        folder = tmp_path / "headrace"
        options = linked(folder, {"store": CLICKHOUSE.connection(store)})
        with serving(folder, config, *options) as server:
            for table, (begin, end, text) in TROUBLES.items():
                line = Line(aside, server, table, CLICKHOUSE, store, table)
                line.wait_until_writing()
                line.begin(partial(begin, store.access))
                line.end(partial(end, store.access))

                figure(table, f"{line.lost()} batches: {line.reason()}")
                assert text in line.reason()
                assert line.failures == line.lost()
            assert set(statuses(server).values()) == {"running"}


@promise("delivery.case.bucket_full")
def test_parts_wait_until_their_bucket_takes_them_again(tmp_path: Path, figure: Figure) -> None:
    with S3.server(tmp_path / "s3") as store, Aside() as aside:
        bucket, away = store.objects, store.objects.with_name("away")

        def take() -> None:
            with store.halted():  # else it makes the folder anew, in between
                bucket.rename(away)
                bucket.touch()  # a file, in which the store cannot make any other

        def give_back() -> None:
            with store.halted():
                bucket.unlink()
                away.rename(bucket)

        output = S3.output("store", "readings", rotate={"max_rows": 2})
        config = [{"id": "p", "inputs": [{"type": "http"}], "outputs": [output]}]
        folder = tmp_path / "headrace"
        options = linked(folder, {"store": S3.connection(store)})
        with serving(folder, config, *options) as server:
            line = Line(aside, server, "p", S3, store, "readings")
            line.wait_until_writing()
            line.begin(take)
            line.end(give_back, failures=2)
            assert server.stop() == 0

            figure("bucket", line.reason())
            assert line.lost() == 0
