"""Parts that wait in the store of a server: who has it, what a deletion leaves, what cannot wait longer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.promises import promise
from tests.services.s3 import S3 as S3Server
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import Lives, pipeline
from tests.whole.linking import create, delete, kept
from tests.whole.stores.kinds.every import S3

pytestmark = pytest.mark.long

LAKE = "p"
HOUR = {"interval_secs": 3600}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[S3Server]:
    """Give an object store of the test's own."""
    with S3Server(tmp_path / "s3") as server:
        yield server


def lives(folder: Path, store: S3Server, config: list[Any]) -> Lives:
    """Return the lives of a server with a connection to that store."""
    return Lives(folder / "headrace", config, connections={"lake": S3.connection(store)})


def filling(**options: Any) -> dict[str, Any]:
    """Return a pipeline of today: it names nothing that is kept."""
    out = S3.output("lake", LAKE, **{"rotate": {"max_rows": 2}, **options})
    return {"id": PIPELINE, "inputs": [{"type": "http"}], "outputs": [out]}


def uploaded(store: S3Server) -> list[int]:
    """Return the numbers in all objects."""
    return sorted(kept(store.objects / LAKE))


def test_a_second_server_on_the_directory_is_refused_in_words(
    tmp_path: Path, store: S3Server
) -> None:
    many = lives(tmp_path, store, [filling()])
    with many.life() as server:
        second = many.run()

        assert second.returncode == 1
        assert "is in use by another process" in second.stderr, second.stderr
        assert "Traceback" not in second.stderr
        for number in (1, 2):
            assert server.post(PIPELINE, {"n": number}).status == 202
        wait_until(lambda: uploaded(store) == [1, 2], "what was posted to the first")
        assert server.stop() == 0


@promise("delivery.case.pending", "delivery.queue.deleted")
def test_what_a_deleted_pipeline_leaves_is_listed_and_no_namesake_sends_it(
    tmp_path: Path, store: S3Server
) -> None:
    with lives(tmp_path, store, [filling()]).life() as server:
        store.kill()
        for number in (1, 2, 3):
            assert server.post(PIPELINE, {"n": number}).status == 202

        assert delete(server, PIPELINE).status == 204

        [part] = server.get("/api/stored").value
        assert (part["pipeline_id"], part["target"]) == (PIPELINE, "s3 lake p")
        assert (part["part"], part["entries"], part["left_over"]) == ("parts", 2, True)
        store.start()
        assert create(server, filling()).status == 201
        for number in (4, 5):
            assert server.post(PIPELINE, {"n": number}).status == 202
        wait_until(lambda: uploaded(store) == [4, 5], "what was posted to the namesake")
        assert server.request("DELETE", f"/api/stored/{part['id']}").status == 204
        left = [each for each in server.get("/api/stored").value if each["left_over"]]
        assert left == []
        assert server.stop() == 0
    assert uploaded(store) == [4, 5]


def test_what_waits_is_gone_on_with_where_the_pipeline_is_exchanged(
    tmp_path: Path, store: S3Server
) -> None:
    with lives(tmp_path, store, [filling()]).life() as server:
        store.kill()
        for number in (1, 2, 3):
            assert server.post(PIPELINE, {"n": number}).status == 202
        wait_until(lambda: bool(server.get("/api/stored").value), "what is in the store")

        store.start()
        changed = json.dumps(filling(rotate={"max_rows": 1})).encode()
        path, whatever = f"/api/pipelines/{PIPELINE}", {"If-Match": "*"}
        assert server.request("PUT", path, changed, whatever).status == 200

        wait_until(lambda: uploaded(store) == [1, 2, 3], "what waited")
        assert server.stop() == 0


def test_a_durable_input_that_is_full_of_an_open_part_has_it_uploaded(
    tmp_path: Path, store: S3Server
) -> None:
    config = pipeline(outputs=[S3.output("lake", LAKE, rotate=HOUR)], max_bytes=2048)
    with lives(tmp_path, store, [config]).life() as server:
        count = 0

        def has_come() -> bool:
            nonlocal count
            while server.post(PIPELINE, {"n": count}).status == 202:
                count += 1
            return len(uploaded(store)) > 0

        wait_until(has_come, "a part that is not full")

        assert server.metric("headrace_messages_lost_total", pipeline=PIPELINE) == 0
        assert server.stop() == 0
    assert uploaded(store) == [*range(count)]


@promise("delivery.queue.stop")
@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("queue", [{}, {"queue": {}}])
def test_after_a_stop_in_order_nothing_comes_twice(
    tmp_path: Path, store: S3Server, queue: dict[str, Any], is_away: bool
) -> None:
    config = pipeline(outputs=[S3.output("lake", LAKE, rotate=HOUR, **queue)])
    many = lives(tmp_path, store, [config])
    with many.life() as server:
        if is_away:
            store.kill()
        for number in (1, 2, 3):
            assert server.post(PIPELINE, {"n": number}).status == 202
        assert server.stop() == 0
    if is_away:
        store.start()

    with many.life() as server:
        assert server.post(PIPELINE, {"n": 4}).status == 202
        assert server.stop() == 0

    assert uploaded(store) == [1, 2, 3, 4]
