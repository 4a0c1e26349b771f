"""A target is away for longer than its queue has room: the oldest is dropped, and each is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.compiler.delivery import BATCHES_UNDER_WAY
from tests.promises import promise
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import RATE, come_back, connections, figure_of, late, leave
from tests.whole.bridging.steadily import Steadily
from tests.whole.bridging.targets import TOGETHER, BrokerTarget
from tests.whole.brokers.kinds.every import REDIS
from tests.whole.durable.customers import PIPELINE, wait_until
from tests.whole.durable.lives import Lives
from tests.whole.figures import Figure
from tests.whole.linking import filing

pytestmark = pytest.mark.long

QUEUE = {"max_bytes": 10_000, "when_full": "drop_oldest"}
FAST = 20 * RATE
"""Messages a second."""
MOST_AHEAD = BATCHES_UNDER_WAY * TOGETHER
"""Messages that the output has, and that are not dropped therefore."""
DROPPED = 1_000
"""Messages that are dropped until it comes back, at least."""


@promise("delivery.queue.full")
def test_the_newest_are_there_and_each_that_is_missing_is_counted(
    tmp_path: Path, figure: Figure
) -> None:
    with Aside() as aside, REDIS.lasting(tmp_path / "redis") as server_of_it:
        target = BrokerTarget(aside, REDIS, server_of_it)
        outputs = [filing("out"), target.output(queue=QUEUE)]
        config = [{"id": PIPELINE, "inputs": [{"type": "http"}], "outputs": outputs}]
        lives = Lives(tmp_path / "headrace", config, connections=connections([target]))
        posts = Steadily(FAST)
        with lives.life() as server:

            def dropped() -> int:
                lost = "headrace_messages_lost_total"
                return figure_of(server, lost, pipeline=PIPELINE, reason="dropped")

            with posts.posting(server):
                posts.wait_for_more(RATE)
            target.arrived().wait_for([*posts.confirmed])  # so none is on its way when it goes
            before = len(posts.confirmed)
            leave([target])
            with posts.posting(server):
                wait_until(lambda: dropped() >= DROPPED, f"{DROPPED} that are dropped")
            posted, refused = [*posts.confirmed], posts.refused
            lives.wait_until_written(posted)
            come_back(server, [target])
            with posts.posting(server):  # what comes behind a drop is written as ever
                posts.wait_for_more(RATE)
            arrived = target.arrived()
            arrived.wait_for(posts.confirmed[len(posted) :])
            missing = arrived.missing(posts.confirmed)
            counted = dropped()
            lost = figure_of(server, "headrace_messages_lost_total", pipeline=PIPELINE)
            assert server.stop() == 0

    figure("posted while it was away", len(posted) - before)
    figure("dropped", counted)
    figure("twice", arrived.duplicates)
    assert refused == []
    assert lives.written() == posts.confirmed
    assert counted == lost == len(missing)
    assert missing == [*range(missing[0], missing[-1] + 1)]  # the oldest that it did not have yet
    assert before < missing[0] <= before + MOST_AHEAD
    assert missing[-1] < posted[-1]
    assert (late(arrived), arrived.duplicates) == (0, 0)
