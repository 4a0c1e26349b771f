"""How pumps share the loop with everybody else. The clock here moves when somebody works."""

import asyncio

import pytest

from headrace.compiler.runtime.turns import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    TURN_SECONDS,
    Turn,
    Turns,
)


class Working:
    """A clock that shows how much has been worked on the loop."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock():
    return Working()


@pytest.fixture
def turns(clock):
    return Turns(clock)


async def pump(turns, clock, worked=TURN_SECONDS):
    """Work for a turn, give way, and return how long the next one is."""
    turn = Turn(turns)
    turn.begin()
    clock.work(worked)
    await turn.give_way()
    return turn.ends - clock.now


async def others(clock, seconds):
    clock.work(seconds)


def test_a_turn_after_a_wait_is_a_millisecond(turns, clock):
    turn = Turn(turns)

    turn.begin()

    assert turn.ends == pytest.approx(clock.now + TURN_SECONDS)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (0.0, TURN_SECONDS),
        (TURN_SECONDS / 2, TURN_SECONDS),
        (TURN_SECONDS * 3, TURN_SECONDS * 3),
        (LONGEST_SECONDS * 9, LONGEST_SECONDS),
    ],
)
async def test_a_turn_is_as_long_as_that_of_everybody_else_within_bounds(
    turns, clock, theirs, ours
):
    next_turn, _ = await asyncio.gather(pump(turns, clock), others(clock, theirs))

    assert next_turn == pytest.approx(ours)


async def test_what_other_pumps_work_makes_no_turn_longer(turns, clock):
    one, other = await asyncio.gather(
        pump(turns, clock), pump(turns, clock, worked=LONGEST_SECONDS)
    )

    assert max(one, other) == pytest.approx(TURN_SECONDS)


async def test_pumps_share_a_turn_until_it_is_too_short_to_be_worth_it(turns, clock):
    two = await asyncio.gather(*(pump(turns, clock) for _ in range(2)))
    many = await asyncio.gather(*(pump(turns, clock) for _ in range(100)))

    assert min(two) == pytest.approx(TURN_SECONDS / 2)
    assert min(many) == pytest.approx(SHORTEST_SECONDS)
