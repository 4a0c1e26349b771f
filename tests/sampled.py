"""An engine with one connection, and what samples over it say: for tests with real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.component.families import Connection, Input
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.runtime.sampling import Sample, Unbuilt, Unread
from headrace.compiler.schema.secrets import Secrets
from tests.clients import PATIENCE
from tests.waiting import until

Said = Sample | Unbuilt | Unread


@asynccontextmanager
async def engine(
    secrets: Mapping[str, str] | None = None, **connections: Connection
) -> AsyncIterator[Engine]:
    """Give an engine with these connections; close it in the end."""
    clock = Clock(asyncio.get_running_loop())
    it = Engine(clock, connections=connections, secrets=Secrets(dict(secrets or {}), {}))
    try:
        yield it
    finally:
        await it.close()


async def take(it: Engine, component: Input, *, most: int = 5, seconds: float = PATIENCE) -> Said:
    """Take one sample."""
    return await it.samples.take(component, most=most, seconds=seconds)


async def taken(it: Engine, component: Input, **options: Any) -> Sample:
    """Take one sample, and see that it is one."""
    said = await take(it, component, **options)
    assert isinstance(said, Sample), said
    return said


async def failed(it: Engine, component: Input, **options: Any) -> str:
    """Take one sample, and return why nothing could be read."""
    said = await take(it, component, **options)
    assert isinstance(said, Unread), said
    return said.reason


@asynccontextmanager
async def reading(
    it: Engine, component: Input, **options: Any
) -> AsyncIterator[asyncio.Task[Sample]]:
    """Have a sample be taken meanwhile, from when it reads; see it end."""
    asking = asyncio.ensure_future(taken(it, component, **options))
    try:
        await until(lambda: asking.done() or is_reading(it))
        yield asking
    finally:
        asking.cancel()
        await asyncio.wait([asking])


def is_reading(it: Engine) -> bool:
    """Return whether the one sample that is under way is connected."""
    return any(one._subscription is not None for one in it.samples._under_way)


def shown(it: Engine) -> int:
    """Return how many messages the one sample that is under way has."""
    [one] = it.samples._under_way
    return len(one._messages)
