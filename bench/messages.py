"""What is sent through: readings of machines, six fields and about 140 bytes each."""

from __future__ import annotations

import random
from typing import Any

import msgspec

MACHINES = 10


def readings(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return readings that differ, the same ones every time."""
    chance = random.Random(seed)
    return [
        {
            "machine": f"press-{chance.randrange(MACHINES):02d}",
            "temp": round(chance.uniform(0, 100), 2),
            "pressure": round(chance.uniform(0, 10), 3),
            "humidity": round(chance.uniform(0, 100), 1),
            "rpm": chance.randrange(3000),
            "taken_at": f"2026-11-{chance.randrange(1, 29):02d}T08:30:00.000000+00:00",
        }
        for _ in range(count)
    ]


def batches(size: int, count: int = 16) -> list[list[dict[str, Any]]]:
    """Return different batches of one size."""
    return [readings(size, seed) for seed in range(count)]


def payloads(size: int, count: int = 16) -> list[list[bytes]]:
    """Return the same batches as a broker has them: each message a text of its own."""
    return [[msgspec.json.encode(message) for message in batch] for batch in batches(size, count)]


def bodies(size: int, count: int = 16) -> list[bytes]:
    """Return the same batches as a client posts them; one message goes without a list."""
    return [msgspec.json.encode(batch[0] if size == 1 else batch) for batch in batches(size, count)]
