"""The server ends while everything that it writes to is away: what was read comes again."""

from __future__ import annotations

import signal
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

pytestmark = pytest.mark.long

UNTIL_END = UNTIL_BACK = 5.0
"""Seconds after they are away until it ends, and those after that until they are back."""


@promise("kafka.on_delivery.kill", "delivery.retry.waits", "delivery.retry.stop")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_who_ends_meanwhile_loses_nothing(
    tmp_path: Path, kafka: Kafka, figure: Figure, end: signal.Signals
) -> None:
    topic = f"bridged-{end.name}"
    KAFKA.create(kafka, topic)
    folder = tmp_path / "headrace"
    with Aside() as aside, targets(aside, tmp_path) as every:
        given = options(folder, kafka, every)
        # `s3` waits by itself: it has no such figure.
        all_of_them = [each for each in every if each.name != "s3"]
        config = [pipeline(each, topic) for each in all_of_them]
        load = Load(aside, KAFKA, kafka, topic, rate=RATE)
        with serving(folder, config, *given) as server:
            for each in all_of_them:
                wait_until_written(server, each.name, 2 * RATE)
            leave(all_of_them)
            pause(UNTIL_END)
            waiting = {
                each.name: figure_of(server, "headrace_output_waiting", pipeline=each.name)
                for each in all_of_them
            }
            figure("waiting", waiting)
            # Those of MQTT and Kafka have a patience of their own before that.
            assert all(waiting[name] for name in waiting if name not in ("to mqtt", "to kafka"))
            server.signal(end)
            server.ended()

        with serving(folder, config, *given) as server:
            pause(UNTIL_BACK)
            come_back(server, all_of_them)
            load.wait_for(len(load.promised) + 2 * RATE)
            promised = load.stop()
            for each in all_of_them:
                arrived = wait_for_all(each, promised)
                lost = figure_of(server, "headrace_messages_lost_total", pipeline=each.name)
                said = errors(server, each.name)
                count = f"{len(promised)}, {len(arrived.missing(promised))} lost"
                again = [number for number, times in arrived.counts.items() if times > 1]
                where = f"from {min(again)} to {max(again)}" if again else "nowhere"
                doubled = f"{arrived.duplicates} twice ({where}), {late(arrived)} late"
                figure(each.name, f"{count}, {doubled}; {len(said)} errors")
                assert lost == 0
                assert len(said) <= 1
                # What was written within the second before they went may not be committed yet.
                assert arrived.duplicates <= RATE + each.most_twice
                assert late(arrived) == 0
            assert server.stop() == 0
