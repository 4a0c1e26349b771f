"""How many objects a look for cycles goes through in a server."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from headrace.web.commands.collecting import OF_A_SERVER, collect_less


@pytest.fixture
def looks() -> Iterator[list[tuple[int, int]]]:
    """Collect as a server does; yield which generation was looked at each time, and its objects."""
    looked: list[tuple[int, int]] = []

    def tell(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            generation = about["generation"]
            objects = sum(len(gc.get_objects(generation=each)) for each in range(generation + 1))
            looked.append((generation, objects))

    usual = gc.get_threshold()
    gc.collect()
    collect_less()
    gc.callbacks.append(tell)
    yield looked
    gc.callbacks.remove(tell)
    gc.set_threshold(*usual)


def test_no_look_but_a_full_one_goes_through_many_objects_of_a_large_batch(
    looks: list[tuple[int, int]],
) -> None:
    messages = [[] for _ in range(400_000)]

    partly = [objects for generation, objects in looks if generation < 2]
    assert len(messages) // OF_A_SERVER[0] - 1 <= len(partly)
    assert max(partly) < 3.5 * OF_A_SERVER[0]
