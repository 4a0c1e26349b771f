"""A client that stops to read `/events` loses events and is told how many; nobody else notices."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.clients import HOST, PATIENCE
from tests.forked import serving
from tests.server import Server

READERS = 100
"""Pipelines that read one: each reports every pass with two events, so a post makes 202."""
PUBLISHED = 3000
"""Events before the client reads again: 1,024 wait for it, and its socket takes a few hundred."""

SOURCE = {"id": "source", "inputs": [{"type": "http"}]}
LAST = {"id": "last", "inputs": [{"type": "http"}]}
READING = [{"type": "pipeline", "upstream": "source"}]

Event = dict[str, Any]


class Watcher(threading.Thread):
    """A client that reads all events."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._stream = server.events()
        self._news = threading.Condition()
        self.events: list[Event] = []

    def run(self) -> None:
        """Read until the server ends the stream."""
        for event in self._stream:
            with self._news:
                self.events.append(event)
                self._news.notify_all()

    def wait(self) -> None:
        """Wait for the next event; not for long, because not every pass makes one."""
        with self._news:
            self._news.wait(0.02)


class Stalled:
    """A client that asks for events and reads none of them before it is told to."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(PATIENCE)
        self._socket.connect((HOST, port))
        self._socket.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        self._received = self._socket.makefile("rb")
        while self._received.readline().strip():  # the head
            pass
        self._lines = self._unchunked()
        assert next(self._lines) == b":\n"  # the first comment: from now on nothing is missed

    def frames(self) -> Iterator[dict[bytes, bytes]]:
        """Yield the fields of one event after the other."""
        frame: dict[bytes, bytes] = {}
        for line in self._lines:
            name, parted, value = line.strip().partition(b": ")
            if parted:
                frame[name] = value
            elif frame and not line.strip():
                yield frame
                frame = {}

    def _unchunked(self) -> Iterator[bytes]:
        """Yield the lines of the body; a chunk ends with a line."""
        while size := int(self._received.readline(), 16):
            yield from self._received.read(size).splitlines(keepends=True)
            self._received.readline()

    def close(self) -> None:
        """Leave."""
        self._received.close()
        self._socket.close()


def caught_up(stalled: Stalled) -> tuple[list[int], list[Event]]:
    """Read up to the last pipeline's event; return what was said to be lost, and what came."""
    lost, shown = [], []
    for frame in stalled.frames():
        if frame.get(b"event") == b"lagged":
            lost.append(int(frame[b"data"]))
            continue
        assert list(frame) == [b"data"]
        shown.append(json.loads(frame[b"data"]))
        if shown[-1]["pipeline_id"] == "last":
            break
    return lost, shown


@pytest.mark.long
def test_a_client_that_does_not_read_is_told_what_it_missed_and_pipelines_go_on(
    tmp_path: Path,
) -> None:
    readers = [{"id": f"reader {number}", "inputs": READING} for number in range(READERS)]
    printing = {"id": "printing", "inputs": READING, "outputs": [{"type": "stdout"}]}
    batch = [{"filling": "x" * 2000} for _ in range(5)]
    with serving(tmp_path, [SOURCE, *readers, printing, LAST]) as server:
        watcher = Watcher(server)
        watcher.start()
        with closing(Stalled(server.port)) as stalled:
            client, posts, until = server.client(), 0, monotonic() + PATIENCE
            while len(watcher.events) < PUBLISHED:
                assert monotonic() < until, f"{len(watcher.events)} events after {posts} posts"
                assert client.post("source", batch).status == 202
                posts += 1
                watcher.wait()
            client.post("last", {})

            lost, shown = caught_up(stalled)
        assert server.stop() == 0
        watcher.join(PATIENCE)

    seen = watcher.events
    published = seen[: seen.index(shown[-1]) + 1]
    assert sum(lost) > 0
    assert sum(lost) == len(published) - len(shown)
    # What came is what was published, up to the gap and after it.
    assert [event for event in published if event in shown[-100:]] == shown[-100:]
    # Whoever reads misses nothing, and neither does a pipeline.
    for reader in readers:
        numbers = [event["seq"] for event in seen if event["pipeline_id"] == reader["id"]]
        assert numbers == list(range(1, len(numbers) + 1))
    assert [json.loads(line)["count"] for line in server.out.all()] == [len(batch)] * posts
