"""A running server says what its pipelines did, as long as it was told to remember that."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.clients import HOST, PATIENCE, Gone
from tests.server import Server, run, serving, settled

FEED = {"id": "feed", "inputs": [{"type": "http"}]}


def past(server: Server, id: str, resolution: str = "coarse") -> dict[str, Any]:
    """Return the history of a pipeline."""
    answer = server.get(f"/api/pipelines/{id}/history?resolution={resolution}")
    assert answer.status == 200
    return answer.value


def sums(told: dict[str, Any]) -> tuple[int, int, int]:
    """Return the messages in and out and the failures of all buckets."""
    inbound, outbound, errors = (
        sum(each[kind] for each in told["buckets"]) for kind in ("inbound", "outbound", "errors")
    )
    return inbound, outbound, errors


def until(holds: Callable[[], bool]) -> None:
    """Ask again and again until something holds."""
    ends = monotonic() + PATIENCE
    while not holds():
        if monotonic() > ends:
            raise Gone("it did not come to be")
        threading.Event().wait(0.1)


def nobody() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as bound:
        bound.bind((HOST, 0))
        return bound.getsockname()[1]


def create(server: Server, config: dict[str, Any]) -> None:
    assert server.request("POST", "/api/pipelines", json.dumps(config).encode()).status == 201


def delete(server: Server, id: str) -> None:
    assert server.request("DELETE", f"/api/pipelines/{id}").status == 204


@pytest.mark.long
def test_what_was_posted_and_what_failed_is_told_also_of_pipelines_that_are_gone(tmp_path: Path):
    url = f"http://{HOST}:{nobody()}/"
    losing = {**FEED, "id": "losing", "outputs": [{"type": "http", "url": url}]}
    with serving(tmp_path, [FEED, losing]) as server:
        assert past(server, "feed")["buckets"]  # what a file names is recorded from the start
        for _ in range(4):
            server.post("feed", [1, 2, 3])
        server.post("losing", 1)
        until(lambda: sums(past(server, "feed")) == (12, 12, 0))
        until(lambda: sums(past(server, "losing")) == (1, 1, 1))

        [failure] = past(server, "losing")["errors"]
        assert (failure["stage"], failure["component"], failure["count"]) == ("output", 0, 1)
        assert "connection refused" in failure["message"]
        for stage in ("input", "output"):
            assert server.metric("headrace_messages_total", pipeline="feed", stage=stage) == 12

        server.post("feed", 1)
        delete(server, "feed")  # at once, before anybody reads the counters
        assert sums(past(server, "feed")) == sums(past(server, "feed", "fine")) == (13, 13, 0)

        create(server, FEED)
        server.post("feed", [1, 2])
        until(lambda: sums(past(server, "feed")) == (15, 15, 0))
        fine = past(server, "feed", "fine")["buckets"]
        assert [each["start"] for each in fine] == [
            fine[0]["start"] + 5 * place for place in range(len(fine))
        ]


@pytest.mark.long
def test_a_short_memory_forgets_and_none_remembers_nothing(tmp_path: Path):
    (tmp_path / "none").mkdir()
    short = settled(tmp_path, history={"retention_secs": 3})
    none = settled(tmp_path / "none", history={"retention_secs": 0})
    with (
        serving(tmp_path, [FEED], *short) as forgetful,
        serving(tmp_path / "none", [FEED], *none) as empty,
    ):
        for server in (forgetful, empty):
            server.post("feed", [1, 2])
            delete(server, "feed")

        assert sums(past(forgetful, "feed")) == (2, 2, 0)
        assert past(empty, "feed")["buckets"] == past(empty, "feed", "fine")["buckets"] == []
        until(lambda: past(forgetful, "feed")["buckets"] == [])


@pytest.mark.long
def test_durable_history_goes_on_after_a_stop_and_after_a_kill(tmp_path: Path):
    options = [*settled(tmp_path, history={"durable": True}), "--data-dir", "data"]
    gone = {**FEED, "id": "gone"}
    with serving(tmp_path, [FEED, gone], *options) as server:
        server.post("feed", [1, 2, 3])
        server.post("gone", 1)
        delete(server, "gone")
        until(lambda: sums(past(server, "feed")) == (3, 3, 0))
        before = past(server, "feed")["buckets"]
        assert server.stop() == 0
    with serving(tmp_path, [FEED], *options) as server:
        told = past(server, "feed")["buckets"]
        assert told[: len(before)] == before  # and the minute that came meanwhile, if one did
        assert sums(past(server, "feed", "fine")) == (3, 3, 0)
        assert sums(past(server, "gone")) == (1, 1, 0)
        server.post("feed", [1, 2])
        until(lambda: sums(past(server, "feed")) == (5, 5, 0))
        server.signal(signal.SIGKILL)
        server.ended()
    with serving(tmp_path, [FEED], *options) as server:
        inbound, outbound, errors = sums(past(server, "feed"))
        assert (
            3 <= inbound == outbound <= 5
        )  # what was counted in the seconds before it may be gone
        assert errors == 0
        fine = past(server, "feed", "fine")["buckets"]
        assert [each["start"] for each in fine] == [
            fine[0]["start"] + 5 * place for place in range(len(fine))
        ]


@pytest.mark.long
def test_durable_history_without_a_place_for_it_is_refused_in_words(tmp_path: Path):
    options = settled(tmp_path, history={"durable": True})
    nowhere = run(tmp_path, "serve", "--listen", f"{HOST}:0", *options)
    assert nowhere.returncode == 1
    file = tmp_path / "server.json"
    assert nowhere.stderr == (
        f"{file}:1:14: history.durable: nothing can be kept without --data-dir\n"
    )
    checked = run(tmp_path, "check", *options)
    assert (checked.returncode, checked.stdout) == (
        0,
        nowhere.stderr.replace("nothing can", "warning: nothing can"),
    )

    options += ["--data-dir", "data"]
    with serving(tmp_path, [FEED], *options):
        second = run(tmp_path, "serve", "--listen", f"{HOST}:0", *options)
        looked = run(tmp_path, "store", "check", "data")
    assert (looked.returncode, looked.stdout) == (1, "")
    assert "is in use by another process: stop the server that has it" in looked.stderr
    assert run(tmp_path, "store", "check", "data").stdout == "nothing is damaged\n"
    assert second.returncode == 1
    store = tmp_path / "data" / "store" / "0"
    assert second.stderr == (
        f"headrace: history cannot be durable: the store '{store}' is in use by another process\n"
    )
