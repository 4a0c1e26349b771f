"""Both sides of any system in a test: read from where it is connected, and started and finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from headrace.compiler.edges import Arrival
from tests.clients import PATIENCE

Reader = AsyncGenerator[Sequence[Arrival], None]


class Readable(Protocol):
    """What reads a system, built and not connected."""

    def read(self) -> Reader:
        """Connect, say so with nothing, and yield what arrives."""


class Startable(Protocol):
    """What writes to a system, built and not connected."""

    async def start(self) -> None:
        """Connect."""

    async def finish(self) -> None:
        """Write what is left, and hang up."""


_S = TypeVar("_S", bound=Startable)


@asynccontextmanager
async def subscribed(source: Readable) -> AsyncIterator[Reader]:
    """Give the reader of a source that is connected; close it in the end."""
    reader = source.read()
    try:
        async with asyncio.timeout(PATIENCE):
            assert list(await anext(reader)) == []
        yield reader
    finally:
        await reader.aclose()


@asynccontextmanager
async def started(sink: _S) -> AsyncIterator[_S]:
    """Give a sink that is connected; finish it in the end."""
    async with asyncio.timeout(PATIENCE):
        try:
            await sink.start()
            yield sink
        finally:
            await sink.finish()
