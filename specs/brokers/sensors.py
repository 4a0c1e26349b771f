"""Readings of four sensors, and what publishes them: `python specs/brokers/sensors.py 127.0.0.1:1883`.

A reading is in tenths of a degree, as the controllers send them. Those of `oven-1` climb over 80 °C, and
the wire of `press-2` breaks now and then.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paho.mqtt import publish

SENSORS = {"press-1": 420, "press-2": 455, "mixer-1": 230, "oven-1": 760}
"""Tenths of a degree around which each goes up and down."""
BROKEN = 9999
SWING = 60


@dataclass(frozen=True)
class Reading:
    """One value of one sensor, which numbers its readings from 1."""

    sensor: str
    number: int
    tenths: int

    @property
    def topic(self) -> str:
        """Where it is published."""
        return f"plant/{self.sensor}/temperature"

    @property
    def payload(self) -> str:
        """What is published."""
        return json.dumps(vars(self))


def readings(rounds: int) -> Iterator[Reading]:
    """Yield so many readings of each sensor, the same ones every time."""
    for number in range(1, rounds + 1):
        for sensor, middle in SENSORS.items():
            is_broken = sensor == "press-2" and not number % 10
            tenths = middle + round(SWING * math.sin(number / 20))
            yield Reading(sensor, number, BROKEN if is_broken else tenths)


def send(some: Sequence[Reading], address: str, password: str) -> None:
    """Publish readings in order with QoS 1, and return when the broker has all of them."""
    host, _, port = address.partition(":")
    publish.multiple(
        [(each.topic, each.payload, 1, False) for each in some],
        hostname=host,
        port=int(port or 1883),
        auth={"username": "plant", "password": password},
    )


if __name__ == "__main__":
    send([*readings(250)], sys.argv[1], os.environ.get("MQTT_PASSWORD", ""))
