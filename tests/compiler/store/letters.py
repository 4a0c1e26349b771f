"""Dead letters for tests of the store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from headrace.compiler.clock import Clock
from headrace.compiler.store.letterrecords import Records
from headrace.compiler.store.letterrows import LETTER_BYTES, Letter
from headrace.compiler.store.openstore import Store

ROOM = 2**40
PLAIN = Letter(
    pipeline="press-line",
    stage="output",
    component=0,
    input_index=None,
    target="postgres db/readings",
    failure="invalid",
    message="'temp' is no number",
    detail="invalid input syntax for type double precision",
    first_seen=1_767_225_600.5,
    last_seen=1_767_225_601.25,
    tries=1,
    maybe_written=False,
    received_at=1_767_225_600.0,
    config="0123abcd",
    messages=1,
)


def letter(**fields: Any) -> Letter:
    """Return a letter that has some fields of its own."""
    return PLAIN._replace(**fields)


def size(one: Letter, body: bytes) -> int:
    """Return what a letter takes of its bound."""
    return (
        LETTER_BYTES + len(body) + sum(len(each.encode()) for each in one if isinstance(each, str))
    )


async def opened(path: Path | None = None, told: list[str] | None = None) -> Store:
    """Open a store where there may be little room."""
    return await Store.open(
        Clock(asyncio.get_running_loop()),
        path,
        sync="process",
        keep_free_bytes=0,
        reserve_bytes=0,
        tell=(told if told is not None else []).append,
    )


async def put_down(records: Records, *bodies: bytes, **fields: Any) -> None:
    """Put letters down, and wait until they are stored."""
    for body in bodies:
        group = records.append(letter(**fields), body, ROOM)
    await group.stored()


async def ids(records: Records, pipeline: str = "press-line", **of: Any) -> list[int]:
    """Return the ids of what is listed, newest first."""
    return [each.id for each in (await records.page(pipeline, **of)).letters]
