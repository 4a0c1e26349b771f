"""Drivers are imported when a component needs them, and in a thread: that may take half a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from headrace.compiler.clock import Clock

_T = TypeVar("_T")


async def in_thread(load: Callable[[], _T], clock: Clock) -> _T:
    """Return what a function gives that imports a driver, or reads much, while the loop goes on."""
    with clock.outside():
        return await asyncio.to_thread(load)
