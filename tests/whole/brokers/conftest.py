"""What the tests of brokers ask for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from tests.whole.brokers.figures import Figure
from tests.whole.brokers.gate import Gate


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Give a function that reports what was measured, by its name."""

    def tell(name: str, value: object) -> None:
        print(f"{name}: {value}")
        record_property(name, value)

    return tell


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Give a server that nobody gets past yet."""
    with Gate() as gate:
        yield gate


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """Keep what drivers say of an outage out of what the tests print."""
    drivers = [logging.getLogger(name) for name in ("aiokafka", "mqtt", "nats")]
    for driver in drivers:
        driver.setLevel(logging.CRITICAL)
    yield
    for driver in drivers:
        driver.setLevel(logging.NOTSET)
