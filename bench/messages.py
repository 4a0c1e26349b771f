"""What is sent through: readings of machines, six fields and about 140 bytes each; or rows for a table."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

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


def rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return messages with a field for each type of column, the same ones every time.

    A weight has two places in the text, whatever they are: ``1.10``.
    """
    chance = random.Random(seed)
    return [
        {
            "machine": f"press-{chance.randrange(MACHINES):02d}",
            "rpm": chance.randrange(3000),
            "strokes": chance.randrange(1 << 40),
            "temp": round(chance.uniform(0, 100), 2),
            "weight": Decimal(chance.randrange(100_000)).scaleb(-2),
            "is_running": chance.random() < 0.9,
            "taken_at": f"2026-11-{chance.randrange(1, 29):02d}T08:30:{chance.uniform(10, 59):.6f}Z",
            "day": f"2026-11-{chance.randrange(1, 29):02d}",
            "run": str(UUID(int=chance.getrandbits(128))),
            "settings": {"mode": "auto", "limits": [chance.randrange(10), 90]},
        }
        for _ in range(count)
    ]


KINDS: dict[str, Callable[[int, int], list[dict[str, Any]]]] = {"readings": readings, "rows": rows}

_encode = msgspec.json.Encoder(decimal_format="number").encode


def batches(size: int, count: int = 16, kind: str = "readings") -> list[list[dict[str, Any]]]:
    """Return different batches of one size."""
    return [KINDS[kind](size, seed) for seed in range(count)]


def payloads(size: int, count: int = 16, kind: str = "readings") -> list[list[bytes]]:
    """Return the same batches as a broker has them: each message a text of its own."""
    return [[_encode(message) for message in batch] for batch in batches(size, count, kind)]


def bodies(size: int, count: int = 16, kind: str = "readings") -> list[bytes]:
    """Return the same batches as a client posts them; one message goes without a list."""
    return [_encode(batch[0] if size == 1 else batch) for batch in batches(size, count, kind)]
