"""A store that need not be there when its output starts: what is sent waits for it, on the disk so long."""

from __future__ import annotations

import asyncio

from headrace.compiler.component.buildcontext import Context
from headrace.compiler.errors import BuildRefused, Unreachable
from headrace.connectors.s3.objectpart import ObjectPart
from headrace.connectors.s3.objectstore import S3Store

START_SECONDS = 2.0
"""How long a start waits for the store: then the pipeline runs, and what it hands on is kept."""


class StoreLater:
    """Opens a store when something is sent, if it could not be when the output started."""

    def __init__(self, store: S3Store, ctx: Context) -> None:
        self._store, self._ctx = store, ctx
        self._prefix = ""
        self._opening: asyncio.Task[None] | None = None
        self._is_open = False

    async def open(self, prefix: str) -> None:
        """Ask for the bucket, but not for long.

        Raises:
            BuildRefused: the store says no within that time.
        """
        self._prefix = prefix
        opening = self._begin()
        await asyncio.wait([opening], timeout=START_SECONDS)
        if not opening.done():
            self._ctx.fail("the store takes long to answer", "unavailable")
            return
        self._opening = None
        try:
            opening.result()
            self._is_open = True
        except BuildRefused:
            raise
        except Exception as cause:
            self._ctx.fail(str(cause), "unavailable")

    def _begin(self) -> asyncio.Task[None]:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._store.open(self._prefix))
        return self._opening

    async def send(self, part: ObjectPart) -> None:
        """Put a part under its key, once the store is open; raises what `S3Store.send` does."""
        if not self._is_open:
            await self._opened()
        await self._store.send(part)

    async def _opened(self) -> None:
        opening = self._begin()  # for all that are sent at once
        await asyncio.wait([opening])
        if self._opening is opening:
            self._opening = None
        try:
            opening.result()
        except BuildRefused as cause:  # it may be mended: whoever waits is on the disk
            raise Unreachable(str(cause), "misconfigured") from None
        self._is_open = True

    async def close(self) -> None:
        """Hang up."""
        if self._opening is not None:
            self._opening.cancel()
        await self._store.close()
