"""Killed again and again in the midst of a replay: every message of every dead letter gets through."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import Server
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import Lives, kill, pipeline, twice
from tests.whole.figures import Figure

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("KILLS", "10"))
SIZE = 20
"""Messages of a letter."""
LETTERS = 10 + 6 * KILLS
MOST_OF_A_LIFE = 3 * SIZE
"""Messages that get through in each life before it is killed, roughly and at most."""
MOST_IN_HAND = 3
"""Letters of which something has got through, and which are there at a kill: the one that is being sent,
and those before it of which the deletion is not on the disk."""
FAST = 1_000
"""Messages a second of the last replay, which nothing kills."""
BROKEN = {"type": "script", "source": {"type": "inline", "code": 'throw "no such press"'}}
MENDED = {"type": "script", "source": {"type": "inline", "code": "emit(msg);"}}
REPLAY = f"/api/pipelines/{PIPELINE}/dead-letters/replay"


def letters_below(folder: Path) -> list[set[int]]:
    """Return the numbers in each dead letter in the store of a server that has ended."""
    path = folder / "data" / "store" / "0" / "store.db"
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT body FROM letters JOIN bodies USING (id)").fetchall()
    return [{each["n"] for each in json.loads(body[4:])} for [body] in rows]


def replay(server: Server, **options: int) -> None:
    """Begin to replay all that there are."""
    body = json.dumps({"filter": {}, **options}).encode()
    answer = server.request("POST", REPLAY, body)
    assert answer.status == 202, answer.body


def is_done(server: Server) -> bool:
    """Return whether the replay has come to its end."""
    return bool(server.get(REPLAY).value["state"] == "done")


def has_written(lives: Lives, count: int) -> bool:
    """Return whether so many messages are in the files."""
    return len(lives.written()) >= count


@promise("delivery.letters.replay")
def test_every_letter_gets_through_though_its_replay_is_killed(
    tmp_path: Path, figure: Figure
) -> None:
    lives = Lives(tmp_path, [{**pipeline(BROKEN), "dead_letters": True}])
    numbers = range(LETTERS * SIZE)
    with lives.life() as server:
        for first in numbers[::SIZE]:
            batch = [{"n": number} for number in numbers[first : first + SIZE]]
            assert server.post(PIPELINE, batch).status == 202
        wait_until(
            lambda: figure_of(server, "headrace_dead_letters_stored") == LETTERS, "all letters"
        )
        assert server.stop() == 0
    assert lives.written() == []
    lives.config = [{**pipeline(MENDED), "dead_letters": True}]
    in_hand: list[int] = []

    for _ in range(KILLS):
        wanted = len(lives.written()) + random.randint(1, MOST_OF_A_LIFE)
        with lives.life() as server:
            replay(server)
            wait_until(partial(has_written, lives, wanted), "some that get through")
            kill(server)
        written = {*lives.written()}
        left = letters_below(lives.folder)
        assert left, "it was over before it was killed"
        assert {*numbers} - written == set().union(*left) - written  # none is nowhere
        in_hand.append(sum(not written.isdisjoint(each) for each in left))
    with lives.life() as server:
        replay(server, rate=FAST)
        wait_until(lambda: is_done(server), "the end of the replay")
        assert server.stop() == 0

    figure("letters", f"{LETTERS}, of {SIZE} messages each")
    figure("missing", len({*numbers} - {*lives.written()}))
    figure("twice", f"{len(twice(lives.written()))} in {KILLS} kills")
    figure("letters in hand", f"{sum(in_hand)}, at most {max(in_hand)} a kill")
    assert {*lives.written()} == {*numbers}
    assert letters_below(lives.folder) == []
    assert max(in_hand) <= MOST_IN_HAND
    assert len(lives.written()) - LETTERS * SIZE <= sum(in_hand) * SIZE
