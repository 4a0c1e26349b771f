"""Killed again and again under load, with messages held on the way: every one is in the files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.promises import promise
from tests.server import Server, serving
from tests.services.server import Service
from tests.whole.arrived import Printed
from tests.whole.aside import Aside
from tests.whole.brokers.kinds.every import KAFKA, MQTT
from tests.whole.brokers.kinds.kind import Json, Kind
from tests.whole.brokers.peers import Load
from tests.whole.figures import Figure
from tests.whole.linking import filing, kept, linked

pytestmark = pytest.mark.long

LINES = 5
"""Servers beside each other, each with a topic of its own. After a kill a Kafka group waits until it gives
its dead member up, so that one after the other takes minutes."""
KILLS = int(os.environ.get("KILLS", "10"))
LIVES = -(-KILLS // LINES)
"""How often each of them is killed: all together at least as often as is asked."""
RATE = 80
"""Messages a second of each: the buffer holds them for longer than Kafka's commits are apart."""
PATIENT = 60.0

HOLD = {"type": "buffer", "size": 100}


class Line:
    """One topic, one directory, and one server after the other that reads the one into the other."""

    def __init__(self, kind: Kind, broker: Service, folder: Path, number: int) -> None:
        self._folder = folder / f"line {number}"
        self.topic = f"topic-{number}"
        self._options = linked(self._folder, {"broker": kind.connection(broker)})
        self._input = kind.input("broker", self.topic, max_batch=10)
        kind.create(broker, self.topic)

    @property
    def files(self) -> list[int]:
        """All numbers that are on the disk."""
        return kept(self._folder / "data" / "out")

    def _serving(self, hold: Json) -> AbstractContextManager[Server]:
        pipeline = {
            "id": self.topic,  # the client id at an MQTT broker has it in it
            "inputs": [self._input],
            "transforms": [hold],
            "outputs": [filing("out"), {"type": "stdout"}],
        }
        return serving(self._folder, [pipeline], *self._options)

    def visit(self) -> None:
        """Read once, so that the broker keeps what is published from then on."""
        with self._serving(HOLD) as server:
            assert server.stop() == 0

    def live(self, load: Load, count: int) -> None:
        """Run until so many messages have left the buffer, and for a while more; then kill."""
        with self._serving(HOLD) as server:
            Printed(server.out)[self.topic].wait_until_more(count, PATIENT)
            load.wait_for(len(load.promised) + 2 * RATE)  # meanwhile offsets are committed
            server.signal(signal.SIGKILL)
            server.ended()

    def finish(self, promised: set[int]) -> None:
        """Run until everything has left the buffer."""
        with self._serving({**HOLD, "seconds": 1}) as server:
            printed = Printed(server.out)[self.topic]
            printed.wait_for(promised - set(self.files), PATIENT)


def small_window(folder: Path) -> Service:
    """Return a broker that lets a client hold 20 messages, fewer than the buffer waits for."""
    return MQTT.server(folder)


def large_window(folder: Path) -> Service:
    """Return a broker that lets a client hold more messages than the buffer does."""
    return MQTT.server(folder, extra=["max_inflight_messages 1000"])


@promise(
    "kafka.on_delivery.kill",
    "mqtt.on_delivery.kill",
    "delivery.ack.buffer",
    "delivery.mqtt.window",
    "delivery.case.killed",
)
@pytest.mark.parametrize(
    ("kind", "started"),
    [(KAFKA, KAFKA.server), (MQTT, small_window), (MQTT, large_window)],
    ids=["kafka", "mqtt", "mqtt with a large window"],
)
def test_whatever_was_published_is_in_the_files_however_often_it_is_killed(
    tmp_path: Path,
    kind: Kind,
    started: Callable[[Path], Service],
    figure: Figure,
) -> None:
    survive(tmp_path, kind, started, figure, LINES, LIVES)


def test_whatever_was_published_is_in_the_files_though_it_was_killed(
    tmp_path: Path, figure: Figure
) -> None:
    survive(tmp_path, MQTT, small_window, figure, count=2, lives=1)


def survive(
    tmp_path: Path,
    kind: Kind,
    started: Callable[[Path], Service],
    figure: Figure,
    count: int,
    lives: int,
) -> None:
    """Publish to so many servers beside each other, kill each so often, and look at their files."""
    with started(tmp_path / "broker") as broker, Aside() as aside:
        lines = [Line(kind, broker, tmp_path, number) for number in range(count)]
        with ThreadPoolExecutor(count) as beside:
            loads = [*beside.map(lambda line: begun(aside, kind, broker, line), lines)]
            for life in range(lives):
                [*beside.map(Line.live, lines, loads, [90 * life] * count)]
            promised = [load.stop() for load in loads]
            [*beside.map(Line.finish, lines, promised)]

    written = [line.files for line in lines]
    doubled = sum(len(numbers) - len(set(numbers)) for numbers in written)
    figure("kills", count * lives)
    figure("messages", sum(map(len, promised)))
    figure("duplicates", doubled)
    for numbers, wanted in zip(written, promised, strict=True):
        assert wanted <= set(numbers)


def begun(aside: Aside, kind: Kind, broker: Service, line: Line) -> Load:
    """Publish to somebody who has been there."""
    line.visit()
    return Load(aside, kind, broker, line.topic, rate=RATE)
