"""Pipelines that end in an object store: ended while parts wait, and with a store that comes and goes."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.errors import Unreachable
from headrace.connectors.s3.retries import AT_ONCE
from tests.connected import started
from tests.forked import serving
from tests.promises import promise
from tests.s3_sides import context, objects, sink
from tests.server import Server
from tests.services.s3 import BUCKET, KEY, S3, SECRET
from tests.stopwatch import Stopwatch

KIBIBYTE = "x" * 1024
PART_ROWS = 50
PART_BYTES = PART_ROWS * len("1000\n")
"""Of a part whose messages are numbers of four digits."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[S3]:
    """Give a store of the test's own."""
    with S3(tmp_path / "s3") as server:
        yield server


def filling(folder: Path, store: S3, **options: Any) -> list[dict[str, Any]]:
    """Return a config that puts into the store what is posted to `p`; its connections are filed."""
    lake = {
        "type": "s3",
        "bucket": BUCKET,
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "endpoint": store.url,
        "allow_http": True,
    }
    (folder / "config.connections.json").write_text(json.dumps({"lake": lake}))
    out = {"type": "s3", "connection": "lake", "prefix": "p", "rotate": {"interval_secs": 3600}}
    return [{"id": "p", "inputs": [{"type": "http"}], "outputs": [out | options]}]


def landed(store: S3) -> list[Any]:
    """Return the messages of all objects."""
    return [json.loads(line) for body in objects(store).values() for line in body.splitlines()]


def posted(server: Server, messages: list[Any]) -> None:
    """Post some messages one by one, and wait until the output has them."""
    for message in messages:
        assert server.post("p", message).status == 202


def said(server: Server, pattern: str) -> re.Match[str]:
    """Return what the server said in its log."""
    return server.err.find(re.compile(pattern))


def test_the_object_is_there_when_a_delete_is_answered(tmp_path: Path, store: S3) -> None:
    with serving(tmp_path, filling(tmp_path, store)) as server:
        posted(server, [1, 2, 3])

        assert server.request("DELETE", "/api/pipelines/p").status == 204

        [(key, body)] = objects(store).items()
        assert re.fullmatch(r"p/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-000001\.ndjson", key)
        assert body == b"1\n2\n3\n"


@pytest.mark.long
def test_the_object_is_there_when_the_server_has_ended(tmp_path: Path, store: S3) -> None:
    with serving(tmp_path, filling(tmp_path, store, format="json_array")) as server:
        posted(server, [1, 2])

        assert server.stop() == 0

    assert list(objects(store).values()) == [b"[1,2]"]


@pytest.mark.long
def test_what_a_dead_store_does_not_get_is_kept_and_sent_at_the_next_start(
    tmp_path: Path, store: S3
) -> None:
    config = filling(tmp_path, store, rotate={"max_rows": 2})
    with serving(tmp_path, config, "--data-dir", "data") as server:
        store.kill()
        posted(server, [1, 2, 3])
        said(server, "does not answer: connection refused")
        watch = Stopwatch()

        assert server.stop() == 0

        took = watch.seconds
        told = said(server, r"not uploaded: (.*); kept in the store of --data-dir")
    assert told[1] == "2 parts with 3 messages (6 bytes)"
    assert took < 8

    store.start()
    with serving(tmp_path, config, "--data-dir", "data") as server:
        said(server, r"2 parts with 3 messages \(6 bytes\) of an earlier run are uploaded now")
        server.stop()
    assert landed(store) == [1, 2, 3]
    with serving(tmp_path, config, "--data-dir", "data") as server:
        [part] = server.get("/api/stored").value
        server.stop()
    assert (part["part"], part["target"], part["entries"]) == ("parts", "s3 lake p", 0)
    assert part["left_over"] is False


@pytest.mark.long
def test_without_a_place_to_keep_it_the_log_says_what_is_lost(tmp_path: Path, store: S3) -> None:
    with serving(tmp_path, filling(tmp_path, store)) as server:
        posted(server, [1, 2, 3])
        store.kill()

        assert server.stop() == 0

        assert said(
            server,
            r"lost, because not uploaded in time: 1 part with 3 messages \(6 bytes\);"
            " with --data-dir they would be kept",
        )


