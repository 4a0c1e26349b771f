"""What is told of an `s3` output with `retry` whose parts wait, by a server as it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.promises import promise
from tests.s3_sides import asking
from tests.server import Server
from tests.services.s3 import BUCKET
from tests.services.s3 import S3 as S3Server
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import Lives
from tests.whole.linking import kept
from tests.whole.stores.kinds.every import S3

pytestmark = pytest.mark.long

LAKE = "p"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[S3Server]:
    """Give an object store of the test's own."""
    with S3Server(tmp_path / "s3") as server:
        yield server


def lives(folder: Path, store: S3Server, **options: Any) -> Lives:
    """Return the lives of a server with an output that has `retry`."""
    out = S3.output("lake", LAKE, rotate={"max_rows": 1}, **options)
    config = [{"id": PIPELINE, "inputs": [{"type": "http"}], "outputs": [out]}]
    return Lives(folder / "headrace", config, connections={"lake": S3.connection(store)})


def waits(server: Server, failure: str) -> int:
    """Return 1 while the output waits for something of a class."""
    return figure_of(server, "headrace_output_waiting", **{"class": failure})


async def operated(store: S3Server, what: str) -> None:
    """Have an operator do something to the bucket."""
    async with asking(store) as operator:
        await getattr(operator, what)(Bucket=BUCKET)


@promise("delivery.parts.waits")
@pytest.mark.parametrize("options", [{"retry": {}}, {"queue": {}}])
def test_a_bucket_that_is_gone_shows_wherever_one_looks_and_so_does_its_return(
    tmp_path: Path, store: S3Server, options: dict[str, Any]
) -> None:
    with lives(tmp_path, store, **options).life() as server, Aside() as aside:
        aside.do(operated(store, "delete_bucket"))
        assert server.post(PIPELINE, {"n": 1}).status == 202
        wait_until(lambda: waits(server, "misconfigured") == 1, "that somebody has to act")

        told = server.get(f"/api/pipelines/{PIPELINE}").value
        [link] = told["outputs"]
        assert (told["health"], link["state"]) == ("degraded", "down")
        assert "NoSuchBucket" in link["why"]
        assert "waits until somebody acts: bucket 'plant'" in str(server.err)
        assert waits(server, "unavailable") == 0
        aside.do(operated(store, "create_bucket"))
        assert server.stop() == 0  # by which it is tried at once

    assert kept(store.objects / LAKE) == [1]


@promise("delivery.parts.waits")
def test_a_store_that_is_away_shows_until_it_is_back(tmp_path: Path, store: S3Server) -> None:
    with lives(tmp_path, store, retry={}).life() as server:
        store.kill()
        assert server.post(PIPELINE, {"n": 1}).status == 202
        wait_until(lambda: waits(server, "unavailable") == 1, "that the store is missed")
        wait_until(lambda: figure_of(server, "headrace_retries_total") > 1, "that it is tried")
        store.start()

        wait_until(lambda: kept(store.objects / LAKE) == [1], "the part")
        wait_until(lambda: waits(server, "unavailable") == 0, "that nothing waits")
        assert server.stop() == 0


@promise("delivery.parts.seconds")
def test_what_an_outage_has_lasted_too_long_for_is_counted_as_lost(
    tmp_path: Path, store: S3Server
) -> None:
    with lives(tmp_path, store, retry={"seconds": 0.5}).life() as server:
        store.kill()
        assert server.post(PIPELINE, {"n": 1}).status == 202
        wait_until(
            lambda: figure_of(server, "headrace_messages_lost_total", reason="batch") == 1,
            "that it is given up",
        )
        assert [each["entries"] for each in server.get("/api/stored").value] == [0]
        store.start()
        assert server.post(PIPELINE, {"n": 2}).status == 202

        wait_until(lambda: kept(store.objects / LAKE) == [2], "what comes later")
        assert server.stop() == 0
