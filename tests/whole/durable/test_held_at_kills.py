"""Killed twice while a buffer holds the same messages: each may have ended the process, and none has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stopwatch import Stopwatch
from tests.whole.durable.lives import Lives, kill, pipeline

HELD = range(10)
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
        kill(server)
    return lives


def test_an_end_in_order_does_not_wait_for_more_of_them(tmp_path: Path) -> None:
    lives = killed_twice(tmp_path)

    with lives.life() as server:
        watch = Stopwatch()
        assert server.stop() == 0
        assert watch.seconds < PROMPT

    assert lives.written() == [HELD[0]]


@pytest.mark.xfail(
    reason="one waits in the buffer, alone, for others that wait for it", strict=True
)
def test_they_are_written_when_the_buffer_is_full(tmp_path: Path) -> None:
    lives = killed_twice(tmp_path)

    with lives.life() as server:
        assert server.post("p", [{"n": 100 + number} for number in range(SIZE)]).status == 202
        lives.wait_until_written(HELD, seconds=PROMPT)
        assert server.stop() == 0
