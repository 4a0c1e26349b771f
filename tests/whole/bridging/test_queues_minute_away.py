"""All targets of a pipeline are away for a minute, and nobody waits: what they miss is queued."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.promises import promise
from tests.stopwatch import Stopwatch
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import (
    RATE,
    come_back,
    connections,
    errors,
    figure_of,
    late,
    leave,
    pause,
    wait_for_all,
)
from tests.whole.bridging.steadily import Steadily
from tests.whole.bridging.targets import targets
from tests.whole.durable.customers import PIPELINE
from tests.whole.durable.lives import Lives
from tests.whole.figures import Figure
from tests.whole.linking import filing, statuses

pytestmark = pytest.mark.long

AWAY = 60
"""Seconds that all of them are away."""
LOOKS = 6
"""How often it is looked meanwhile whether everything is in the files."""
ROOM = 64
"""Posts that may wait to be taken in: a pipeline that waits is full of them in a quarter of the time."""


@promise("delivery.queue.waits")
def test_nobody_waits_for_who_is_away_a_minute_and_nothing_is_lost(
    tmp_path: Path, figure: Figure
) -> None:
    with Aside() as aside, targets(aside, tmp_path) as all_of_them:
        outputs = [filing("out"), *(each.output(queue={}) for each in all_of_them)]
        reading = {"type": "http", "capacity": ROOM}
        config = [{"id": PIPELINE, "inputs": [reading], "outputs": outputs}]
        lives = Lives(tmp_path / "headrace", config, connections=connections(all_of_them))
        posts = Steadily()
        with lives.life() as server:
            with posts.posting(server):
                posts.wait_for_more(2 * RATE)
                leave(all_of_them)
                for _ in range(LOOKS):
                    pause(AWAY / LOOKS)
                    lives.wait_until_written([*posts.confirmed])
                kept = figure_of(server, "headrace_stored_bytes", pipeline=PIPELINE)
                watch = Stopwatch()
                come_back(server, all_of_them)
                posts.wait_for_more(2 * RATE)
            posted = posts.confirmed
            for each in all_of_them:
                if each.name != "s3":  # its last part ends with the server
                    wait_for_all(each, posted)
            figure("caught up within", f"{watch.seconds:.1f} s")
            figure("bytes that were stored", kept)
            assert set(statuses(server).values()) == {"running"}
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=PIPELINE)
            said = errors(server, PIPELINE)
            assert server.stop() == 0

        assert posts.refused == []
        assert lives.written() == posted
        assert kept > 0
        assert lost == 0
        assert len(said) <= len(all_of_them)
        for each in all_of_them:
            arrived = wait_for_all(each, posted)
            order = f"{late(arrived)} late" if each.is_ordered else "no order"
            figure(each.name, f"{len(posted)}, {arrived.duplicates} twice, {order}")
            assert arrived.duplicates <= each.most_twice
            assert not (each.is_ordered and late(arrived))
