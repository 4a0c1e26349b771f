"""The brokers config on real servers: stopped in the middle, and every number calculated anew."""

from __future__ import annotations

import json
import math
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from redis import Redis as Client

from headrace.authoring.configfiles import catalogue
from headrace.web.files.reading import Files, load
from specs.brokers.sensors import BROKEN, Reading, readings, send
from tests.clients import PATIENCE, Gone
from tests.forked import serving
from tests.promises import promise
from tests.services.kafka import Kafka
from tests.services.mosquitto import Mosquitto
from tests.services.redis import Redis

HERE = Path(__file__).parent
PASSWORD, OTHER_PASSWORD = "open-sesame", "sesame-open"
TOPIC, PARTITIONS = "plant.readings", 3

Message = dict[str, Any]


@dataclass(frozen=True)
class Plant:
    """The folder with the config, and the servers that it names."""

    folder: Path
    mosquitto: Mosquitto
    kafka: Kafka
    redis: Redis

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a copy of the config and its connections, whose secrets resolve."""
    for config in HERE.glob("*.yaml"):
        shutil.copy(config, tmp_path)
    monkeypatch.setenv("MQTT_PASSWORD", PASSWORD)
    monkeypatch.setenv("KAFKA", "127.0.0.1:9092")
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1")
    return tmp_path


@pytest.fixture
def plant(folder: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    """Give the servers, two of which ask for passwords, and have the connections lead to them."""
    with (
        Mosquitto(folder / "mosquitto", user="plant", password=PASSWORD) as mosquitto,
        Redis(folder / "redis", password=OTHER_PASSWORD) as redis,
    ):
        connections = folder / "config.connections.yaml"
        at_home = connections.read_text().replace("port: 1883", f"port: {mosquitto.port}")
        connections.write_text(at_home)
        monkeypatch.setenv("KAFKA", kafka.bootstrap)
        monkeypatch.setenv("REDIS_URL", redis.url)
        yield Plant(folder, mosquitto, kafka, redis)


class Screen:
    """What comes over both channels, by channel."""

    def __init__(self, redis: Redis) -> None:
        self.rows: dict[str, list[Message]] = defaultdict(list)
        self._subscribed = Client.from_url(redis.url).pubsub(ignore_subscribe_messages=True)
        self._subscribed.subscribe("plant.means", "plant.alarms")

    def wait_for(self, count: int) -> None:
        """Take what comes until the means are of so many readings."""
        until = monotonic() + PATIENCE
        while sum(row["readings"] for row in self.rows["plant.means"]) < count:
            if monotonic() > until:
                raise Gone(f"means of {count} readings did not come: {self.rows['plant.means']}")
            self.look(1)

    def look(self, seconds: float) -> None:
        """Take one message, if one comes in that time."""
        if (came := self._subscribed.get_message(timeout=seconds)) is not None:
            self.rows[came["channel"].decode()].append(json.loads(came["data"]))

    def close(self) -> None:
        self._subscribed.close()


@pytest.fixture
def screen(plant: Plant) -> Iterator[Screen]:
    screen = Screen(plant.redis)
    yield screen
    screen.close()


@dataclass(frozen=True)
class Sums:
    """What is known of all readings of one sensor."""

    readings: int
    mean: Any
    highest: float


def expected(all_readings: Sequence[Reading]) -> dict[str, Sums]:
    """Calculate from the readings alone; the last bit of a mean does not count."""
    measured = defaultdict(list)
    for each in all_readings:
        if each.tenths != BROKEN:
            measured[each.sensor].append(each.tenths / 10)
    return {
        sensor: Sums(len(it), pytest.approx(math.fsum(it) / len(it), rel=1e-12), max(it))
        for sensor, it in measured.items()
    }


def put_together(rows: Sequence[Message]) -> dict[str, Sums]:
    """Return what windows that were cut somewhere say of each sensor."""
    parts = defaultdict(list)
    for row in rows:
        parts[row["sensor"]].append(row)
    return {sensor: _whole(rows) for sensor, rows in parts.items()}


def _whole(rows: Sequence[Message]) -> Sums:
    count = sum(row["readings"] for row in rows)
    mean = math.fsum(row["mean"] * row["readings"] for row in rows) / count
    return Sums(count, mean, max(row["highest"] for row in rows))


@dataclass(frozen=True)
class Log:
    """What is in the topic, partition by partition in order, and how far the group has come."""

    records: list[ConsumerRecord]
    ends: list[int]
    committed: list[int | None]


async def log_of(kafka: Kafka) -> Log:
    """Read the whole topic, without being a member of the group."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=kafka.bootstrap, group_id="means", enable_auto_commit=False
    )
    async with consumer:
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        await consumer.seek_to_beginning()
        records: list[ConsumerRecord] = []
        while len(records) < sum(ends.values()):
            for some in (await consumer.getmany(timeout_ms=1000)).values():
                records += some
        committed = [await consumer.committed(each) for each in partitions]
    return Log(records, [ends[each] for each in partitions], committed)


@promise("delivery.case.stopped")
async def test_every_reading_counts_once_though_the_server_is_stopped_in_the_middle(
    plant: Plant, screen: Screen
) -> None:
    plant.kafka.create_topic(TOPIC, PARTITIONS)
    plant.config.write_text(plant.config.read_text().replace("seconds: 5", "seconds: 1"))
    published = [*readings(250)]
    good = [each for each in published if each.tenths != BROKEN]

    with serving(plant.folder, plant.config) as server:
        send(published[:500], plant.mosquitto.address, PASSWORD)
        assert server.stop() == 0
    send(published[500:], plant.mosquitto.address, PASSWORD)  # the broker keeps them meanwhile
    with serving(plant.folder, plant.config) as server:
        screen.wait_for(len(good))
        assert server.stop() == 0
    screen.look(0.1)

    means, alarms = screen.rows["plant.means"], screen.rows["plant.alarms"]
    assert put_together(means) == expected(published)
    hot = [row for row in means if row["highest"] > 80]
    assert alarms == [{key: row[key] for key in ("sensor", "highest", "until")} for row in hot]
    assert {row["sensor"] for row in alarms} == {"oven-1"}
    log = await log_of(plant.kafka)
    assert told(log.records) == {
        sensor: [(each.number, each.tenths / 10) for each in good if each.sensor == sensor]
        for sensor in expected(published)
    }
    assert {(record.key, *record.headers) for record in log.records} == {
        (each.sensor.encode(), ("topic", each.topic.encode())) for each in published
    }
    assert log.committed == log.ends


def told(records: Sequence[ConsumerRecord]) -> dict[str, list[tuple[int, float]]]:
    """Return number and value of the readings of each sensor, in the order in which they are kept."""
    found = defaultdict(list)
    for record in records:
        reading = json.loads(record.value)
        found[reading["sensor"]].append((reading["number"], reading["celsius"]))
    return found


def test_nothing_is_wrong_with_the_config(folder: Path) -> None:
    assert load(Files(folder / "config.yaml"), catalogue()).diagnostics == []
