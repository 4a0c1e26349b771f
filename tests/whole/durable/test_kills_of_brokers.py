"""Killed again and again while messages arrive: whatever was stored is in the files, in order."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.promises import promise
from tests.whole.durable import acknowledgesearly
from tests.whole.durable.customers import PIPELINE, pause
from tests.whole.durable.feeding import (
    EVERY_FEEDING,
    Feeding,
    FromMqtt,
    FromNats,
    FromPlant,
    FromRedis,
)
from tests.whole.durable.lives import Lives, again, are_in_order, errors, kill
from tests.whole.durable.ondisk import stored_messages
from tests.whole.figures import Figure
from tests.whole.linking import Json, filing
from tests.whole.stores.told import taken_in, wait_until_taken

KILLS = int(os.environ.get("KILLS", "10"))
"""How often each server is killed."""
USUAL = 10
FEW = KILLS if KILLS > USUAL else -(-KILLS // 3)
"""The same, of kinds that acknowledge nothing: they are read in the same way, so less will do where no more
is asked for than usual."""
MOST_PAUSE = 0.1
"""Seconds until it is killed, at most, when enough has arrived."""


class FedLives:
    """The lives of one pipeline that something feeds, and what has been stored in them."""

    def __init__(self, folder: Path, feeding: Feeding, script: Path | None = None) -> None:
        self.feeding = feeding
        connections = feeding.connections
        self.lives = Lives(folder, self.config(), connections=connections, script=script)
        self.lefts = [0]
        """How many messages were in the store after each kill."""
        self.unwritten = 0
        """Messages that were in the store then and not in the files, of all kills."""
        self.stored: set[Any] = set()
        """All that has ever been found in the store or in the files."""

    def config(self, **holding: Any) -> list[Json]:
        """Return what runs: a buffer holds messages on their way to the files."""
        copies = [{"type": "copy", "from": self.feeding.number, "as": "n"}]
        hold = {"type": "buffer", "size": self.feeding.size, **holding}
        return [
            {
                "id": PIPELINE,
                "inputs": [{**self.feeding.input, "durable": True}],
                "transforms": [{"type": "map", "mappings": copies}, hold],
                "outputs": [filing("out")],
            }
        ]

    def live_and_die(self) -> int:
        """Have it read for a while and kill it; return how many messages it had stored, at least."""
        with self.lives.life() as server:
            self.feeding.begin()
            # What was held at the last kill has left then: what is held at two comes one at a time.
            wait_until_taken(server, PIPELINE, self.lefts[-1] + self.feeding.least)
            pause(random.uniform(0, MOST_PAUSE))
            new = taken_in(server, PIPELINE) - self.lefts[-1]
            kill(server)
            assert errors(server) == []
        return new

    def look(self) -> int:
        """Look what is stored; return how many messages of that are new."""
        before = len(self.stored)
        messages = stored_messages(self.lives.folder / "data", PIPELINE)
        self.lefts.append(len(messages))
        numbers, written = (
            {message[self.feeding.number] for message in messages},
            self.lives.written(),
        )
        self.unwritten += len(numbers.difference(written))
        self.stored.update(numbers, written)
        return len(self.stored) - before

    def live_to_the_end(self) -> set[Any]:
        """Have all written that is stored, and end in order; return what was promised."""
        self.lives.config = self.config(seconds=1)
        with self.lives.life() as server:
            promised = {*self.feeding.stop()}
            kept = promised if self.feeding.is_kept_outside else set()
            self.lives.wait_until_written(self.stored | kept)
            assert server.stop() == 0
        return promised


def survive(fed_lives: FedLives, kills: int) -> set[Any]:
    """Kill it so often under load; then have it write all that it holds. Return what was promised."""
    for _ in range(kills):
        new = fed_lives.live_and_die()
        assert fed_lives.look() >= new - fed_lives.feeding.comes_again
    return fed_lives.live_to_the_end()


def check(fed_lives: FedLives, promised: set[Any], figure: Figure) -> None:
    """Compare what is in the files with what was stored, and with what was promised."""
    parts, feeding = fed_lives.lives.parts(), fed_lives.feeding
    written = [number for part in parts for number in part]
    doubled = again(parts)
    figure("stored at the kills", len(fed_lives.stored))
    figure("not written at the kills", fed_lives.unwritten)
    figure("missing", len(fed_lives.stored.difference(written)))
    figure("published, and not written", len(promised.difference(written)))
    figure("twice", f"{sum(doubled)}, at most {max(doubled)} a kill")
    assert fed_lives.stored.difference(written) == set()
    # Nothing has let go of those, or only of some that were stored together with others.
    at_most = [left + feeding.comes_again for left in fed_lives.lefts[1:]]
    assert all(count <= most for count, most in zip(doubled, at_most, strict=True))
    assert are_in_order(written, {*written})
    if feeding.is_kept_outside:
        assert promised.difference(written) == set()


@pytest.mark.parametrize("fed", EVERY_FEEDING, ids=lambda fed: fed.name)
@promise("dummy.durable.kill", "dummy.durable.twice")
def test_whatever_was_stored_is_in_the_files_though_it_was_killed(
    tmp_path: Path, fed: type[Feeding], figure: Figure
) -> None:
    with fed(tmp_path / "outside") as feeding:
        fed_lives = FedLives(tmp_path / "headrace", feeding)

        promised = survive(fed_lives, kills=1)

    check(fed_lives, promised, figure)


@promise("nats.durable.kill", "redis.durable.kill", "mqtt.durable.kill", "opcua.durable.kill")
@promise("nats.durable.twice", "redis.durable.twice", "mqtt.durable.twice", "opcua.durable.twice")
@pytest.mark.long
@pytest.mark.parametrize(
    ("fed", "kills"),
    [(FromNats, FEW), (FromRedis, FEW), (FromMqtt, KILLS), (FromPlant, FEW)],
    ids=["nats", "redis", "mqtt", "opcua"],
)
def test_whatever_was_stored_is_in_the_files_however_often_it_is_killed(
    tmp_path: Path, fed: type[Feeding], kills: int, figure: Figure
) -> None:
    with fed(tmp_path / "outside") as feeding:
        fed_lives = FedLives(tmp_path / "headrace", feeding)

        promised = survive(fed_lives, kills)

    check(fed_lives, promised, figure)
    assert fed_lives.unwritten > 0


def test_an_acknowledgement_before_the_commit_would_be_found(tmp_path: Path) -> None:
    with FromMqtt(tmp_path / "outside") as feeding:
        fed_lives = FedLives(tmp_path / "headrace", feeding, Path(acknowledgesearly.__file__))

        fed_lives.live_and_die()
        fed_lives.look()
        promised = {*feeding.stop()}

    assert promised.difference(fed_lives.stored)
