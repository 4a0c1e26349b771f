"""Killed twice while a buffer holds the same messages: each may have ended the process, and none has."""

from __future__ import annotations

from pathlib import Path

from headrace.compiler.store.suspects import FEW
from tests.server import Server
from tests.stopwatch import Stopwatch
from tests.whole.durable.customers import wait_until
from tests.whole.durable.lives import Lives, kill, pipeline

HELD = range(FEW)
SIZE = 100
PROMPT = 3.0
"""Seconds for an end that waits for nobody."""


def killed_twice(folder: Path) -> Lives:
    """Have a buffer hold messages when the server is killed, and again when it is killed next."""
    lives = Lives(folder, [pipeline({"type": "buffer", "size": SIZE})])
    with lives.life() as server:
        client = server.client()
        assert {client.post("p", {"n": number}).status for number in HELD} == {202}
        kill(server)
    with lives.life() as server:
        wait_until(lambda: held(server) == len(HELD), "the buffer holds them again")
        kill(server)
    return lives


def held(server: Server) -> int:
    """Return how many messages the buffer holds."""
    queues = server.get("/api/pipelines/p").value["queues"]
    [used] = [queue["used"] for queue in queues if queue["stage"] == "transform"]
    return int(used)


def test_an_end_in_order_does_not_wait_for_more_of_them(tmp_path: Path) -> None:
    lives = killed_twice(tmp_path)

    with lives.life() as server:
        wait_until(lambda: held(server) == 1, "one of them is alone")
        watch = Stopwatch()
        assert server.stop() == 0
        assert watch.seconds < PROMPT

    assert lives.written() == [HELD[0]]


def test_they_are_written_one_after_the_other(tmp_path: Path) -> None:
    lives = killed_twice(tmp_path)

    with lives.life() as server:
        # The buffer waits for more, and is told each time that there is none.
        lives.wait_until_written(HELD, seconds=len(HELD) * 2.0 + PROMPT)
        assert server.stop() == 0
