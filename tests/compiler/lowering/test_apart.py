"""A message that goes through the plain steps by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.compiler.component.buildcontext import PacedStep
from headrace.compiler.component.failingmessages import Lose
from headrace.compiler.delivery import Batch
from headrace.compiler.errors import BatchFailed
from headrace.compiler.lowering.apart import Apart, FailingByStage


def added(more: int) -> PacedStep:
    """Return a step that pauses, and adds so much to each message."""

    def step(batch: Batch) -> Iterator[Batch | None]:
        yield None
        yield [each + more for each in batch]

    return step


def failing(batch: Batch) -> Iterator[Batch | None]:
    """Pause, and raise."""
    yield None
    raise BatchFailed("no")


def test_it_becomes_the_same_at_once_and_in_slices() -> None:
    apart = Apart([added(1), added(10)], [None, None])
    going, failed = apart.alone_in_slices(5, {}), {}

    turns = 0
    while True:
        try:
            next(going)
        except StopIteration as done:
            made = done.value
            break
        turns += 1

    assert made == apart.alone(5, failed) == [16]
    assert turns == 3  # one in each step, and one between them
    assert failed == {}


def test_what_failed_is_told_stage_after_stage_as_it_came_there() -> None:
    told = []

    def of(stage: str) -> Lose:
        return lambda failing: told.append((stage, [batch for _, batch in failing.values()]))

    def odd(batch: Batch) -> Iterator[Batch | None]:
        return failing(batch) if batch[0] % 2 else iter([batch])

    apart = Apart([odd, added(1), failing], [of("first"), None, of("last")])
    failed: FailingByStage = {}

    for message in (2, 3, 4, 5):
        assert apart.alone(message, failed) == []
    assert told == []
    apart.tell(failed)

    assert told == [("first", [[3, 5]]), ("last", [[3, 5]])]
    assert failed == {}


def test_its_batch_fails_where_nobody_is_told_of_messages() -> None:
    lost = []
    apart = Apart([failing, failing], [lost.append, None])
    failed: FailingByStage = {}

    assert apart.alone(5, failed) == []
    with pytest.raises(BatchFailed, match="no"):
        Apart([added(1), failing], [lost.append, None]).alone(5, failed)

    assert failed == {}


def test_a_step_that_makes_nothing_of_it_ends_its_way() -> None:
    apart = Apart([lambda batch: iter([]), failing], [None, None])

    assert apart.alone(5, {}) == []
