"""Everything that is written to is away for a minute under load: nothing is lost, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import serving
from tests.services.kafka import Kafka
from tests.whole.aside import Aside
from tests.whole.bridging.bridges import (
    RATE,
    come_back,
    errors,
    figure_of,
    late,
    leave,
    options,
    pause,
    pipeline,
    wait_for_all,
    wait_until_written,
)
from tests.whole.bridging.targets import targets
from tests.whole.brokers.kinds.every import KAFKA
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.linking import delete, statuses

pytestmark = pytest.mark.long

AWAY = 60.0
"""Seconds that all of them are away."""
TOPIC = "bridged"


@promise("delivery.retry.waits")
def test_a_minute_without_any_of_them_loses_nothing(
    tmp_path: Path, kafka: Kafka, figure: Figure
) -> None:
    KAFKA.create(kafka, TOPIC)
    folder = tmp_path / "headrace"
    with Aside() as aside, targets(aside, tmp_path) as all_of_them:
        given = options(folder, kafka, all_of_them)
        config = [pipeline(each, TOPIC) for each in all_of_them]
        with serving(folder, config, *given) as server:
            load = Load(aside, KAFKA, kafka, TOPIC, rate=RATE)
            for each in all_of_them:
                wait_until_written(server, each.name, RATE)

            leave(all_of_them)
            pause(AWAY)
            waiting = {
                each.name: figure_of(server, "headrace_output_waiting", pipeline=each.name)
                for each in all_of_them
            }
            come_back(server, all_of_them)

            load.wait_for(len(load.promised) + 5 * RATE)
            promised = load.stop()
            for each in all_of_them:
                wait_until_written(server, each.name, len(promised))
            assert set(statuses(server).values()) == {"running"}
            for each in all_of_them:
                lost = figure_of(server, "headrace_messages_lost_total", pipeline=each.name)
                tries = figure_of(server, "headrace_retries_total", pipeline=each.name)
                said = errors(server, each.name)
                assert delete(server, each.name).status == 204  # the last part of `s3` ends with it
                arrived = wait_for_all(each, promised)
                order = f"{late(arrived)} late" if each.is_ordered else "no order"
                count = f"{len(promised)}, {len(arrived.missing(promised))} lost"
                tried = f"{tries} tries, {len(said)} errors"
                figure(each.name, f"{count}, {arrived.duplicates} twice, {order}; {tried}")
                assert lost == 0
                assert len(said) <= 1
                assert arrived.duplicates <= each.most_twice
                assert not (each.is_ordered and late(arrived))
                assert waiting[each.name] == 1
