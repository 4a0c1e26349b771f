"""What is played with a kill is what the installed command does that is killed, and starts again.

Pipelines with a durable input run side by side on one server. Batches are cut by their number alone, so
that it makes no difference how long anything takes.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from secrets import randbits
from subprocess import TimeoutExpired
from typing import Any

import pytest

from headrace.authoring.playing.played import PlayedLetter
from headrace.authoring.playing.playedletters import letters_in
from headrace.authoring.playing.player import play
from headrace.authoring.playing.scenario import Arriving, GivenArrival, ProcessKill, Scenario
from headrace.compiler.clock import Clock
from headrace.compiler.jsontext import encode
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.openstore import Store
from tests.authoring.playing.playing import program
from tests.clients import Gone
from tests.server import Server, serving, settled

pytestmark = pytest.mark.long

ROUNDS = 3
PIPELINES = 30
SETTLED_SECONDS = 2.0
"""How long the server gets until what was posted is through."""
TRIES = 3
SEED: int | None = None
"""What pipelines are drawn with; None: another one each time, which is printed, to be put here."""
HIGH = {"type": "filter", "Numeric": {"field": "n", "operator": "greater_than", "value": 3}}
CAST = {"type": "map", "mappings": [{"type": "cast", "from": "t", "as": "t", "to": "integer"}]}
Posts = list[tuple[str, list[Any]]]


@dataclass
class CameOfKill:
    """What came of pipelines that were killed once."""

    batches: dict[str, list[str]] = field(default_factory=dict)
    letters: dict[str, list[PlayedLetter]] = field(default_factory=dict)


def drawn(random: Random, id: str) -> dict[str, Any]:
    """Return a pipeline: some steps, of which a buffer cuts by number, or holds until the end."""
    held = random.choice([{"size": random.randint(2, 4)}, {"seconds": 1000, "max_messages": 7}])
    others = random.sample([HIGH, CAST], random.randint(0, 2))
    chain = random.sample([{"type": "buffer", **held}, *others], 1 + len(others))
    durable = {"type": "http", "durable": True}
    return {
        "id": id,
        "dead_letters": True,
        "inputs": [durable],
        "transforms": chain,
        "outputs": [{"type": "stdout"}],
    }


def posts(random: Random, ids: Sequence[str]) -> Posts:
    """Return what is posted in one life."""
    return [
        (id, [message(random) for _ in range(random.randint(1, 3))])
        for id in ids
        for _ in range(random.randint(0, 3))
    ]


def message(random: Random) -> Any:
    return {"n": random.randint(0, 9), "t": random.choice(["1", "2", "no"])}


def simulated(config: list[Any], lives: Sequence[Posts]) -> CameOfKill:
    """Return what comes of it when it is played."""
    given = [
        GivenArrival(10.0 * life + 0.01 * at, (id, 0), Arriving(batch))
        for life, some in enumerate(lives)
        for at, (id, batch) in enumerate(some)
    ]
    kill = ProcessKill(8, 9)
    played = play(program(json.dumps(config)), Scenario(given, until=20, kills=[kill]))
    assert not played.unanswered
    came = CameOfKill()
    for (id, _), line in played.written.items():
        came.batches[id] = [encode(batch).decode() for _, batch in line]
    for each in played.letters:
        came.letters.setdefault(each.place.partition(".")[0], []).append(each)
    return came


def real(folder: Path, config: list[Any], lives: Sequence[Posts]) -> CameOfKill:
    """Return what comes of it on a server that is killed after one life, and ended after the next."""
    folder.mkdir()
    options = ["--data-dir", "data", *settled(folder, store={"keep_free_bytes": 2**20})]
    came = CameOfKill({each["id"]: [] for each in config})
    for is_last, some in zip((False, True), lives, strict=True):
        with serving(folder, config, *options) as server:
            client = server.client()
            for id, batch in some:
                assert client.post(id, batch).status == 202
            settle(server)
            if is_last:
                assert server.stop() == 0
            else:
                server.signal(signal.SIGKILL)
                server.ended()
            for line in map(json.loads, server.out.all()):
                text = json.dumps(line["batch"], separators=(",", ":"))
                came.batches[line["pipeline"]].append(text)
    for each in asyncio.run(stored(folder / "data" / "store" / "0")):
        came.letters.setdefault(each.place.partition(".")[0], []).append(each)
    return came


async def stored(folder: Path) -> list[PlayedLetter]:
    """Return the dead letters in a store that nobody has open."""
    store = await Store.open(Clock(asyncio.get_running_loop()), folder, keep_free_bytes=0)
    found = await letters_in(Records(store))
    await store.close()
    return found


def settle(server: Server) -> None:
    """Let real time pass, while the server goes on."""
    with suppress(TimeoutExpired):
        server.process.wait(SETTLED_SECONDS)
        raise Gone("the server has ended")


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_kill_that_is_played_comes_to_what_a_kill_does(tmp_path: Path, number: int) -> None:
    seed = randbits(32) if SEED is None else SEED
    print(f"the seed of these pipelines is {seed}")
    random = Random(seed)
    ids = [f"p{index}" for index in range(PIPELINES)]
    config = [drawn(random, id) for id in ids]
    lives = [posts(random, ids) for _ in range(2)]
    meant = simulated(config, lives)
    assert sum(map(len, meant.batches.values())) > PIPELINES
    assert meant.letters

    for tried in range(TRIES):  # on a machine that is busy it may not be through when it is killed
        came = real(tmp_path / str(tried), config, lives)
        if came == meant:
            break

    assert came.batches == meant.batches
    assert came.letters == meant.letters
