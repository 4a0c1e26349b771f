"""The first of each failure is told at once, how many more there were is told in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.compiler.clock import Clock
from headrace.compiler.runtime.monitoring.failures import MOST_TEXTS, OTHERS, Repeats
from headrace.compiler.runtime.monitoring.signatures import ComponentKey
from tests.virtual import virtual

PAUSES = (1.0, 2.0, 4.0)


class Counting(Clock):
    """A clock that counts the timers it is asked for."""

    timers = 0

    def call_at(self, when: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(when, action)


class Hearing:
    """What is told, with the seconds since the beginning."""

    def __init__(self) -> None:
        self.clock = Counting(asyncio.get_running_loop())
        self.repeats = Repeats(self.clock, PAUSES, self._tell)
        self.told: list[tuple[float, str, int, bool]] = []

    def _tell(
        self, place: ComponentKey, count: int, input_index: int | None, *, is_more: bool
    ) -> None:
        self.told.append((round(self.clock.monotonic(), 3), place[2], count, is_more))

    def fail(self, *texts: str, component: int = 0) -> None:
        for text in texts:
            self.repeats.add("output", component, text)


@virtual
async def test_each_failure_is_told_at_once_and_then_how_often_it_came_again() -> None:
    hearing = Hearing()

    hearing.fail("a", "a", "b", "a", "c")
    await hearing.clock.sleep(10)

    assert hearing.told == [
        (0, "a", 1, False),
        (0, "b", 1, False),
        (0, "c", 1, False),
        (1, "a", 2, True),
    ]


@virtual
async def test_sums_come_less_often_the_longer_it_goes_on() -> None:
    hearing = Hearing()

    for _ in range(160):
        hearing.fail("a")
        await hearing.clock.sleep(0.1)
    hearing.repeats.settle()

    assert [time for time, *_ in hearing.told] == [0, 1, 3, 7, 11, 15, 16]
    assert sum(count for _, _, count, _ in hearing.told) == 160


@virtual
async def test_after_a_time_without_failures_it_starts_over() -> None:
    hearing = Hearing()
    hearing.fail("a", "a")
    await hearing.clock.sleep(10)

    hearing.fail("a", "a")
    await hearing.clock.sleep(10)

    assert [(time, count) for time, _, count, _ in hearing.told] == [
        (0, 1),
        (1, 1),
        (10, 1),
        (11, 1),
    ]


@virtual
async def test_ever_new_texts_are_told_of_together_and_none_is_left_out() -> None:
    hearing = Hearing()

    for number in range(1000):
        hearing.fail(f"text {number}")
        await hearing.clock.sleep(0.01)
    hearing.repeats.settle()

    assert len(hearing.told) <= (MOST_TEXTS + 1) * 5  # at 0, 1, 3, 7 and 10 s
    assert sum(count for _, _, count, _ in hearing.told) == 1000
    assert {text for _, text, _, is_more in hearing.told if is_more} == {OTHERS}


@virtual
async def test_ever_new_texts_of_one_component_hide_nothing_of_another() -> None:
    hearing = Hearing()

    hearing.fail(*(f"text {number}" for number in range(100)))
    hearing.fail("a", component=1)

    assert hearing.told[-1] == (0, "a", 1, False)


@virtual
async def test_what_is_settled_is_told_once() -> None:
    hearing = Hearing()
    hearing.fail("a", "a", "a")

    hearing.repeats.settle()
    hearing.repeats.settle()
    await hearing.clock.sleep(10)

    assert [(time, count) for time, _, count, _ in hearing.told] == [(0, 1), (0, 2)]


@virtual
async def test_what_is_forgotten_is_told_no_more() -> None:
    hearing = Hearing()
    hearing.fail("a", "a", "a")

    hearing.repeats.forget()
    await hearing.clock.sleep(10)

    assert len(hearing.told) == 1


@virtual
async def test_a_timer_runs_only_while_there_is_something_to_sum_up() -> None:
    hearing = Hearing()

    for _ in range(5):
        hearing.fail("a")
        await hearing.clock.sleep(3)
    assert hearing.clock.timers == 0
    hearing.fail("b", "b", "b")
    await hearing.clock.sleep(60)

    assert hearing.clock.timers == 1
    assert sum(count for _, _, count, _ in hearing.told) == 8
