"""Parts: what an output that writes files or objects cuts its stream into.

A part has a name that sorts by time, and a rule for when it is closed. `partformats.py` says how messages
stand in it.
"""

from __future__ import annotations

import re
from asyncio import TimerHandle
from collections.abc import Callable
from datetime import datetime

from headrace.compiler.clock import Clock
from headrace.compiler.schema.fields import Integer
from headrace.compiler.schema.records import Record, option


class Rotation(Record):
    """When a part is closed; the next one is opened by the next batch. Batches are never split."""

    interval_secs: int | None = option(
        Integer(min=1, max=10**9),
        "Close it this many seconds after it was opened, whether or not anything arrives.",
        default=None,
        elsewhere="every interval period seconds timeout_secs",
    )
    max_rows: int | None = option(
        Integer(min=0, max=10**9),
        "Close it once it holds this many messages; 0 is read as 1.",
        default=None,
        elsewhere="count max_events max_messages rows size",
    )

    def is_full(self, rows: int) -> bool:
        """Return whether a part with so many messages is closed."""
        return self.max_rows is not None and rows >= max(self.max_rows, 1)

    def timer(self, clock: Clock, close: Callable[[], None]) -> TimerHandle | None:
        """Have a part that is opened now closed on time; None if its time has no end."""
        seconds = self.interval_secs
        return None if seconds is None else clock.call_at(clock.monotonic() + seconds, close)


def part_name(opened: datetime, sequence: int, extension: str) -> str:
    """Return the name of a part: ``2026-03-01T08-00-00Z-000001.ndjson``.

    Units: ``opened`` is in UTC. It has no colons, which some file systems refuse.
    """
    return f"{opened:%Y-%m-%dT%H-%M-%SZ}-{sequence:06d}.{extension}"


_NUMBER = re.compile(r"(?<=Z-)\d{6,15}(?=\.[^/]*$)")


def renumbered(path: str, sequence: int) -> str:
    """Return the path of a part, whose last step `part_name` made, with another number."""
    return _NUMBER.sub(f"{sequence:06d}", path)


def number_of(path: str) -> int | None:
    """Return the number of a part, if `part_name` made its name."""
    found = _NUMBER.search(path)
    return None if found is None else int(found[0])
