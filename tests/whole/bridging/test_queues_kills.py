"""Kills and a stop while all targets are away: what was answered 202 is written in the end."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import Server
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import (
    PATIENT,
    RATE,
    come_back,
    connections,
    figure_of,
    late,
    leave,
    wait_for_all,
)
from tests.whole.bridging.steadily import Steadily
from tests.whole.bridging.targets import Target, targets
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import Lives, kill, pipeline
from tests.whole.figures import Figure
from tests.whole.linking import filing

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("KILLS", "10"))
"""How often each server is killed."""
USUAL = 10
FEW = KILLS if KILLS > USUAL else -(-KILLS // 3)
"""How often this one is: less where no more is asked for than usual, as each life takes several seconds."""
EACH = 3 * RATE
"""Messages that are posted in each life, at least."""


def has_from(target: Target, number: int) -> bool:
    """Return whether something from this number on has arrived."""
    return any(each >= number for each in target.arrived().counts)


def is_empty(server: Server) -> bool:
    """Return whether nothing is stored."""
    return not figure_of(server, "headrace_stored_entries", pipeline=PIPELINE)


@promise(
    "delivery.queue.waits", "delivery.queue.starts", "delivery.queue.stop", "http.durable.kill"
)
def test_kills_and_a_stop_while_all_are_away_lose_nothing(tmp_path: Path, figure: Figure) -> None:
    """What comes twice is what the input brings twice, which the files show, and what was on the wire."""
    with Aside() as aside, targets(aside, tmp_path) as every:
        outputs = [filing("out"), *(each.output(queue={}) for each in every)]
        config = [pipeline(outputs=outputs)]
        lives = Lives(tmp_path / "headrace", config, connections=connections(every))
        posts = Steadily()
        with lives.life() as server, posts.posting(server):
            posts.wait_for_more(EACH)
            for each in every:
                wait_for_all(each, posts.confirmed[:EACH])
            leave(every)
            missed = posts.offered
            posts.wait_for_more(EACH)
            kill(server)
        for _ in range(FEW - 1):
            with lives.life() as server, posts.posting(server):
                posts.wait_for_more(EACH)
                kill(server)
        killed = posts.offered
        with lives.life() as server:
            with posts.posting(server):
                posts.wait_for_more(EACH)
            lives.wait_until_written([*posts.confirmed])
            assert server.stop() == 0
        with lives.life() as server:
            with posts.posting(server):
                posts.wait_for_more(EACH)
            come_back(server, every)
            for each in every:  # some are in the midst of what has waited then
                wait_until(partial(has_from, each, missed), f"what {each.name} has missed", PATIENT)
            assert server.stop() == 0
        with lives.life() as server:
            with posts.posting(server):
                posts.wait_for_more(EACH)
            for each in every:
                wait_for_all(each, posts.confirmed)
            wait_until(partial(is_empty, server), "queues that are empty")
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=PIPELINE)
            assert server.stop() == 0

        assert posts.refused == []
        assert lost == 0
        filed = Counter(lives.written())
        assert filed.keys() >= {*posts.confirmed}
        figure("posted", len(posts.confirmed))
        figure("files", f"{filed.total() - len(filed)} twice")
        assert [number for number in filed if number >= killed and filed[number] > 1] == []
        for each in every:
            arrived = each.arrived()
            again = arrived.counts - filed
            figure(each.name, f"{again.total()} more often than in the files, {late(arrived)} late")
            assert again.total() <= 2 * each.most_twice  # at the outage, and at the last stop
            assert late(arrived) == 0