@pytest.mark.long
def test_what_fills_the_memory_is_kept_in_the_last_second(tmp_path: Path, store: S3) -> None:
    config = filling(tmp_path, store, rotate={"max_rows": 1}, max_buffered_bytes=2**20)
    with serving(tmp_path, config, "--data-dir", "data") as server:
        store.kill()
        posted(server, [{"n": n, "s": KIBIBYTE * 100} for n in range(15)])
        said(server, "1,048,576 bytes wait to be uploaded, so the pipeline waits")

        assert server.stop() == 0

        kept = said(server, r"not uploaded: (\d+) parts with (\d+) messages")
    assert kept[1] == kept[2] == "10"

    store.start()
    with serving(tmp_path, config, "--data-dir", "data") as server:
        server.stop()
    assert sorted(each["n"] for each in landed(store)) == [*range(10)]


@pytest.mark.long
def test_two_outputs_on_one_prefix_of_a_store_that_ignores_conditions_lose_nothing(
    tmp_path: Path, store: S3
) -> None:
    [pipeline] = filling(tmp_path, store, rotate={"max_rows": 1})
    pipeline["outputs"] *= 2
    with serving(tmp_path, [pipeline]) as server:
        posted(server, [*range(20)])
        server.stop()

    assert sorted(landed(store)) == sorted([*range(20)] * 2)
    assert "was taken" not in str(server.err)


@pytest.mark.long
def test_a_bucket_that_is_not_there_refuses_a_pipeline(tmp_path: Path, store: S3) -> None:
    [pipeline] = filling(tmp_path, store)
    lake = json.loads((tmp_path / "config.connections.json").read_text())["lake"]
    with serving(tmp_path) as server:
        filed = {"id": "lake", **lake, "bucket": "missing"}
        assert server.request("POST", "/api/connections", json.dumps(filed).encode()).status == 201

        answer = server.request("POST", "/api/pipelines", json.dumps(pipeline).encode())

    assert answer.status == 422
    assert b"says 'NoSuchBucket: The specified bucket does not exist'" in answer.body
    assert SECRET.encode() not in answer.body


@promise("delivery.case.late")
@pytest.mark.long
async def test_a_store_that_is_away_at_first_is_asked_again(tmp_path: Path, store: S3) -> None:
    store.kill()
    it = sink(context(store))
    with pytest.raises(Unreachable):
        await it.start()
    store.start()

    async with started(it):
        await it.write([1])

    assert landed(store) == [1]


async def test_a_store_that_is_killed_under_load_gets_everything_and_soon_after_its_return(
    tmp_path: Path, store: S3
) -> None:
    ctx = context(store)
    async with started(sink(ctx, rotate={"max_rows": PART_ROWS})) as it:
        numbers = iter(range(10**9))

        async def load(batches: int) -> None:
            for _ in range(batches):
                await it.write([next(numbers) for _ in range(10)])
                await ctx.clock.sleep(0.002)

        await load(100)
        await asyncio.to_thread(store.kill)
        await load(300)
        await asyncio.to_thread(store.start)
        back = Stopwatch()
        while "written to again" not in ctx.notes:
            await load(1)
        took = back.seconds
        await load(100)
        # A sink that ends gives up after some seconds, which are not what is asked about here.
        while it.queue().used >= PART_BYTES:
            await ctx.clock.sleep(0.01)

    last = next(numbers)
    times = Counter(landed(store))
    assert took < 3
    assert {*range(last)} - times.keys() == set(), (ctx.failures, ctx.notes)
    assert max(times) < last
    # The store keeps metadata in memory: killed between writing a part and saying so, it does not know
    # afterwards whose part that is, and takes it under the next name as well.
    assert max(times.values()) <= 2
    assert times.total() - last <= AT_ONCE * PART_ROWS
    assert len(set(ctx.failures)) == 1
    assert len(ctx.failures) > 1
