"""Scenarios of outputs with a queue: one that keeps up, and one that was away and takes what was kept."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench import messages, passes, standins
from bench.measuring import Compared, Effort, compare, compared, on_one_core
from bench.table import Row, ratio_row
from headrace.compiler.clock import Clock
from headrace.compiler.config.storesettings import StoreSettings
from headrace.compiler.datadir import DataDir
from headrace.compiler.jsontext import Decoding, encode
from headrace.compiler.runtime.engine import Engine

KEEPS_UP = 0.98
"""The share of the speed without a queue that is left where nothing has to be stored."""
ON_AND_OFF = 0.4
"""The share of the speed of encoding and decoding: to the disk and back is 2.5 times as much."""


def queue1(effort: Effort) -> list[Row]:
    """An output that keeps up, one message a batch."""
    return _keeping_up(1, effort)


def queue100(effort: Effort) -> list[Row]:
    """An output that keeps up, a hundred messages a batch."""
    return _keeping_up(100, effort)


def _keeping_up(size: int, effort: Effort) -> list[Row]:
    figures = on_one_core(_beside_none(size, effort))
    limit = "the same output without 'queue'"
    return [ratio_row(f"queue{size}", figures, limit, unit="passes/s", least=KEEPS_UP)]


async def _beside_none(size: int, effort: Effort) -> Compared:
    given, plain = messages.batches(size), passes.one(sink="gated_writing")
    with tempfile.TemporaryDirectory() as folder:
        async with (
            passes.Bed(_queued(plain), given, engine=_engine(folder)) as bed,
            passes.Bed(plain, given) as beside,
        ):
            return await compare(bed.run, beside.run, effort)


def _queued(pipelines: list[passes.Config]) -> list[passes.Config]:
    """Return pipelines whose outputs have a queue."""
    return [
        {**each, "outputs": [{**output, "queue": True} for output in each["outputs"]]}
        for each in pipelines
    ]


def _engine(folder: str) -> Engine:
    settings = StoreSettings.load({"sync": "process", "keep_free_bytes": 0})
    return Engine(Clock(asyncio.get_running_loop()), data_dir=DataDir(Path(folder)), store=settings)


def outage100(effort: Effort) -> list[Row]:
    """On to the disk while the output is away, and off again; a hundred messages a batch."""
    figures = on_one_core(_outages(effort))
    limit = "encoding and decoding it"
    return [ratio_row("outage100", figures, limit, unit="msg/CPU s", per=100, least=ON_AND_OFF)]


async def _outages(effort: Effort) -> Compared:
    given = messages.batches(100)
    batches = 2_000 if effort.pairs > 1 else 64
    with tempfile.TemporaryDirectory() as folder:
        config = _queued(passes.one(raw="confirmed_", sink="gated"))
        async with passes.Bed(config, given, engine=_engine(folder)):
            supply, sink = standins.supplies["p1"], standins.sinks["p1"]
            gate = standins.gates["p1"]
            assert isinstance(supply, standins.Confirmed)

            async def outage(batches: int) -> None:
                gate.clear()
                sink.expect(batches)
                supply.hand_out(batches)
                await supply.through()  # it is on the disk, as nothing is written
                gate.set()
                await sink.expected()

            both = _by_hand(given)
            pairs = [
                (await _cpu(outage, batches), await _cpu(both, batches))
                for _ in range(effort.pairs)
            ]
    return compared(pairs)


def _by_hand(given: list[Any]) -> Callable[[int], Awaitable[None]]:
    decode = Decoding().decode

    async def both(batches: int) -> None:
        for number in range(batches):
            decode(encode(given[number % len(given)]))

    return both


async def _cpu(work: Callable[[int], Awaitable[None]], batches: int) -> float:
    """Return the CPU seconds of a batch, of all threads together."""
    began = time.process_time()
    await work(batches)
    return (time.process_time() - began) / batches
