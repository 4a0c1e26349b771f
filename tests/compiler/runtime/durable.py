"""Pipelines with a durable `http` input, on a store of the test's own, in virtual time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.compiler.clock import Clock
from headrace.compiler.component.pipelineconfig import PipelineConfig
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.delivery import Batch
from headrace.compiler.edges import AwaitingSink, Sink
from headrace.compiler.jsontext import encode
from headrace.compiler.runtime.engine import Engine
from headrace.compiler.store.database import Database
from headrace.compiler.store.storedrows import Changes
from headrace.connectors.http import HttpInput
from tests.stand_ins import pipeline, run, takes

ORIGIN = ("POST", "10.0.0.7:1", [(b"x-request-id", b"r1"), (b"authorization", b"Bearer s3cret")])


class Gated(AwaitingSink):
    """Writes when its gate is open; keeps what it wrote."""

    def __init__(self, *, is_open: bool = True, at_once: int = 1) -> None:
        self.gate = asyncio.Event()
        self.at_once = at_once
        self.batches: list[Batch] = []
        if is_open:
            self.gate.set()

    async def write(self, batch: Batch) -> None:
        await self.gate.wait()
        self.batches.append(batch)

    @property
    def messages(self) -> list[Any]:
        """All that was written."""
        return [message for batch in self.batches for message in batch]


def durable(*sinks: Sink, id: str = "p", **options: Any) -> PipelineConfig:
    """Return a pipeline whose `http` input is durable, unless the options say something else."""
    source = HttpInput.load({"durable": True} | options)
    return pipeline(id, [source], [], [takes(sink) for sink in sinks])


def failing_commits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Have commits fail that store something, while the one item of what is returned is true."""
    commit, fails = Database.commit, [False]

    def failing(self: Database, changes: Changes) -> None:
        if fails[0] and changes.rows:
            raise sqlite3.OperationalError("disk I/O error")
        commit(self, changes)

    monkeypatch.setattr(Database, "commit", failing)
    return fails


@asynccontextmanager
async def engine_on(folder: Path, *configs: PipelineConfig) -> AsyncIterator[Engine]:
    """Give an engine that keeps what is durable below a folder; it ends in order."""
    settings = StoreSettings.load({"sync": "process", "keep_free_bytes": 0})
    it = Engine(Clock(asyncio.get_running_loop()), data_dir=DataDir(folder), store=settings)
    try:
        for config in configs:
            await run(it, config)
        yield it
    finally:
        await it.close()


async def post(it: Engine, message: Any, id: str = "p") -> int:
    """Post something; return how many messages were taken."""
    way_in = it.way_in(id)
    assert way_in is not None
    body = message if isinstance(message, bytes) else encode(message)
    taken = way_in.take(body, ORIGIN if way_in.wants_origin else None)
    return taken if isinstance(taken, int) else await taken


async def kept(it: Engine) -> dict[tuple[str, bool], int]:
    """Return how many entries are kept, by pipeline and whether they are left over."""
    figures = await it.stored()
    assert figures is not None
    return {(each.pipeline, each.left_over): each.entries for each in figures.parts}
