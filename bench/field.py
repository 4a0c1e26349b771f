"""The scenario of a field device: a pipeline that watches its variables, beside a handler by hand.

Both subscribe in one process on one core, each to variables of its own; the device is on the other core
and changes those of either in turn. What counts is CPU time, as the device takes longer to send a value
than either of them to take it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bench import ingest, standins, stores_byhand
from bench.device import node_ids, url
from bench.measuring import Compared, Cost, Effort, both, on_one_core, timed
from bench.running import Ask, Config, pipeline, talking
from bench.table import Row, cpu_rows
from bench.traffic import ROUTES
from headrace.web.commands.collecting import collect_less
from tests.services.server import free_port

NODES = 1000
MAX_BATCH = 100
INTERVAL_MS = 100
MOST_TIMES = 20
"""That a variable changes in a turn: the device keeps as many, and then sends them for about a second."""
MOST_SECONDS = 60.0
"""For that, on a machine that is busy."""

Heard = standins.CountingMessages | stores_byhand.Heard
Change = Callable[[int], Awaitable[Cost]]
"""Changes every variable of a route so many times, and returns what a value cost."""


def opcua1000(effort: Effort) -> list[Row]:
    """A thousand variables of a device."""
    beside = on_one_core(_beside(effort))
    return cpu_rows("opcua1000", beside, "asyncua, a handler that counts", unit="value", least=0.8)


async def _beside(effort: Effort) -> tuple[Compared, Compared]:
    """Return what a value costs either side."""
    port = free_port()
    watched = {"interval_ms": INTERVAL_MS, "queue": MOST_TIMES}
    async with (
        talking("bench.device", port, NODES) as ask,
        _ours(url(port)) as ours,
        stores_byhand.opcua(url(port), node_ids(ROUTES[1], NODES), **watched) as theirs,
    ):
        collect_less()
        sides = [_changing(ask, *each) for each in zip(ROUTES, (ours, theirs), strict=True)]
        counts = [await _fitting(each, effort) for each in sides]
        return both(
            [
                [await each(count) for each, count in zip(sides, counts, strict=True)]
                for _ in range(effort.pairs)
            ]
        )


@asynccontextmanager
async def _ours(at: str) -> AsyncIterator[standins.CountingMessages]:
    """Run the pipeline, and begin when each variable has told the value that it has."""
    counter = standins.message_sinks["ours"] = standins.CountingMessages()
    counter.expect(NODES)
    source: Config = {
        "type": "opcua",
        "connection": "device",
        "nodes": [{"node_id": each} for each in node_ids(ROUTES[0], NODES)],
        "max_batch": MAX_BATCH,
        "publish_interval_ms": INTERVAL_MS,
        "queue_size": MOST_TIMES,
    }
    config = {"id": "ours", "inputs": [source], "outputs": [{"type": "counting_messages"}]}
    connections = {"device": {"type": "opcua", "endpoint": at}}
    async with pipeline(config, connections, standins.catalogue()):
        await counter.expected()
        yield counter


def _changing(ask: Ask, route: str, heard: Heard) -> Change:
    async def changed(times: int) -> None:
        heard.expect(times * NODES)
        async with asyncio.timeout(MOST_SECONDS):
            await ask(f"{route} {times}", "done")
            await heard.expected()

    return lambda times: timed(changed(times), times * NODES)


async def _fitting(change: Change, effort: Effort) -> int:
    """Return how many changes fill a turn. Warms up on the way."""
    wanted, times = ingest.LONGER * effort.seconds, 1
    while (turn := (await change(times))[1] * times * NODES) < wanted / 2 and times < MOST_TIMES:
        times = min(2 * times, MOST_TIMES)
    return min(max(int(times * wanted / turn), 1), MOST_TIMES)
