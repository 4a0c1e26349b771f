"""An `s3` output on virtual time, over a store in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headrace.connectors.s3.sink import S3Sink
from tests.doubles import StubContext
from tests.s3_sides import Shop, context, shopping

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
MIB = 1024 * 1024
QUARTER = ["x" * (MIB // 4)]
"""A message that takes a quarter of the smallest bound, and a little more."""


ASIDE = "a part is set aside and tried again, and others go on: "


def key(number: int, time: str = "08-00-00", folder: str = "", extension: str = "ndjson") -> str:
    """Return the key of a part of that morning."""
    return f"{folder}2026-03-01T{time}Z-{number:06d}.{extension}"


async def opened(**options: Any) -> tuple[S3Sink, Shop, StubContext]:
    """Return a sink that is started, its store and its context."""
    ctx = context("http://127.0.0.1:1")
    shop = Shop(ctx.clock)
    sink = shopping(ctx, shop, **options)
    await sink.start()
    return sink, shop, ctx


async def sent(ctx: StubContext) -> None:
    """Wait until what could be sent is."""
    await ctx.clock.sleep(0.001)
