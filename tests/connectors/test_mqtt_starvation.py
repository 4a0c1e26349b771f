"""What is seen of a broker that keeps messages back: when it is evidence, and when it may be chance."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headrace.compiler.clock import Clock
from headrace.connectors.mqtt.source import Starvation
from tests.virtual import virtual


class Seen:
    """A broker as we see it, in virtual time."""

    def __init__(self) -> None:
        self.clock = Clock(asyncio.get_running_loop())
        self.starvation = Starvation(self.clock)

    async def stalls(self, *, comes_after: float) -> bool:
        """Send nothing for a while, and something so long after an acknowledgement."""
        for _ in range(3):
            self.starvation.stalled()
            await self.clock.sleep(1)
        self.starvation.acknowledged()
        await self.clock.sleep(comes_after)
        return self.starvation.came()


@virtual
async def test_messages_at_once_after_an_acknowledgement_are_evidence_the_second_time():
    seen = Seen()

    told = [await seen.stalls(comes_after=0.01) for _ in range(3)]

    assert told == [False, True, True]


@virtual
async def test_messages_that_come_later_are_none():
    seen = Seen()

    told = [await seen.stalls(comes_after=0.2) for _ in range(5)]

    assert told == [False] * 5


async def quiet(seen: Seen) -> None:
    """A source that has something to say again only after a while."""
    await seen.stalls(comes_after=0.2)


async def unasked(seen: Seen) -> None:
    """A broker that sends more although nothing was acknowledged."""
    seen.starvation.stalled()
    seen.starvation.came()


async def silent(seen: Seen) -> None:
    """A broker that still sends nothing, a second after an acknowledgement."""
    seen.starvation.stalled()
    seen.starvation.acknowledged()
    await seen.clock.sleep(1)
    seen.starvation.stalled()


@pytest.mark.parametrize("between", [quiet, unasked, silent])
def test_what_speaks_against_it_has_it_counted_anew(between: Callable[[Seen], Awaitable[None]]):
    @virtual
    async def told() -> None:
        seen = Seen()
        await seen.stalls(comes_after=0)
        await between(seen)
        assert not await seen.stalls(comes_after=0)
        assert await seen.stalls(comes_after=0)

    told()


@virtual
async def test_messages_while_nothing_stalls_say_nothing():
    seen = Seen()
    for _ in range(5):
        seen.starvation.acknowledged()
        assert not seen.starvation.came()


@virtual
async def test_a_lost_connection_says_nothing_about_the_broker():
    seen = Seen()
    await seen.stalls(comes_after=0)
    seen.starvation.stalled()
    seen.starvation.acknowledged()

    seen.starvation.begin()

    assert not seen.starvation.came()
    assert await seen.stalls(comes_after=0)
