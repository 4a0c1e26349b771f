"""What is written, and when, to an output that closes its parts by the clock."""

from __future__ import annotations

from typing import Any

from headrace.compiler.clock import Clock


async def write_for_a_minute_each(sink: Any, clock: Clock) -> None:
    """Write to a sink with parts of two rows and of a minute; a part that is full, and one that is old."""
    await sink.write([1])
    await clock.sleep(50)
    await sink.write([2])  # full: the first clock stops
    await sink.write([3])
    await clock.sleep(50)
    await sink.write([4])
    await clock.sleep(11)
    await sink.write([5])
    await clock.sleep(59)
    await sink.finish()
