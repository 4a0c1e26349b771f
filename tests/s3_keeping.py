"""An `s3` output that keeps on the disk what it could not upload."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.compiler.datadir import DataDir
from headrace.connectors.s3.objectpart import Content, ObjectPart
from headrace.connectors.s3.partentries import head_of
from headrace.connectors.s3.sink import S3Sink
from headrace.connectors.s3.unsentfolder import UnsentFolder
from tests.doubles import StubContext
from tests.partsinmemory import PartsInMemory
from tests.s3_sides import Shop, context, shopping

MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
EVENING = datetime(2026, 3, 1, 20, tzinfo=UTC)
MIB = 1024 * 1024
FIRST = "p/2026-03-01T08-00-00Z-000001.ndjson"
SECOND = "p/2026-03-01T08-00-00Z-000002.ndjson"


async def opened(
    kept: PartsInMemory | Path | None, shop: Shop | None = None, **options: Any
) -> tuple[S3Sink, Shop, StubContext]:
    """Return a sink that is started, its store and its context; what it has kept may be in a directory."""
    place = {"data_dir": kept} if isinstance(kept, Path) else {"parts": kept}
    ctx = context("http://127.0.0.1:1", **place, **options.pop("context", {}))
    shop = shop or Shop(ctx.clock)
    sink = shopping(ctx, shop, **{"prefix": "p"} | options)
    await sink.start()
    return sink, shop, ctx


async def left(kept: PartsInMemory, **options: Any) -> StubContext:
    """Run an output whose store is down, with two parts; return its context."""
    sink, shop, ctx = await opened(kept, rotate={"max_rows": 2}, **options)
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


def entry(body: bytes, **options: Any) -> bytes:
    """Return a part as it is kept."""
    return head_of(part(body, **options)) + body


LEFT_BY_THE_FOLDER = b"""\
{"key":"p/2026-03-01T08-00-00Z-000001.ndjson","media_type":"application/x-ndjson","messages":2,\
"token":"79dfcbfccab74c3ab2b9477c633e2d96","packing":"none","size":4,"upload":null}
0
1
{"key":"p/2026-03-01T08-00-00Z-000002.ndjson","media_type":"application/x-ndjson","messages":1,\
"token":"db3d22039f1f42d283eed294f2b9c752","packing":"none","size":2,"upload":null}
2
"""
"""What an end left in a file before there was a store: two parts with three messages."""


def left_before(data_dir: Path, name: str = "a.parts", content: bytes = LEFT_BY_THE_FOLDER) -> Path:
    """Put a file where parts were kept before there was a store; return it."""
    folder = data_dir / "s3-unsent" / "plant-cf5b511452e9f925"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def unsent(data_dir: Path) -> UnsentFolder:
    """Return the place of the outputs of these tests, where parts were kept before there was a store."""
    return UnsentFolder(DataDir(data_dir), "http://127.0.0.1:1", "plant", "p", 64 * MIB)
