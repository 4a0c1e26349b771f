"""A script on the virtual loop: a step comes behind what is due, and is through before the next."""

import asyncio
from functools import partial

import pytest

from headrace.compiler.clock import Clock, TooManyMoments
from tests.virtual import virtual


@virtual
async def test_a_step_comes_behind_what_is_due_at_its_time():
    loop, seen = asyncio.get_running_loop(), []
    loop.call_later(5, seen.append, "due")

    await loop.play([(0, partial(seen.append, "first")), (5, partial(seen.append, "step"))])

    assert seen == ["first", "due", "step"]
    assert loop.time() == 5


@virtual
async def test_what_a_step_causes_is_through_before_the_next():
    loop, seen = asyncio.get_running_loop(), []

    async def caused(name: str) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        seen.append(f"caused by {name}")

    def step(name: str) -> None:
        seen.append(name)
        tasks.append(asyncio.ensure_future(caused(name)))

    tasks: list[asyncio.Task[None]] = []
    await loop.play([(1, partial(step, "a")), (1, partial(step, "b"))])

    assert seen == ["a", "caused by a", "b", "caused by b"]
    assert loop.time() == 1


@virtual
async def test_timers_between_the_steps_ring_at_their_times():
    loop, seen = asyncio.get_running_loop(), []

    def ring() -> None:
        seen.append(loop.time())
        loop.call_later(0.4, ring)

    ring()
    await loop.play([(1, partial(seen.append, "step"))])

    assert seen == [0, 0.4, 0.8, "step"]


@virtual
async def test_a_step_of_a_year_ahead_is_taken_at_its_time():
    loop, year = asyncio.get_running_loop(), 365 * 86_400.0
    seen: list[float] = []

    await loop.play([(year, lambda: seen.append(loop.time()))])

    assert seen == [year]


@virtual
async def test_a_step_that_is_late_does_not_turn_time_back():
    loop, seen = asyncio.get_running_loop(), []
    await asyncio.sleep(3)

    await loop.play([(1, lambda: seen.append(loop.time()))])

    assert seen == [3]


@virtual
async def test_a_step_waits_for_work_in_a_thread():
    loop, seen = asyncio.get_running_loop(), []

    async def work() -> None:
        await asyncio.to_thread(int)
        seen.append("thread")

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    await loop.play([(1, partial(seen.append, "step"))])

    assert seen == ["thread", "step"]
    await task


@virtual
async def test_what_a_step_raises_ends_the_script():
    loop, seen = asyncio.get_running_loop(), []

    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await loop.play([(1, fails), (2, partial(seen.append, "step"))])

    assert seen == []
    await loop.play([(3, partial(seen.append, "another"))])
    assert seen == ["another"]


@virtual
async def test_two_scripts_at_once_are_refused():
    loop = asyncio.get_running_loop()
    first = asyncio.ensure_future(loop.play([(1, lambda: None)]))
    await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="already"):
        await loop.play([])

    await first


@virtual
async def test_a_script_that_is_given_up_takes_no_further_step():
    loop, seen = asyncio.get_running_loop(), []
    playing = asyncio.ensure_future(loop.play([(2, partial(seen.append, "step"))]))

    await asyncio.sleep(1)
    playing.cancel()
    await asyncio.sleep(5)

    assert playing.cancelled()
    assert seen == []


@virtual
async def test_no_step_is_no_wait():
    loop = asyncio.get_running_loop()

    await loop.play([])

    assert Clock(loop).monotonic() == 0


@virtual
async def test_so_many_moments_may_pass_and_more_for_each_step():
    loop, due = asyncio.get_running_loop(), []

    async def tick():
        while True:
            await asyncio.sleep(1)
            due.append(loop.time())

    ticking = asyncio.ensure_future(tick())
    with pytest.raises(TooManyMoments) as stopped:
        await loop.play([(0.5, lambda: None), (10, lambda: None)], most=3, more=2)
    ticking.cancel()

    assert due == [1, 2, 3, 4, 5]
    assert (stopped.value.count, stopped.value.at) == (5, 5)


@virtual
async def test_moments_that_steps_are_taken_at_do_not_count():
    loop = asyncio.get_running_loop()

    await loop.play([(moment, lambda: None) for moment in range(1, 100)], most=0)

    assert loop.time() == 99
