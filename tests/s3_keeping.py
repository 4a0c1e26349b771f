"""An `s3` output that keeps on the disk what it could not upload."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.compiler.datadir import DataDir
from headrace.connectors.s3.objectpart import Content, ObjectPart, UnsentFolder
from headrace.connectors.s3.sink import S3Sink
from tests.doubles import StubContext
from tests.s3_sides import Shop, context, shopping

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
EVENING = datetime(2026, 3, 1, 20, tzinfo=UTC)
MIB = 1024 * 1024
FIRST = "p/2026-03-01T08-00-00Z-000001.ndjson"
SECOND = "p/2026-03-01T08-00-00Z-000002.ndjson"


async def opened(
    data_dir: Path, shop: Shop | None = None, **options: Any
) -> tuple[S3Sink, Shop, StubContext]:
    """Return a sink that is started, its store and its context."""
    ctx = context("http://127.0.0.1:1", data_dir=data_dir, **options.pop("context", {}))
    shop = shop or Shop(ctx.clock)
    sink = shopping(ctx, shop, **{"prefix": "p"} | options)
    await sink.start()
    return sink, shop, ctx


async def left(data_dir: Path, **options: Any) -> StubContext:
    """Run an output whose store is down, with two parts; return its context."""
    sink, shop, ctx = await opened(data_dir, rotate={"max_rows": 2}, **options)
    shop.is_down = True
    for n in range(3):
        await sink.write([n])
    await sink.finish()
    assert shop.objects == {}
    return ctx


def files(data_dir: Path) -> list[Path]:
    """Return what is kept."""
    return sorted(path for path in data_dir.rglob("*") if path.is_file())


def part(body: bytes = b"1\n", **options: Any) -> ObjectPart:
    """Return a part that is ready."""
    key = options.pop("key", FIRST)
    return ObjectPart(key, "application/x-ndjson", 1, len(body), Content(body, "none"), **options)


def unsent(data_dir: Path) -> UnsentFolder:
    """Return the place of the outputs of these tests."""
    return UnsentFolder(DataDir(data_dir), "http://127.0.0.1:1", "plant", "p", 64 * MIB)
