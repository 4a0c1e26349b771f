"""How slow the machine is at the moment, for bounds of work that takes processor time and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time

TURNS = 50_000
USUAL_SECONDS = 26e-9
"""What a turn of the loop below took on the machine on which the bounds were measured."""
MOST = 4
"""A machine that is slower than so many times does not pass: one was 2.3 times as slow on another day."""


def slowness() -> float:
    """Return how many times as long as usual the same work takes now: at least 1, and at most so many.

    Processors are slower when they are warm, when others use the other half of a core, and on some days.
    """
    found = min(_seconds() for _ in range(5)) / USUAL_SECONDS
    return min(max(found, 1.0), MOST)


def shortest(measured: Callable[[], float], bound: float, times: int) -> float:
    """Return the shortest of so many measurements, or the first that is below the bound: more say no more.

    What else the machine does can only make one longer.
    """
    found = measured()
    for _ in range(times - 1):
        if found < bound:
            break
        found = min(found, measured())
    return found


def _seconds() -> float:
    """Return the processor time of a turn of a loop that adds."""
    total, began = 0, thread_time()
    for number in range(TURNS):
        total += number
    return (thread_time() - began) / TURNS
