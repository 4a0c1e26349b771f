"""Two servers in one Kafka group: when one is killed, the other takes its partitions over."""

from __future__ import annotations

import signal
from pathlib import Path
from time import monotonic

import pytest

from tests.promises import promise
from tests.server import serving
from tests.services.kafka import Kafka
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import KAFKA
from tests.whole.brokers.kinds.kind import Json
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.linking import filing, kept, linked

pytestmark = pytest.mark.long

PARTITIONS = 4
SESSION_SECONDS = 10.0
"""How long the group waits for a member that is silent, as the input has it."""
PATIENT = SESSION_SECONDS + 30.0


def config() -> list[Json]:
    reading = KAFKA.input("kafka", "shared", max_batch=10)
    return [{"id": "p", "inputs": [reading], "outputs": [filing("out"), {"type": "stdout"}]}]


@promise("delivery.case.member_dies")
def test_the_other_member_of_the_group_takes_over(
    tmp_path: Path, kafka: Kafka, figure: Figure
) -> None:
    kafka.create_topic("shared", PARTITIONS)
    folders = [tmp_path / name for name in ("one", "other")]
    connections = {"kafka": KAFKA.connection(kafka)}
    with (
        Aside() as aside,
        serving(folders[0], config(), *linked(folders[0], connections)) as one,
        serving(folders[1], config(), *linked(folders[1], connections)) as other,
    ):
        load = Load(aside, KAFKA, kafka, "shared", rate=200)
        printed = [Printed(server.out)["p"] for server in (one, other)]
        for each in printed:  # each has partitions of its own
            each.wait_until_more(100)

        one.signal(signal.SIGKILL)
        killed, first = monotonic(), load.offered
        load.wait_for(first + 200)
        promised = load.stop()
        after = {number for number in promised if number >= first}
        printed[1].wait_for(after, PATIENT)
        took = max(printed[1].first[number] for number in after) - killed
        printed[1].wait_for(promised - set(kept(folders[0] / "data" / "out")), PATIENT)

    written = [number for folder in folders for number in kept(folder / "data" / "out")]
    doubled = len(written) - len(set(written))
    figure("taken over after", took)
    figure("duplicates", f"{doubled} of {len(promised)} messages")
    assert promised <= set(written)
    assert took < PATIENT
