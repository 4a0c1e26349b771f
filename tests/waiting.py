"""Waiting for what nobody tells of: asked for again and again, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headrace.compiler.clock import Clock
from tests.clients import PATIENCE
from tests.stopwatch import Stopwatch

EACH_SECONDS = 0.005


async def until(holds: Callable[[], bool], seconds: float = PATIENCE) -> float:
    """Return when something holds, and after how many seconds that was; fail where it never does."""
    clock, watch = Clock(asyncio.get_running_loop()), Stopwatch()
    while not holds():
        assert watch.seconds < seconds, "it never happened"
        await clock.sleep(EACH_SECONDS)
    return watch.seconds
