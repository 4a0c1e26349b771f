"""What the tests of bridged outages ask for."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """Keep what drivers say of an outage out of what the tests print."""
    drivers = [logging.getLogger(name) for name in ("aiokafka", "asyncpg", "mqtt", "nats")]
    for driver in drivers:
        driver.setLevel(logging.CRITICAL)
    yield
    for driver in drivers:
        driver.setLevel(logging.NOTSET)
