"""A bucket by a clock of its own, for its tests."""

from __future__ import annotations

import asyncio

from headrace.compiler.buckets import Bounds, Bucket
from headrace.compiler.clock import Clock


def clock() -> Clock:
    return Clock(asyncio.get_running_loop())


def bucket(max_keys: int = 10, idle: int | None = None, *, by: Clock | None = None) -> Bucket:
    return Bucket("machines", Bounds(max_keys, idle), by or clock())


def write(it: Bucket, *written: str) -> None:
    """Write under each key, one after the other."""
    for key in written:
        it.merge({key: {"mode": key}})


class HandClock:
    """A clock that is set by hand."""

    now = 0

    def monotonic(self) -> float:
        return self.now
