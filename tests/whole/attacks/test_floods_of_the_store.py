"""Whoever floods one pipeline with what it cannot do fills that one's bounds, and harms no other."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients import PATIENCE, Client, messages_of
from tests.promises import promise
from tests.server import Server
from tests.whole.bridging.bridges import figure_of
from tests.whole.durable.customers import wait_until
from tests.whole.durable.lives import Lives, kill
from tests.whole.figures import Figure
from tests.whole.gate import Gate
from tests.whole.linking import Json, filing

pytestmark = pytest.mark.long

BOUND = 64 * 1024
"""Bytes that each part of the flooded pipeline may keep."""
MOST_ON_DISK = 4 * 2**20
"""Bytes of the database, which has deleted rows for a while: far below what is sent."""
CLIENTS = 4
BEFORE, MEANWHILE = range(1, 51), range(51, 101)
"""What the other pipeline is posted before, so that its letters are the oldest, and meanwhile."""
NUMBERS = (*BEFORE, *MEANWHILE)
SCRIPT = 'if msg.n % 10 == 0 { throw "no such press" } emit(msg);'
"""One message in ten cannot be done."""
PRESSES: Json = {"type": "script", "source": {"type": "inline", "code": SCRIPT}}
ATTACKS = (
    b"{" * 5_000,
    b"\xff\xfe\x00",
    json.dumps([{"n": 10, "x": "y" * 200}] * 40).encode(),
    json.dumps([{"n": 1, "x": "y" * 200}] * 40).encode(),
    json.dumps({"n": 10, "x": "y" * BOUND}).encode(),
    json.dumps([{"n": "1"}, {"n": {}}, 1, None, []] * 100).encode(),
)
"""No JSON, what a transform fails on, what waits for an output, what is larger than all the room."""


def config(gate: Gate) -> list[Json]:
    """Return a pipeline with small bounds whose output waits, and one as anybody has it."""
    kept = {"max_bytes": BOUND}
    out = {**gate.output("flooded"), "queue": kept}
    flooded = {"inputs": [{"type": "http", "durable": kept}], "outputs": [out]}
    usual = {"inputs": [{"type": "http", "durable": True}], "outputs": [filing("out")]}
    return [
        {"id": "flooded", "transforms": [PRESSES], "dead_letters": kept, **flooded},
        {"id": "usual", "transforms": [PRESSES], "dead_letters": True, **usual},
    ]


@contextmanager
def flooding(server: Server, statuses: Counter[int]) -> Iterator[None]:
    """Have clients post all of it for as long as the block lasts; count what they are answered."""
    stopping = threading.Event()

    def flood() -> None:
        client, path = Client(server.port), messages_of("flooded")
        while not stopping.is_set():
            for body in ATTACKS:
                with suppress(OSError, HTTPException):
                    statuses[client.request("POST", path, body).status] += 1
        client.close()

    threads = [threading.Thread(target=flood, daemon=True) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join(PATIENCE)


class Kept(NamedTuple):
    """What a store has of one pipeline: bytes by part, bytes of letters, and the numbers in these."""

    parts: dict[str, int]
    letters: int
    numbers: list[int]


def kept_of(folder: Path, pipeline: str) -> Kept:
    """Look into the store of a server that has ended."""
    with closing(sqlite3.connect(folder / "store.db")) as database:

        def rows(query: str) -> list[tuple[object, ...]]:
            return database.execute(query, (pipeline,)).fetchall()

        parts = rows(
            "SELECT kind, sum(length(body)) FROM entries JOIN queues ON queue = id"
            " WHERE pipeline = ? GROUP BY kind"
        )
        [[letters]] = rows("SELECT coalesce(sum(size), 0) FROM letters WHERE pipeline = ?")
        bodies = rows("SELECT body FROM letters JOIN bodies USING (id) WHERE pipeline = ?")
    messages = (each for [body] in bodies for each in json.loads(body[4:]))
    return Kept(dict(parts), letters, [each["n"] for each in messages if isinstance(each, dict)])


def dropped_letters(server: Server) -> int:
    """Return how many dead letters have gone to make room."""
    return figure_of(server, "headrace_dead_letters_dropped_total")


@promise("delivery.letters.full")
def test_a_flood_fills_the_bounds_of_its_own_pipeline_and_nothing_else(
    tmp_path: Path, gate: Gate, figure: Figure
) -> None:
    lives, statuses = Lives(tmp_path, config(gate), sync="process"), Counter[int]()
    store = tmp_path / "data" / "store" / "0"
    with lives.life() as server:
        client = server.client()
        answers = Counter(client.post("usual", {"n": each}).status for each in BEFORE)
        with flooding(server, statuses):
            wait_until(lambda: dropped_letters(server) > 0, "letters that make room")
            wait_until(lambda: statuses[503] > 0, "posts that find the store full")
            answers.update(client.post("usual", {"n": each}).status for each in MEANWHILE)
            most = (store / "store.db").stat().st_size
        lives.wait_until_written([each for each in NUMBERS if each % 10])
        wait_until(
            lambda: not figure_of(server, "headrace_stored_entries", pipeline="usual"),
            "what is kept of the other to be let go of",
        )
        lost = figure_of(server, "headrace_messages_lost_total", pipeline="usual")
        dropped = figure_of(server, "headrace_messages_lost_total", reason="dropped")
        kill(server)
    flooded, usual = (kept_of(store, each) for each in ("flooded", "usual"))

    figure("answered", dict(statuses))
    figure("kept of the flooded", f"{flooded.parts}, {flooded.letters} of letters")
    figure("lost of its letters", dropped)
    figure("on the disk", most)
    assert answers == {202: len(NUMBERS)}
    assert sorted(lives.written()) == [each for each in NUMBERS if each % 10]
    assert sorted(usual.numbers) == [each for each in NUMBERS if not each % 10]
    assert (usual.parts, lost) == ({}, 0)
    assert statuses.keys() == {202, 400, 413, 503}
    assert all(size <= BOUND for size in flooded.parts.values())
    assert 0 < flooded.letters <= BOUND
    assert most < MOST_ON_DISK
