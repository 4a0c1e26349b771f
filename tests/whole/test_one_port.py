"""Two processes listen on one port, each with an engine and a data directory of its own."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from itertools import count
from pathlib import Path

import pytest

from tests.clients import HOST, PATIENCE, Client
from tests.server import Process, Server, filed, serving, started, stored

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("listening.py")
CONFIG = [
    {
        "id": "load",
        "inputs": [{"type": "http", "capacity": 20000}],
        "transforms": [{"type": "buffer", "size": 16, "seconds": 3600}],
        "outputs": [
            {"type": "file", "connection": "disk", "path": "load"},
            {"type": "stdout"},
        ],
    }
]
POSTERS = 12
A_KEPT_CONNECTION, A_CONNECTION_EACH = 1000, 1
"""Posts over one connection, as clients do that keep theirs, and as those do that do not."""

Listeners = tuple[socket.socket, socket.socket]


class Poster(threading.Thread):
    """A client that posts numbers of its own one by one, until it is told to stop."""

    def __init__(self, port: int, first: int, posts: int) -> None:
        super().__init__(daemon=True)
        self._port, self._numbers, self._posts = port, count(first), posts
        self._is_over = threading.Event()
        self.accepted: list[int] = []
        self.unanswered: list[int] = []
        self.refused: list[int] = []

    def run(self) -> None:
        """Post, over one connection after the other."""
        while not self._is_over.is_set():
            client = Client(self._port)
            try:
                for _ in range(self._posts):
                    if self._is_over.is_set() or not self._post(client, next(self._numbers)):
                        break
            finally:
                client.close()

    def _post(self, client: Client, number: int) -> bool:
        try:
            status = client.post("load", {"n": number}).status
        except ConnectionRefusedError:
            status = 0
        except (OSError, HTTPException):
            self.unanswered.append(number)
            return False
        (self.accepted if status == 202 else self.refused).append(number)
        return status == 202

    def stop(self) -> None:
        """Have it post no more, and wait until it does not."""
        self._is_over.set()
        self.join(PATIENCE)
        assert not self.is_alive()


def one_for_both() -> Listeners:
    """Return one listener twice: what waits to be accepted waits for both."""
    listener = bound(0, reuses=False)
    return listener, listener.dup()


def one_each() -> Listeners:
    """Return two listeners on one port, among which the system deals connections out."""
    first = bound(0, reuses=True)
    return first, bound(first.getsockname()[1], reuses=True)


def bound(port: int, *, reuses: bool) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuses)
    listener.bind((HOST, port))
    return listener


def start_on(
    listener: socket.socket, arguments: Sequence[str], folder: Path, setup: Callable[[], None]
) -> Process:
    """Start a server that listens there, and leave the listener to it."""
    with listener:
        number = listener.fileno()
        command = [sys.executable, "-P", str(PROGRAM), str(number), *arguments[2:]]
        return started(command, folder, setup, [number])


@contextmanager
def two_serving(folder: Path, listeners: Listeners) -> Iterator[tuple[Server, Server]]:
    """Run two servers, each in a directory of its own."""
    homes = [folder / "one", folder / "other"]
    for home in homes:
        home.mkdir()
    one, other = (
        serving(home, CONFIG, *filed(home), start=partial(start_on, listener))
        for home, listener in zip(homes, listeners, strict=True)
    )
    with one as first, other as second:
        assert first.port == second.port
        yield first, second


@contextmanager
def posting(port: int) -> Iterator[list[Poster]]:
    """Have clients post, of both kinds."""
    posters = [
        Poster(port, number * 1_000_000, (A_KEPT_CONNECTION, A_CONNECTION_EACH)[number % 2])
        for number in range(POSTERS)
    ]
    try:
        for poster in posters:
            poster.start()
        yield posters
    finally:
        for poster in posters:
            poster.stop()


def numbers(home: Path) -> list[int]:
    return [message["n"] for message in stored(home / "data" / "load")]


def all_of(posters: Sequence[Poster], what: str) -> set[int]:
    return {number for poster in posters for number in getattr(poster, what)}


@pytest.mark.parametrize("listeners", [one_for_both, one_each])
def test_whatever_was_accepted_is_written_by_one_of_them_and_one_ends_while_the_other_goes_on(
    tmp_path: Path, listeners: Callable[[], Listeners]
) -> None:
    with two_serving(tmp_path, listeners()) as (one, other):
        with posting(one.port) as posters:
            one.out.wait(4)
            other.out.wait(4)

            code = one.stop()

            written_by_then = len(other.out.wait(0))
            other.out.wait(written_by_then + 10)
        assert (code, other.stop()) == (0, 0)

    theirs = numbers(tmp_path / "one"), numbers(tmp_path / "other")
    written = {*theirs[0], *theirs[1]}
    assert len(written) == len(theirs[0]) + len(theirs[1])
    accepted, unanswered = all_of(posters, "accepted"), all_of(posters, "unanswered")
    assert accepted <= written <= accepted | unanswered
    assert all_of(posters, "refused") == set()
    if listeners is one_for_both:  # else what nobody has accepted yet ends with the listener
        assert all(len(poster.unanswered) <= 1 for poster in posters)
