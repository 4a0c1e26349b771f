"""What the tests of the whole command ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.whole.figures import Figure
from tests.whole.gate import Gate


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Give a function that reports what was measured, by its name."""

    def tell(name: str, value: object) -> None:
        print(f"{name}: {value}")
        record_property(name, str(value))  # of whatever type: it crosses processes

    return tell


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Give a server that nobody gets past yet."""
    with Gate() as gate:
        yield gate
