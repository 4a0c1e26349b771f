"""Scenarios of memory: what an idle pipeline keeps, and what a siege leaves behind."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from bench import passes, servers
from bench.ingest import path, pipeline
from bench.load import HOST, Outcome, Plan
from bench.measuring import Effort
from bench.servers import Server
from bench.table import Row

IDLE = 1000
MOST_KB = 50
MOST_MB = 30
SINK_SECONDS = 0.002
"""What the slow sink takes for a batch, so a pipeline cannot deliver more than 500 in a second."""
OVERLOAD = 3
SIZE = 10
SETTLED_SECONDS = 0.5
DRAINED_SECONDS = 60.0


def idle(effort: Effort) -> list[Row]:
    """A thousand pipelines nobody posts to: http, a filter, stdout."""
    count = IDLE if effort.pairs > 1 else 10
    many = [pipeline(f"p{n}", passes.FILTER1, [{"type": "stdout"}]) for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        with servers.headrace([], Path(folder)) as server:
            empty = _settled(server)
        with servers.headrace(many, Path(folder)) as server:
            full = _settled(server)
    each = (full - empty) / count / 1024
    return [
        Row(
            "pipelines1000",
            f"{full / 2**20:.1f} MB with {count} idle",
            f"an empty server: {empty / 2**20:.1f} MB",
            f"{each:.1f} KB each",
            f"at most {MOST_KB} KB",
            each <= MOST_KB,
            each,
        )
    ]


def overload(effort: Effort) -> list[Row]:
    """Three times as many posts as the output can deliver: memory stays, nothing accepted is lost."""
    return asyncio.run(_overload(effort))


async def _overload(effort: Effort) -> list[Row]:
    sink = SlowSink()
    listening = await asyncio.start_server(sink.serve, HOST, 0)
    output = {"type": "http", "url": f"http://{HOST}:{listening.sockets[0].getsockname()[1]}/"}
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.headrace([pipeline("p1", [], [output])], Path(folder)) as server,
    ):
        start = server.rss
        siege = asyncio.create_task(asyncio.to_thread(servers.load, _siege(server, effort)))
        most = start
        while not siege.done():
            most = max(most, server.rss)
            await asyncio.sleep(0.1)
        outcome = await siege
        await sink.drained(outcome.accepted)
    listening.close()
    return [_row(outcome, sink.messages, (most - start) / 2**20)]


def _siege(server: Server, effort: Effort) -> Plan:
    rate = OVERLOAD / SINK_SECONDS
    posts = int(rate * effort.span)
    return Plan(server.port, path("p1"), SIZE, posts, 2 * effort.span, connections=64, rate=rate)


def _row(outcome: Outcome, delivered: int, growth: float) -> Row:
    refused = outcome.statuses.get("503", 0)
    others = sum(outcome.statuses.values()) - outcome.statuses.get("202", 0) - refused
    is_whole = outcome.accepted == delivered and not others
    told = f"accepted {outcome.accepted:,}, delivered {delivered:,} messages"
    return Row(
        "overload",
        f"{told}; {refused:,} posts answered 503, {others} otherwise",
        f"{OVERLOAD} x what the output delivers, {outcome.seconds:.0f} s",
        f"{growth:+.1f} MB",
        f"at most {MOST_MB} MB, all accepted delivered",
        growth <= MOST_MB and is_whole and refused > 0,
        growth,
    )


def _settled(server: Server) -> int:
    """Return the memory of a server that has come up and has nothing to do."""
    time.sleep(SETTLED_SECONDS)
    return server.rss


class SlowSink:
    """An HTTP server that takes its time for every batch, and counts the messages."""

    def __init__(self) -> None:
        self.messages = 0
        self._wanted = -1
        self._reached = asyncio.Event()

    async def drained(self, messages: int) -> None:
        """Wait until so many are here, or nothing more can be expected to come."""
        self._wanted = messages
        if self.messages < messages:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._reached.wait(), DRAINED_SECONDS)
        await asyncio.sleep(SETTLED_SECONDS)  # what comes twice shows now

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what comes over one connection until it is closed."""
        # Cancelled when the scenario is over.
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
                body = await reader.readexactly(int(length))
                await asyncio.sleep(SINK_SECONDS)
                self.messages += body.count(b'"machine"')
                if self.messages == self._wanted:
                    self._reached.set()
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()
