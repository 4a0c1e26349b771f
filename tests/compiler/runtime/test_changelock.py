"""The gate before the graph, and claims that change hands."""

from __future__ import annotations

import asyncio

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.errors import BuildRefused
from headrace.compiler.runtime.claims import Claims
from headrace.compiler.runtime.graph import ChangeLock
from tests.virtual import virtual


async def passing(seconds: float) -> None:
    await Clock(asyncio.get_running_loop()).sleep(seconds)


@virtual
async def test_nobody_passes_while_it_is_closed() -> None:
    gate, passed = ChangeLock(), list[str]()

    async def pass_by(name: str) -> None:
        await gate.passed()
        passed.append(name)

    await pass_by("before")
    async with gate.closed():
        waiting = asyncio.ensure_future(pass_by("after"))
        await passing(1)
        assert passed == ["before"]
    await waiting

    assert passed == ["before", "after"]


@virtual
async def test_it_closes_when_everything_has_left() -> None:
    gate = ChangeLock()

    async def leave(seconds: float) -> None:
        with gate.leaving():
            await passing(seconds)

    leaving = [asyncio.ensure_future(leave(seconds)) for seconds in (3, 5)]
    await passing(1)
    async with gate.closed():
        assert all(each.done() for each in leaving)


@virtual
async def test_one_at_a_time_closes_it() -> None:
    gate, order = ChangeLock(), list[str]()

    async def close(name: str) -> None:
        async with gate.closed():
            order.append(name)
            await passing(1)
            order.append(name)

    await asyncio.gather(close("a"), close("b"))

    assert order == ["a", "a", "b", "b"]
    await gate.passed()


@virtual
async def test_what_somebody_has_who_leaves_goes_to_one_other() -> None:
    claims, old, new, third = Claims(), object(), object(), object()
    give_back = claims.take("the seat", old, "'p' inputs[0]")
    with pytest.raises(BuildRefused, match=r"the seat is taken by 'p' inputs\[0\]"):
        claims.take("the seat", new, "'p' inputs[0]")
    assert not claims.is_taken_over("the seat", old)

    with claims.leaving([old]):
        give_back_new = claims.take("the seat", new, "'p' inputs[1]")
        with pytest.raises(BuildRefused, match=r"taken by 'p' inputs\[1\]"):
            claims.take("the seat", third, "'q' inputs[0]")

    assert claims.is_taken_over("the seat", old)
    await give_back()
    with pytest.raises(BuildRefused):
        claims.take("the seat", third, "'q' inputs[0]")
    await give_back_new()
    claims.take("the seat", third, "'q' inputs[0]")
