"""A signal ends the server in order: nothing that was accepted is lost, and nobody holds it up."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.clients import HOST, PATIENCE, Client
from tests.promises import promise
from tests.server import Server, filed, serving, stored
from tests.stopwatch import Stopwatch

TICKING = [{"id": "t", "inputs": [{"type": "dummy", "duration": 3600}]}]

PROMPT = 4.0
"""Seconds for an end that waits for nobody; idle machines take a tenth of it."""


class Peer(ThreadingHTTPServer):
    """An HTTP server that answers nobody until it is let, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), Keeping)
        self.may_answer = threading.Event()
        self.was_asked = threading.Event()
        self.messages: list[Any] = []

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://{HOST}:{self.server_address[1]}/"


class Keeping(BaseHTTPRequestHandler):
    """One request to a `Peer`."""

    server: Peer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Keep the batch, and answer when that is allowed."""
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.was_asked.set()
        self.server.may_answer.wait(PATIENCE)
        self.server.messages += batch
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def peer() -> Iterator[Peer]:
    with Peer() as peer:
        serving_it = threading.Thread(target=peer.serve_forever, daemon=True)
        serving_it.start()
        yield peer
        peer.may_answer.set()
        peer.shutdown()


class Poster(threading.Thread):
    """A client that posts numbers of its own, batch after batch, until the server refuses or goes."""

    def __init__(self, server: Server, first: int) -> None:
        super().__init__(daemon=True)
        self._client = Client(server.port)
        self._numbers = count(first)
        self.accepted: list[int] = []
        self.unanswered: list[int] = []
        self.has_begun = threading.Event()

    def run(self) -> None:
        """Post."""
        while batch := self._post([next(self._numbers) for _ in range(5)]):
            self.accepted += batch
            if len(self.accepted) >= 500:
                self.has_begun.set()
        self._client.close()

    def _post(self, batch: list[int]) -> list[int] | None:
        try:
            answer = self._client.post("load", [{"n": number} for number in batch])
        except (OSError, HTTPException):
            self.unanswered = batch  # taken or not: nobody was told
            return None
        return batch if answer.status == 202 else None


def terminated(server: Server) -> int:
    return server.stop()


def interrupted(server: Server) -> int:
    server.signal(signal.SIGINT)
    return server.ended()


def hung_up(server: Server) -> int:
    server.signal(signal.SIGHUP)
    return server.ended()


def deleted(server: Server) -> int:
    for pipeline in ("load", "reader"):
        assert server.request("DELETE", f"/api/pipelines/{pipeline}").status == 204
    return server.stop()


@promise("delivery.case.stopped")
@pytest.mark.long
@pytest.mark.parametrize("end", [terminated, interrupted, hung_up, deleted])
def test_under_load_nothing_that_was_accepted_is_lost(
    tmp_path: Path, end: Callable[[Server], int]
) -> None:
    options = filed(tmp_path)
    load = {
        "id": "load",
        "inputs": [{"type": "http", "capacity": 20000}],
        "transforms": [
            {"type": "map", "mappings": [{"type": "copy", "from": "n", "as": "copied"}]},
            {"type": "buffer", "size": 64, "seconds": 3600},
        ],
        "outputs": [{"type": "file", "connection": "disk", "path": "load"}],
    }
    reader = {
        "id": "reader",
        "inputs": [{"type": "pipeline", "upstream": "load"}],
        "transforms": [{"type": "buffer", "size": 1000}],
        "outputs": [{"type": "file", "connection": "disk", "path": "reader"}],
    }
    with serving(tmp_path, [load, reader], *options) as server:
        posters = [Poster(server, first) for first in range(0, 4_000_000, 1_000_000)]
        for poster in posters:
            poster.start()
        for poster in posters:
            assert poster.has_begun.wait(PATIENCE), "the server does not accept"
        code = end(server)
        for poster in posters:
            poster.join(PATIENCE)

    assert code == 0
    written = stored(tmp_path / "data" / "load")
    assert all(message["copied"] == message["n"] for message in written)
    numbers = [message["n"] for message in written]
    accepted = {number for poster in posters for number in poster.accepted}
    unanswered = {number for poster in posters for number in poster.unanswered}
    assert accepted <= set(numbers) <= accepted | unanswered
    assert len(numbers) == len(set(numbers))
    assert stored(tmp_path / "data" / "reader") == written
    for poster in posters:  # one client's posts stay in order
        own = set(poster.accepted)
        assert [number for number in numbers if number in own] == poster.accepted


def test_what_waits_for_a_slow_output_is_delivered_first(tmp_path: Path, peer: Peer) -> None:
    config = [
        {
            "id": "p",
            "inputs": [{"type": "http", "capacity": 10}],
            "outputs": [{"type": "http", "url": peer.url}],
        }
    ]
    with serving(tmp_path, config) as server:
        events, client = server.events(), server.client()
        accepted = []
        for number in range(1000):
            answer = client.post("p", [number])
            if answer.status != 202:
                break
            accepted.append(number)
        server.signal()
        events.read_out()  # the streams end first, so it has begun to end
        peer.may_answer.set()

        assert server.ended() == 0
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert 10 <= len(accepted) < 100
    assert peer.messages == accepted


def test_an_open_event_stream_does_not_hold_it_up(tmp_path: Path) -> None:
    with serving(tmp_path, TICKING) as server:
        streams = [server.events() for _ in range(3)]
        watch = Stopwatch()
        code = server.stop()
        took = watch.seconds

        assert code == 0
        assert took < PROMPT
        assert [stream.read_out() for stream in streams] == [[], [], []]


def test_neither_does_a_connection_that_is_only_kept(tmp_path: Path) -> None:
    with serving(tmp_path, TICKING) as server:
        assert server.client().request("GET", "/livez").status == 200
        with socket.create_connection((HOST, server.port)):
            watch = Stopwatch()

            assert server.stop() == 0
            assert watch.seconds < PROMPT


@promise("delivery.case.hangs")
@pytest.mark.long
def test_an_output_that_never_answers_gets_five_seconds_and_what_it_had_is_reported(
    tmp_path: Path, peer: Peer
) -> None:
    config = [
        {
            "id": "p",
            "inputs": [{"type": "http"}],
            "outputs": [{"type": "http", "url": peer.url}, {"type": "stdout"}],
        }
    ]
    with serving(tmp_path, config) as server:
        server.post("p", {"n": 1})
        assert peer.was_asked.wait(PATIENCE)
        watch = Stopwatch()
        code = server.stop()
        elapsed, took = watch.elapsed, watch.seconds

        assert code == 0
        assert elapsed > 3.4
        assert took < 4.5 + PROMPT
        server.err.find(re.compile("outputs\\[0\\]: stopped before everything was written"))
        assert '"batch":[{"n":1}]' in server.out.all()[0]


def test_a_second_signal_ends_it_at_once(tmp_path: Path, peer: Peer) -> None:
    config = [
        {
            "id": "p",
            "inputs": [{"type": "http"}],
            "outputs": [{"type": "http", "url": peer.url}],
        }
    ]
    with serving(tmp_path, config) as server:
        events = server.events()
        server.post("p", {"n": 1})
        assert peer.was_asked.wait(PATIENCE)
        server.signal()
        events.read_out()
        watch = Stopwatch()
        server.signal()

        assert server.ended() == 128 + signal.SIGTERM
        assert watch.seconds < PROMPT


@contextmanager
def half_a_post(server: Server) -> Iterator[socket.socket]:
    """Begin to post, and do not go on."""
    head = b"POST /api/pipelines/t/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
    with socket.create_connection((HOST, server.port), PATIENCE) as connection:
        connection.sendall(head + b'{"n"')
        yield connection


def test_a_post_that_is_under_way_may_finish(tmp_path: Path) -> None:
    config = [{"id": "t", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]
    with serving(tmp_path, config) as server, half_a_post(server) as posting:
        events = server.events()
        server.signal()
        events.read_out()
        posting.sendall(b": 123}")

        assert posting.recv(1000).startswith(b"HTTP/1.1 202 ")
        assert server.ended() == 0
        assert '"batch":[{"n":123}]' in server.out.all()[0]


@pytest.mark.long
def test_a_post_that_does_not_go_on_gets_ten_seconds_and_was_never_made(tmp_path: Path) -> None:
    config = [{"id": "t", "inputs": [{"type": "http"}], "outputs": [{"type": "stdout"}]}]
    with serving(tmp_path, config) as server, half_a_post(server):
        server.post("t", {"n": 1})
        watch = Stopwatch()
        code = server.stop()
        elapsed, took = watch.elapsed, watch.seconds

        assert code == 0
        assert elapsed > 9.5
        assert took < 10 + PROMPT
        assert [json.loads(line)["batch"] for line in server.out.all()] == [[{"n": 1}]]
        assert "ERROR" not in str(server.err)
